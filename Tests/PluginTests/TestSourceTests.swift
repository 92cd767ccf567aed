// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared
import Testing

@testable import TestSource

@Suite struct TestSourceTests {
    /// Frames of a source that is not live, each as its planes' bytes without padding.
    private func frames(_ options: String, count: Int = 1) throws -> [[[UInt8]]] {
        let driver = try StageDriver(TestSource.self, options: options)
        var frames: [[[UInt8]]] = []
        for _ in 0..<count {
            _ = try driver.produce()
            let frame = try driver.nextFrame()
            frames.append(frame.planeBytes)
        }
        return frames
    }

    @Test func timesFramesExactlyAndEnds() throws {
        let driver = try StageDriver(
            TestSource.self, options: #"{ "rate": "30000/1001", "frames": 3, "size": "32x16" }"#)
        #expect(try driver.produce() == .more)
        #expect(try driver.produce() == .more)
        #expect(try driver.produce() == .ended)
        #expect(try driver.produce() == .ended)
        var times: [Int64] = []
        var durations: [Int64] = []
        while let frame = driver.takeFrame() {
            #expect(frame.sequenceNumber == UInt64(times.count))
            times.append(frame.pts.nanoseconds)
            durations.append(frame.duration.nanoseconds)
        }
        #expect(times == [0, 33_366_667, 66_733_333])
        #expect(durations == [33_366_667, 33_366_666, 33_366_667])
        #expect(driver.outputFormat?.video?.timeBase == TimeBase(1001, 30000))
        #expect(driver.stage.demand.expectedItems == 3)
        #expect(!driver.stage.demand.isLive)
    }

    @Test func pacesLiveFramesByTheClockWithoutDrift() throws {
        let clock = ManualClock(at: 5_000_000_000)
        let driver = try StageDriver(
            TestSource.self, options: #"{ "rate": 3, "live": true, "size": "32x16" }"#, clock: clock)
        #expect(driver.stage.demand.isLive)
        #expect(driver.outputFormat?.video?.timeBase == .nanoseconds)
        var times: [Int64] = []
        for _ in 0..<7 {
            _ = try driver.produce()
            let frame = try driver.nextFrame()
            #expect(frame.capturedAt == frame.pts.nanoseconds)
            #expect(frame.isDiscontinuity == false)
            times.append(frame.pts.nanoseconds - 5_000_000_000)
        }
        #expect(times == [0, 333_333_333, 666_666_667, 1_000_000_000, 1_333_333_333, 1_666_666_667, 2_000_000_000])
    }

    @Test func skipsWhatIsTooLateAndSaysSo() throws {
        let clock = ManualClock(at: 0)
        let driver = try StageDriver(
            TestSource.self, options: #"{ "rate": 10, "live": true, "size": "32x16" }"#, clock: clock)
        _ = try driver.produce()
        _ = try driver.nextFrame()
        // Half a period late: nothing is skipped, the frame comes at once and the one after it on time.
        clock.advance(to: 150_000_000)
        _ = try driver.produce()
        #expect(try driver.nextFrame().pts.nanoseconds == 150_000_000)
        clock.advance(to: 520_000_000)
        _ = try driver.produce()
        let late = try driver.nextFrame()
        #expect(late.pts.nanoseconds == 520_000_000)
        #expect(late.isDiscontinuity == true)
        #expect(late.sequenceNumber == 2)
        _ = try driver.produce()
        let next = try driver.nextFrame()
        #expect(next.pts.nanoseconds == 600_000_000)
        #expect(next.isDiscontinuity == false)
        let events = driver.takeEvents().filter { $0.name == "late" }
        #expect(events.count == 1)
        #expect(
            events.first?.text
                == "This source left out 3 pictures: the machine or the chain is too slow, or the program was stopped for a while. If this repeats, lower 'rate' or 'size'."
        )
        // What follows within a minute is told at the end.
        clock.advance(to: 1_020_000_000)
        _ = try driver.produce()
        _ = driver.takeFrame()
        #expect(driver.takeEvents().isEmpty)
        try driver.stop()
        #expect(driver.takeEvents().map { $0.details["missed"]?.asInt } == [3])
    }

    @Test(arguments: PixelFormat.allCases) func paintsBarsInEveryFormat(format: PixelFormat) throws {
        let planes = try frames("{ \"format\": \"\(format.rawValue)\", \"size\": \"70x36\", \"number\": false }")[0]
        // Column 5 lies in the grey bar, 35 in the green one; BT.601, computed by hand: 0.75 grey is 180, green
        // 112/72/58.
        let sample16: (Int, Int) -> Int = { Int(planes[$0][$1 * 2]) | Int(planes[$0][$1 * 2 + 1]) << 8 }
        switch format {
        case .i420:
            #expect([planes[0][5], planes[1][2], planes[2][2]] == [180, 128, 128])
            #expect([planes[0][35], planes[1][17], planes[2][17]] == [112, 72, 58])
        case .nv12:
            #expect([planes[0][35], planes[1][34], planes[1][35]] == [112, 72, 58])
        case .yuyv: #expect(Array(planes[0][68..<72]) == [112, 72, 112, 58])
        case .bgra: #expect(Array(planes[0][140..<144]) == [0, 0xBF, 0, 255])
        case .rgb24: #expect(Array(planes[0][105..<108]) == [0, 0xBF, 0])
        case .gray8: #expect(planes[0][35] == 112)
        case .i010: #expect([sample16(0, 35), sample16(1, 17), sample16(2, 17)] == [449, 290, 231])
        case .p010: #expect([sample16(0, 35), sample16(1, 34), sample16(1, 35)] == [449 << 6, 290 << 6, 231 << 6])
        }
    }

    @Test(arguments: ["1x1", "3x5", "17x19", "321x241"], PixelFormat.allCases)
    func paintsEveryPatternAtAnySize(size: String, format: PixelFormat) throws {
        for pattern in TestPattern.allCases {
            let all = try frames(
                "{ \"format\": \"\(format.rawValue)\", \"size\": \"\(size)\", \"pattern\": \"\(pattern.rawValue)\" }",
                count: 3)
            #expect(all.count == 3)
        }
    }

    @Test func leavesPixelsAloneWithPatternNone() throws {
        let planes = try frames(#"{ "size": "64x64", "pattern": "none", "frames": 1 }"#)[0]
        #expect(planes.allSatisfy { $0.allSatisfy { $0 == 0 } })
    }

    @Test func movesFromFrameToFrame() throws {
        for pattern in ["bars", "balls"] {
            let all = try frames("{ \"size\": \"320x180\", \"pattern\": \"\(pattern)\", \"number\": false }", count: 2)
            #expect(all[0] != all[1])
        }
        let still = try frames(#"{ "size": "320x180", "pattern": "gradient", "number": false }"#, count: 2)
        #expect(still[0] == still[1])
    }

    @Test(arguments: [("30", [0, 1, 2, 30, 31, 32, 60, 61, 62]), ("29.5", [0, 1, 2, 30, 31, 32, 59, 60, 61])])
    func flashesForThreeFramesFromEachWholeSecondOn(rate: String, light: [Int]) throws {
        let all = try frames(
            "{ \"size\": \"32x18\", \"pattern\": \"flash\", \"rate\": \(rate), \"number\": false }", count: 88)
        for (index, planes) in all.enumerated() {
            let luma: UInt8 = light.contains(index) ? 235 : 16
            #expect(planes[0].allSatisfy { $0 == luma })
            #expect((planes[1] + planes[2]).allSatisfy { $0 == 128 })
        }
    }

    @Test func flashesOnTheSecondsOfTheClockWhenLive() throws {
        let clock = ManualClock(at: 7_700_000_000)
        let driver = try StageDriver(
            TestSource.self,
            options: #"{ "rate": 8, "live": true, "size": "32x16", "pattern": "flash", "number": false }"#,
            clock: clock)
        var light: [Int64] = []
        for _ in 0..<16 {
            _ = try driver.produce()
            let frame = try driver.nextFrame()
            if frame.withPlane(0, { $0.row(0)[0] }) == 235 { light.append(frame.pts.nanoseconds / 1_000_000) }
        }
        // Frames come each 125 ms from 7.7 s on.
        #expect(light == [8075, 8200, 8325, 9075, 9200, 9325])
    }

    @Test func paintsTheSequenceNumber() throws {
        let all = try frames(#"{ "size": "320x240", "pattern": "checker" }"#, count: 12)
        for (index, planes) in all.enumerated() {
            #expect(readNumber(planes[0], width: 320, x: 10, y: 30, scale: 2) == index)
        }
    }

    /// Reads six digits by comparing the dots with the font.
    private func readNumber(_ luma: [UInt8], width: Int, x: Int, y: Int, scale: Int) -> Int? {
        var number = 0
        for place in 0..<6 {
            let left = x + scale + place * 6 * scale
            let rows = (0..<7).map { row in
                (0..<5).reduce(UInt8(0)) { bits, column in
                    let value = luma[(y + (row + 1) * scale + scale / 2) * width + left + column * scale + scale / 2]
                    return bits | (value > 128 ? 0x80 >> UInt8(column) : 0)
                }
            }
            guard
                let digit = (0...9).first(where: { digit in
                    (0..<7).allSatisfy { BitmapFont.row($0, of: UInt8(ascii: "0") + UInt8(digit)) == rows[$0] }
                })
            else { return nil }
            number = number * 10 + digit
        }
        return number
    }
}

@Suite struct TimestampStripTests {
    @Test func matchesTheCheckValue() {
        #expect(TimestampStrip.word(microseconds: 1_234_567_890_123) == 0xB201_1F71_FB04_CBA4)
    }

    @Test(arguments: [
        ("1280x720", "i420"), ("1280x720", "nv12"), ("320x240", "i420"), ("333x251", "nv12"), ("1919x1079", "i420"),
    ])
    func canBeReadBack(size: String, format: String) throws {
        let clock = ManualClock(at: 7_654_321_000_999)
        let driver = try StageDriver(
            TestSource.self,
            options:
                "{ \"size\": \"\(size)\", \"format\": \"\(format)\", \"stamp\": true, \"live\": true, \"rate\": 1 }",
            clock: clock)
        for index in 0..<3 {
            _ = try driver.produce()
            let frame = try driver.nextFrame()
            #expect(frame.capturedAt == 7_654_321_000_999 + Int64(index) * 1_000_000_000)
            let format = frame.format
            let moment = frame.withPlane(0) { read($0, width: format.width, height: format.height) }
            #expect(moment == frame.capturedAt / 1000)
            let rows = TimestampStrip.rows(height: format.height)
            for plane in 1..<frame.planeCount {
                frame.withPlane(plane) { plane in
                    for y in 0..<rows / 2 { #expect(plane.row(y).allSatisfy { $0 == 128 }) }
                }
            }
            frame.withPlane(0) { plane in
                for y in 0..<rows { #expect(plane.row(y).allSatisfy { $0 == 235 || $0 == 16 }) }
                #expect(!plane.row(rows).allSatisfy { $0 == 235 || $0 == 16 })
            }
        }
    }

    @Test func refusesFormatsAndSizesWithoutRoom() {
        #expect(throws: OptionFault.self) {
            var options = TestSourceOptions()
            options.stamp = true
            options.format = .bgra
            try options.validate()
        }
        #expect(
            throws: OptionFault(
                "'stamp' needs pictures of at least 320x240, but 'size' is 320x238",
                remedy: "Use a larger 'size', or leave 'stamp' out.", options: ["stamp", "size"])
        ) {
            var options = TestSourceOptions()
            options.stamp = true
            options.size = PictureSize(320, 238)
            try options.validate()
        }
    }

    /// The reader of the strip's description, upright only.
    private func read(_ plane: Plane, width: Int, height: Int) -> Int64? {
        var word: UInt64 = 0
        for cell in 0..<64 {
            let x = (2 * cell + 1) * width / 128
            let y = height / 48
            var sum = 0
            for dy in -1...1 { for dx in -1...1 { sum += Int(plane.row(y + dy)[x + dx]) } }
            word = word << 1 | (sum / 9 >= 126 ? 1 : 0)
        }
        let time = Int64(word >> 8 & 0xFFFF_FFFF_FFFF)
        return word == TimestampStrip.word(microseconds: time) ? time : nil
    }
}
