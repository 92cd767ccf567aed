// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FileSource
@testable import Recorder

/// `"decode": false`: a file's access units as they are.
@Suite struct FileSourceUnitsTests {
    typealias Unit = RecorderStreams.Unit

    /// B-frames and a long GOP, in each container that says when pictures are decoded and shown.
    static let names = ["a.mp4", "a.mov", "a.mkv", "a.ts", "a.flv"]

    /// 50 pictures of 40 ms, a keyframe every 20; with B-frames unless said.
    static func make(
        _ name: String, in folder: ScratchFolder, bframes: Int = 2, size: String = "160x120", _ more: String...
    )
        throws -> String
    {
        let program = try #require(Tool.ffmpeg, "ffmpeg is not installed: make test-packages")
        try Tool.run(
            program,
            ["-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", ClipMaker.moving(size)]
                + [
                    "-pix_fmt", "yuv420p", "-c:v", "libx264", "-bf", "\(bframes)", "-g", "20", "-sc_threshold", "0",
                    "-threads", "1",
                ] + more + [folder.file(name)])
        return folder.file(name)
    }

    /// What the source gives, until it ends or there are `most`.
    static func play(_ path: String, options: String = "", atMost most: Int = .max, clock: ManualClock? = nil) throws
        -> (
            format: EncodedFormat, units: [Unit], gaps: [Int], events: [Event]
        )
    {
        let source = try StageDriver(
            FileSource.self, options: #"{ "path": "\#(path)", "decode": false\#(options) }"#,
            clock: clock ?? ManualClock(at: 1_000_000_000))
        var units: [Unit] = []
        var gaps: [Int] = []
        var isOver = false
        while !isOver, units.count < most {
            isOver = try source.produce() == .ended
            while let unit = source.takeAccessUnit() {
                if unit.isDiscontinuity { gaps.append(units.count) }
                if let clock {
                    #expect(clock.now() == 1_000_000_000 + (unit.dts - (units.first?.dts ?? unit.dts)).nanoseconds)
                }
                units.append(
                    Unit(
                        pts: unit.pts, dts: unit.dts, duration: unit.duration, isKeyframe: unit.isKeyframe,
                        bytes: unit.withBytes { Array($0) }))
            }
        }
        try source.stop()
        return (try #require(source.outputFormat?.encoded), units, gaps, source.takeEvents())
    }

    /// The video of a file with start codes, as ffmpeg takes it out.
    static func stream(_ path: String, _ folder: ScratchFolder) throws -> [UInt8] {
        try ClipMaker.ffmpeg("-i", path, "-map", "0:v", "-c", "copy", "-f", "h264", folder.file("stream.h264"))
        return Array(try Data(contentsOf: URL(fileURLWithPath: folder.file("stream.h264"))))
    }

    /// PTS and DTS of each packet of the video in ticks, as ffprobe prints them; nil where the file does not say.
    static func times(_ path: String, _ folder: ScratchFolder) throws -> [[Int64?]] {
        let program = try #require(Tool.find("ffprobe"), "ffprobe is not installed: make test-packages")
        try Tool.run(
            program,
            [
                "-v", "error", "-select_streams", "v", "-show_entries", "packet=pts,dts", "-of", "csv=p=0", "-o",
                folder.file("times"), path,
            ])
        let text = try String(contentsOfFile: folder.file("times"), encoding: .utf8)
        return text.split(separator: "\n").map { $0.split(separator: ",").prefix(2).map { Int64($0) } }
    }

    static func record(_ format: EncodedFormat, _ units: [Unit], to path: String) throws {
        let recorder = try StageDriver(recording: #"{ "path": "\#(path)" }"#, format)
        for unit in units { try recorder.send(unit) }
        try recorder.finish()
    }

    static func rise(_ units: [Unit]) -> Bool {
        zip(units, units.dropFirst()).allSatisfy { $0.dts < $1.dts } && units.allSatisfy { $0.dts <= $0.pts }
    }

    // MARK: As they are

    @Test(.needsFFmpeg, arguments: names) func givesTheFilesAccessUnitsAndTimes(name: String) throws {
        let folder = try ScratchFolder()
        let path = try Self.make(name, in: folder)
        let played = try Self.play(path)
        #expect(played.units.count == 50)
        #expect(played.units.flatMap(\.bytes) == (try Self.stream(path, folder)))
        let base = played.format.video!.timeBase
        var times = try Self.times(path, folder)
        // A stream that was written down begins at 0, wherever its clock stands.
        if name == "a.ts" || name == "a.flv", let begin = times.compactMap({ $0[0] }).min() {
            times = times.map { $0.map { $0.map { $0 - begin } } }
        }
        #expect(played.units.map { base.ticks(of: $0.pts) } == times.map { $0[0] })
        // Matroska does not say when pictures are decoded; libavformat finds it out after the first two.
        let early = name == "a.mkv" ? 2 : 0
        #expect(times.prefix(early).allSatisfy { $0[1] == nil })
        let (first, second) = (times[early][1] ?? 0, times[early + 1][1] ?? 0)
        #expect(
            played.units.map { base.ticks(of: $0.dts) }
                == (0..<early).map { first - Int64(early - $0) * (second - first) }
                + times.dropFirst(early).map { $0[1] })
        #expect(played.units.indices.filter { played.units[$0].isKeyframe } == [0, 20, 40])
        #expect(played.format.reorderDepth == 2)
        #expect(Self.rise(played.units))
        #expect(played.gaps.isEmpty)
        #expect(played.events.filter { $0.level >= .warning }.isEmpty, "\(played.events.map(\.text))")
    }

    @Test(.needsFFmpeg, arguments: names, ["b.mp4", "b.mkv"])
    func recordsTheSameAccessUnitsAtTheSameTimes(name: String, recording: String) throws {
        let folder = try ScratchFolder()
        let path = try Self.make(name, in: folder)
        let played = try Self.play(path)
        try Self.record(played.format, played.units, to: folder.file(recording))
        let again = try Self.play(folder.file(recording))
        // A transport stream has start codes of its own, of three bytes or four, and MP4 has none.
        func units(_ bytes: [UInt8]) -> [[UInt8]] { name == "a.ts" ? RecorderStreams.nalUnits(annexB: bytes) : [bytes] }
        #expect(
            try units(Self.stream(folder.file(recording), folder)) == units(Self.stream(path, folder)))
        #expect(again.units.map { units($0.bytes) } == played.units.map { units($0.bytes) })
        #expect(again.units.map(\.isKeyframe) == played.units.map(\.isKeyframe))
        // Matroska has milliseconds, and no decode times.
        let tolerance: Int64 = recording == "b.mkv" || name == "a.mkv" || name == "a.flv" ? 1_000_000 : 1
        func steps(_ times: [MediaTime]) -> [Int64] { times.map { ($0 - times[0]).nanoseconds } }
        let (before, after) = (steps(played.units.map(\.pts)), steps(again.units.map(\.pts)))
        #expect(zip(before, after).allSatisfy { abs($0 - $1) <= tolerance }, "\(before) \(after)")
        if recording == "b.mp4" {
            let (before, after) = (steps(played.units.map(\.dts)), steps(again.units.map(\.dts)))
            #expect(zip(before, after).allSatisfy { abs($0 - $1) <= tolerance }, "\(before) \(after)")
        }
    }

