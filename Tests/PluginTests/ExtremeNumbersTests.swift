// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FileSource
@testable import Rate
@testable import Recorder
@testable import X264Encoder

/// Numbers that no file means, on every way they can come in: arithmetic that overflowed would end the test program.
@Suite struct ExtremeNumbersTests {
    /// Both ends, what is near them, near 0 and near the end of the timeline.
    static let ends: [Int64] = [
        .min, .min + 1, -0x4000_0000_0000_0000, -0x2000_0000_0000_0001, -0x2000_0000_0000_0000, -1, 0, 1,
        0x2000_0000_0000_0000,
        0x2000_0000_0000_0001, 0x4000_0000_0000_0000, .max - 1, .max, 9_223_372_036_860_000, 9_223_372_036_854,
        -9_223_372_036_855,
    ]
    static let bases = [
        TimeBase(1, 1000), TimeBase(1, 90_000), .nanoseconds, TimeBase(1, .max), TimeBase(.max, 1),
        TimeBase(.max, .max),
    ]

    @Test(arguments: bases) func aTimelineRisesOrEndsWhateverTheFileSays(base: TimeBase) {
        var numbers = SystemRandomNumberGenerator()
        for round in 0..<3000 {
            var times = TrackTimes(timeBase: base)
            func any() -> Int64 {
                if Bool.random(using: &numbers) { return Self.ends.randomElement(using: &numbers)! }
                let number = Int64.random(in: .min ... .max, using: &numbers)
                return number >> Int64.random(in: 0...63, using: &numbers)
            }
            let origin = times.tick(any()) ?? 0
            var timeline =
                round % 2 == 0
                ? FileTimeline(timeBase: base, origin: origin)
                : FileTimeline(timeBase: base, origin: origin, start: 1_000_000, duration: 1_000_000)
            var last: Int64?
            placing: for _ in 0..<20 {
                if Int.random(in: 0..<5, using: &numbers) == 0 { timeline.beginPass() }
                switch timeline.place(times.tick(any()), duration: times.duration(any())) {
                case .skip: continue
                case .end, .beyond: break placing
                case .show(let tick):
                    #expect(last.map { $0 < tick } ?? true)
                    #expect(base.possibleTime(ofTicks: tick) != nil)
                    last = tick
                }
            }
        }
    }

    @Test(arguments: bases) func anAttemptReachesTheBeginWhateverTheTicks(base: TimeBase) {
        for tick in Self.ends {
            for origin in Self.ends {
                var attempt = SeekAttempt(tick, isFirst: false, origin: origin, timeBase: base)
                var steps = 0
                while attempt.place != nil, steps < 100 {
                    _ = attempt.isTooLate(.max)
                    attempt.goBack()
                    steps += 1
                }
                #expect(steps < 100)
            }
        }
    }

    @Test func countsTimesThatCannotBeMeant() {
        var times = TrackTimes(timeBase: TimeBase(1, 1000))
        #expect([40, 9_223_372_036_860_000, .min, .max, -40].map { times.tick($0) } == [40, nil, nil, nil, -40])
        // Int64.min is libav's word for "none".
        #expect(times.impossible == 2 && times.firstImpossible == 9_223_372_036_860_000)
        #expect([-1, 0, 40, .max, 9_223_372_036_860_000].map { times.duration($0) } == [0, 0, 40, 0, 0])
    }

    @Test func aSoundsPacketsKeepToTheirRange() {
        for pts in Self.ends {
            for duration in Self.ends {
                let packet = AudioPacket(bytes: [1], pts: pts, dts: pts, duration: duration)
                #expect((-TimeBase.mostTicks...TimeBase.mostTicks).contains(packet.pts))
                #expect((0...TimeBase.mostTicks).contains(packet.duration))
            }
        }
    }

    @Test(arguments: bases) func aSoundIsSkippedAndTakenWhateverItsTimes(base: TimeBase) throws {
        let format = AudioTrackFormat(
            codec: Codec(rawValue: "aac"), timeBase: base, sampleRate: 48_000, channelCount: 2)
        let packets = Self.ends.flatMap { pts in
            Self.ends.map { AudioPacket(bytes: [1], pts: pts, dts: $0, duration: $0) }
        }
        let feed = try SoundFeed(MadeUpSound([(format, packets)])) { _ in }
        var taken = 0
        for time in [MediaTime.min, .zero, MediaTime(seconds: 1), .max] {
            feed.skip(before: time)
            feed.take(decodedBefore: time) { _, _ in taken += 1 }
            feed.take(shownBefore: time) { _, _ in taken += 1 }
        }
        #expect(taken < packets.count)
    }

    /// What is recorded: the container's packets take any time, and a gap no file can say ends the file and says so.
    @Test(arguments: ["mp4", "mov", "mkv"]) func recordsWhateverTimesComeOrSaysWhyNot(ending: String) throws {
        let folder = try ScratchFolder()
        var numbers = SystemRandomNumberGenerator()
        for round in 0..<60 {
            let recorder = try StageDriver(
                Recorder.self, options: #"{ "path": "\#(folder.file("\(round).\(ending)"))", "finalize": "never" }"#,
                input: .encoded(RecorderStreams.format(reorderDepth: 2)))
            for number in 0..<12 {
                let unit = try recorder.makeAccessUnit(
                    RecorderStreams.payload(number, bytes: 50, isKeyframe: number % 4 == 0),
                    pts: MediaTime(nanoseconds: Self.ends.randomElement(using: &numbers)!),
                    dts: MediaTime(nanoseconds: Self.ends.randomElement(using: &numbers)!), isKeyframe: number % 4 == 0)
                unit.duration = MediaTime(nanoseconds: Self.ends.randomElement(using: &numbers)!)
                unit.capturedAt = Self.ends.randomElement(using: &numbers)!
                do { try recorder.send(unit) } catch { break }
            }
            try? recorder.drain()
            try? recorder.stop()
        }
    }

