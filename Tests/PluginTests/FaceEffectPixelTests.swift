// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FaceEffect

/// The effects' pixels against formulas in floating point, written down here anew.
@Suite struct FaceEffectPixelTests {
    private static let sizes = [(160, 120), (161, 121), (90, 63)]
    private static let box = FaceRect(x: 31, y: 22, width: 36, height: 44)
    private static let detection = Detection.at(31, 22, 36, 44)

    @Test(arguments: [PixelFormat.i420, .nv12], sizes)
    func replaceMixesTheColourByTheMask(pixelFormat: PixelFormat, size: (Int, Int)) throws {
        let format = VideoFormat(pixelFormat, width: size.0, height: size.1)
        let (before, after) = try EffectRun.frames(
            ##"{ "effect": "replace", "color": "#ff0000", "feather": 0.3, "margin": 0.2 }"##, format,
            faces: [Self.detection])
        var changed = 0
        for y in 0..<size.1 {
            for x in 0..<size.0 {
                let share = EffectRun.alpha(Double(x) + 0.5, Double(y) + 0.5, Self.box, margin: 0.2, feather: 0.3)
                let index = y * size.0 + x
                let wanted = Double(before[0][index]) * (1 - share) + 81 * share
                if share == 0 { #expect(after[0][index] == before[0][index]) }
                #expect(abs(Double(after[0][index]) - wanted) <= 2)
                if after[0][index] != before[0][index] { changed += 1 }
            }
        }
        #expect(changed > 1000)
        let half = ((size.0 + 1) / 2, (size.1 + 1) / 2)
        for (component, value) in [(0, 90.0), (1, 240.0)] {
            let plane = pixelFormat == .nv12 ? 1 : 1 + component
            for y in 0..<half.1 {
                for x in 0..<half.0 {
                    let share = EffectRun.alpha(
                        Double(2 * x + 1), Double(2 * y + 1), Self.box, margin: 0.2, feather: 0.3)
                    let index = pixelFormat == .nv12 ? (y * half.0 + x) * 2 + component : y * half.0 + x
                    let wanted = Double(before[plane][index]) * (1 - share) + value * share
                    if share == 0 { #expect(after[plane][index] == before[plane][index]) }
                    #expect(abs(Double(after[plane][index]) - wanted) <= 2)
                }
            }
        }
    }

    @Test(arguments: ["pixelate", "blur", "smooth", "replace"], [PixelFormat.i420, .nv12])
    func changesNothingOutsideItsRegion(effect: String, pixelFormat: PixelFormat) throws {
        let format = VideoFormat(pixelFormat, width: 161, height: 121)
        let (before, after) = try EffectRun.frames(#"{ "effect": "\#(effect)" }"#, format, faces: [Self.detection])
        var changed = 0
        for y in 0..<121 {
            for x in 0..<161 where after[0][y * 161 + x] != before[0][y * 161 + x] {
                changed += 1
                #expect(EffectRun.alpha(Double(x) + 0.5, Double(y) + 0.5, Self.box, margin: 0.3, feather: 0.15) > 0)
            }
        }
        #expect(changed > 500)
        for plane in 1..<before.count {
            let wide = pixelFormat == .nv12 ? 2 : 1
            for index in before[plane].indices where after[plane][index] != before[plane][index] {
                let (x, y) = (index / wide % 81, index / wide / 81)
                #expect(EffectRun.alpha(Double(2 * x + 1), Double(2 * y + 1), Self.box, margin: 0.3, feather: 0.15) > 0)
                #expect(effect != "smooth", "smooth leaves colour alone")
            }
        }
    }

    @Test func pixelateShowsTheMeanOfEachBlock() throws {
        let format = VideoFormat(.i420, width: 160, height: 120)
        // 36 / 6 blocks: six pixels a side, counted from the middle, 49 → 48 and 44.
        let (before, after) = try EffectRun.frames(
            #"{ "effect": "pixelate", "blocks": 6, "feather": 0, "margin": 0.2 }"#, format, faces: [Self.detection])
        for by in 0..<4 {
            for bx in 0..<3 {
                let (left, top) = (48 - 6 + bx * 6, 44 - 12 + by * 6)
                var sum = 0.0
                for y in top..<(top + 6) { for x in left..<(left + 6) { sum += Double(before[0][y * 160 + x]) } }
                for y in top..<(top + 6) {
                    for x in left..<(left + 6) { #expect(abs(Double(after[0][y * 160 + x]) - sum / 36) <= 1) }
                }
            }
        }
    }

    @Test func smoothIsTheLocalStatisticsFilter() throws {
        let format = VideoFormat(.i420, width: 160, height: 120)
        let (before, after) = try EffectRun.frames(
            #"{ "effect": "smooth", "strength": 0.5, "feather": 0, "margin": 0.2 }"#, format, faces: [Self.detection])
        let strength = (2 + 22 * 0.5) * (2 + 22 * 0.5)
        for y in 35..<50 {
            for x in 40..<58 {
                var sum = 0.0
                var square = 0.0
                for dy in -2...2 {
                    for dx in -2...2 {
                        let value = Double(before[0][(y + dy) * 160 + x + dx])
                        sum += value
                        square += value * value
                    }
                }
                let mean = sum / 25
                let variance = square / 25 - mean * mean
                let wanted = mean + (Double(before[0][y * 160 + x]) - mean) * variance / (variance + strength)
                #expect(abs(Double(after[0][y * 160 + x]) - wanted) <= 2)
            }
        }
    }

    @Test func blurOfAFlatPictureIsThePicture() throws {
        let format = VideoFormat(.nv12, width: 96, height: 72)
        let driver = try HarnessedFaceEffect.driver(
            #"{ "effect": "blur" }"#, format, FakeDetector { _, _, _ in [Self.detection] })
        for _ in 0..<3 {
            let frame = try driver.makeFrame { frame in
                for plane in 0..<frame.planeCount {
                    frame.withMutablePlane(plane) { plane in
                        for y in 0..<plane.height { plane.row(y).update(repeating: 77) }
                    }
                }
            }
            try driver.send(frame)
            let after = try driver.nextFrame().planeBytes
            #expect(after.allSatisfy { $0.allSatisfy { $0 == 77 } })
        }
        try driver.stop()
    }

    @Test(arguments: ["pixelate", "blur", "smooth", "replace", "box"])
    func worksAtEveryBorderAndOnFortyFaces(effect: String) throws {
        let places = [
            (-20.0, -25.0), (140, -20), (-15, 100), (150, 110), (60, -30), (60, 115), (-40, 40), (158, 50),
            (-300, -300),
        ]
        for (x, y) in places {
            _ = try EffectRun.frames(
                #"{ "effect": "\#(effect)" }"#, VideoFormat(.i420, width: 161, height: 121), faces: [.at(x, y, 36, 44)])
        }
        let many = (0..<40).map { Detection.at(Double($0 % 8) * 20, Double($0 / 8) * 24, 15, 18) }
        let (before, after) = try EffectRun.frames(
            #"{ "effect": "\#(effect)" }"#, VideoFormat(.nv12, width: 160, height: 120), faces: many)
        #expect(before[0] != after[0])
        let (none, same) = try EffectRun.frames(
            #"{ "effect": "\#(effect)" }"#, VideoFormat(.nv12, width: 160, height: 120), faces: [])
        #expect(none == same)
    }

    @Test func annotatesAloneWithDrawFalse() throws {
        let format = VideoFormat(.i420, width: 160, height: 120, orientation: .right)
        // Upright it is 120 wide and 160 high.
        let driver = try HarnessedFaceEffect.driver(
            #"{ "draw": false }"#, format, FakeDetector { _, _, _ in [.at(20, 30, 36, 44)] })
        let slot = try #require(driver.context.slot(for: Faces.self))
        for number in 0..<2 {
            var noise = Noise(11)
            let frame = try driver.makeFrame { noise.fill(&$0) }
            let before = frame.planeBytes
            try driver.send(frame)
            let out = try driver.nextFrame()
            #expect(out.planeBytes == before)
            let faces = try #require(out[slot])
            #expect(faces.count == number)
            guard number == 1 else { continue }
            // Turned clockwise for display: upright x is stored y from below.
            #expect(faces[0].id == 1 && faces[0].isDetected && faces[0].age == 1)
            #expect([faces[0].x, faces[0].y, faces[0].width, faces[0].height] == [30, 120 - 20 - 36, 44, 36])
            let copy = try JSONDecoder().decode(Faces.self, from: JSONEncoder().encode(faces))
            #expect(copy == faces)
        }
        try driver.stop()
    }
}
