// SPDX-License-Identifier: Apache-2.0

import Foundation
import FrameCore
import Testing

@testable import VideoSnake

/// The snake, by numbers and by pixels.
@Suite struct VideoSnakeTests {
    private static func motion(_ seconds: Double, _ push: SIMD3<Float>, attitude: Quaternion? = .level) -> Motion {
        var sample = MotionSample(time: MediaTime(seconds: seconds))
        let up = SIMD3<Float>(0, -1, 0)
        sample.contents = attitude == nil ? .acceleration : [.acceleration, .attitude]
        sample.acceleration = (push + up) * MotionSample.standardGravity
        sample.attitude = attitude ?? .identity
        return Motion(sample: sample, age: 0, isExtrapolated: false)
    }

    /// Pictures each 1/30 s with this push to the right, in g: the shift of each in clip units at a width of 1280.
    private func shifts(seconds: Double, _ push: (Double) -> Double, attitude: Quaternion? = .level) -> [Double] {
        var snake = SnakeMotion()
        return (0..<Int(seconds * 30)).map { number in
            let time = Double(number) / 30
            snake.advance(Self.motion(time, SIMD3(Float(push(time)), 0, 0), attitude: attitude))
            return Double(snake.shift(width: 1280, height: 720, bend: 1).x) / 640
        }
    }

    /// Figures of the recipe: 1 g for 0.1 s and back, 0.2 g held, 3 Hz of 0.5 g.
    @Test func movesAsThePublishedEffect() {
        let pushed = shifts(seconds: 1) { $0 > 0 && $0 <= 0.1001 ? 1 : $0 > 0.1 && $0 <= 0.2001 ? -1 : 0 }
        #expect(abs((pushed.map(abs).max() ?? 0) - 0.74) < 0.01, "\(pushed)")
        #expect(pushed.first { abs($0) > 0.1 }! < 0, "a push to the right leaves the tail to the left")
        #expect(pushed.dropFirst(15).allSatisfy { abs($0) < 0.1 })
        let held = shifts(seconds: 2) { _ in 0.2 }
        #expect(abs(held.last! + 0.26) < 0.01, "\(held.last!)")
        let shaken = shifts(seconds: 4) { 0.5 * sin(2 * .pi * 3 * $0) }
        #expect(abs(shaken.map(abs).max()! - 0.33) < 0.02, "\(shaken.map(abs).max()!)")
        #expect(shifts(seconds: 2) { _ in 0 }.allSatisfy { $0 == 0 })
    }

    /// Without an attitude, gravity is what lasts: a camera held askew is at rest.
    @Test func takesWhatLastsForGravity() {
        #expect(shifts(seconds: 4, { _ in 0.4 }, attitude: nil).allSatisfy { abs($0) < 0.02 })
        let pushed = shifts(seconds: 2, { $0 >= 1 && $0 < 1.1 ? 1 : 0 }, attitude: nil)
        #expect(pushed[..<30].allSatisfy { $0 == 0 } && pushed[30..<40].contains { $0 < -0.3 }, "\(pushed)")
    }

    @Test func standsStillWithoutMotionAndAfterAPause() {
        var snake = SnakeMotion()
        for _ in 0..<10 { snake.advance(nil) }
        #expect(snake.velocity == .zero)
        snake.advance(Self.motion(1, .zero))
        snake.advance(Self.motion(500, SIMD3(1, 0, 0)))
        #expect(snake.velocity == .zero)
    }

    // MARK: Pixels

    private static let format = VideoFormat(.i420, width: 640, height: 480, frameRate: Rational(30))

    private func driver(_ options: String = "{}") throws -> StageDriver<VideoSnake> {
        try StageDriver(VideoSnake.self, options: options, input: .video(Self.format), metadata: [Motion.self])
    }

    private func white(_ driver: StageDriver<VideoSnake>, at seconds: Double, _ push: SIMD3<Float>) throws -> [UInt8] {
        var frame = try driver.makeFrame(pts: MediaTime(seconds: seconds)) { frame in
            for plane in 0..<3 {
                frame.withMutablePlane(plane) { plane_ in
                    for y in 0..<plane_.height { plane_.row(y).update(repeating: plane == 0 ? 235 : 128) }
                }
            }
        }
        if let slot = driver.context.slot(for: Motion.self) { frame[slot] = Self.motion(seconds, push) }
        try driver.send(frame)
        guard let result = driver.takeFrame() else { throw CancellationError() }
        return result.withPlane(0) { plane in (0..<plane.height).flatMap { Array(plane.row($0)) } }
    }

