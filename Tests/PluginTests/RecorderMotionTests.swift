// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Recorder

/// A recorder with motion beside the pictures: the track of the file.
@Suite struct RecorderMotionTests {
    private let folder: ScratchFolder
    init() throws { folder = try ScratchFolder() }

    // MARK: What goes in

    static let all: MotionSample.Contents = [.rotationRate, .acceleration, .attitude]

    /// Samples at a rate between two times in seconds, each with values of its own.
    static func samples(
        from start: Double, to end: Double, rate: Double = 200, _ contents: MotionSample.Contents = all
    ) -> [MotionSample] {
        (0..<Int(((end - start) * rate).rounded())).map { number in
            var sample = MotionSample(time: MediaTime(seconds: start + Double(number) / rate))
            let time = Float(sample.time.seconds)
            sample.contents = contents
            if contents.contains(.rotationRate) { sample.rotationRate = SIMD3(time, -time / 3, 0.001 * Float(number)) }
            if contents.contains(.acceleration) { sample.acceleration = SIMD3(0.1 * time, -9.80665, Float(number)) }
            if contents.contains(.attitude) { sample.attitude = Quaternion(rotation: SIMD3(0.1, time / 10, -0.3)) }
            return sample
        }
    }

    static func driver(_ options: String, _ inputs: [MediaFormat]? = nil, isLive: Bool = false) throws
        -> StageDriver<Recorder>
    {
        try StageDriver(
            Recorder.self, options: options,
            inputs: inputs ?? [
                .encoded(RecorderStreams.format()), .motion(MotionFormat(contents: all, sampleRate: 200)),
            ], isLive: isLive)
    }

    /// Hands pictures and blocks of a few samples over in the order of their time, as a chain does.
    static func send(
        _ units: [RecorderStreams.Unit], _ samples: [MotionSample], to recorder: StageDriver<Recorder>,
        block: Int = 4, at commands: [Int: String] = [:]
    ) throws {
        var rest = samples[...]
        func sendMotion(before time: MediaTime) throws {
            while let first = rest.first, first.time < time {
                try recorder.send(recorder.makeMotionBlock(Array(rest.prefix(block)), input: 1), from: 1)
                rest = rest.dropFirst(block)
            }
        }
        for (number, unit) in units.enumerated() {
            if let command = commands[number] { try recorder.command(command) }
            try sendMotion(before: unit.dts)
            let made = try recorder.makeAccessUnit(
                unit.bytes, pts: unit.pts, dts: unit.dts, isKeyframe: unit.isKeyframe)
            made.duration = unit.duration
            try recorder.send(made, from: 0)
        }
        try sendMotion(before: .max)
    }

