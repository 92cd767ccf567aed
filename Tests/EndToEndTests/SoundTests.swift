// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// Sound beside pictures, through encoders into files.
@Suite(.needs(.ffmpeg), .needs(.ffprobe)) struct SoundTests {
    private let workspace: Workspace

    init() throws { workspace = try Workspace() }

    private static func chain(_ codec: String, _ recorder: String, pictures: String = "", sound: String = "") -> String
    {
        """
        { "stages": [
          { "id": "pictures", "use": "test-source", "size": "320x240", "rate": 30, "pattern": "flash"\(pictures) },
          { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 1 },
          { "id": "tone", "use": "tone-source", "pattern": "beep"\(sound) },
          { "id": "sound", "use": "audio-encoder", "codec": "\(codec)" },
          { "id": "rec", "use": "recorder", "from": ["h264", "sound"], \(recorder) }
        ] }
        """
    }

    private func run(_ chain: String) throws -> Outcome {
        try workspace.write("chain.json", chain)
        return try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
    }

    private func tracks(_ name: String) throws -> [JSON] {
        let outcome = try Tool.ffprobe.run(
            "-v", "error", "-show_entries", "stream=codec_name,start_time,duration,nb_read_packets", "-count_packets",
            "-of", "json", workspace.path(name))
        #expect(outcome.error == "", "\(outcome.error)")
        return try JSON(parsing: outcome.output)["streams"].list
    }

    // MARK: Channels

    /// Each channel has a tone of its own, in layouts that are not the usual ones for their numbers.
    @Test(
        arguments: [("quad", "aac"), ("quad", "opus"), ("3.0", "aac"), ("3.0", "opus"), ("5.1(side)", "aac")],
        ["mp4", "mkv"])
    func keepsEachChannelAtItsPlace(_ sound: (layout: String, codec: String), container: String) throws {
        let count = sound.layout == "3.0" ? 3 : sound.layout == "quad" ? 4 : 6
        // The fourth of six is LFE, which codecs cut at 120 Hz.
        let tones = (0..<count).map { $0 == 3 && count == 6 ? 60 : 300 + 250 * $0 }
        let wave = tones.map { "0.2*sin(2*PI*\($0)*t)" }.joined(separator: "|")
        let made = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=s=160x120:r=25:d=2", "-f", "lavfi", "-i",
            "aevalsrc='\(wave)':c=\(sound.layout):s=48000:d=2", "-c:v", "libx264", "-c:a", "flac",
            workspace.path("in.mkv"))
        #expect(made.status == 0, "\(made.error)")
        let outcome = try run(
            """
            { "stages": [
              { "id": "clip", "use": "file-source", "path": "in.mkv" },
              { "id": "h264", "use": "x264-encoder", "preset": "ultrafast" },
              { "id": "sound", "use": "audio-encoder", "from": "clip.audio", "codec": "\(sound.codec)" },
              { "id": "rec", "use": "recorder", "from": ["h264", "sound"], "path": "out.\(container)" }
            ] }
            """)
        #expect(outcome.status == 0, "\(outcome.error)")
        let probed = try Tool.ffprobe.run(
            "-v", "error", "-select_streams", "a", "-show_entries", "stream=channel_layout", "-of", "csv=p=0",
            workspace.path("out.\(container)"))
        let expected = sound.layout.replacing("(side)", with: "")
        #expect(probed.output.trimmingCharacters(in: .whitespacesAndNewlines) == expected)
        let decoded = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-y", "-i", workspace.path("out.\(container)"), "-map", "0:a", "-f", "f32le",
            workspace.path("out.raw"))
        #expect(decoded.status == 0, "\(decoded.error)")
        let samples = try workspace.data("out.raw").withUnsafeBytes { Array($0.bindMemory(to: Float.self)) }
        for channel in 0..<count {
            // A quarter of a second, where all of the codec's start is over.
            let part = (24_000..<36_000).map { samples[$0 * count + channel] }
            for (number, tone) in tones.enumerated() {
                let step = 2 * Double.pi * Double(tone) / 48_000
                let (real, imaginary) = part.enumerated().reduce((0.0, 0.0)) { sum, sample in
                    let angle = step * Double(sample.offset)
                    return (sum.0 + Double(sample.element) * cos(angle), sum.1 + Double(sample.element) * sin(angle))
                }
                let level = (real * real + imaginary * imaginary).squareRoot() * 2 / Double(part.count)
                #expect(
                    number == channel ? abs(level - 0.2) < 0.04 : level < 0.02,
                    "\(sound) in \(container): channel \(channel) has \(level) of \(tone) Hz")
            }
        }
    }

    // MARK: Lip sync

    @Test(arguments: [("aac", "mp4"), ("aac", "mov"), ("aac", "mkv"), ("opus", "mp4"), ("opus", "mkv")])
    func keepsSoundAndPicturesTogether(codec: String, container: String) throws {
        let outcome = try run(
            Self.chain(
                codec, #""path": "out.\#(container)""#, pictures: #", "frames": 300"#, sound: #", "seconds": 10"#))
        #expect(outcome.status == 0, "\(outcome.error)")
        let tracks = try tracks("out.\(container)")
        #expect(tracks.map { $0["codec_name"].string } == ["h264", codec])
        let sync = try LipSync("-i", workspace.path("out.\(container)"))
        #expect(sync.flashes.count == 10 && sync.offsets.count >= 9, "\(sync)")
        // Matroska has ticks of a millisecond.
        let bound = container == "mkv" ? 2.0 : 1.0
        #expect(sync.offsets.allSatisfy { abs($0) <= bound }, "\(codec) in \(container): \(sync.offsets)")
    }

    /// Readers count the samples of Opus 48,000 to the second, whatever was encoded.
    @Test(arguments: [8000, 12_000, 16_000, 24_000], ["mp4", "mkv"]) func recordsOpusOfEachRate(
        rate: Int, container: String
    ) throws {
        let outcome = try run(
            Self.chain(
                "opus", #""path": "out.\#(container)""#, pictures: #", "frames": 60"#,
                sound: #", "seconds": 2, "sampleRate": \#(rate)"#))
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(!outcome.error.contains("stays in fragments"), "\(outcome.error)")
        let packets = try Tool.ffprobe.run(
            "-v", "error", "-select_streams", "a", "-show_entries", "packet=pts_time", "-of", "csv=p=0",
            workspace.path("out.\(container)"))
        let first = packets.output.prefix { $0 != "," && $0 != "\n" }
        // The encoder's delay; Matroska has ticks of a millisecond.
        #expect(Double(first).map { abs($0 + 0.0065) < 0.001 } == true, "\(first)")
    }

    /// B-frames are decoded before they are shown, and sound is placed by decode time.
    @Test func keepsThemTogetherWithReorderedPictures() throws {
        let chain = Self.chain(
            "aac", #""path": "out.mp4""#, pictures: #", "frames": 150"#, sound: #", "seconds": 5"#
        ).replacing(#""preset": "ultrafast""#, with: #""preset": "veryfast", "bframes": 3"#)
        let outcome = try run(chain)
        #expect(outcome.status == 0, "\(outcome.error)")
        let sync = try LipSync("-i", workspace.path("out.mp4"))
        #expect(sync.offsets.count >= 4 && sync.offsets.allSatisfy { abs($0) <= 1 }, "\(sync)")
    }

    /// Of live sources: each begins when it is started, and a picture has the time at which it was made: a flash is up
    /// to a picture late, and on a busy machine later. One that is late by half a second goes with the next beep, and a
    /// beep whose begin was skipped is late itself.
    private func expectLiveFlashes(_ sync: LipSync, atLeast count: Int) {
        let offsets = sync.offsets
        #expect(offsets.count >= count, "\(sync)")
        #expect(offsets.count { $0 > 5 } * 2 < offsets.count, "\(offsets)")
        #expect((offsets.filter { $0 <= 5 }.max() ?? -450) >= -45, "\(offsets)")
    }

    /// By the clock: both sources are live.
    @Test func keepsLiveSourcesTogether() throws {
        let outcome = try run(
            Self.chain(
                "aac", #""path": "out.mp4""#, pictures: #", "frames": 300, "live": true"#,
                sound: #", "seconds": 10, "live": true"#))
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        expectLiveFlashes(try LipSync("-i", workspace.path("out.mp4")), atLeast: 3)
    }

    /// A file's own sound, decoded and encoded again, or passed on.
    @Test(arguments: [true, false]) func keepsAFilesSoundAtItsPictures(decode: Bool) throws {
        var outcome = try run(
            Self.chain("aac", #""path": "first.mp4""#, pictures: #", "frames": 150"#, sound: #", "seconds": 5"#))
        #expect(outcome.status == 0, "\(outcome.error)")
        let encoders =
            decode
            ? """
            { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "from": "clip" },
            { "id": "sound", "use": "audio-encoder", "from": "clip.audio" },
            """ : ""
        outcome = try run(
            """
            { "stages": [
              { "id": "clip", "use": "file-source", "path": "first.mp4", "start": 1.5, "decode": \(decode) },
              \(encoders)
              { "use": "recorder", "path": "second.mp4", "from": \(decode ? #"["h264", "sound"]"# : #"["clip", "clip.audio"]"#) }
            ] }
            """)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(!outcome.error.contains("is dropped.\n"), "the sound is taken: \(outcome.error)")
        let sync = try LipSync("-i", workspace.path("second.mp4"))
        #expect(sync.offsets.count >= 3 && sync.offsets.allSatisfy { abs($0) <= 1 }, "\(sync)")
    }

    /// A file whose sound begins before its pictures.
    @Test(.needs(.ffmpeg), arguments: ["mkv", "mp4"]) func keepsTheSoundBeforeTheFirstPicture(container: String) throws
    {
        let made = try Tool.ffmpeg.run(
            [
                "-nostdin", "-v", "error", "-itsoffset", "0.6", "-f", "lavfi", "-i",
                "testsrc2=size=160x120:rate=25:duration=2.4", "-f", "lavfi", "-i", "sine=440:r=48000:d=3", "-map",
                "0:v",
                "-map", "1:a", "-c:v", "libx264", "-bf", "0", "-pix_fmt", "yuv420p", "-c:a", "aac",
                workspace.path("in.flv"),
            ])
        try #require(made.status == 0, "\(made.error)")
        let outcome = try run(
            """
            { "stages": [
              { "id": "clip", "use": "file-source", "path": "in.flv" }, { "id": "h264", "use": "x264-encoder" },
              { "id": "sound", "use": "audio-encoder", "from": "clip.audio" },
              { "use": "recorder", "path": "out.\(container)", "from": ["h264", "sound"] } ] }
            """)
        #expect(outcome.status == 0, "\(outcome.error)")
        let sound = workspace.path("out.wav")
        let heard = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-i", workspace.path("out.\(container)"), "-map", "0:a", "-ar", "48000", "-ac",
            "1", "-f",
            "s16le", sound)
        try #require(heard.status == 0, "\(heard.error)")
        let samples = try workspace.data("out.wav").count / 2
        #expect(abs(samples - 3 * 48_000) < 4800, "\(Double(samples) / 48_000) s")
        let pictures = try ClipProbe(workspace.path("out.\(container)")).times.compactMap { $0 }
        #expect(pictures.count == 60 && abs(pictures[0] - 0.6) < 0.03, "\(pictures.prefix(2))")
    }

    // MARK: Readers of others

    /// What mkvinfo and ffprobe read from a Matroska file is the same, and what was recorded.
    @Test(.needs(.mkvinfo), arguments: [("aac", "A_AAC", nil), ("opus", "A_OPUS", "00:00:00.006500000")])
    func mkvinfoSaysTheSame(codec: String, id: String, delay: String?) throws {
        let outcome = try run(
            Self.chain(codec, #""path": "out.mkv""#, pictures: #", "frames": 150"#, sound: #", "seconds": 5"#))
        #expect(outcome.status == 0, "\(outcome.error)")
        let lines = try Tool.mkvinfo.run(workspace.path("out.mkv")).lines
        func values(_ key: String) -> [String] {
            lines.compactMap { line in
                line.range(of: "+ \(key): ").map { String(line[$0.upperBound...].prefix { $0 != " " }) }
            }
        }
        #expect(values("Track number") == ["1", "2"])
        #expect(values("Codec ID") == ["V_MPEG4/ISO/AVC", id])
        #expect(values("Channels") == ["2"] && values("Sampling frequency") == ["48000"])
        #expect(values("Codec-inherent delay") == (delay.map { [$0] } ?? []))
        let probe = try JSON(
            parsing: Tool.ffprobe.run(
                "-v", "error", "-show_entries", "stream=codec_name,sample_rate,channels:format=duration", "-of", "json",
                workspace.path("out.mkv")
            ).output)
        #expect(probe["streams"].list.map { $0["codec_name"].string } == ["h264", codec])
        let duration = values("Duration").first.map { text in
            text.split(separator: ":").reduce(0.0) { $0 * 60 + (Double($1) ?? .nan) }
        }
        #expect(abs((duration ?? 0) - (Double(probe["format"]["duration"].string ?? "") ?? -1)) < 0.000_001)
        #expect(abs((duration ?? 0) - 5) < 0.05)
    }

    // MARK: Segments, the past, crashes

    @Test func cutsTheSoundWithThePictures() throws {
        let outcome = try run(
            Self.chain(
                "aac", #""path": "out-{n}.mp4", "segmentSeconds": 2"#, pictures: #", "frames": 180"#,
                sound: #", "seconds": 6"#))
        #expect(outcome.status == 0, "\(outcome.error)")
        for number in 1...3 {
            let tracks = try tracks("out-\(number).mp4")
            #expect(tracks.count == 2)
            let seconds = tracks.compactMap { $0["duration"].string.flatMap { Double($0) } }
            #expect(seconds.count == 2 && abs(seconds[0] - 2) < 0.001 && abs(seconds[1] - 2) < 0.05, "\(seconds)")
            let sync = try LipSync("-i", workspace.path("out-\(number).mp4"))
            #expect(sync.offsets.count >= 1 && sync.offsets.allSatisfy { abs($0) <= 1 }, "file \(number): \(sync)")
        }
    }

    @Test func keepsTheSoundOfThePast() throws {
        try workspace.write(
            "chain.json",
            Self.chain(
                "aac", #""path": "out.mp4", "record": "onCommand", "preEventSeconds": 2"#,
                pictures: #", "live": true"#, sound: #", "live": true"#))
        let program = try Program.framehost.start(
            ["chain.json", "--commands", "--events"], folder: workspace.folder.path)
        try program.waitForFrames(110)
        try program.write(#"{ "stage": "rec", "command": "start" }"# + "\n")
        try program.waitForOutput("recording-did-start")
        try program.waitForFrames(200)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let tracks = try tracks("out-0001.mp4")
        let seconds = tracks.compactMap { $0["duration"].string.flatMap { Double($0) } }
        #expect(seconds.count == 2 && seconds[0] >= 2.5, "\(seconds)")
        // Without its past the sound would be two seconds shorter.
        #expect(abs((seconds.first ?? 0) - (seconds.last ?? 0)) < 1, "\(seconds)")
        expectLiveFlashes(try LipSync("-i", workspace.path("out-0001.mp4")), atLeast: 2)
    }

    /// Killed at some moment: what is left opens with both tracks, and both reach up to the last second.
    @Test(arguments: ["mp4", "mkv"]) func aKilledRecordingHasBothTracks(container: String) throws {
        try workspace.write(
            "chain.json",
            Self.chain(
                "opus", #""path": "out.\#(container)""#, pictures: #", "live": true"#, sound: #", "live": true"#))
        let program = try Program.framehost.start(
            ["chain.json", "--commands", "--events"], folder: workspace.folder.path)
        try program.waitForFrames(300)
        program.send(SIGKILL)
        _ = try program.finish()
        let outcome = try Tool.ffprobe.run(
            "-v", "error", "-show_entries", "packet=stream_index,pts_time", "-of", "csv=p=0",
            workspace.path("out.\(container)"))
        var last: [String: Double] = [:]
        for line in outcome.lines {
            let parts = line.split(separator: ",").map(String.init)
            if parts.count >= 2, let time = Double(parts[1]) { last[parts[0]] = max(last[parts[0]] ?? 0, time) }
        }
        #expect(last.count == 2 && last.values.allSatisfy { $0 >= 2.5 }, "\(last)")
    }

    // MARK: Faults

    @Test func saysWhatDoesNotFit() throws {
        func faults(_ chain: String) throws -> String {
            try workspace.write("chain.json", chain)
            let outcome = try Program.framehost.run(["check", "chain.json"], folder: workspace.folder.path)
            #expect(outcome.status == 2)
            return outcome.error
        }
        #expect(
            try faults(Self.chain("opus", #""path": "out.mov""#)).contains(
                "stages[4].from: a MOV file cannot store sound with the codec 'Opus'. Record to .mp4 or .mkv, or decode the sound"
            ))
        #expect(
            try faults(
                Self.chain("aac", #""path": "out.mp4""#).replacing(#"["h264", "sound"]"#, with: #"["h264", "tone"]"#)
            )
            .contains(
                "'rec' takes AAC or Opus or MP3 or G.711 (µ-law) or G.711 (A-law) or G.726, but 'tone' gives sound. Put an encoder of sound between them"
            ))
        #expect(
            try faults(
                """
                { "stages": [ { "id": "clip", "use": "file-source", "path": "clip.mp4" }, { "use": "null-sink" },
                  { "use": "null-sink", "id": "two", "from": "clip.sound" } ] }
                """
            ).contains(
                #"stages[2].from: 'clip' has no output 'sound'. Write "from": "clip" or "clip.audio"."#))
    }
}