    /// Where black turns white along the row, and back.
    private func edges(_ row: ArraySlice<UInt8>) -> [Int] {
        zip(row.indices, row.indices.dropFirst()).compactMap {
            (row[$0] < 125) != (row[$1] < 125) ? $1 - row.startIndex : nil
        }
    }

    /// White pictures of the past, each 0.85 of the next, around one point.
    @Test func atRestThePicturesLieInsideEachOther() throws {
        let driver = try driver()
        var picture: [UInt8] = []
        for number in 0..<8 { picture = try white(driver, at: Double(number) / 30, .zero) }
        // Below the newest picture, where no later one lies above: the first that is seen there is the oldest.
        let row = picture[(240 * 640)..<(241 * 640)]
        let found = edges(row)
        // The newest is a quarter of 640 wide, less its edge of 1 %.
        let half = 640 * 0.25 / 2
        #expect(
            found.contains { abs(Double($0) - (320 - half + 2)) <= 1 }
                && found.contains { abs(Double($0) - (320 + half - 2)) <= 1 },
            "\(found)")
        // Left and right are alike.
        #expect(zip(found, found.reversed()).allSatisfy { abs($0 + $1 - 640) <= 2 }, "\(found)")
    }

    /// After one picture with a push, the one before lies where the velocity says, to a pixel.
    @Test(arguments: [(Float(0.5), Float(0)), (Float(-0.3), Float(0.2)), (Float(0), Float(-0.6))])
    func aPushMovesThePictureBefore(x: Float, y: Float) throws {
        // So large a newest picture covers nothing: only the one before it is looked at.
        let driver = try driver(#"{"head": 0.5, "shrink": 0.9}"#)
        _ = try white(driver, at: 0, .zero)
        let picture = try white(driver, at: 0.1, SIMD3(x, y, 0))
        // 0.75 · 0.1 s · x g, in clip units of 0.01 · 640, of which the picture is 2 wide: half of 640 and of 480 pixels.
        let moved = (Double(-x) * 0.075 * 6.4 * 320, Double(-y) * 0.075 * 6.4 * 240)
        // The one before is 0.5 · 0.9 of the picture, less its edge; the newest hides all but what sticks out.
        let before = (320 - 640 * 0.45 / 2 + moved.0, 240 - 480 * 0.45 / 2 + moved.1)
        let whole = (left: before.0, right: before.0 + 288, top: before.1, bottom: before.1 + 216)
        func isWhite(_ x: Double, _ y: Double) -> Bool { picture[Int(y) * 640 + Int(x)] > 125 }
        let middle = (320.0 + moved.0, 240.0 + moved.1)
        // Its outer edge on the side to which it moved, 2.9 and 2.2 pixels of black within.
        if x != 0 {
            let edge = x > 0 ? whole.left + 2.9 : whole.right - 2.9
            let inward = x > 0 ? 1.0 : -1.0
            #expect(isWhite(edge + 2.5 * inward, middle.1) && !isWhite(edge - 2.5 * inward, middle.1), "\(edge)")
        }
        if y != 0 {
            let edge = y > 0 ? whole.top + 2.2 : whole.bottom - 2.2
            let inward = y > 0 ? 1.0 : -1.0
            #expect(isWhite(middle.0, edge + 2.5 * inward) && !isWhite(middle.0, edge - 2.5 * inward), "\(edge)")
        }
    }

    @Test func refusesSmallPictures() {
        #expect {
            _ = try StageDriver(VideoSnake.self, input: .video(VideoFormat(.i420, width: 32, height: 32)))
        } throws: { "\($0)".contains("needs pictures of 64x64 or more") }
    }
}

extension Quaternion {
    /// Of a camera that looks at the horizon, upright: y down in the picture is z down in the world.
    fileprivate static let level = Quaternion(rotation: SIMD3(-Float.pi / 2, 0, 0))
}
