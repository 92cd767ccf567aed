// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import X264Encoder

@Suite struct X264EncoderTests {
    typealias Encoder = X264Encoder

    static let format = VideoFormat(
        .i420, width: 320, height: 240, frameRate: Rational(30), timeBase: TimeBase(1, 90_000))

    /// What a test looks at of an access unit.
    struct Unit {
        var pts: MediaTime, dts: MediaTime, duration: MediaTime
        var number: UInt64, capturedAt: Int64
        var orientation: Orientation
        var isKeyframe: Bool
        var bytes: [UInt8]
    }

    static func take(_ driver: StageDriver<X264Encoder>) -> [Unit] {
        var units: [Unit] = []
        while let unit = driver.takeAccessUnit() {
            units.append(
                Unit(
                    pts: unit.pts, dts: unit.dts, duration: unit.duration, number: unit.sequenceNumber,
                    capturedAt: unit.capturedAt,
                    orientation: unit.orientation, isKeyframe: unit.isKeyframe, bytes: unit.withBytes { Array($0) }))
        }
        return units
    }

    @Test func knowsParameterSetsAndDelayBeforeTheFirstFrame() throws {
        let driver = try StageDriver(X264Encoder.self, options: #"{ "bframes": 2 }"#, input: .video(Self.format))
        let encoded = try #require(driver.outputFormat?.encoded)
        // SPS (type 7) and PPS (type 8), each after a start code.
        #expect(encoded.parameterSets.starts(with: [0, 0, 0, 1, 0x67]))
        #expect(encoded.parameterSets.split(separator: [0, 0, 0, 1]).map { $0.first! & 31 } == [7, 8])
        #expect(encoded.reorderDepth == 2)
        #expect(encoded.bitrateKbps == 4000)
        #expect(driver.stage.demand.delay > 2)
        #expect(driver.stage.demand.hold == 0)
    }

    @Test(arguments: [PixelFormat.i420, .nv12]) func carriesTimesAndNumbersThroughReordering(pixels: PixelFormat) throws
    {
        var format = Self.format
        format.pixelFormat = pixels
        format.frameRate = Rational(0)
        let driver = try StageDriver(
            X264Encoder.self, options: #"{ "bframes": 3, "threads": 2 }"#, input: .video(format))
        // Uneven steps, and a gap of two seconds.
        let times = (0..<60).map { (number: Int) -> MediaTime in
            let gap = number >= 30 ? 180_000 : 0
            return format.timeBase.time(ofTicks: Int64(number * 3000 + (number % 3) * 700 + gap))
        }
        var units: [Unit] = []
        for (number, time) in times.enumerated() {
            let frame = try driver.makeFrame(pts: time) {
                ClipMaker.paint(&$0, number)
                $0.duration = MediaTime(nanoseconds: Int64(number) + 1)
                $0.capturedAt = Int64(number) + 7
                $0.orientation = number % 2 == 0 ? .up : .right
            }
            try driver.send(frame)
            units += Self.take(driver)
            #expect(driver.stage.held == number + 1 - units.count)
            #expect(driver.keptBuffers == 0)
        }
        #expect(driver.stage.held > 0)
        try driver.drain()
        units += Self.take(driver)
        #expect(driver.stage.held == 0)
        #expect(units.map(\.number).sorted() == (0..<60).map(UInt64.init))
        #expect(units.map(\.number) != units.map(\.number).sorted())
        for unit in units {
            let number = Int(unit.number)
            #expect(unit.pts == times[number])
            #expect(unit.dts <= unit.pts)
            #expect(unit.duration.nanoseconds == Int64(number) + 1)
            #expect(unit.capturedAt == Int64(number) + 7)
            #expect(unit.orientation == (number % 2 == 0 ? .up : .right))
        }
        #expect(zip(units, units.dropFirst()).allSatisfy { $0.dts < $1.dts })
        #expect(units[0].isKeyframe)
    }

    @Test(arguments: [Rational(30), Rational(0)]) func answersEachFrameAtOnceInALiveChain(rate: Rational) throws {
        var format = Self.format
        format.frameRate = rate
        format.timeBase = .nanoseconds
        let driver = try StageDriver(X264Encoder.self, input: .video(format), isLive: true)
        #expect(driver.stage.demand.delay == 0)
        #expect(driver.outputFormat?.encoded?.reorderDepth == 0)
        for number in 0..<10 {
            try driver.send(driver.makeFrame { ClipMaker.paint(&$0, number) })
            let units = Self.take(driver)
            #expect(units.count == 1)
            #expect(units.first?.dts == units.first?.pts)
        }
    }

    @Test func makesAKeyframeOnCommandAndByTime() throws {
        var format = Self.format
        format.frameRate = Rational(0)
        let driver = try StageDriver(
            X264Encoder.self, options: #"{ "keyframeSeconds": 1 }"#, input: .video(format), isLive: true)
        var keyframes: [UInt64] = []
        for number in 0..<60 {
            if number == 10 { try driver.stage.command("keyframe", arguments: [:]) }
            // Many requests at once give one keyframe.
            if number == 15 { for _ in 0..<50 { driver.requestKeyframe() } }
            try driver.send(driver.makeFrame { ClipMaker.paint(&$0, number) })
            keyframes += Self.take(driver).filter(\.isKeyframe).map(\.number)
        }
        // The first, the two asked for, and one a second after that.
        #expect(keyframes == [0, 10, 15, 45])
    }

    @Test(arguments: [true, false]) func changesItsBitrateWhileRunning(isLive: Bool) throws {
        let buffer = isLive ? "" : #", "vbvBufferKbits": 400"#
        let driver = try StageDriver(
            X264Encoder.self, options: #"{ "bitrateKbps": 200, "tune": "zerolatency"\#(buffer) }"#,
            input: .video(Self.format),
            isLive: isLive)
        func bytes(of count: Int) throws -> Int {
            var bytes = 0
            for _ in 0..<count {
                var seed = UInt32.random(in: 1...UInt32.max)
                try driver.send(
                    driver.makeFrame {
                        $0.withMutablePlane(0) { plane in
                            for y in 0..<plane.height {
                                for x in 0..<plane.rowBytes {
                                    seed = seed &* 1_664_525 &+ 1_013_904_223
                                    plane.row(y)[x] = UInt8(seed >> 24)
                                }
                            }
                        }
                    })
                bytes += Self.take(driver).reduce(0) { $0 + $1.bytes.count }
            }
            return bytes
        }
        _ = try bytes(of: 60)
        let before = try bytes(of: 60)
        try driver.set(#"{ "bitrateKbps": 3000 }"#)
        _ = try bytes(of: 60)
        let after = try bytes(of: 60)
        #expect(after > 4 * before, "\(before) bytes, then \(after)")
    }

    @Test func keepsItsBitrateWhereNothingHoldsTheStreamToIt() throws {
        let driver = try StageDriver(X264Encoder.self, options: #"{ "bitrateKbps": 200 }"#, input: .video(Self.format))
        let error = #expect(throws: FrameHostError.self) { try driver.set(#"{ "bitrateKbps": 3000 }"#) }
        #expect(
            error?.description
                == "x264 can change the bitrate while it runs only if a VBV buffer limits the stream to that bitrate."
                + " In the chain file, set 'vbvBufferKbits', and start the chain again."
        )
        #expect(driver.stage.options.bitrateKbps == 200)
    }

    @Test func leavesOutAFrameThatIsNotLaterAndSaysSoOnce() throws {
        let driver = try StageDriver(X264Encoder.self, input: .video(Self.format), isLive: true)
        for time in [0.0, 0.1, 0.1, 0.05, 0.2] {
            try driver.send(driver.makeFrame(pts: MediaTime(seconds: time)) { ClipMaker.paint(&$0, 1) })
        }
        #expect(Self.take(driver).map(\.pts.seconds) == [0.0, 0.1, 0.2])
        #expect(driver.dropCount(.byStage) == 2)
        #expect(
            driver.takeEvents().map(\.text) == [
                "Frame 2 has the time 0.1 s, but must be at least one tick (1/90000 s) later than the frame before it. Such frames are dropped and counted as dropped 'byStage'."
            ])
    }

    @Test func encodesTheEvenPartOfOddSides() throws {
        let format = VideoFormat(.i420, width: 451, height: 301, frameRate: Rational(30))
        let driver = try StageDriver(X264Encoder.self, options: #"{ "tune": "zerolatency" }"#, input: .video(format))
        let encoded = try #require(driver.outputFormat?.encoded?.video)
        #expect(encoded.width == 450 && encoded.height == 300)
        #expect(
            driver.takeEvents().map(\.text) == [
                "H.264 with 4:2:0 colour needs even sides: the picture is encoded as 450x300, without the last row or column of an odd side."
            ])
        try driver.send(driver.makeFrame { ClipMaker.paint(&$0, 1) })
        #expect(Self.take(driver).count == 1)
        let error = #expect(throws: FrameHostError.self) {
            try StageDriver(X264Encoder.self, input: .video(VideoFormat(.i420, width: 1, height: 300)))
        }
        #expect(
            error?.description == "H.264 with 4:2:0 colour needs pictures of at least 2x2, but these are 1x300."
                + " Put a 'crop-orient' with a larger \"size\" before this stage.")
    }

    @Test(arguments: [("\"4.1\"", 41), ("5", 50), ("4.0", 40), ("\"1b\"", 11), ("3.2", 32)])
    func writesTheLevelDown(level: String, number: UInt8) throws {
        let profile = level == "\"1b\"" ? #""profile": "baseline", "# : ""
        let options = #"{ \#(profile)"level": \#(level) }"#
        let driver = try StageDriver(X264Encoder.self, options: options, input: .video(Self.format))
        // Start code, NAL unit header, profile_idc, constraint flags, level_idc (H.264 7.3.2.1.1).
        #expect(driver.outputFormat?.encoded?.parameterSets[7] == number)
    }

    /// As the help of `profile` says; profile_idc of A.2.
    @Test(
        arguments: [
            ("{}", 100), (#"{ "profile": "main" }"#, 77), (#"{ "profile": "baseline" }"#, 66),
            (#"{ "preset": "ultrafast" }"#, 66), (#"{ "preset": "ultrafast", "profile": "high" }"#, 66),
            (#"{ "crf": 0.5 }"#, 244),
        ] as [(String, UInt8)])
    func usesTheLowestProfileThatTheOptionsNeed(options: String, number: UInt8) throws {
        let driver = try StageDriver(X264Encoder.self, options: options, input: .video(Self.format))
        #expect(driver.outputFormat?.encoded?.parameterSets[5] == number)
    }

    @Test func refusesALevelThatDoesNotExist() {
        let error = #expect(throws: FrameHostErrors.self) {
            try StageDriver(X264Encoder.self, options: #"{ "level": 4.3 }"#, input: .video(Self.format))
        }
        #expect(
            error?.description.contains("4.3 must be an H.264 level. Use one of 1, 1b, 1.1,") == true,
            "\(String(describing: error))")
    }

    /// Twenty frames of one picture, then twenty of another.
    @Test(arguments: [(0, 1), (40, 2)]) func makesAKeyframeAtAChangeOfSceneIfAsked(sceneCut: Int, keyframes: Int) throws
    {
        let driver = try StageDriver(
            X264Encoder.self,
            options: #"{ "sceneCut": \#(sceneCut), "keyframeSeconds": 100, "bframes": 0, "threads": 1 }"#,
            input: .video(Self.format))
        for number in 0..<60 {
            let frame = try driver.makeFrame { frame in
                frame.withMutablePlane(0) { plane in
                    for y in 0..<plane.height {
                        for x in 0..<plane.rowBytes {
                            plane.row(y)[x] = number < 40 ? UInt8(x * 200 / 320) : UInt8((y * 37 + x * 91) % 256)
                        }
                    }
                }
                for index in 1...2 {
                    frame.withMutablePlane(index) { plane in
                        for y in 0..<plane.height { plane.row(y).update(repeating: number < 40 ? 90 : 160) }
                    }
                }
            }
            try driver.send(frame)
        }
        try driver.drain()
        #expect(Self.take(driver).count(where: \.isKeyframe) == keyframes)
    }

    @Test(arguments: [
        (
            #"{ "crf": 20, "bitrateKbps": 2000 }"#,
            "'crf' and 'bitrateKbps' cannot be used together. Keep one of them. To limit the bitrate with 'crf', set 'vbvMaxKbps'."
        ),
        (
            #"{ "bitrateKbps": 2000, "vbvMaxKbps": 1000 }"#,
            "'vbvMaxKbps' 1000 must be at least 'bitrateKbps' 2000. Lower 'bitrateKbps', or raise 'vbvMaxKbps' in the chain file."
        ),
        (
            #"{ "qp": 20, "vbvBufferKbits": 1000 }"#,
            "with 'qp' a picture may take any number of bits, which 'vbvBufferKbits' cannot limit. Leave 'vbvBufferKbits' out, or use 'bitrateKbps' instead of 'qp'."
        ),
        (
            #"{ "profile": "baseline", "bframes": 2 }"#,
            "the baseline profile has no B-frames. Use the main or high profile, or leave 'bframes' out."
        ),
    ]) func refusesOptionsThatContradictEachOther(options: String, text: String) {
        let error = #expect(throws: FrameHostErrors.self) {
            try StageDriver(X264Encoder.self, options: options, input: .video(Self.format))
        }
        #expect(error?.errors.count == 1)
        #expect(error?.description.hasSuffix(text) == true, "\(String(describing: error))")
    }
}