    private func record(
        _ units: [RecorderStreams.Unit], _ samples: [MotionSample], _ options: String = "", path: String = "a.mp4",
        isLive: Bool = false, at commands: [Int: String] = [:]
    ) throws -> [Event] {
        let recorder = try Self.driver(
            #"{ "path": "\#(folder.file(path))"\#(options) }"#, isLive: isLive)
        try Self.send(units, samples, to: recorder, at: commands)
        try recorder.finish()
        return recorder.takeEvents()
    }

    // MARK: What comes out

    /// A value of a CAMM track, read by the format's own description.
    struct Value: Equatable {
        var microseconds: Int64
        var kind: UInt16
        var values: [Float]

        init(_ microseconds: Int64, _ kind: UInt16, _ values: SIMD3<Float>) {
            self.microseconds = microseconds
            self.kind = kind
            self.values = [values.x, values.y, values.z]
        }

        init?(_ microseconds: Int64, _ bytes: [UInt8]) {
            guard bytes.count == 16, bytes[0] == 0, bytes[1] == 0 else { return nil }
            self.microseconds = microseconds
            kind = UInt16(bytes[2]) | UInt16(bytes[3]) << 8
            values = (0..<3).map { axis in
                Float(bitPattern: (0..<4).reduce(0) { $0 | UInt32(bytes[4 + 4 * axis + $1]) << (8 * $1) })
            }
        }
    }

    /// What a track should have of the samples, with the time of the first picture at `begin`.
    static func values(_ samples: [MotionSample], begin: Double = 0) -> [Value] {
        samples.flatMap { sample in
            let time = Int64(((sample.time.seconds - begin) * 1e6).rounded())
            var values: [Value] = []
            if sample.contents.contains(.rotationRate) {
                values.append(Value(time, 2, sample.rotationRate))
            }
            if sample.contents.contains(.acceleration) {
                values.append(Value(time + Int64(values.count), 3, sample.acceleration))
            }
            if sample.contents.contains(.attitude) {
                values.append(Value(time + Int64(values.count), 0, sample.attitude.rotation))
            }
            return values
        }
    }

    /// The motion of a file, fragmented or not, as libavformat reads it.
    static func motion(of path: String) throws -> [Value] {
        let (packets, ticks) = try RecorderStreams.packets(of: path)
        let track = ticks.count - 1
        return packets.filter { $0.track == track }.compactMap { packet in
            Value(ticks[track].time(ofTicks: packet.pts).nanoseconds / 1000, packet.bytes)
        }
    }

    /// Where two lists of values part, in words; nil where they are equal.
    static func difference(_ found: [Value], _ wanted: [Value]) -> String? {
        guard found != wanted else { return nil }
        let index = zip(found, wanted).enumerated().first { $0.element.0 != $0.element.1 }?.offset
        guard let index else { return "\(found.count) values, not \(wanted.count)" }
        return "value \(index) of \(found.count): \(found[index]), not \(wanted[index])"
    }

    private func pictures(_ name: String) throws -> Int {
        try RecorderStreams.packets(of: folder.file(name)).packets.filter { $0.track == 0 }.count
    }

    @Test(arguments: ["mp4", "mov"], ["never", "always"]) func writesATrackOfCAMM(ending: String, finalize: String)
        throws
    {
        let samples = Self.samples(from: 0.003, to: 4)
        let events = try record(
            RecorderStreams.steady(100) { $0 % 25 == 0 }, samples, #", "finalize": "\#(finalize)""#, path: "a.\(ending)"
        )
        #expect(
            events.map(\.name) == ["recording-did-start", "recording-will-stop", "recording-did-stop"]
                + (finalize == "always" ? ["recording-finalised"] : []), "\(events.map(\.text))")
        #expect(try Self.difference(Self.motion(of: folder.file("a.\(ending)")), Self.values(samples)) == nil)
        #expect(try pictures("a.\(ending)") == 100)
        let boxes = try MP4Boxes(folder.file("a.\(ending)"))
        #expect(boxes.tracks.map(\.entry) == ["avc1", "camm"])
        #expect(boxes.tracks.map(\.handler) == ["vide", "meta"])
        #expect(!boxes.moov.contains("gpmd") && boxes.moov.contains("CameraMotionMetadataHandler"))
    }

    /// Byte for byte, by a reader of the boxes that knows nothing of libavformat.
    @Test func writesWhatTheFormatSays() throws {
        var samples = Self.samples(from: 0, to: 2)
        samples[3].contents = .acceleration
        samples[4].contents = .rotationRate
        samples[5].attitude = .identity
        _ = try record(RecorderStreams.steady(50) { $0 == 0 }, samples, #", "finalize": "always""#)
        let track = try #require(MP4Boxes(folder.file("a.mp4")).tracks.last)
        #expect(track.ticksPerSecond == 1_000_000)
        let found = track.samples.compactMap { Value($0.time, $0.bytes) }
        #expect(Self.difference(found, Self.values(samples)) == nil)
        // Rotation rate of the second sample, as bytes.
        #expect(Array(track.samples[3].bytes.prefix(4)) == [0, 0, 2, 0])
        #expect(
            Array(track.samples[3].bytes[4..<8])
                == withUnsafeBytes(of: Float(0.005).bitPattern.littleEndian) { Array($0) })
    }

    /// Motion is that of the file's pictures: what comes before the first and after the last is in no file.
    @Test func hasTheMotionOfItsPictures() throws {
        let samples = Self.samples(from: -1, to: 30)
        _ = try record(RecorderStreams.steady(50, from: 0) { $0 == 0 }, samples)
        let wanted = samples.filter { $0.time >= .zero && $0.time < MediaTime(seconds: 2) }
        #expect(try Self.difference(Self.motion(of: folder.file("a.mp4")), Self.values(wanted)) == nil)
        let file = try RecordingReader(folder.file("a.mp4"))
        #expect(file.stream(0).pointee.duration == 50 * 512)
        #expect(file.stream(1).pointee.duration <= 2_000_000)
    }

