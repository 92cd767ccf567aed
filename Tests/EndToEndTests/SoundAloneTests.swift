// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// Chains that mix, move, record and serve sound, most of them without pictures.
@Suite(.needs(.ffmpeg), .needs(.ffprobe)) struct SoundAloneTests {
    private let workspace: Workspace
    init() throws { workspace = try Workspace() }

    private func run(_ stages: String) throws -> Outcome {
        try workspace.write("chain.json", "{ \"stages\": [ \(stages) ] }")
        return try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
    }

    /// The first channel at 48 kHz, as ffmpeg plays it from 0 on.
    private func samples(_ arguments: String..., limit: String...) throws -> [Float] {
        let outcome = try Tool.ffmpeg.run(
            ["-v", "error", "-y"] + arguments + limit
                + [
                    "-map", "0:a:0", "-af", "aresample=48000:async=1:first_pts=0,pan=mono|c0=c0", "-f", "f32le",
                    workspace.path("pcm"),
                ])
        #expect(outcome.status == 0, "\(outcome.error)")
        return try Data(contentsOf: workspace.folder.appending(path: "pcm")).withUnsafeBytes {
            Array($0.bindMemory(to: Float.self))
        }
    }

    /// Where beeps begin, in seconds: the first sample above a tenth of the loudest after 200 ms of quiet.
    private func beeps(_ samples: [Float]) -> [Double] {
        let bound = (samples.map(abs).max() ?? 0) / 10
        var found: [Double] = []
        var quiet = 9600
        for (place, sample) in samples.enumerated() {
            if abs(sample) > bound {
                if quiet >= 9600 { found.append(Double(place) / 48_000) }
                quiet = 0
            } else {
                quiet += 1
            }
        }
        return found
    }

    /// Whether beeps come a second apart.
    private func isRegular(_ beeps: [Double], within bound: Double) -> Bool {
        zip(beeps, beeps.dropFirst()).allSatisfy { abs($1 - $0 - 1) < bound }
    }

    private func streams(_ name: String) throws -> [String] {
        let outcome = try Tool.ffprobe.run(
            "-v", "error", "-show_entries", "stream=codec_type,codec_name", "-of", "csv=p=0", workspace.path(name))
        #expect(outcome.error == "", "\(outcome.error)")
        return outcome.output.split(separator: "\n").map(String.init)
    }

    private static let beep = #"{ "id": "tone", "use": "tone-source", "pattern": "beep", "seconds": 5 }"#

    // MARK: Recorded

    @Test(arguments: ["aac", "opus"], ["m4a", "mka", "mp4", "mkv"]) func recordsSoundAlone(
        codec: String, ending: String
    ) throws {
        let outcome = try run(
            "\(Self.beep), { \"use\": \"audio-encoder\", \"codec\": \"\(codec)\" }, { \"use\": \"recorder\", \"path\": \"out.\(ending)\" }"
        )
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(try streams("out.\(ending)") == ["\(codec),audio"])
        let samples = try samples("-i", workspace.path("out.\(ending)"))
        #expect(abs(Double(samples.count) / 48_000 - 5) < 0.045)
        let begin = beeps(samples)
        #expect(begin.count == 5 && isRegular(begin, within: 0.003), "\(begin)")
        // Matroska has no place for AAC's priming: players begin with it.
        #expect((begin.first ?? 1) < (ending.hasPrefix("mk") ? 0.025 : 0.003), "\(begin)")
    }

    @Test(arguments: ["m4a", "mka"]) func segmentsJoinWithoutAGap(ending: String) throws {
        let outcome = try run(
            "\(Self.beep), { \"use\": \"audio-encoder\" }, { \"use\": \"recorder\", \"path\": \"out{n}.\(ending)\", \"segmentSeconds\": 1.5 }"
        )
        #expect(outcome.status == 0, "\(outcome.error)")
        var all: [Float] = []
        for number in 1...4 {
            let part = try samples("-i", workspace.path("out\(number).\(ending)"))
            #expect(part.count < 80_000)
            all += part
        }
        let begin = beeps(all)
        #expect(begin.count == 5 && isRegular(begin, within: 0.003), "\(begin)")
    }

    /// A song has no pictures, or a cover; a film's are not decoded.
    @Test(arguments: ["mp3", "flac", "wav", "mp4"]) func takesTheSoundOfAFileAlone(ending: String) throws {
        let made = try Tool.ffmpeg.run(
            ["-v", "error", "-f", "lavfi", "-i", "aevalsrc=0.5*sin(6283.2*t)*lt(mod(t\\,1)\\,0.1):d=4:s=48000"]
                + (ending == "mp4" ? ["-f", "lavfi", "-i", "testsrc=d=4:s=64x48", "-shortest"] : [])
                + [workspace.path("song.\(ending)")])
        #expect(made.status == 0, "\(made.error)")
        let outcome = try run(
            """
            { "id": "song", "use": "file-source", "path": "song.\(ending)" },
            { "id": "louder", "use": "gain", "from": "song.audio", "db": 3 },
            { "use": "audio-encoder" }, { "use": "recorder", "path": "out.m4a", "overwrite": true }
            """)
        #expect(outcome.status == 0, "\(outcome.error)")
        let begin = beeps(try samples("-i", workspace.path("out.m4a")))
        #expect(begin.count == 4 && isRegular(begin, within: 0.003) && (begin.first ?? 1) < 0.03, "\(begin)")
        let checked = try Program.framehost.run(["check", "chain.json"], folder: workspace.folder.path)
        #expect(
            checked.output.contains("song.audio") && !checked.output.contains("file-source"), "\(checked.output)")
    }

    // MARK: Moved and mixed

    @Test(arguments: [-250, 250]) func movesSoundAgainstPictures(milliseconds: Int) throws {
        let outcome = try run(
            """
            { "id": "pictures", "use": "test-source", "size": "64x48", "rate": 25, "frames": 125 },
            { "id": "h264", "use": "x264-encoder" }, \(Self.beep),
            { "use": "audio-shift", "shift": "\(milliseconds)ms" }, { "id": "aac", "use": "audio-encoder" },
            { "use": "recorder", "from": ["h264", "aac"], "path": "out.mp4" }
            """)
        #expect(outcome.status == 0, "\(outcome.error)")
        let samples = try samples("-i", workspace.path("out.mp4"))
        let shift = Double(milliseconds) / 1000
        // At the end nothing is lost.
        #expect(abs(Double(samples.count) / 48_000 - (5 + shift)) < 0.045)
        let begin = beeps(samples)
        let expected = (0..<5).map { Double($0) + shift }.filter { $0 >= 0 }
        #expect(
            begin.count == expected.count && zip(begin, expected).allSatisfy { abs($0 - $1) < 0.003 }, "\(begin)")
    }

    @Test func mixesAFileAndATone() throws {
        let made = try Tool.ffmpeg.run(
            "-v", "error", "-f", "lavfi", "-i", "sine=f=500:d=3:r=48000", "-c:a", "flac", workspace.path("a.flac"))
        #expect(made.status == 0, "\(made.error)")
        let outcome = try run(
            """
            { "id": "file", "use": "file-source", "path": "a.flac" },
            { "id": "tone", "use": "tone-source", "channels": 1, "seconds": 5, "frequency": 2000 },
            { "id": "mix", "use": "audio-mix", "from": ["file.audio", "tone"], "gains": { "tone": -6.0206 } },
            { "use": "audio-encoder", "bitrateKbps": 256 }, { "use": "recorder", "path": "out.m4a" }
            """)
        #expect(outcome.status == 0, "\(outcome.error)")
        let samples = try samples("-i", workspace.path("out.m4a"))
        #expect(abs(samples.count - 240_000) < 2200)
        /// The amplitude of a frequency within a second.
        func amplitude(_ frequency: Double, _ range: Range<Int>) -> Double {
            var (real, imaginary) = (0.0, 0.0)
            for place in range {
                real += Double(samples[place]) * cos(2 * .pi * frequency * Double(place) / 48_000)
                imaginary += Double(samples[place]) * sin(2 * .pi * frequency * Double(place) / 48_000)
            }
            return 2 * (real * real + imaginary * imaginary).squareRoot() / Double(range.count)
        }
        #expect(abs(amplitude(500, 48_000..<96_000) - 0.125) < 0.01)
        #expect(abs(amplitude(2000, 48_000..<96_000) - 0.05) < 0.005)
        #expect(amplitude(500, 168_000..<216_000) < 0.003)
        #expect(abs(amplitude(2000, 168_000..<216_000) - 0.05) < 0.005)
    }

    @Test func namesTheStageThatConverts() throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "a", "use": "tone-source" }, { "id": "b", "use": "tone-source", "sampleRate": 44100 },
              { "use": "audio-mix", "from": ["a", "b"] }, { "use": "null-sink" } ] }
            """)
        let outcome = try Program.framehost.run(["check", "chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 2)
        #expect(
            outcome.error.contains(
                "the inputs of a mix must have one format, but 'a' gives sound 48000 Hz, 2 channels, and 'b' gives sound 44100 Hz, 2 channels. Put a stage after 'b' and name that one here: { \"use\": \"audio-resample\", \"sampleRate\": 48000, \"channels\": 2 }."
            ), "\(outcome.error)")
    }

    /// In a live chain a file goes by the clock, or is refused.
    @Test func mixesAFileThatIsPlayedIntoLiveSound() throws {
        let made = try Tool.ffmpeg.run(
            "-v", "error", "-f", "lavfi", "-i", "sine=f=500:d=2:r=48000", "-c:a", "flac", workspace.path("a.flac"))
        #expect(made.status == 0, "\(made.error)")
        func chain(_ pace: String) -> String {
            """
            { "id": "file", "use": "file-source", "path": "a.flac"\(pace) },
            { "id": "mic", "use": "tone-source", "pattern": "silence", "channels": 1, "seconds": 4, "live": true },
            { "id": "mix", "use": "audio-mix", "from": ["mic", "file.audio"] },
            { "use": "audio-encoder" }, { "use": "recorder", "path": "out.m4a" }
            """
        }
        let refused = try run(chain(""))
        #expect(refused.status == 2)
        #expect(
            refused.error.contains(
                "the chain is live, but 'file.audio' gives its output as fast as it can, not in real time: 'mix' would take it long before its time. Use \"pace\": \"realtime\" at 'file.audio'."
            ), "\(refused.error)")
        let outcome = try run(chain(#", "pace": "realtime""#))
        #expect(outcome.status == 0, "\(outcome.error)")
        let samples = try samples("-i", workspace.path("out.m4a"))
        #expect(abs(Double(samples.count) / 48_000 - 4) < 0.7, "\(samples.count)")
        let loud = samples.filter { abs($0) > 0.02 }
        // Of a sine of 1/8, nine tenths of the samples.
        #expect(abs(Double(loud.count) / 48_000 - 1.8) < 0.1, "\(loud.count)")
    }

    // MARK: Served

    @Test(arguments: [("aac", "tcp"), ("opus", "udp")]) func servesSoundAlone(codec: String, transport: String) throws {
        let port = try RTSPStream.freePort()
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "use": "tone-source", "pattern": "beep", "live": true }, { "use": "audio-encoder", "codec": "\(codec)" },
              { "use": "rtsp-sink", "port": \(port), "path": "/radio" } ] }
            """)
        let program = try Program.framehost.start(["chain.json", "--events"], folder: workspace.folder.path)
        program.closeInput()
        try program.waitForOutput(#""state":"streaming""#)
        let url = "rtsp://127.0.0.1:\(port)/radio"
        let probed = try Tool.ffprobe.run(
            "-v", "error", "-rtsp_transport", transport, "-show_entries", "stream=codec_type,codec_name", "-of",
            "csv=p=0", url)
        #expect(probed.output.split(separator: "\n") == ["\(codec),audio"], "\(probed.error)")
        // A player may join within a beep.
        let begin = beeps(try samples("-rtsp_transport", transport, "-i", url, limit: "-t", "4")).filter { $0 > 0.15 }
        #expect(begin.count >= 3, "\(begin)")
        #expect(isRegular(begin, within: 0.003), "\(begin)")
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
    }

    /// A tone that changes all the time, as G.726 of `bits` bits a code. An AU file packs codes as RTP does.
    private func makeG726(_ bits: Int) throws -> [UInt8] {
        let made = try Tool.ffmpeg.run(
            "-v", "error", "-f", "lavfi", "-i", "aevalsrc=0.4*sin(2000*t+9*t*t)*(0.6+0.4*sin(19*t)):d=30:s=8000",
            "-c:a", "g726le", "-b:a", "\(bits * 8)k", workspace.path("tone.au"))
        #expect(made.status == 0, "\(made.error)")
        var bytes = Array(try Data(contentsOf: workspace.folder.appending(path: "tone.au")))
        // FFmpeg writes the encoding of 32 kbit/s (23) whatever it is.
        bytes[15] = [3: 25, 4: 23, 5: 26][bits] ?? 0
        try Data(bytes).write(to: workspace.folder.appending(path: "tone.au"))
        // The header says where it ends.
        return Array(bytes.dropFirst(bytes[4..<8].reduce(0) { $0 << 8 | Int($1) }))
    }

    private func serveG726() throws -> (program: RunningProgram, url: String) {
        let port = try RTSPStream.freePort()
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "song", "use": "file-source", "path": "tone.au", "decode": false, "pace": "realtime" },
              { "use": "rtsp-sink", "from": "song.audio", "port": \(port), "path": "/radio" } ] }
            """)
        let program = try Program.framehost.start(["chain.json", "--events"], folder: workspace.folder.path)
        program.closeInput()
        try program.waitForOutput(#""state":"streaming""#)
        return (program, "rtsp://127.0.0.1:\(port)/radio")
    }

    /// FFmpeg gets the codes of the file, and the samples that they decode to there.
    @Test(arguments: [(3, "tcp"), (4, "udp"), (5, "tcp")]) func servesG726AsItIs(
        bits: Int, transport: String
    ) throws {
        let codes = try makeG726(bits)
        let (program, url) = try serveG726()
        let played = try Tool.ffmpeg.run([
            "-v", "error", "-y", "-rtsp_transport", transport, "-i", url, "-t", "4", "-map", "0:a", "-c", "copy", "-f",
            "g726le", workspace.path("seen"), "-t", "4", "-map", "0:a", "-f", "s16le", workspace.path("seen.pcm"),
        ])
        #expect(played.status == 0, "\(played.error)")
        program.send(SIGINT)
        #expect(try program.finish().isDoneOrBusy)
        let seen = Array(try Data(contentsOf: workspace.folder.appending(path: "seen")))
        #expect(seen.count >= 3 * 1000 * bits)
        let place = try #require(codes.firstRange(of: seen)?.lowerBound)
        #expect(place % bits == 0)
        let decoded = try Tool.ffmpeg.run(
            "-v", "error", "-y", "-i", workspace.path("tone.au"), "-f", "s16le", workspace.path("file.pcm"))
        #expect(decoded.status == 0, "\(decoded.error)")
        func samples(_ name: String) throws -> [Int16] {
            try Data(contentsOf: workspace.folder.appending(path: name)).withUnsafeBytes {
                Array($0.bindMemory(to: Int16.self))
            }
        }
        let (ours, file) = (try samples("seen.pcm"), try samples("file.pcm"))
        // A decoder that begins in the middle is as one that began with the file after a while (ITU-T G.726).
        let settled = 8000
        #expect(ours.count > 3 * settled)
        let begin = place / bits * 8
        let differences = zip(ours.dropFirst(settled), file.dropFirst(begin + settled)).map { abs(Int($0) - Int($1)) }
        #expect((differences.max() ?? 0) <= 8, "\(differences.max() ?? 0)")
        #expect((file.map { abs(Int($0)) }.max() ?? 0) > 8000)
    }

    /// GStreamer gives codes as ATM packs them, the first one in the highest bits, and takes ours for such unless it is told.
    @Test(.needs(.gstreamer)) func gstreamerTakesG726() throws {
        let codes = try makeG726(4)
        let (program, url) = try serveG726()
        let player = try Tool.gstreamer.start([
            "-e", "rtspsrc", "location=\(url)", "protocols=tcp", "latency=100", "!", "rtpg726depay", "force-aal2=false",
            "!",
            "filesink", "buffer-mode=unbuffered", "location=\(workspace.path("seen"))",
        ])
        func seen() -> [UInt8] {
            ((try? Data(contentsOf: workspace.folder.appending(path: "seen"))).map { Array($0) } ?? []).map {
                $0 << 4 | $0 >> 4
            }
        }
        let deadline = Date() + 120
        while seen().count < 12_000, Date() < deadline { usleep(100_000) }
        player.send(SIGINT)
        _ = try player.finish()
        program.send(SIGINT)
        #expect(try program.finish().isDoneOrBusy)
        let bytes = seen()
        #expect(bytes.count >= 12_000)
        #expect(codes.firstRange(of: bytes) != nil)
    }

    /// AAC needs the packet before the first sample that is heard.
    @Test(.needs(.ffmpeg), .needs(.ffprobe)) func keepsThePacketThatADecoderNeedsFirst() throws {
        let workspace = try Workspace()
        let made = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-f", "lavfi", "-i", "anoisesrc=r=48000:d=2:seed=1", "-c:a", "aac",
            workspace.path("song.mp4"))
        try #require(made.status == 0, "\(made.error)")
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "id": "song", "use": "file-source", "path": "song.mp4", "decode": false },
                          { "use": "recorder", "path": "out.m4a", "from": "song.audio" } ] }
            """)
        let outcome = try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        func samples(_ name: String) throws -> String {
            try Tool.ffmpeg.run("-nostdin", "-v", "error", "-i", workspace.path(name), "-t", "1", "-f", "md5", "-")
                .output
        }
        #expect(try samples("out.m4a") == samples("song.mp4"))
    }
}
