// SPDX-License-Identifier: Apache-2.0

import FrameCore
import MovingScenes
import Testing

@testable import MotionDetect

@Suite struct MotionDetectTests {
    private static let format = VideoFormat(.i420, width: 320, height: 240, frameRate: Rational(15))
    private static let scene = MovingScene(
        "short", seconds: 14,
        [
            .walker(from: 4, size: 0.45, ground: 0.9, speed: 0.4, coat: 60), .noise(sigma: 2),
        ])

    /// Sends a scene through the stage.
    ///
    /// - Returns: The events about motion, and what each frame had.
    private static func play(
        _ options: String = "{}", scene: MovingScene = scene, format: VideoFormat = format,
        _ change: (inout Frame, Double) -> Void = { _, _ in }
    ) throws -> (events: [Event], areas: [MotionAreas], driver: StageDriver<MotionDetect>) {
        let driver = try StageDriver(
            MotionDetect.self, options: options, input: .video(format), metadata: [MotionAreas.self])
        let slot = try #require(driver.context.slot(for: MotionAreas.self))
        var painter = ScenePainter(scene, width: format.width, height: format.height)
        var areas: [MotionAreas] = []
        for number in 0..<Int(scene.seconds * 15) {
            let seconds = Double(number) / 15
            var frame = try driver.makeFrame()
            frame.pts = MediaTime(seconds: seconds)
            frame.withMutablePlane(0) {
                painter.draw(
                    seconds, to: $0.baseAddress, strideBytes: $0.strideBytes)
            }
            change(&frame, seconds)
            try driver.send(frame)
            let answer = try driver.nextFrame()
            if let found = answer[slot] { areas.append(found) }
        }
        return (driver.takeEvents().filter { $0.name.hasPrefix("motion-") }, areas, driver)
    }