    @Test(.needsFFmpeg, arguments: names) func repeatsWithoutAGap(name: String) throws {
        let folder = try ScratchFolder()
        let path = try Self.make(name, in: folder)
        let looped = try Self.play(path, options: #", "loop": true"#, atMost: 120)
        let units = looped.units
        let once = try Self.play(path).units
        #expect(units.map(\.bytes) == (0..<units.count).map { once[$0 % 50].bytes })
        #expect(Self.rise(units))
        let shown = units.dropLast(20).map(\.pts).sorted()
        let steps = zip(shown.dropFirst(), shown).map { ($0 - $1).seconds }
        #expect(steps.allSatisfy { abs($0 - 0.04) < 0.002 }, "\(steps)")
        #expect(looped.gaps.isEmpty)
    }

    @Test(.needsFFmpeg, arguments: names) func beginsAtTheKeyframeBeforeAndSaysSo(name: String) throws {
        let folder = try ScratchFolder()
        let path = try Self.make(name, in: folder)
        let whole = try Self.play(path).units
        for (start, first) in [(0.04, 0), (0.79, 0), (0.8, 20), (1.2, 20), (1.96, 40)] {
            let part = try Self.play(path, options: #", "start": \#(start)"#)
            #expect(part.units.map(\.bytes) == whole[first...].map(\.bytes), "from \(start) s")
            let moved = whole[first].pts - whole[0].pts
            #expect(zip(part.units, whole[first...]).allSatisfy { abs(($0.pts - ($1.pts - moved)).nanoseconds) <= 1 })
            #expect(Self.rise(part.units))
            let notes = part.events.filter { $0.name == "note" }.map(\.text)
            let at = Double(first) / 25
            let isExact = start == at
            #expect(
                notes
                    == (isExact
                        ? []
                        : [
                            "'start' is \(start) s, but access units must start at a keyframe: '\(path)' starts at the keyframe at \(at) s."
                        ]))
        }
    }

    @Test(.needsFFmpeg, arguments: ["a.mp4", "a.ts"]) func endsWhereWhatFollowsIsDecodedLater(name: String) throws {
        let folder = try ScratchFolder()
        let path = try Self.make(name, in: folder, bframes: 0)
        let part = try Self.play(path, options: #", "start": 0.8, "duration": 0.4"#)
        #expect(part.units.map(\.bytes) == (try Self.play(path).units[20..<30].map(\.bytes)))
    }

    @Test(.needsFFmpeg) func givesEachUnitWhenItIsToBeDecoded() throws {
        let folder = try ScratchFolder()
        let path = try Self.make("a.mp4", in: folder)
        let played = try Self.play(path, options: #", "pace": "realtime""#, clock: ManualClock(at: 1_000_000_000))
        #expect(played.units.count == 50)
    }

    @Test(.needsFFmpeg) func reservesMemoryByTheLargestPacketOfTheFile() throws {
        let folder = try ScratchFolder()
        let path = try Self.make("a.mp4", in: folder, size: "1280x720", "-qp", "0")
        let file = try MediaFile(path: path)
        let largest = try #require(file.largestPacket(0))
        #expect(largest == (try RecorderStreams.packets(of: path).packets.map(\.bytes.count).max()))
        let source = try StageDriver(FileSource.self, options: #"{ "path": "\#(path)", "decode": false }"#)
        #expect(source.stage.demand.slabBytes == max(2 * largest + 1 << 20, 4 << 20))
        #expect(source.stage.demand.ownBytes == 0)
    }

    @Test(.needsFFmpeg) func turnsPicturesAsTheFileSays() throws {
        let folder = try ScratchFolder()
        let path = try Self.make("a.mp4", in: folder)
        try ClipMaker.ffmpeg(
            "-i", path, "-c", "copy", "-metadata:s:v", "rotate=90", folder.file("turned.mp4"))
        let played = try Self.play(folder.file("turned.mp4"))
        let decoded = try ClipMaker.read(folder.file("turned.mp4"))
        #expect(decoded.format.orientation != .up)
        #expect(played.format.video?.orientation == decoded.format.orientation)
    }

    // MARK: What is not passed on

    @Test(
        .needsFFmpeg,
        arguments: [
            (
                "a.webm", ["-c:v", "libvpx", "-deadline", "realtime"],
                "needs H.264, H.265, MJPEG or AV1, but the video of 'PATH' is vp8"
            ),
            (
                "a.avi", ["-c:v", "libx264"],
                "needs MP4, MOV, Matroska, MPEG-TS or FLV, but 'PATH' has the format avi"
            ),
            (
                "a.h264", ["-c:v", "libx264"],
                "needs MP4, MOV, Matroska, MPEG-TS or FLV, but 'PATH' has the format h264"
            ),
        ]) func refusesWhatCannotBePassedOn(name: String, codec: [String], what: String) throws
    {
        let folder = try ScratchFolder()
        let path = try FileSourceRangeTests.make((name, codec), in: folder)
        let error = #expect(throws: FrameHostError.self) { try Self.play(path) }
        #expect(error?.code == .invalidMedia)
        #expect(
            error?.description
                == "'decode' is false, which \(what.replacingOccurrences(of: "PATH", with: path)). Leave 'decode' out and put an encoder after this stage."
        )
    }

    @Test func refusesToDeinterlaceWhatIsNotDecoded() {
        let error = #expect(throws: FrameHostErrors.self) {
            try StageDriver(
                FileSource.self, options: #"{ "path": "a.mp4", "decode": false, "deinterlace": true }"#)
        }
        #expect(
            error?.description.hasSuffix(
                "'deinterlace' needs decoded pictures, but \"decode\": false gives none. Leave one of the two out."
            )
                == true, "\(error?.description ?? "")")
    }

    /// Pictures before each keyframe refer to it and to older ones: only the first is an IDR picture, and it is cut off.
    @Test(.needsFFmpeg) func refusesAFileWithoutAKeyframe() throws {
        let folder = try ScratchFolder()
        let path = try Self.make("a.ts", in: folder, "-x264-params", "open-gop=1:keyint=12")
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        try bytes.dropFirst(bytes.count / 3 / 188 * 188).write(to: URL(fileURLWithPath: folder.file("cut.ts")))
        let error = #expect(throws: FrameHostError.self) { try Self.play(folder.file("cut.ts")) }
        #expect(
            error?.description.contains(
                "needs a keyframe (IDR, of H.265 also CRA or BLA, of AV1 a key frame that is shown)") == true,
            "\(error?.description ?? "")")
    }

    // MARK: Awkward files

    @Test(.needsFFmpeg) func leavesOutWhatComesBeforeTheFirstKeyframe() throws {
        let folder = try ScratchFolder()
        let path = try Self.make("a.ts", in: folder)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        try bytes.dropFirst(bytes.count / 4 / 188 * 188).write(to: URL(fileURLWithPath: folder.file("cut.ts")))
        let whole = try Self.play(path).units
        let cut = try Self.play(folder.file("cut.ts"))
        #expect(cut.units.map(\.bytes) == whole.suffix(cut.units.count).map(\.bytes))
        #expect(cut.units.first?.isKeyframe == true)
        #expect(cut.events.map(\.name).contains("keyframe-missing"))
        let looped = try Self.play(folder.file("cut.ts"), options: #", "loop": true"#, atMost: 2 * cut.units.count)
        #expect(looped.units.map(\.bytes) == (cut.units + cut.units).map(\.bytes))
    }

    /// Cut without encoding, ffmpeg writes an edit list: what is before the cut is there and hidden.
    @Test(.needsFFmpeg, arguments: ["b.mp4", "b.mkv"]) func beginsWithWhatAnEditListHides(recording: String) throws {
        let folder = try ScratchFolder()
        let path = try Self.make("a.mp4", in: folder)
        try ClipMaker.ffmpeg("-ss", "1.0", "-i", path, "-c", "copy", folder.file("cut.mp4"))
        let whole = try Self.play(path)
        let cut = try Self.play(folder.file("cut.mp4"))
        #expect(cut.units.map(\.bytes) == whole.units[20...].map(\.bytes))
        // The hidden ones lie before 0, where the first that is shown begins.
        #expect(cut.units.filter { $0.pts < .zero }.count == 5 && cut.units.contains { $0.pts == .zero })
        #expect(Self.rise(cut.units))
        #expect(
            cut.events.map(\.text).contains(
                "'\(folder.file("cut.mp4"))' hides 5 of its \(cut.units.count) pictures by an edit list, but later pictures may need 5 of the hidden ones to be decoded. With \"decode\": false these are passed on too. In an MP4 or MOV file those before the first shown picture are hidden again; elsewhere players show them."
            ), "\(cut.events.map(\.text))")
        try Self.record(cut.format, cut.units, to: folder.file(recording))
        let begin = recording == "b.mkv" ? cut.units.map(\.pts).min()! : .zero
        #expect(try Self.play(folder.file(recording)).units.map(\.pts) == cut.units.map { $0.pts - begin })
        let looped = try Self.play(folder.file("cut.mp4"), options: #", "loop": true"#, atMost: 60)
        #expect(looped.units.map(\.bytes) == (cut.units + cut.units).map(\.bytes))
    }

    /// Two recordings behind each other: other parameter sets, and times that begin anew.
    @Test(.needsFFmpeg) func goesOnWhereParameterSetsAndTimesChange() throws {
        let folder = try ScratchFolder()
        let (first, second) = (
            try Self.make("a.ts", in: folder), try Self.make("b.ts", in: folder, size: "320x240")
        )
        try (Data(contentsOf: URL(fileURLWithPath: first)) + Data(contentsOf: URL(fileURLWithPath: second)))
            .write(to: URL(fileURLWithPath: folder.file("both.ts")))
        let both = try Self.play(folder.file("both.ts"))
        let parts = try Self.play(first).units + Self.play(second).units
        #expect(both.units.flatMap(\.bytes) == parts.flatMap(\.bytes))
        #expect(Self.rise(both.units))
        #expect(both.gaps == [50])
        #expect(both.events.map(\.name).filter { $0 == "parameter-sets-changed" }.count == 1)
        #expect(both.format.video?.width == 160)
    }

    /// Bytes flipped all over, and ends cut off: a sentence or units that a recorder takes, never a trap.
    @Test(.needsFFmpeg, arguments: names) func passesOnWhatIsLeftOfADamagedFile(name: String) throws {
        let folder = try ScratchFolder()
        let path = try Self.make(name, in: folder)
        let whole = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        var numbers = SeededNumbers(state: 7)
        var given = 0
        for round in 0..<40 {
            var bytes = whole
            if round % 4 == 3 { bytes.removeLast(Int.random(in: 1..<bytes.count, using: &numbers)) }
            for _ in 0..<(1 << (round % 7)) {
                bytes[Int.random(in: 0..<bytes.count, using: &numbers)] ^= UInt8.random(in: 1...255, using: &numbers)
            }
            try Data(bytes).write(to: URL(fileURLWithPath: folder.file("bad-\(name)")))
            do {
                let played = try Self.play(
                    folder.file("bad-\(name)"), options: round % 3 == 0 ? #", "start": 0.9"# : "")
                #expect(Self.rise(played.units), "round \(round)")
                try? FileManager.default.removeItem(atPath: folder.file("out.mp4"))
                try Self.record(played.format, played.units, to: folder.file("out.mp4"))
                given += played.units.count
            } catch is FrameHostError {} catch is FrameHostErrors {}
        }
        #expect(given > 200)
    }

    @Test(.needsFFmpeg) func saysThatAPacketIsDamagedAndMarksTheNextOne() throws {
        let folder = try ScratchFolder()
        let path = try Self.make("a.mp4", in: folder)
        let packets = try RecorderStreams.packets(of: path).packets
        var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        // A NAL unit that is longer than its packet.
        let tenth = try #require(bytes.firstRange(of: packets[10].bytes))
        bytes[tenth.lowerBound] = 0x7F
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        let played = try Self.play(path)
        #expect(played.units.count == 49)
        #expect(played.gaps == [10])
        #expect(played.events.map(\.name).contains("file-damaged"))
    }
}

@Suite struct UnitTimelineTests {
    static let base = TimeBase(1, 1000)

    private static func give(_ pts: Int64, _ dts: Int64) -> UnitTimeline.Placement {
        .give(pts: pts, dts: dts)
    }

    @Test func leavesTimesAsTheyAre() {
        var timeline = UnitTimeline(timeBase: Self.base, origin: 33, reorderDepth: 2)
        let times: [(Int64, Int64)] = [(33, -47), (153, -7), (73, 33), (113, 73)]
        for (pts, dts) in times { #expect(timeline.place(pts: pts, dts: dts, duration: 40) == Self.give(pts, dts)) }
    }

    @Test func joinsPassesByThePictureThatIsShownLast() {
        var timeline = UnitTimeline(timeBase: Self.base, origin: 0, reorderDepth: 2)
        for (pts, dts) in [(0, -80), (120, -40), (40, 0), (80, 40)] as [(Int64, Int64)] {
            _ = timeline.place(pts: pts, dts: dts, duration: 40)
        }
        timeline.beginPass()
        #expect(timeline.place(pts: 0, dts: -80, duration: 40) == Self.give(160, 80))
        #expect(timeline.place(pts: 120, dts: -40, duration: 40) == Self.give(280, 120))
    }

    @Test func putsADecodeTimeThatStandsStillOneTickOn() {
        var timeline = UnitTimeline(timeBase: Self.base, origin: 0)
        #expect(timeline.place(pts: 0, dts: 0, duration: 40) == Self.give(0, 0))
        #expect(timeline.place(pts: 40, dts: 0, duration: 40) == Self.give(40, 1))
        #expect(timeline.place(pts: 20, dts: 30, duration: 40) == Self.give(30, 30))
    }

    @Test func decodesEarlyEnoughWhereTheFileDoesNotSayWhen() {
        var timeline = UnitTimeline(timeBase: Self.base, origin: 0, reorderDepth: 2)
        let placed = [(0, nil), (120, nil), (40, 0), (80, 40)].map {
            timeline.place(pts: $0.0, dts: $0.1, duration: 40)
        }
        #expect(placed == [(0, -80), (120, -40), (40, 0), (80, 40)].map { Self.give($0.0, $0.1) })
    }

    @Test func countsOnWhereTheFileHasNoTimes() {
        var timeline = UnitTimeline(timeBase: Self.base, origin: 10)
        let placed = (0..<3).map { _ in timeline.place(pts: nil, dts: nil, duration: 40) }
        #expect(placed == [10, 50, 90].map { Self.give($0, $0) })
    }

    @Test func endsBeyondTheChainsTimeline() {
        var timeline = UnitTimeline(timeBase: TimeBase(1, 1), origin: 0)
        #expect(timeline.place(pts: 2_305_000_000, dts: 0, duration: 1_000_000) == Self.give(2_305_000_000, 0))
        timeline.beginPass()
        #expect(timeline.place(pts: 0, dts: 0, duration: 1_000_000) == .beyond)
    }

    /// Sums of the largest ticks there are stay within Int64.
    @Test func standsAnyNumbers() {
        let extremes = [Int64.min / 4, -1, 0, 1, Int64.max / 4, TimeBase.mostTicks, -TimeBase.mostTicks]
        for origin in extremes {
            for entry in extremes {
                var timeline = UnitTimeline(
                    timeBase: .nanoseconds, origin: origin, entry: entry, end: 1e6, reorderDepth: 2)
                for pts in extremes {
                    for dts in extremes {
                        _ = timeline.place(pts: pts, dts: dts, duration: TimeBase.mostTicks)
                        timeline.beginPass()
                    }
                }
            }
        }
    }
}

/// The same numbers each time (SplitMix64).
private struct SeededNumbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
