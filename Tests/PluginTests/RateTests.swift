// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Rate

/// What a stage gave: the time and which frame it was.
private struct Given: Equatable, CustomStringConvertible {
    var nanoseconds: Int64
    var number: UInt64
    var description: String { "\(number)@\(nanoseconds)" }
}

extension StageDriver {
    fileprivate func takeAll() -> [Given] {
        var all: [Given] = []
        while let frame = takeFrame() {
            all.append(Given(nanoseconds: frame.pts.nanoseconds, number: frame.sequenceNumber))
        }
        return all
    }
}

@Suite struct FrameGridTests {
    @Test func roundsToTheNearestPlace() {
        let grid = FrameGrid(Rational(25))
        #expect(
            [0, 19, 20, 21, 59, 60].map { grid.place(of: MediaTime(nanoseconds: $0 * 1_000_000)) } == [
                0, 0, 1, 1, 1, 2,
            ])
        #expect(grid.place(of: MediaTime(nanoseconds: -20_000_000)) == -1)
        #expect(grid.time(of: 3).nanoseconds == 120_000_000)
    }

    /// 60 fps in nanoseconds: every second frame is half way between two places, and one nanosecond off by rounding.
    @Test func sendsHalvesUpWhateverTheRounding() {
        let grid = FrameGrid(Rational(30))
        let tick = TimeBase(1, 60)
        for index in Int64(0)..<1000 { #expect(grid.place(of: tick.time(ofTicks: index)) == (index + 1) / 2) }
    }

    @Test func neverDrifts() {
        let grid = FrameGrid(Rational(30000, 1001))
        #expect(grid.time(of: 30000 * 3600).nanoseconds == 1001 * 3600 * 1_000_000_000)
        #expect(grid.duration(of: 0).nanoseconds == 33_366_667)
        #expect(grid.duration(of: 1).nanoseconds == 33_366_666)
    }
}

/// In a pausable chain.
@Suite struct RateTests {
    private static func format(_ rate: Rational = Rational(0)) -> MediaFormat {
        .video(VideoFormat(.gray8, width: 16, height: 16, frameRate: rate))
    }

    /// Frames at these milliseconds, each until the next, the last for `last`.
    private func run(_ milliseconds: [Int64], options: String, last: Int64 = 40) throws -> (StageDriver<Rate>, [Given])
    {
        let driver = try StageDriver(Rate.self, options: options, input: Self.format())
        for (index, time) in milliseconds.enumerated() {
            let end = index + 1 < milliseconds.count ? milliseconds[index + 1] : time + last
            try driver.send(
                driver.makeFrame(pts: MediaTime(nanoseconds: time * 1_000_000)) {
                    $0.duration = MediaTime(nanoseconds: max(end - time, 0) * 1_000_000)
                })
            #expect(driver.keptBuffers == 1)
            #expect(driver.stage.held == 1)
        }
        try driver.drain()
        #expect(driver.keptBuffers == 0)
        #expect(driver.stage.held == 0)
        let given = driver.takeAll()
        try driver.stop()
        return (driver, given)
    }

    private func places(_ given: [Given], period: Int64 = 40) -> [Int64] {
        given.map { $0.nanoseconds / 1_000_000 / period }
    }