    @Test func saysWhenMotionBeginsAndEnds() throws {
        let (events, areas, _) = try Self.play(#"{"endSeconds": 1}"#)
        #expect(events.map(\.name) == ["motion-began", "motion-ended"])
        #expect((events.last?.details["seconds"]?.asDouble ?? 0) > 2)
        let box = try #require(events.first?.details["areas"]?.asArray?.first)
        #expect((box["x"]?.asDouble ?? 1) < 0.5, "the walker comes from the left")
        let since = try #require(events.first?.details["since"]?.asDouble)
        #expect(since >= 0.4 && since < 2, "it moved for minSeconds before: \(since)")
        #expect(areas.count == 14 * 15)
        #expect(areas.contains { $0.isMotion && !$0.isEmpty })
        #expect(areas.allSatisfy { $0.pictureWidth == 320 && $0.pictureHeight == 240 })
    }

    @Test func placesAreasInTheUprightPicture() throws {
        var turned = Self.format
        turned.orientation = .down
        let (events, _, _) = try Self.play(format: turned) { frame, _ in frame.orientation = .down }
        let box = try #require(events.first?.details["areas"]?.asArray?.first)
        #expect((box["x"]?.asDouble ?? 0) > 0.5)
        #expect((box["y"]?.asDouble ?? 1) < 0.5)
    }

    @Test func takesSubstitutesForNoMotion() throws {
        let empty = MovingScene("slate", seconds: 14, [.slate(from: 5, until: 8), .noise(sigma: 2)])
        let (events, areas, _) = try Self.play(scene: empty) { frame, seconds in
            frame.isSubstitute = seconds >= 5 && seconds < 8
            frame.isDiscontinuity = seconds == 8
        }
        #expect(events.isEmpty)
        #expect(areas.allSatisfy { $0.isEmpty && !$0.isMotion })
    }

    @Test func ignoresAnArea() throws {
        let (events, _, _) = try Self.play(#"{"ignore": [{"polygon": [[0, 0.3], [1, 0.3], [1, 1], [0, 1]]}]}"#)
        #expect(events.isEmpty)
    }

    @Test func refusesAnAreaBeyondThePicture() {
        #expect(throws: (any Error).self) {
            try StageDriver(
                MotionDetect.self, options: #"{"ignore": [{"polygon": [[0, 0], [2, 0], [0, 1]]}]}"#,
                input: .video(Self.format))
        }
    }

    @Test func readsAloneUnlessItDraws() throws {
        let plain = try StageDriver(MotionDetect.self, input: .video(Self.format))
        #expect(plain.stage.demand.access == .read)
        let drawing = try StageDriver(MotionDetect.self, options: #"{"draw": true}"#, input: .video(Self.format))
        #expect(drawing.stage.demand.access == .modify)
    }

    @Test func beginsAnewWithAnotherOrientation() throws {
        let (events, _, _) = try Self.play { frame, seconds in
            frame.orientation = seconds < 6 ? .up : .down
        }
        #expect(events.filter { $0.name == "motion-began" }.count <= 2)
    }

    /// Plays until something moves, and gives the time of the next picture.
    private static func playUntilMotion(_ clock: ManualClock = ManualClock(at: 1)) throws -> (
        StageDriver<MotionDetect>, Double
    ) {
        let driver = try StageDriver(
            MotionDetect.self, options: #"{"endSeconds": 2}"#, input: .video(format), clock: clock)
        var painter = ScenePainter(scene, width: format.width, height: format.height)
        for number in 0..<90 {
            let seconds = Double(number) / 15
            var frame = try driver.makeFrame(pts: MediaTime(seconds: seconds))
            frame.withMutablePlane(0) { painter.draw(seconds, to: $0.baseAddress, strideBytes: $0.strideBytes) }
            clock.advance(to: Int64(seconds * 1e9))
            try driver.send(frame)
            _ = try driver.nextFrame()
        }
        return (driver, 6)
    }

    @Test func showsNoMotionWhileNoPicturesCome() throws {
        let clock = ManualClock(at: 1)
        let (driver, time) = try Self.playUntilMotion(clock)
        func figure(_ name: String, after seconds: Double) -> JSONNode? {
            driver.stage.shown.withLock { $0 }.json(at: Int64((time + seconds) * 1e9))[name]
        }
        #expect(figure("isMotion", after: 1.9)?.asBool == true)
        #expect((figure("level", after: 1.9)?.asDouble ?? 0) >= 1)
        #expect(figure("isMotion", after: 2.1)?.asBool == false)
        #expect(figure("level", after: 2.1)?.asDouble == 0)
        #expect(figure("motions", after: 2.1)?.asInt == 1)
        // The first picture after that ends it.
        _ = driver.takeEvents()
        try driver.send(driver.makeFrame(pts: MediaTime(seconds: time + 60)))
        _ = try driver.nextFrame()
        #expect(driver.takeEvents().map(\.name) == ["motion-ended"])
    }

    /// A picture of less than 16 pixels' side, in which nothing is looked for.
    private static func sendSmall(to driver: StageDriver<MotionDetect>, at seconds: Double) throws {
        let other = try StageDriver(
            MotionDetect.self, input: .video(VideoFormat(.i420, width: 12, height: 12, frameRate: Rational(15))))
        try driver.send(other.makeFrame(pts: MediaTime(seconds: seconds)))
        _ = try driver.nextFrame()
    }

    @Test func endsMotionInPicturesThatAreTooSmall() throws {
        let (driver, time) = try Self.playUntilMotion()
        _ = driver.takeEvents()
        try Self.sendSmall(to: driver, at: time)
        #expect(driver.takeEvents().isEmpty)
        try Self.sendSmall(to: driver, at: time + 2)
        #expect(driver.takeEvents().map(\.name) == ["motion-ended"])
    }

    @Test func endsMotionWithTheRunAfterPicturesThatAreTooSmall() throws {
        let (driver, time) = try Self.playUntilMotion()
        _ = driver.takeEvents()
        try Self.sendSmall(to: driver, at: time)
        driver.stage.stop()
        #expect(driver.takeEvents().map(\.name) == ["motion-ended"])
        #expect(driver.stage.shown.withLock { $0 }.json(at: 0)["isMotion"]?.asBool == false)
    }

    @Test func looksAgainAfterPicturesThatWereTooSmall() throws {
        let (driver, time) = try Self.playUntilMotion()
        try Self.sendSmall(to: driver, at: time)
        try driver.send(driver.makeFrame(pts: MediaTime(seconds: time + 1)))
        _ = try driver.nextFrame()
        #expect(driver.stage.shown.withLock { $0 }.json(at: 0)["isLearning"]?.asBool == true)
    }
}
