// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared
import Testing

@testable import FPSMeter

@Suite struct RateWindowTests {
    @Test func hasNoRateBeforeTwoEvents() {
        var window = RateWindow()
        #expect(window.rate == nil)
        window.add(5)
        #expect(window.rate == nil)
    }

    @Test func measuresASteadyRate() {
        var window = RateWindow()
        for index in 0..<200 { window.add(Int64(index) * 33_366_667) }
        #expect(abs(window.rate! - 30000.0 / 1001) < 0.001)
    }

    @Test func looksOneSecondBack() {
        var window = RateWindow()
        for index in 0..<100 { window.add(Int64(index) * 10_000_000) }
        let change = Int64(99) * 10_000_000
        for index in 1...30 { window.add(change + Int64(index) * 50_000_000) }
        #expect(abs(window.rate! - 20) < 0.001)
    }

    @Test func measuresSlowerThanOnePerSecond() {
        var window = RateWindow()
        for index in 0..<5 { window.add(Int64(index) * 4_000_000_000) }
        #expect(window.rate == 0.25)
    }

    @Test func countsMoreThanItsCapacityOverAShorterSpan() {
        var window = RateWindow(capacity: 16)
        for index in 0..<1000 { window.add(Int64(index) * 1000) }
        #expect(window.count == 16)
        #expect(abs(window.rate! - 1_000_000) < 1)
    }

    @Test func beginsAnewWhenTimeGoesBack() {
        var window = RateWindow()
        for index in 0..<10 { window.add(Int64(index) * 40_000_000) }
        window.add(0)
        #expect(window.rate == nil)
        window.add(20_000_000)
        #expect(window.rate == 50)
    }
}

@Suite struct JitterTests {
    @Test func isZeroForEvenArrival() {
        var jitter = Jitter()
        for index in 0..<10 { jitter.add(arrival: 7 + Int64(index) * 40, pts: Int64(index) * 40) }
        #expect(jitter.nanoseconds == 0)
    }

    @Test func movesASixteenthTowardsEachDifference() {
        var jitter = Jitter()
        jitter.add(arrival: 0, pts: 0)
        jitter.add(arrival: 56, pts: 40)
        #expect(jitter.nanoseconds == 1)
        jitter.restart()
        jitter.add(arrival: 1_000_000, pts: 80)
        #expect(jitter.nanoseconds == 1)
    }
}

@Suite struct FiguresTests {
    @Test(arguments: [(29.97, 2, "29.97"), (0, 2, "0.00"), (-1.5, 1, "-1.5"), (9.999, 2, "10.00"), (.nan, 1, "0.0")])
    func writesDecimals(value: Double, places: Int, text: String) {
        #expect(decimal(value, places) == text)
    }

    @Test func tellsPeopleAndPrograms() {
        let figures = Figures(fpsByPTS: 29.97, fpsByArrival: 30.125, jitterMs: 0.35, latencyMs: 12.3456)
        #expect(figures.text == "29.97 fps (30.13 by arrival), jitter 0.35 ms, latency 12.35 ms.")
        #expect(
            figures.details.text() == #"{"fpsByPTS":29.970,"fpsByArrival":30.125,"jitterMs":0.350,"latencyMs":12.346}"#)
    }
}

@Suite struct FPSMeterTests {
    static let format = VideoFormat(.i420, width: 640, height: 360, frameRate: Rational(25))

    @Test func reportsOnceASecond() throws {
        let clock = ManualClock(at: 1_000_000_000)
        let driver = try StageDriver(FPSMeter.self, input: .video(Self.format), clock: clock)
        for index in 0..<76 {
            let captured = 1_000_000_000 + Int64(index) * 40_000_000
            clock.advance(to: captured)
            let frame = try driver.makeFrame()
            clock.advance(to: captured + 5_000_000)
            try driver.send(frame)
            _ = try driver.nextFrame()
        }
        let events = driver.takeEvents().filter { $0.name == "fps" }
        #expect(events.count == 3)
        #expect(events.first?.text == "25.00 fps (25.00 by arrival), jitter 0.00 ms, latency 5.00 ms.")
        #expect(events.last?.details["latencyMs"]?.asDouble == 5)
    }

    @Test func readsAloneUnlessItDraws() throws {
        let plain = try StageDriver(FPSMeter.self, input: .video(Self.format))
        #expect(plain.stage.demand.access == .read)
        try plain.send(plain.makeFrame())
        let untouched = try plain.nextFrame().planeBytes
        #expect(untouched.allSatisfy { $0.allSatisfy { $0 == 0 } })
        let drawing = try StageDriver(FPSMeter.self, options: #"{ "draw": true }"#, input: .video(Self.format))
        #expect(drawing.stage.demand.access == .modify)
        try drawing.send(drawing.makeFrame())
        let drawn = try drawing.nextFrame().planeBytes
        #expect(drawn[0].contains(235))
    }

    @Test(arguments: PixelFormat.allCases, [(1, 1), (17, 33), (321, 241)])
    func drawsInEveryFormatAndSize(format: PixelFormat, size: (Int, Int)) throws {
        let driver = try StageDriver(
            FPSMeter.self, options: #"{ "draw": true }"#,
            input: .video(VideoFormat(format, width: size.0, height: size.1)))
        try driver.send(driver.makeFrame())
        #expect(try driver.nextFrame().planeBytes.contains { $0.contains { $0 != 0 } } == (size.0 > 17))
    }
}
