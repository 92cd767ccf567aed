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
            for index in listed.indices { (listed[index][0], listed[index][1]) = (listed[index][0] - begin, listed[index][1] - begin) }
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

    @Test(.needsFFmpeg) func saysWhatNobodyCarries() throws {
        let folder = try ScratchFolder()
        let path = try Self.clip("a.mp4", in: folder, "-c:a", "aac")
        let read = try ClipMaker.play(path)
        #expect(read.events.first?.text == "The audio track 1 (aac) is dropped.")
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
