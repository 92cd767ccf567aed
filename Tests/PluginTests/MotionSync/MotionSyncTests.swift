// SPDX-License-Identifier: Apache-2.0

import Foundation
import FrameCore
import Testing

@testable import MotionSync

/// Motion is found again at the time of each picture.
@Suite struct MotionSyncTests {
    private static let video = VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(30))

    private static func motion(_ rate: Double, _ contents: MotionSample.Contents = [.rotationRate, .attitude])
        -> MediaFormat
    { .motion(MotionFormat(contents: contents, sampleRate: rate)) }

    private func driver(_ options: String = "{}", rate: Double = 200) throws -> StageDriver<MotionSync> {
        try StageDriver(MotionSync.self, options: options, inputs: [.video(Self.video), Self.motion(rate)])
    }

    /// A turn about an axis that itself moves: nothing is a straight line. Known at each moment.
    private static func attitude(at seconds: Double) -> Quaternion {
        func turn(_ angle: Double, _ axis: SIMD3<Float>) -> Quaternion {
            Quaternion(rotation: axis * Float(remainder(angle, 2 * Double.pi)))
        }
        return turn(0.9 * seconds, SIMD3(0, 0, 1)) * turn(0.4 * sin(3 * seconds), SIMD3(1, 0, 0))
            * turn(0.3 * cos(5 * seconds), SIMD3(0, 1, 0))
    }

    private static func sample(at seconds: Double) -> MotionSample {
        var sample = MotionSample(time: MediaTime(seconds: seconds))
        sample.contents = [.rotationRate, .attitude]
        sample.attitude = attitude(at: seconds)
        // Changes by 1 a second, so that its value is the time.
        sample.rotationRate.x = Float(seconds)
        return sample
    }

    private static func motion(of frame: borrowing Frame, _ driver: StageDriver<MotionSync>) -> Motion? {
        driver.context.slot(for: Motion.self).flatMap { frame[$0] }
    }

    /// 100 to 400 samples a second, each up to a third of a period off its place, one in ten lost, but never more than two
    /// in a row: within 1 ms and 0.1°.
    @Test(arguments: [100.0, 200, 400]) func matchesASpin(rate: Double) throws {
        let driver = try driver(rate: rate)
        var random = SystemRandomNumberGenerator()
        var times: [Double] = []
        var number = 0.0
        var lost = 0
        while number / rate < 10 {
            lost = lost < 2 && Double.random(in: 0..<1, using: &random) < 0.1 ? lost + 1 : 0
            if lost == 0 {
                times.append((number + Double.random(in: -0.33...0.33, using: &random)) / rate)
            }
            number += 1
        }
        var next = 0
        var worst = (time: 0.0, angle: 0.0)
        for picture in 3..<285 {
            let time = Double(picture) / 30 + 0.0007
            while next < times.count, times[next] < time + 0.05 {
                try driver.send(driver.makeMotionBlock([Self.sample(at: times[next])], input: 1), from: 1)
                next += 1
            }
            try driver.send(driver.makeFrame(pts: MediaTime(seconds: time)))
            guard let frame = driver.takeFrame(), let motion = Self.motion(of: frame, driver) else {
                Issue.record("picture \(picture) has no motion")
                return
            }
            #expect(!motion.isExtrapolated && motion.sample.time == MediaTime(seconds: time))
            worst.time = max(worst.time, abs(Double(motion.sample.rotationRate.x) - time))
            worst.angle = max(
                worst.angle, Double(motion.sample.attitude.angle(to: Self.attitude(at: time))) * 180 / .pi)
        }
        #expect(worst.time < 0.001, "\(worst.time * 1000) ms")
        #expect(worst.angle < 0.1, "\(worst.angle)°")
    }

    @Test func offsetAndExposureMoveThePicture() throws {
        let driver = try driver(#"{"offsetMs": -20, "exposureMs": 10}"#)
        #expect(driver.stage.lookAhead == MediaTime(nanoseconds: 35_000_000), "two periods, 20 ms and half of 10 ms")
        let samples = (0..<100).map { Self.sample(at: Double($0) / 200) }
        try driver.send(driver.makeMotionBlock(samples, input: 1), from: 1)
        try driver.send(driver.makeFrame(pts: MediaTime(seconds: 0.1)))
        guard let frame = driver.takeFrame() else { return }
        let matched = Self.motion(of: frame, driver)
        let motion = try #require(matched)
        #expect(abs(motion.sample.rotationRate.x - 0.125) < 1e-6, "\(motion)")
    }

    /// The whole range of the option, at a known rate and at an unknown one.
    @Test(arguments: [-10_000, -2100, 1900, 2100, 10_000], [0.0, 200]) func offsetReachesTenSeconds(
        milliseconds: Int, rate: Double
    ) throws {
        let driver = try driver("{\"offsetMs\": \(milliseconds)}", rate: rate)
        var next = 0
        for picture in 0..<600 {
            let time = Double(picture) / 30
            let ahead = driver.stage.lookAhead.seconds
            while Double(next) / 200 <= time + max(ahead, 0.02) {
                try driver.send(driver.makeMotionBlock([Self.sample(at: Double(next) / 200)], input: 1), from: 1)
                next += 1
            }
            try driver.send(driver.makeFrame(pts: MediaTime(seconds: time)))
            guard let frame = driver.takeFrame() else { return }
            let wanted = time - Double(milliseconds) / 1000
            let motion = Self.motion(of: frame, driver)
            if wanted >= 0 {
                #expect(abs(Double(motion?.sample.rotationRate.x ?? .nan) - wanted) < 1e-4, "\(time) s")
            } else {
                #expect(motion == nil)
            }
        }
    }

    /// Times of a file in a wrong unit.
    @Test(arguments: [2e9, 1e30]) func aGapOfYearsDoesNotTrap(seconds: Double) throws {
        for (before, behind) in [(0.0, seconds), (-seconds, seconds)] {
            let driver = try driver(rate: 0)
            try driver.send(
                driver.makeMotionBlock([before, behind].map { MotionSample(time: MediaTime(seconds: $0)) }, input: 1),
                from: 1)
            try driver.send(driver.makeFrame(pts: MediaTime(seconds: 1)))
            _ = driver.takeFrame()
            #expect(driver.stage.lookAhead >= .zero)
        }
        for rate in [1e-12, 1e-300] { _ = try self.driver(rate: rate) }
    }

    /// The last sample is used for a while, and said to be old; then there is none.
    @Test func goesOnWithTheLastSampleForAWhile() throws {
        let driver = try driver()
        try driver.send(driver.makeMotionBlock((0..<20).map { Self.sample(at: Double($0) / 200) }, input: 1), from: 1)
        var seen: [(Int64, Bool)?] = []
        for milliseconds in [50, 95, 130, 400, 500] {
            try driver.send(driver.makeFrame(pts: MediaTime(seconds: Double(milliseconds) / 1000)))
            guard let frame = driver.takeFrame() else { return }
            seen.append(Self.motion(of: frame, driver).map { ($0.age / 1_000_000, $0.isExtrapolated) })
        }
        #expect(seen[0]! == (0, false) && seen[1]! == (0, false))
        #expect(seen[2]! == (35, true))
        #expect(seen[3] == nil && seen[4] == nil)
        let events = driver.takeEvents()
        #expect(events.map(\.name) == ["motion-missing"])
        try driver.send(
            driver.makeMotionBlock((110..<130).map { Self.sample(at: Double($0) / 200) }, input: 1), from: 1)
        try driver.send(driver.makeFrame(pts: MediaTime(seconds: 0.6)))
        _ = driver.takeFrame()
        let later = driver.takeEvents()
        #expect(later.map(\.name) == ["motion-present"])
        #expect(later.first?.text.contains("after 200 ms") == true, "\(later)")
    }

    @Test func doesNotInterpolateAcrossAGap() throws {
        let driver = try driver(#"{"gapMs": 100}"#)
        try driver.send(
            driver.makeMotionBlock([0.0, 0.09, 0.3].map { Self.sample(at: $0) }, input: 1), from: 1)
        var has: [Bool] = []
        for seconds in [0.05, 0.2, 0.3] {
            try driver.send(driver.makeFrame(pts: MediaTime(seconds: seconds)))
            guard let frame = driver.takeFrame() else { return }
            has.append(Self.motion(of: frame, driver) != nil)
        }
        #expect(has == [true, false, true])
    }

    @Test func saysHowTheCameraMovesAsOftenAsAsked() throws {
        let contents: MotionSample.Contents = [.rotationRate, .acceleration, .attitude]
        let driver = try StageDriver(
            MotionSync.self, options: #"{"reportSeconds": 0.5}"#,
            inputs: [.video(Self.video), Self.motion(100, contents)])
        // Turned clockwise by 30° about the line of sight, and turning by 90° a second.
        let samples = (0..<200).map { number in
            var sample = MotionSample(time: MediaTime(seconds: Double(number) / 100))
            sample.contents = [.rotationRate, .acceleration]
            sample.rotationRate = SIMD3(0, 0, .pi / 2)
            sample.acceleration = SIMD3(-9.80665 * sin(.pi / 6), -9.80665 * cos(.pi / 6), 0)
            return sample
        }
        try driver.send(driver.makeMotionBlock(samples, input: 1), from: 1)
        for number in 0..<45 {
            try driver.send(driver.makeFrame(pts: MediaTime(seconds: Double(number) / 30)))
            _ = driver.takeFrame()
        }
        let events = driver.takeEvents()
        #expect(events.map(\.name) == ["motion", "motion", "motion"])
        #expect(events.map { $0.pts?.seconds } == [0, 0.5, 1])
        #expect(events.allSatisfy { $0.text == "Roll 30°, pitch 0°." }, "\(events.map(\.text))")
        let details = try #require(events.last?.details)
        #expect(details["roll"]?.asDouble == 30 && details["pitch"]?.asDouble == 0, "\(details.text())")
        #expect(details["rotation"]?.asDouble == 90 && details["acceleration"]?.asDouble == 9.807, "\(details.text())")
        #expect(details["ageMs"]?.asDouble == 0, "\(details.text())")
    }

    @Test func saysAtTheEndThatNoPictureHadMotion() throws {
        let driver = try driver()
        for number in 0..<12 { try driver.send(driver.makeFrame(pts: MediaTime(seconds: Double(number) / 30))) }
        #expect { try driver.stop() } throws: { "\($0)".contains("none of 12 pictures has motion: no sample has come") }
    }

    @Test func needsMotion() {
        #expect {
            _ = try StageDriver(MotionSync.self, inputs: [.video(Self.video)])
        } throws: { "\($0)".contains("one input of motion, but has only pictures") }
    }

    // MARK: The ring

    @Test func keepsTheOrderAndTheNewest() {
        var ring = MotionRing(capacity: 4, rate: 0)
        func sample(_ milliseconds: Int) -> MotionSample {
            var sample = MotionSample(time: MediaTime(nanoseconds: Int64(milliseconds) * 1_000_000))
            sample.contents = .rotationRate
            sample.rotationRate.x = Float(milliseconds)
            return sample
        }
        func value(_ milliseconds: Int) -> Float? {
            let time = MediaTime(nanoseconds: Int64(milliseconds) * 1_000_000)
            guard case .between(let found, _) = ring.match(at: time, mostApart: 100_000_000) else { return nil }
            return found.rotationRate.x
        }
        #expect(ring.match(at: .zero, mostApart: 1) == .nothing)
        func add(_ milliseconds: Int) -> Bool { ring.add(sample(milliseconds)) }
        for time in [10, 30, 20] { #expect(add(time)) }
        #expect(!add(20), "a sample of that time is there")
        #expect([10, 15, 25, 30].map(value) == [10, 15, 25, 30])
        #expect(add(40) && add(50))
        #expect(value(10) == nil && value(20) == 20 && ring.count == 4)
        #expect(!add(5), "older than all that are kept")
        #expect(add(35) && ring.count == 4)
        #expect(value(20) == nil && value(35) == 35 && value(32) == 32)
        // Around the end of the memory, many times.
        for time in stride(from: 60, to: 5000, by: 10) {
            ring.add(sample(time))
            #expect(value(time - 15) == Float(time - 15) && value(time) == Float(time))
        }
        #expect(ring.period > 9_000_000 && ring.period < 11_000_000)
    }
}