    /// A file of a chain that is not live keeps the chain's times.
    @Test(arguments: ["never", "always"]) func keepsTheChainsTimes(finalize: String) throws {
        let samples = Self.samples(from: 4, to: 9)
        _ = try record(
            RecorderStreams.steady(50, from: 5) { $0 == 0 }, samples, #", "finalize": "\#(finalize)""#)
        let wanted = samples.filter { (5..<7).contains($0.time.seconds) }
        #expect(try Self.difference(Self.motion(of: folder.file("a.mp4")), Self.values(wanted)) == nil)
    }

    @Test(arguments: [1, 4, 50]) func givesEachSegmentItsMotion(block: Int) throws {
        let samples = Self.samples(from: 0, to: 8)
        let recorder = try Self.driver(#"{ "path": "\#(folder.file("a.mp4"))", "segmentSeconds": 2 }"#)
        try Self.send(RecorderStreams.steady(200) { $0 % 25 == 0 }, samples, to: recorder, block: block)
        try recorder.finish()
        for number in 1...4 {
            let begin = Double(number - 1) * 2
            let wanted = samples.filter { $0.time.seconds >= begin && $0.time.seconds < begin + 2 }
            #expect(
                try Self.difference(
                    Self.motion(of: folder.file("a-000\(number).mp4")), Self.values(wanted, begin: begin)) == nil,
                "file \(number)")
        }
    }

    /// With B-frames the keyframe of a cut comes before it is shown, and the motion until then after it. It is that of the
    /// file before.
    @Test(arguments: ["never", "always"], [0.4, 1.0]) func cutsWherePicturesAreReordered(
        finalize: String, seconds: Double
    )
        throws
    {
        let stream = try RecorderSegmentTests.encoded(frames: 100)
        let samples = Self.samples(from: 0, to: 4)
        let recorder = try Self.driver(
            #"{ "path": "\#(folder.file("a.mp4"))", "segmentSeconds": \#(seconds), "gcsv": true, "finalize": "\#(finalize)" }"#,
            [.encoded(stream.format), .motion(MotionFormat(contents: Self.all, sampleRate: 200))])
        try Self.send(stream.units, samples, to: recorder, block: 1)
        try recorder.finish()
        let events = recorder.takeEvents()
        #expect(!events.contains { $0.level >= .warning }, "\(events.map(\.text))")
        let begins = events.filter { $0.name == "segment-did-start" }.compactMap {
            $0.details["startSeconds"]?.asDouble
        }
        #expect(
            events.filter { $0.name == "segment-did-stop" }.compactMap { $0.details["startSeconds"]?.asDouble }
                == begins)
        #expect(events.last { $0.name == "recording-did-stop" }?.details["frames"]?.asInt == 100)
        try #require(begins.count > 2)
        for (number, begin) in begins.enumerated() {
            let end = number + 1 < begins.count ? begins[number + 1] : 4
            let wanted = samples.filter { $0.time.seconds >= begin - 1e-9 && $0.time.seconds < end - 1e-9 }
            let name = number < 9 ? "a-000\(number + 1)" : "a-00\(number + 1)"
            let difference = try Self.difference(
                Self.motion(of: folder.file("\(name).mp4")), Self.values(wanted, begin: begin))
            #expect(difference == nil, "\(name)")
            #expect(try RecorderGyroflowTests.Log(folder.file("\(name).gcsv")).rows.count == wanted.count, "\(name)")
        }
        let names = events.filter { $0.name == "segment-did-start" }.map(\.text)
        #expect(names.indices.allSatisfy { names[$0].hasPrefix("File \($0 + 1) is ") }, "\(names)")
    }