    @Test func passesTheRightRateOn() throws {
        let (driver, given) = try run([0, 40, 80, 120], options: #"{ "rate": 25 }"#)
        #expect(given == (0..<4).map { Given(nanoseconds: Int64($0) * 40_000_000, number: UInt64($0)) })
        #expect(driver.takeEvents().last?.text == "4 frames in, 4 out: 0 repeats, 0 drops, 0 unfilled gaps.")
    }

    @Test func saysTheRateAndItsTimeBase() throws {
        let driver = try StageDriver(Rate.self, options: #"{ "rate": "30000/1001" }"#, input: Self.format(Rational(25)))
        #expect(driver.outputFormat?.video?.frameRate == Rational(30000, 1001))
        #expect(driver.outputFormat?.video?.timeBase == TimeBase(1001, 30000))
    }

    @Test func repeatsForAGap() throws {
        let (driver, given) = try run([0, 40, 200, 240], options: #"{ "rate": 25 }"#)
        #expect(given.map(\.number) == [0, 1, 1, 1, 1, 2, 3])
        #expect(places(given) == [0, 1, 2, 3, 4, 5, 6])
        let event = try #require(driver.takeEvents().last)
        #expect(event.name == "rate")
        #expect(event.details.text() == #"{"taken":4,"given":7,"repeats":3,"drops":0,"gaps":0}"#)
    }

    @Test func dropsWhatIsTooMuchAndTheLastWins() throws {
        let (driver, given) = try run([0, 38, 42, 80], options: #"{ "rate": 25 }"#)
        #expect(given.map(\.number) == [0, 2, 3])
        #expect(places(given) == [0, 1, 2])
        #expect(driver.dropCount(.byStage) == 1)
    }

    @Test func dropsFramesOutOfOrder() throws {
        let (driver, given) = try run([0, 400, 40, 440], options: #"{ "rate": 25 }"#)
        #expect(places(given) == Array(0...11))
        #expect(given.last?.number == 3)
        #expect(driver.dropCount(.byStage) == 1)
    }

    @Test func givesTheLastFrameItsDuration() throws {
        #expect(try run([0, 40], options: #"{ "rate": 25 }"#, last: 120).1.map(\.number) == [0, 1, 1, 1])
        // Too short for a place of its own.
        #expect(try run([0, 60], options: #"{ "rate": 25 }"#, last: 30).1.map(\.number) == [0, 0])
    }

    @Test(arguments: [0, 1, 40]) func showsASingleFrameOnce(duration: Int64) throws {
        #expect(try run([0], options: #"{ "rate": 25 }"#, last: duration).1 == [Given(nanoseconds: 0, number: 0)])
    }

    @Test func onlyDropsWithoutRepeats() throws {
        let (driver, given) = try run([0, 38, 42, 400, 440], options: #"{ "rate": 25, "repeats": false }"#, last: 400)
        #expect(given.map(\.number) == [0, 2, 3, 4])
        #expect(places(given) == [0, 1, 10, 11])
        #expect(driver.takeEvents().map(\.name) == ["rate"])
    }

    @Test func leavesGapsThatAreTooLong() throws {
        let (driver, given) = try run([0, 200, 3_600_000], options: #"{ "rate": 25, "maxGapSeconds": 1 }"#)
        #expect(places(given) == [0, 1, 2, 3, 4, 5, 90_000])
        let events = driver.takeEvents()
        #expect(
            events.first?.text
                == "A gap of 3599.760 s between frames is not filled with repeats, because it is longer than 'maxGapSeconds' (1 s). To fill such gaps, set a higher 'maxGapSeconds' in the chain file."
        )
        #expect(events.last?.text == "3 frames in, 7 out: 4 repeats, 0 drops, 1 unfilled gap.")
    }

    @Test func marksTheFrameAfterAGapThatStays() throws {
        let driver = try StageDriver(Rate.self, options: #"{ "rate": 25, "maxGapSeconds": 0.1 }"#, input: Self.format())
        for time: Int64 in [0, 80, 1000] {
            try driver.send(driver.makeFrame(pts: MediaTime(nanoseconds: time * 1_000_000)))
        }
        try driver.drain()
        var marks: [Bool] = []
        while let frame = driver.takeFrame() { marks.append(frame.isDiscontinuity) }
        #expect(marks == [false, false, false, true])
    }

    /// A repeat is the same buffer, with the same metadata; only the first of a frame follows a gap.
    @Test func sharesBuffers() throws {
        let driver = try StageDriver(Rate.self, options: #"{ "rate": 50 }"#, input: Self.format())
        let first = try driver.makeFrame(pts: .zero) {
            $0.isDiscontinuity = true
            $0.orientation = .left
        }
        let address = first.withPlane(0) { Int(bitPattern: $0.baseAddress) }
        try driver.send(first)
        try driver.send(driver.makeFrame(pts: MediaTime(nanoseconds: 60_000_000)))
        for index in 0..<3 {
            let frame = try driver.nextFrame()
            #expect(frame.withPlane(0) { Int(bitPattern: $0.baseAddress) } == address)
            #expect(frame.isDiscontinuity == (index == 0))
            #expect(frame.orientation == .left)
            #expect(frame.duration.nanoseconds == 20_000_000)
        }
    }

    @Test func carriesAGapOverADroppedFrame() throws {
        let driver = try StageDriver(Rate.self, options: #"{ "rate": 25 }"#, input: Self.format())
        for time: Int64 in [0, 38, 42] {
            try driver.send(
                driver.makeFrame(pts: MediaTime(nanoseconds: time * 1_000_000)) { $0.isDiscontinuity = time == 38 })
        }
        try driver.drain()
        _ = try driver.nextFrame()
        #expect(try driver.nextFrame().isDiscontinuity)
    }

    @Test func asksForTheRate() {
        #expect(
            throws: OptionFault(
                "'rate' is missing", remedy: "Set the frames per second: \"rate\": 30, or \"30000/1001\".",
                options: ["rate"])
        ) { try RateOptions().validate() }
    }
}

/// In a live chain.
@Suite struct LiveRateTests {
    private static let start: Int64 = 7_123_456_789

    private func driver(_ options: String, input: Rational = Rational(0)) throws -> StageDriver<Rate> {
        try StageDriver(
            Rate.self, options: options, input: .video(VideoFormat(.gray8, width: 16, height: 16, frameRate: input)),
            isLive: true)
    }

    /// Sends a frame `nanoseconds` after the start and returns what comes at once.
    private func send(_ driver: StageDriver<Rate>, _ nanoseconds: Int64) throws -> [Given] {
        try driver.send(
            driver.makeFrame(pts: MediaTime(nanoseconds: Self.start + nanoseconds)) {
                $0.duration = MediaTime(nanoseconds: 33_333_333)
            })
        #expect(driver.stage.held == 0)
        return driver.takeAll().map { Given(nanoseconds: $0.nanoseconds - Self.start, number: $0.number) }
    }

    @Test func givesEachFrameAtOnceOnAGridFromTheFirst() throws {
        let driver = try driver(#"{ "rate": 30 }"#, input: Rational(30))
        #expect(driver.outputFormat?.video?.timeBase == .nanoseconds)
        let tick = TimeBase(1, 30)
        for index in Int64(0)..<100 {
            let jitter: Int64 = [0, 9_000_000, -9_000_000, 4_000_000][Int(index % 4)]
            let given = try send(driver, tick.time(ofTicks: index).nanoseconds + jitter)
            #expect(given == [Given(nanoseconds: tick.time(ofTicks: index).nanoseconds, number: UInt64(index))])
        }
    }

    @Test func takesEverySecondOfTwiceAsManyWhateverTheJitter() throws {
        let driver = try driver(#"{ "rate": 30 }"#, input: Rational(60))
        let tick = TimeBase(1, 60)
        for index in Int64(0)..<100 {
            let jitter: Int64 = [0, 4_000_000, -3_000_000, -4_000_000, 3_000_000][Int(index % 5)]
            let given = try send(driver, tick.time(ofTicks: index).nanoseconds + jitter)
            #expect(given.map(\.number) == (index % 2 == 0 ? [UInt64(index)] : []))
        }
        #expect(driver.dropCount(.byStage) == 50)
    }

    /// 50 to 30: the nearest of all frames to each place.
    @Test func takesTheNearest() throws {
        let driver = try driver(#"{ "rate": 30 }"#, input: Rational(50))
        var numbers: [UInt64] = []
        for index in Int64(0)..<16 { numbers += try send(driver, index * 20_000_000).map(\.number) }
        #expect(numbers == [0, 2, 3, 5, 7, 8, 10, 12, 13, 15])
    }

    @Test func makesRepeatsWhenTheNextFrameComes() throws {
        let driver = try driver(#"{ "rate": 30 }"#, input: Rational(30))
        #expect(try send(driver, 0).map(\.number) == [0])
        #expect(try send(driver, 166_666_667).map(\.number) == [0, 0, 0, 0, 1])
        #expect(driver.keptBuffers == 1)
        try driver.drain()
        #expect(driver.takeAll().isEmpty)
        #expect(driver.keptBuffers == 0)
    }

    @Test func raisesTheRate() throws {
        let driver = try driver(#"{ "rate": 60 }"#, input: Rational(30))
        #expect(try send(driver, 0).map(\.number) == [0])
        #expect(try send(driver, 33_333_333).map(\.number) == [0, 1])
        try driver.drain()
        #expect(driver.takeAll().map(\.number) == [1])
    }

    @Test func doesNotFillAnHour() throws {
        let driver = try driver(#"{ "rate": 30 }"#)
        _ = try send(driver, 0)
        #expect(try send(driver, 3_600_000_000_000).map(\.number) == [1])
        #expect(driver.takeEvents().map(\.name) == ["gap"])
        #expect(try send(driver, 3_602_000_000_000).count == 60)
    }

    @Test func keepsNothingWithoutRepeats() throws {
        let driver = try driver(#"{ "rate": 30, "repeats": false }"#)
        #expect(driver.stage.demand.hold == 0)
        #expect(driver.stage.demand.delay == 0)
        _ = try send(driver, 0)
        #expect(driver.keptBuffers == 0)
        #expect(try send(driver, 500_000_000).count == 1)
        #expect(driver.takeEvents().isEmpty)
    }
}

/// Against ffmpeg's own filter; skipped by name where there is no ffmpeg, except in CI.
@Suite(
    .enabled(if: Tool.ffmpeg != nil || ProcessInfo.processInfo.environment["CI"] == "true", "ffmpeg is not installed"))
struct RateAgainstFFmpegTests {
    /// Times in milliseconds by `N`, and rates.
    @Test(arguments: [
        ("N*40", ["25", "30", "50", "10", "1", "24000/1001", "30000/1001"]),
        ("N*1000/60", ["30", "25", "60", "24"]),
        ("N*33+mod(N*N*7,31)", ["30", "15", "60", "25"]),
        ("N*40+if(gt(N,20),2000,0)", ["25", "30", "5"]),
        ("5000+N*40", ["25", "30", "30000/1001"]),
        ("N*N*2", ["25", "60", "3"]),
        ("N*7+400*floor(N/20)", ["25", "100"]),
        ("N*1000", ["1", "3", "25"]),
        ("13+N*41", ["24", "12"]),
    ])
    func givesTheSameFramesAtTheSameTimes(times: String, rates: [String]) throws {
        let ffmpeg = try #require(Tool.ffmpeg, "CI has no ffmpeg")
        let folder = try ScratchFolder()
        let clip = folder.file("in.mkv")
        // Each picture is its own number.
        try Tool.run(
            ffmpeg,
            [
                "-v", "error", "-f", "lavfi", "-i", "color=black:size=16x16:rate=25,format=gray,geq=lum=N", "-frames:v",
                "60",
            ]
                + [
                    "-vf", "settb=1/1000,setpts='\(times)'", "-enc_time_base", "1:1000", "-fps_mode", "passthrough",
                    "-c:v", "ffv1", clip,
                ])
        let pictures = try ClipMaker.read(clip).pictures
        #expect(pictures.count == 60)
        for rate in rates {
            try Tool.run(
                ffmpeg,
                ["-v", "error", "-copyts", "-i", clip, "-vf", "fps=\(rate)", "-f", "rawvideo", folder.file("out.raw")]
                    + ["-vf", "fps=\(rate)", "-f", "framecrc", folder.file("out.crc"), "-y"])
            let raw = try Data(contentsOf: URL(fileURLWithPath: folder.file("out.raw")))
            let numbers = stride(from: 0, to: raw.count, by: 256).map { UInt64(raw[$0]) }
            let ticks = try String(contentsOfFile: folder.file("out.crc"), encoding: .utf8).split(separator: "\n")
                .filter { !$0.hasPrefix("#") }.map { Int64($0.split(separator: ",")[2].filter { $0 != " " })! }
            let driver = try StageDriver(
                Rate.self, options: rate.contains("/") ? "{ \"rate\": \"\(rate)\" }" : "{ \"rate\": \(rate) }",
                input: .video(VideoFormat(.gray8, width: 16, height: 16)))
            var ours: [Given] = []
            for picture in pictures {
                try driver.send(driver.makeFrame(pts: picture.pts) { $0.duration = picture.duration })
                ours += driver.takeAll()
            }
            try driver.drain()
            ours += driver.takeAll()
            let tick = try #require(driver.outputFormat?.video?.timeBase)
            let theirs = zip(ticks, numbers).map { Given(nanoseconds: tick.time(ofTicks: $0).nanoseconds, number: $1) }
            #expect(theirs.count == numbers.count && numbers.count == ticks.count)
            #expect(ours == theirs, "\(times) at \(rate)")
        }
    }
}
