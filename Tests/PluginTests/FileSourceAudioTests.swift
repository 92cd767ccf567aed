// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FileSource

@Suite struct FileSourceAudioTests {
    /// A clip of 2 s with sound at 1 kHz.
    static func clip(_ name: String, in folder: ScratchFolder, _ arguments: String...) throws -> String {
        let program = try #require(Tool.ffmpeg, "ffmpeg is not installed: make test-packages")
        try Tool.run(
            program,
            [
                "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", ClipMaker.moving(), "-f", "lavfi", "-i",
                "sine=frequency=1000:duration=2", "-pix_fmt", "yuv420p", "-c:v", "libx264", "-g", "20",
                "-metadata:s:a:0", "language=deu",
            ] + arguments + [folder.file(name)])
        return folder.file(name)
    }

    static func packets(_ path: String, options: String = "", track: Int = 0) throws -> [AudioPacket] {
        let source = try StageDriver(FileSource.self, options: #"{ "path": "\#(path)"\#(options) }"#)
        let origin = try #require(source.stage.audio)
        let reader = try origin.open(track: track)
        var packets: [AudioPacket] = []
        while let packet = try reader.next() { packets.append(packet) }
        return packets
    }

    /// As ffprobe lists them.
    static func listed(_ path: String) throws -> [[Int64]] {
        let program = try #require(Tool.find("ffprobe"), "ffprobe is not installed: make test-packages")
        let list = path + ".csv"
        try Tool.run(
            program,
            [
                "-v", "error", "-select_streams", "a:0", "-show_entries", "packet=pts,dts,duration,size", "-of",
                "csv=p=0", "-o", list,
                path,
            ])
        return try String(contentsOfFile: list, encoding: .utf8).split(separator: "\n").map { line in
            line.split(separator: ",").prefix(4).compactMap { Int64($0) }
        }
    }

    @Test(
        .needsFFmpeg,
        arguments: [
            ("a.mp4", ["-c:a", "aac"]), ("a.mkv", ["-c:a", "libopus"]),
            ("a.ts", ["-c:a", "mp2", "-output_ts_offset", "5"]),
            ("a.mov", ["-c:a", "pcm_s16le"]),
        ])
    func givesThePacketsUntouched(name: String, codec: [String]) throws {
        let folder = try ScratchFolder()
        let path = try Self.clip(
            name, in: folder, codec[0], codec[1], codec.count > 2 ? codec[2] : "-y", codec.count > 3 ? codec[3] : "-y")
        let packets = try Self.packets(path)
        var listed = try Self.listed(path)
        // A transport stream's clock begins anywhere, the file at 0.
        if name == "a.ts", let begin = listed.first?[0] {
            for index in listed.indices {
                (listed[index][0], listed[index][1]) = (listed[index][0] - begin, listed[index][1] - begin)
            }
        }
        #expect(packets.map { [$0.pts, $0.dts, $0.duration, Int64($0.bytes.count)] } == listed)
        try ClipMaker.ffmpeg("-i", path, "-map", "0:a:0", "-c", "copy", "-f", "data", folder.file("bytes"))
        #expect(packets.flatMap(\.bytes) == [UInt8](try Data(contentsOf: URL(fileURLWithPath: folder.file("bytes")))))
    }

    @Test(.needsFFmpeg) func saysWhatTheTrackIs() throws {
        let folder = try ScratchFolder()
        let path = try Self.clip("a.mp4", in: folder, "-c:a", "aac", "-ac", "2", "-ar", "48000")
        let source = try StageDriver(FileSource.self, options: #"{ "path": "\#(path)" }"#)
        let track = try #require(source.stage.audio?.tracks.first)
        #expect(track.codec.rawValue == "aac")
        #expect(track.timeBase == TimeBase(1, 48_000))
        #expect(track.sampleRate == 48_000 && track.channelCount == 2 && track.samplesPerPacket == 1024)
        // Front left and front right.
        #expect(track.channelMask == 3)
        #expect(track.language == "deu")
        // AudioSpecificConfig, ISO/IEC 14496-3, 1.6.2.1: AAC LC, 48 kHz, two channels.
        #expect(track.extradata.prefix(2) == [0x11, 0x90])
    }

    @Test(.needsFFmpeg, arguments: ["a.mp4", "a.mkv", "a.ts"]) func cutsSoundAsThePictures(name: String) throws {
        let folder = try ScratchFolder()
        let path = try Self.clip(name, in: folder, "-c:a", "aac")
        let base = try #require(
            try StageDriver(FileSource.self, options: #"{ "path": "\#(path)" }"#).stage.audio?.tracks.first?.timeBase)
        let whole = try Self.packets(path)
        let begin = try ClipMaker.play(path).pictures[0].pts
        let part = try Self.packets(path, options: #", "start": 0.9, "duration": 0.5"#)
        let shift = base.ticks(of: MediaTime(seconds: 0.9))
        let last = base.ticks(of: begin + MediaTime(seconds: 1.4))
        // One packet, which the first that is heard overlaps, is before the begin.
        let early = base.ticks(of: begin + MediaTime(seconds: 0.9 - 1024 / 44_100))
        let expected = whole.filter { $0.pts + $0.duration > early && $0.pts < last }
        #expect(part.map(\.bytes) == expected.map(\.bytes))
        #expect(zip(part, expected).allSatisfy { abs($0.pts - ($1.pts - shift)) <= 1 })
        #expect(part.count > 20 && part.count < 26)
    }

    // MARK: Sound that changes

    private static func blocks(of sound: StageDriver<FileSound>) throws -> [HeardBlock] {
        var blocks: [HeardBlock] = []
        while true {
            let progress = try sound.produce()
            blocks += sound.takeBlocks()
            if progress == .ended { return blocks }
        }
    }

    /// Recordings one behind the other, each of a second.
    private static func joined(
        _ sounds: [(rate: Int, channels: Int)], _ codec: String, as ending: String = "ts", in folder: ScratchFolder
    ) throws -> String {
        var all = Data()
        for (number, sound) in sounds.enumerated() {
            let path = try clip(
                "part.\(ending)", in: folder, "-c:a", codec, "-ar", "\(sound.rate)", "-ac", "\(sound.channels)", "-t",
                "1", "-output_ts_offset", "\(number)", "-muxdelay", "0", "-muxpreload", "0")
            let part = try Data(contentsOf: URL(fileURLWithPath: path))
            // FLV has a header and the size of the tag before the first.
            all += ending == "flv" && number > 0 ? part.dropFirst(13) : part
        }
        try all.write(to: URL(fileURLWithPath: folder.file("joined.\(ending)")))
        return folder.file("joined.\(ending)")
    }

    /// A copy has one description for all packets: those of another sound would be noise. They come back with the
    /// first sound. The description is in each packet, beside some, or rate and channels alone.
    @Test(.needsFFmpeg, arguments: [("ts", "aac"), ("flv", "aac"), ("flv", "pcm_s16le")])
    func aCopyLeavesOutSoundOfAnotherFormat(ending: String, codec: String) throws {
        let folder = try ScratchFolder()
        let path = try Self.joined([(44_100, 2), (22_050, 1), (44_100, 2)], codec, as: ending, in: folder)
        let source = try StageDriver(FileSource.self, options: #"{ "path": "\#(path)" }"#)
        let origin = try #require(source.stage.audio)
        let reader = try origin.open(track: 0, isDecoded: false)
        var times: [Double] = []
        while let packet = try reader.next() {
            times.append(origin.tracks[0].timeBase.time(ofTicks: packet.pts).seconds)
        }
        #expect(times.filter { $0 < 0.9 }.count > 30)
        #expect(times.filter { (1.1..<1.9).contains($0) }.isEmpty, "\(times)")
        #expect(times.filter { (2.1..<2.9).contains($0) }.count > 25)
        let said = source.takeEvents().filter { $0.name == "sound-changed" }
        #expect(said.count == 1)
        let text = said.first?.text ?? ""
        let figures = " from 44100 Hz, 2 channels to 22050 Hz, 1 channel. A copy of a track has one format"
        #expect(
            text.contains(ending == "flv" && codec == "aac" ? "s. A copy of a track has one format" : figures),
            "\(text)")
        #expect(said.first?.level == .warning)
    }

    /// Packets that describe themselves go on.
    @Test(.needsFFmpeg, arguments: ["ac3", "mp2"]) func aCopyKeepsSoundThatDescribesItself(codec: String) throws {
        let folder = try ScratchFolder()
        let path = try Self.joined([(48_000, 2), (44_100, 1)], codec, in: folder)
        let source = try StageDriver(FileSource.self, options: #"{ "path": "\#(path)" }"#)
        let reader = try #require(source.stage.audio).open(track: 0)
        var times: [Double] = []
        while let packet = try reader.next() { times.append(Double(packet.pts) / 90_000) }
        #expect(times.filter { (1.1..<1.9).contains($0) }.count > 20)
        #expect(!source.takeEvents().contains { $0.name == "sound-changed" })
    }

    /// Decoded sound is converted to what the chain was planned for: the tone stays what it is.
    @Test(
        .needsFFmpeg, arguments: [("ts", "aac"), ("ts", "ac3"), ("ts", "mp2"), ("flv", "aac"), ("flv", "pcm_s16le")])
    func convertsDecodedSoundThatChanges(ending: String, codec: String) throws {
        let folder = try ScratchFolder()
        let rates = ending == "ts" ? [48_000, 44_100] : [44_100, 22_050]
        let path = try Self.joined([(rates[0], 2), (rates[1], 1)], codec, as: ending, in: folder)
        let sound = try StageDriver(FileSound.self, options: #"{ "path": "\#(path)" }"#)
        let format = try #require(sound.outputFormat?.audio)
        let blocks = try Self.blocks(of: sound)
        var crossings = [0, 0]
        var last: Float = 0
        for block in blocks {
            for index in 0..<block.samples.count / format.channelCount {
                let sample = block.samples[index * format.channelCount]
                let seconds = block.pts.seconds + Double(index) / Double(format.sampleRate)
                if last < 0, sample >= 0 {
                    if (0.2..<0.8).contains(seconds) { crossings[0] += 1 }
                    if (1.2..<1.8).contains(seconds) { crossings[1] += 1 }
                }
                last = sample
            }
        }
        #expect(crossings.allSatisfy { abs($0 - 600) <= 3 }, "\(crossings)")
        let said = sound.takeEvents().filter { $0.name == "sound-changed" }
        // A decoder can tell of the channels a packet before it tells of the rate.
        #expect((1...2).contains(said.count))
        #expect(
            said.last?.text.contains(
                "\(rates[1]) Hz, 1 channel. It is converted to \(rates[0]) Hz, 2 channels.") == true,
            "\(said.map(\.text))")
    }

    /// Positions that are not the usual ones for so many channels.
    @Test(.needsFFmpeg, arguments: ["quad", "3.0", "5.1(side)"]) func keepsTheLayoutOfDecodedSound(name: String) throws
    {
        let folder = try ScratchFolder()
        let layout = try #require(ChannelLayout(name))
        let tones = (0..<layout.channelCount).map { "\(0.1 * Double($0 + 1))" }.joined(separator: "|")
        let program = try #require(Tool.ffmpeg)
        try Tool.run(
            program,
            [
                "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", ClipMaker.moving(), "-f", "lavfi", "-i",
                "aevalsrc='\(tones)':c=\(name):s=48000:d=1", "-c:v", "libx264", "-c:a", "flac", folder.file("a.mkv"),
            ])
        let sound = try StageDriver(FileSound.self, options: #"{ "path": "\#(folder.file("a.mkv"))" }"#)
        let format = try #require(sound.outputFormat?.audio)
        #expect(format.layout == layout)
        let samples = try Self.blocks(of: sound).flatMap(\.samples)
        let middle = Array(samples[24_000 * layout.channelCount..<24_001 * layout.channelCount])
        for (index, sample) in middle.enumerated() {
            #expect(abs(sample - 0.1 * Float(index + 1)) < 0.001, "\(middle)")
        }
        #expect(!sound.takeEvents().contains { $0.name == "sound-changed" })
    }

    @Test(.needsFFmpeg) func saysWhatNobodyCarries() throws {
        let folder = try ScratchFolder()
        let path = try Self.clip("a.mp4", in: folder, "-c:a", "aac")
        let read = try ClipMaker.play(path)
        #expect(
            read.events.first?.text
                == #"The audio track 1 (aac) is dropped. To use it, link "from": "file-source.audio"."#)
        // A loop has no sound to offer.
        let looped = try StageDriver(FileSource.self, options: #"{ "path": "\#(path)", "loop": true }"#)
        #expect(looped.stage.audio == nil)
        #expect(looped.takeEvents().map(\.text) == ["The audio track 1 (aac) is dropped."])
    }

    @Test(.needsFFmpeg) func knowsWhatIsCarried() throws {
        let folder = try ScratchFolder()
        let path = try Self.clip("a.mp4", in: folder, "-c:a", "aac")
        var options = FileSourceOptions()
        options.path = FilePaths(path)
        let source = FileSource(options: options, context: StageContext(stageID: "clip"))
        _ = try source.negotiate()
        let audio = try #require(source.audio)
        let track = OtherTrack(kind: "audio", number: 1, codec: "aac", index: 1)
        #expect(!audio.isCarried(track))
        _ = try audio.open(track: 0)
        #expect(audio.isCarried(track))
        #expect(!audio.isCarried(OtherTrack(kind: "audio", number: 2, codec: "aac", index: 2)))
    }
}