    /// The file before the one that fails is complete.
    @Test func completesTheFileBeforeTheOneThatFails() throws {
        let stream = try RecorderSegmentTests.encoded(frames: 100)
        let cut = try #require(
            stream.units.indices.first { $0 > 0 && stream.units[$0].isKeyframe && stream.units[$0].pts.seconds >= 0.95 }
        )
        let recorder = try Self.driver(
            #"{ "path": "\#(folder.file("a-{n}.mp4"))", "segmentSeconds": 1, "finalize": "never" }"#,
            [.encoded(stream.format), .motion(MotionFormat(contents: Self.all, sampleRate: 200))])
        let samples = Self.samples(from: 0, to: 4).filter { $0.time < stream.units[cut].dts }
        try Self.send(Array(stream.units[...cut]), samples, to: recorder)
        #expect(RecorderStreams.names(in: folder) == ["a-1.mp4", "a-2.mp4"])
        #expect(try pictures("a-1.mp4") == cut)
        try FileManager.default.removeItem(atPath: folder.file("a-2.mp4"))
        #expect(throws: FrameHostError.self) { try recorder.finish() }
        #expect(try pictures("a-1.mp4") == cut)
        let failed = recorder.takeEvents().last { $0.name == "recording-did-fail" }
        #expect(failed?.details["savedFrames"]?.asInt == cut && failed?.details["savedFiles"]?.asInt == 1)
    }

    @Test func beginsWithThePast() throws {
        let samples = Self.samples(from: 0, to: 8)
        let events = try record(
            RecorderStreams.steady(200) { $0 % 25 == 0 }, samples,
            #", "record": "onCommand", "preEventSeconds": 2"#, at: [110: "start", 150: "stop"])
        let begin = try #require(events.first { $0.name == "recording-did-start" }?.details["startSeconds"]?.asDouble)
        #expect(begin <= 2.4)
        // Up to the picture that the command came after.
        let wanted = samples.filter { $0.time.seconds >= begin && $0.time.seconds < 5.96 }
        let difference = try Self.difference(
            Self.motion(of: folder.file("a-0001.mp4")), Self.values(wanted, begin: begin))
        #expect(difference == nil)
    }

    /// Two recordings in short succession both have the motion of their past.
    @Test func givesOverlappingRecordingsTheirMotion() throws {
        let samples = Self.samples(from: 0, to: 8)
        let events = try record(
            RecorderStreams.steady(200) { $0 % 25 == 0 }, samples,
            #", "record": "onCommand", "preEventSeconds": 2"#,
            at: [75: "start", 100: "stop", 105: "start", 150: "stop"])
        let begins = events.filter { $0.name == "recording-did-start" }.compactMap {
            $0.details["startSeconds"]?.asDouble
        }
        try #require(begins.count == 2)
        for (name, begin, end) in [("a-0001.mp4", begins[0], 3.96), ("a-0002.mp4", begins[1], 5.96)] {
            let wanted = samples.filter { $0.time.seconds >= begin && $0.time.seconds < end }
            let difference = try Self.difference(
                Self.motion(of: folder.file(name)), Self.values(wanted, begin: begin))
            #expect(difference == nil, "\(name)")
        }
    }

    /// A sensor that begins late, or gives nothing: the header does not wait for it.
    @Test(arguments: [0.5, 3.0, 7.0, 100.0], ["never", "always"]) func carriesMotionThatBeginsLate(
        start: Double, finalize: String
    ) throws {
        let samples = start < 8 ? Self.samples(from: start, to: 8) : []
        let events = try record(
            RecorderStreams.steady(200) { $0 % 25 == 0 }, samples, #", "finalize": "\#(finalize)""#)
        #expect(!events.contains { $0.level >= .warning }, "\(events.map(\.text))")
        #expect(try pictures("a.mp4") == 200)
        if start < 8 {
            #expect(try Self.difference(Self.motion(of: folder.file("a.mp4")), Self.values(samples)) == nil)
        }
        let packets = try RecorderStreams.packets(of: folder.file("a.mp4")).packets
        #expect(packets.filter { $0.track == 0 }.map(\.pts) == (0..<200).map { $0 * 512 })
    }

    @Test(arguments: ["never", "always"]) func standsBesideSoundInAnyOrder(finalize: String) throws {
        let sound = MadeUpSound.aac(from: 0, to: 2)
        let samples = Self.samples(from: 0, to: 2)
        let recorder = try Self.driver(
            #"{ "path": "\#(folder.file("a.mp4"))", "finalize": "\#(finalize)" }"#,
            [
                .motion(MotionFormat(contents: Self.all)),
                .encoded(EncodedFormat(codec: .aac, audio: sound.format)),
                .encoded(RecorderStreams.format()),
            ])
        for quarter in 0..<8 {
            let range = Double(quarter) / 4..<Double(quarter + 1) / 4
            for sample in samples where range.contains(sample.time.seconds) {
                try recorder.send(recorder.makeMotionBlock([sample], input: 0), from: 0)
            }
            for packet in sound.packets where range.contains(Double(packet.pts) / 48_000) {
                let time = sound.format.timeBase.time(ofTicks: packet.pts)
                let unit = try recorder.makeAccessUnit(packet.bytes, pts: time, isKeyframe: true, input: 1)
                unit.duration = sound.format.timeBase.time(ofTicks: 1024)
                try recorder.send(unit, from: 1)
            }
            for unit in RecorderStreams.steady(50, isKey: { $0 % 25 == 0 }) where range.contains(unit.pts.seconds) {
                let made = try recorder.makeAccessUnit(
                    unit.bytes, pts: unit.pts, dts: unit.dts, isKeyframe: unit.isKeyframe, input: 2)
                made.duration = unit.duration
                try recorder.send(made, from: 2)
            }
        }
        try recorder.finish()
        let events: [Event] = recorder.takeEvents()
        #expect(!events.contains { $0.level >= .warning })
        let (packets, ticks) = try RecorderStreams.packets(of: folder.file("a.mp4"))
        #expect(ticks.count == 3)
        #expect(packets.filter { $0.track == 1 }.count > 80)
        #expect(try Self.difference(Self.motion(of: folder.file("a.mp4")), Self.values(samples)) == nil)
    }

    /// Whatever part of the file a killed program has written opens, with the pictures and the motion of its fragments.
    @Test func opensAtAnyPrefix() throws {
        _ = try record(
            RecorderStreams.steady(75) { $0 % 25 == 0 }, Self.samples(from: 0, to: 3), #", "finalize": "never""#)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: folder.file("a.mp4")))
        let boxes = try MP4Boxes(folder.file("a.mp4"))
        let fragments = boxes.fragmentEnds
        try #require(fragments.count == 3)
        var before = bytes
        // The moment after the header was written, before its track was renamed.
        while let name = before.range(of: Data("camm".utf8)) { before.replaceSubrange(name, with: Data("gpmd".utf8)) }
        for whole in [bytes, before] {
            // libavformat opens no file that ends within the header of a fragment, with motion or without.
            let headers = boxes.fragmentHeaders
            for count in Array(stride(from: fragments[0], through: whole.count, by: 211)) + fragments
            where !headers.contains(where: { $0.contains(count) }) {
                try whole.prefix(count).write(to: URL(fileURLWithPath: folder.file("cut.mp4")))
                let (packets, _) = try RecorderStreams.packets(of: folder.file("cut.mp4"))
                let complete = fragments.filter { $0 <= count }.count
                #expect(packets.filter { $0.track == 0 }.count >= 25 * complete, "\(count) bytes")
                #expect(packets.filter { $0.track == 1 }.count >= 590 * complete, "\(count) bytes")
            }
        }
    }

    /// Where the index does not fit into the room left for it, everything is moved back.
    @Test func findsRoomForALongerIndex() throws {
        let samples = Self.samples(from: 0, to: 2)
        _ = try record(RecorderStreams.steady(50) { $0 == 0 }, samples, #", "finalize": "never""#)
        let values = Self.values(samples)
        var ends = [TrackEnd(), TrackEnd()]
        for number in 0..<Int64(50) { ends[0].add(pts: number * 512, dts: number * 512, duration: 512) }
        for value in values { ends[1].add(pts: value.microseconds, dts: value.microseconds, duration: 4998) }
        let finaliser = Finaliser(
            path: folder.file("a.mp4"), container: .mp4, when: .always, indexBytes: 300, ends: ends)
        try finaliser.run(
            StageContext(stageID: "rec"), Finaliser.Watch(isCancelled: { false }, report: { _ in }))
        let boxes = try MP4Boxes(folder.file("a.mp4"))
        #expect(boxes.fragmentEnds.isEmpty && boxes.tracks.map(\.entry) == ["avc1", "camm"])
        #expect(boxes.tracks[1].samples.compactMap { Value($0.time, $0.bytes) } == values)
    }

    /// A rate that no table could say: each sample stands at its own time.
    @Test(arguments: ["never", "always"]) func keepsUnevenTimes(finalize: String) throws {
        var random = SplitRandom(state: 35)
        var time: Int64 = 0
        let samples = (0..<2000).map { number in
            // From values that share a microsecond to a pause of a second and more.
            time += .random(in: 500...(number % 400 == 399 ? 1_500_000_000 : 4_000_000), using: &random)
            var sample = MotionSample(time: MediaTime(nanoseconds: time))
            sample.contents = MotionSample.Contents(rawValue: .random(in: 1...7, using: &random))
            sample.rotationRate.x = Float(number)
            return sample
        }
        let units = RecorderStreams.steady(Int(time / 40_000_000) + 2) { $0 % 25 == 0 }
        let events = try record(units, samples, #", "finalize": "\#(finalize)""#)
        #expect(!events.contains { $0.level >= .warning }, "\(events.map(\.text))")
        let found = try Self.motion(of: folder.file("a.mp4"))
        #expect(found.count == samples.reduce(0) { $0 + $1.contents.rawValue.nonzeroBitCount })
        var last = Int64(-1)
        var rest = found[...]
        for sample in samples {
            for value in rest.prefix(sample.contents.rawValue.nonzeroBitCount) {
                let wanted = max(Int64((Double(sample.time.nanoseconds) / 1000).rounded()), last + 1)
                guard value.microseconds == wanted else {
                    Issue.record("\(value) stands at \(value.microseconds), not \(wanted)")
                    return
                }
                last = wanted
            }
            rest = rest.dropFirst(sample.contents.rawValue.nonzeroBitCount)
        }
    }

    // MARK: Other programs

    @Test(
        .enabled(
            if: Tool.find("exiftool") != nil && Tool.find("ffprobe") != nil, "exiftool or ffprobe is not installed"),
        arguments: ["mp4", "mov"])
    func isReadByOtherPrograms(ending: String) throws {
        let samples = Self.samples(from: 0.5, to: 2)
        _ = try record(RecorderStreams.steady(50) { $0 == 0 }, samples, #", "finalize": "always""#, path: "a.\(ending)")
        let path = folder.file("a.\(ending)")
        let probe = try Self.output(
            "ffprobe",
            ["-v", "error", "-show_entries", "stream=codec_type,codec_tag_string,nb_frames", "-of", "csv=p=0", path])
        #expect(probe == "video,avc1,50\ndata,camm,900\n")
        let text = try Self.output("exiftool", ["-ee", "-G3", "-n", "-j", path])
        let tags = try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [[String: Any]])[0]
        func values(_ name: String) -> [[Float]] {
            // Each value is a document of its own: Doc1, Doc2 …
            (1...900).compactMap { number in
                (tags["Doc\(number):\(name)"] as? String)?.split(separator: " ").compactMap { Float($0) }
            }
        }
        #expect(values("AngularVelocity").count == 300)
        #expect(values("Acceleration").count == 300)
        // ExifTool 12.57 has no size for type 0, and says so of the others; later versions may read it.
        #expect(tags["Doc1:SampleTime"] as? Double == 0)
        let first = try #require(values("AngularVelocity").first)
        #expect(zip(first, [0.5, -0.5 / 3, 0]).allSatisfy { abs($0 - $1) < 1e-4 })
    }

    static func output(_ program: String, _ arguments: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try #require(Tool.find(program)))
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self)
    }

    /// framehost's own reader of clips takes the pictures and leaves the motion.
    @Test func isPlayedByTheFileSource() throws {
        let stream = try RecorderSegmentTests.encoded(frames: 25)
        let recorder = try Self.driver(
            #"{ "path": "\#(folder.file("a.mp4"))" }"#,
            [.encoded(stream.format), .motion(MotionFormat(contents: Self.all, sampleRate: 200))])
        try Self.send(stream.units, Self.samples(from: 0, to: 1), to: recorder)
        try recorder.finish()
        #expect(try ClipMaker.read(folder.file("a.mp4")).pictures.count == 25)
    }

    // MARK: Refusals

    private func refusal(_ options: String, _ inputs: [MediaFormat]) -> String? {
        #expect(throws: FrameHostError.self) { _ = try Self.driver(options, inputs) }?.description
    }

    @Test func saysWhatItCannotWrite() throws {
        let pictures = MediaFormat.encoded(RecorderStreams.format())
        let motion = MediaFormat.motion(MotionFormat(contents: Self.all))
        let tilt = MediaFormat.motion(MotionFormat(contents: .acceleration))
        #expect(
            refusal(#"{ "path": "\#(folder.file("a.mkv"))" }"#, [pictures, motion])
                == "from: a Matroska file cannot store motion. Record to .mp4 or .mov, or set \"gcsv\": true to write the motion beside the file."
        )
        #expect(
            refusal(#"{ "path": "\#(folder.file("a.mp4"))" }"#, [pictures, motion, motion])
                == "from: only one input can have motion, but 2 have. Keep one of them in 'from'.")
        #expect(
            refusal(#"{ "path": "\#(folder.file("a.mp4"))", "gcsv": true }"#, [pictures])
                == "gcsv: there is no motion for a Gyroflow file. Name an input with motion: \"from\": [\"pictures\", \"motion\"]. Or leave 'gcsv' out."
        )
        #expect(
            refusal(#"{ "path": "\#(folder.file("a.mkv"))" }"#, [pictures, tilt])
                == "from: a Matroska file cannot store motion. Record to .mp4 or .mov, or remove the motion from 'from'."
        )
        #expect(
            refusal(#"{ "path": "\#(folder.file("a.mkv"))", "gcsv": true }"#, [pictures, tilt])
                == "gcsv: a Gyroflow file needs the rotation rate, but the input gives motion (acceleration). Leave 'gcsv' out, and either remove the motion from 'from' or record to .mp4 or .mov."
        )
        #expect(
            refusal(#"{ "path": "\#(folder.file("a.mp4"))", "gcsv": true }"#, [pictures, tilt])
                == "gcsv: a Gyroflow file needs the rotation rate, but the input gives motion (acceleration). Leave 'gcsv' out."
        )
        #expect(
            refusal(#"{ "path": "\#(folder.file("a.mp4"))" }"#, [motion])
                == "from: exactly one input must have pictures, but none has. In 'from', name one stage that gives H.264, H.265, MJPEG or AV1. The others must give sound or motion."
        )
        #expect(RecorderStreams.names(in: folder).isEmpty)
    }

    /// Motion that is far ahead of the pictures is kept for them; what cannot be kept is said.
    @Test func saysWhenMotionIsMissing() throws {
        let recorder = try Self.driver(#"{ "path": "\#(folder.file("a.mp4"))" }"#)
        let units = RecorderStreams.steady(1500) { $0 % 25 == 0 }
        let samples = Self.samples(from: 0, to: 60)
        try Self.send([units[0]], samples, to: recorder)
        for unit in units.dropFirst() { try recorder.send(recorder.make(unit), from: 0) }
        try recorder.finish()
        let warnings = recorder.takeEvents().filter { $0.level == .warning }
        #expect(
            warnings.map(\.text) == [
                "Samples of motion are missing in '\(folder.file("a.mp4"))': the memory for motion was full before the matching pictures arrived. Find the stage that delays the pictures."
            ])
        #expect(try Self.motion(of: folder.file("a.mp4")).count == 3 * Int(200 * 1.25 * 30))
    }
}

extension StageDriver where S == Recorder {
    func make(_ unit: RecorderStreams.Unit) throws -> AccessUnit {
        let made = try makeAccessUnit(unit.bytes, pts: unit.pts, dts: unit.dts, isKeyframe: unit.isKeyframe)
        made.duration = unit.duration
        return made
    }
}

/// The boxes of an MP4 file as ISO/IEC 14496-12 has them, as far as these tests need them.
struct MP4Boxes {
    struct Track {
        var handler = ""
        /// The name of the first sample entry.
        var entry = ""
        var ticksPerSecond = 0
        /// In a file that is not in fragments; times with the edit list's delay.
        var samples: [(time: Int64, bytes: [UInt8])] = []
    }

    private let bytes: [UInt8]
    private(set) var tracks: [Track] = []
    /// All bytes of the header, one character each.
    private(set) var moov = ""
    /// The headers of fragments.
    private(set) var fragmentHeaders: [Range<Int>] = []
    /// Where each fragment ends.
    private(set) var fragmentEnds: [Int] = []

    init(_ path: String) throws {
        bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        var afterFragment = false
        for (name, range) in boxes(0..<bytes.count) {
            if name == "moof" {
                afterFragment = true
                fragmentHeaders.append((range.lowerBound - 7)..<range.upperBound)
            }
            if name == "mdat", afterFragment { fragmentEnds.append(range.upperBound) }
            guard name == "moov" else { continue }
            moov = String(String.UnicodeScalarView(bytes[range].map { Unicode.Scalar($0) }))
            var ticks = 1
            for (name, range) in boxes(range) {
                if name == "mvhd" { ticks = int(range.lowerBound + (bytes[range.lowerBound] == 1 ? 20 : 12)) }
                if name == "trak" { tracks.append(track(range, movieTicks: ticks)) }
            }
        }
    }

    private func int(_ offset: Int, _ count: Int = 4) -> Int {
        bytes[offset..<(offset + count)].reduce(0) { $0 << 8 | Int($1) }
    }

    private func boxes(_ part: Range<Int>) -> [(name: String, content: Range<Int>)] {
        var found: [(String, Range<Int>)] = []
        var offset = part.lowerBound
        while offset + 8 <= part.upperBound {
            let large = int(offset) == 1
            let size = large ? int(offset + 8, 8) : int(offset)
            guard size >= 8, offset + size <= part.upperBound else { break }
            found.append(
                (
                    String(decoding: bytes[(offset + 4)..<(offset + 8)], as: UTF8.self),
                    (offset + (large ? 16 : 8))..<(offset + size)
                ))
            offset += size
        }
        return found
    }

    private func find(_ path: String..., in part: Range<Int>) -> Range<Int>? {
        path.reduce(Optional(part)) { part, name in part.flatMap { boxes($0).first { $0.name == name }?.content } }
    }

    private func track(_ part: Range<Int>, movieTicks: Int) -> Track {
        var track = Track()
        if let mdhd = find("mdia", "mdhd", in: part) {
            track.ticksPerSecond = int(mdhd.lowerBound + (bytes[mdhd.lowerBound] == 1 ? 20 : 12))
        }
        if let hdlr = find("mdia", "hdlr", in: part) {
            track.handler = String(decoding: bytes[(hdlr.lowerBound + 8)..<(hdlr.lowerBound + 12)], as: UTF8.self)
        }
        guard let table = find("mdia", "minf", "stbl", in: part) else { return track }
        if let stsd = find("stsd", in: table) {
            track.entry = String(decoding: bytes[(stsd.lowerBound + 12)..<(stsd.lowerBound + 16)], as: UTF8.self)
        }
        track.samples = samples(table, delay: delay(part, track.ticksPerSecond, movieTicks))
        return track
    }

    /// By how much an empty edit in front moves the track, in its ticks.
    private func delay(_ part: Range<Int>, _ ticks: Int, _ movieTicks: Int) -> Int {
        guard let elst = find("edts", "elst", in: part), int(elst.lowerBound + 4) > 1 else { return 0 }
        let isLarge = bytes[elst.lowerBound] == 1
        return int(elst.lowerBound + 8, isLarge ? 8 : 4) * ticks / movieTicks
    }

    private func samples(_ table: Range<Int>, delay: Int) -> [(time: Int64, bytes: [UInt8])] {
        guard let stts = find("stts", in: table), let stsz = find("stsz", in: table),
            let stsc = find("stsc", in: table),
            let chunks = find("stco", in: table) ?? find("co64", in: table)
        else { return [] }
        let wide = find("co64", in: table) != nil ? 8 : 4
        let count = int(stsz.lowerBound + 8)
        let sizes = (0..<count).map {
            int(stsz.lowerBound + 4) != 0 ? int(stsz.lowerBound + 4) : int(stsz.lowerBound + 12 + 4 * $0)
        }
        var times: [Int] = []
        var time = delay
        for run in 0..<int(stts.lowerBound + 4) {
            for _ in 0..<int(stts.lowerBound + 8 + 8 * run) {
                times.append(time)
                time += int(stts.lowerBound + 12 + 8 * run)
            }
        }
        var found: [(Int64, [UInt8])] = []
        let runs = int(stsc.lowerBound + 4)
        for chunk in 0..<int(chunks.lowerBound + 4) {
            var offset = int(chunks.lowerBound + 8 + wide * chunk, wide)
            let run = (0..<runs).last { int(stsc.lowerBound + 8 + 12 * $0) <= chunk + 1 } ?? 0
            for _ in 0..<int(stsc.lowerBound + 12 + 12 * run) where found.count < count {
                let size = sizes[found.count]
                found.append((Int64(times[found.count]), Array(bytes[offset..<(offset + size)])))
                offset += size
            }
        }
        return found
    }
}