    @Test func endsAFileCompleteWhereItCannotSayHowLateTheNextPictureIs() throws {
        let folder = try ScratchFolder()
        let path = folder.file("a.mp4")
        let recorder = try StageDriver(
            Recorder.self, options: #"{ "path": "\#(path)" }"#, input: .encoded(RecorderStreams.format()))
        for unit in RecorderStreams.steady(50, isKey: { $0 % 10 == 0 }) { try recorder.send(unit) }
        let error = #expect(throws: FrameHostError.self) {
            try recorder.send(
                recorder.makeAccessUnit(
                    RecorderStreams.payload(50, bytes: 10, isKeyframe: true), pts: MediaTime(seconds: 1e6),
                    isKeyframe: true))
        }
        #expect(
            error?.description.contains(
                "'\(path)' is complete and ends here: the next picture comes 999998.0 s later, but an MP4 file allows at most 167772.2 s between two pictures. Record to .mkv."
            ) == true, "\(String(describing: error))")
        try? recorder.stop()
        recorder.finishJobs()
        #expect(try RecordingReader.summary(of: path) { _ in }.tracks[0].packets.count == 50)
    }

    @Test(arguments: [false, true]) func rateGivesPlacesForAnyTime(isLive: Bool) throws {
        var numbers = SystemRandomNumberGenerator()
        let format = MediaFormat.video(VideoFormat(.gray8, width: 16, height: 16))
        for rate in [#""1/1000""#, "30", "100000"] {
            let driver = try StageDriver(
                Rate.self, options: #"{ "rate": \#(rate), "maxGapSeconds": 0.001 }"#, input: format, isLive: isLive)
            for _ in 0..<50 {
                try driver.send(
                    driver.makeFrame(pts: MediaTime(nanoseconds: Self.ends.randomElement(using: &numbers)!)) {
                        $0.duration = MediaTime(nanoseconds: Self.ends.randomElement(using: &numbers)!)
                    })
                while driver.takeFrame() != nil {}
            }
            try driver.drain()
            try driver.stop()
        }
    }

    /// One wrong time stamp of a file does not fill the disk with repeats.
    @Test func rateLeavesAGapOfYearsUnlessItIsAsked() throws {
        let driver = try StageDriver(
            Rate.self, options: #"{ "rate": 25 }"#, input: .video(VideoFormat(.gray8, width: 16, height: 16)))
        for seconds in [0, 1, 1e9] { try driver.send(driver.makeFrame(pts: MediaTime(seconds: seconds))) }
        try driver.drain()
        var given = 0
        while driver.takeFrame() != nil { given += 1 }
        #expect(given == 27)
        #expect(driver.takeEvents().map(\.name) == ["gap"])
    }

    @Test func theEncoderTakesAnyTime() throws {
        var numbers = SystemRandomNumberGenerator()
        for base in Self.bases.prefix(4) {
            let format = VideoFormat(
                .i420, width: 16, height: 16, timeBase: base, sampleAspectRatio: Rational(.max, .max))
            let driver = try StageDriver(
                X264Encoder.self, options: #"{ "preset": "ultrafast", "bframes": 2 }"#, input: .video(format))
            for _ in 0..<60 {
                try driver.send(
                    driver.makeFrame(pts: MediaTime(nanoseconds: Self.ends.randomElement(using: &numbers)!)))
                while driver.takeAccessUnit() != nil {}
            }
            try driver.drain()
            try driver.stop()
        }
    }

    /// ITU-T H.264, table A-1 and A.3.1: level 6.2 ends at 139,264 macroblocks, 1,055 a side.
    @Test(arguments: [
        (8192, 4352, true), (8192, 4368, false), (16_880, 2112, true), (16_896, 16, false), (16, 16_896, false),
        (16_384, 16_384, false),
        (8704, 4096, true),
    ]) func knowsUpToWhichSizeThereIsALevel(width: Int, height: Int, fits: Bool) {
        #expect(H264Level.fits(width: width, height: height) == fits)
    }

    @Test func refusesPicturesThatNoDecoderTakes() throws {
        let error = #expect(throws: FrameHostError.self) {
            try StageDriver(X264Encoder.self, input: .video(VideoFormat(.i420, width: 16_384, height: 16_384)))
                as StageDriver<X264Encoder>
        }
        #expect(
            error?.description
                == "no H.264 decoder accepts pictures of 16384x16384: level 6.2, the highest, permits at most 139264 macroblocks of 16x16 (for example 8704x4096) and 16880 pixels on each side. Put a 'crop-orient' with a smaller \"size\" before this stage."
        )
    }

    /// What an encoder's format may say: the track's matrix holds 15 bits of pixels.
    @Test func writesAMatrixForAnyShapeOfSamples() throws {
        let folder = try ScratchFolder()
        var format = RecorderStreams.format()
        format.video?.sampleAspectRatio = Rational(.max, 1)
        format.video?.orientation = .right
        let recorder = try StageDriver(
            Recorder.self, options: #"{ "path": "\#(folder.file("a.mp4"))" }"#, input: .encoded(format))
        let unit = try recorder.makeAccessUnit(
            RecorderStreams.payload(0, bytes: 9, isKeyframe: true), pts: .zero, isKeyframe: true)
        unit.orientation = .right
        try recorder.send(unit)
        try recorder.stop()
    }
}
