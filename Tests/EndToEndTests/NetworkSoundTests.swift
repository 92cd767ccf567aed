// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// `"from": "net.audio"`: the sound of a `network-source`, from our own server and from ffmpeg.
@Suite(.serialized, .needs(.ffmpeg), .needs(.ffprobe)) struct NetworkSoundTests {
    private let workspace: Workspace
    private let port: Int

    init() throws {
        workspace = try Workspace()
        port = try RTSPStream.freePort()
    }

    private var url: String { "rtsp://127.0.0.1:\(port)/live" }

    /// A server of a flash and a beep each second, which records them too.
    private func serve(sound: Bool = true, file: String = "sent.mp4") throws -> RunningProgram {
        let inputs = sound ? #"["h264", "aac"]"# : #"["h264"]"#
        try workspace.write(
            "serve.json",
            """
            { "stages": [
              { "id": "cam", "use": "test-source", "size": "320x240", "rate": 30, "live": true, "pattern": "flash" },
              { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 1, "bframes": 0 },
              \(sound ? #"{ "id": "tone", "use": "tone-source", "live": true, "pattern": "beep" }, { "id": "aac", "use": "audio-encoder" },"# : "")
              { "id": "live", "use": "rtsp-sink", "port": \(port), "path": "/live", "address": "127.0.0.1", "from": \(inputs) },
              { "id": "rec", "use": "recorder", "path": "\(file)", "overwrite": true, "from": \(inputs) } ] }
            """)
        let server = try Program.framehost.start(["serve.json", "--events"], folder: workspace.folder.path)
        try server.waitForOutput("recording-did-start")
        return server
    }

    private func receive(_ source: String, encoders: Bool) throws -> RunningProgram {
        let (pictures, sound) = encoders ? ("h264", "aac") : ("net", "net.audio")
        let stages = #"""
            { "id": "h264", "use": "x264-encoder", "from": "net", "preset": "ultrafast", "tune": "zerolatency" },
            { "id": "aac", "use": "audio-encoder", "from": "net.audio" },
            """#
        try workspace.write(
            "receive.json",
            """
            { "stages": [
              { "id": "net", "use": "network-source", "connectSeconds": 60, \(source) },
              \(encoders ? stages : "")
              { "id": "file", "use": "recorder", "path": "got.mp4", "overwrite": true, "from": ["\(pictures)", "\(sound)"] } ] }
            """)
        return try Program.framehost.start(
            ["receive.json", "--events", "--commands", "--stats", "stats.json"], folder: workspace.folder.path)
    }

    private func tracks(_ name: String) throws -> [String?] {
        let outcome = try Tool.ffprobe.run(
            "-v", "error", "-show_entries", "stream=codec_name", "-of", "json", workspace.path(name))
        return try JSON(parsing: outcome.output)["streams"].list.map { $0["codec_name"].string }
    }

    /// When the packets of a recorded track are shown, in order.
    private func times(_ track: String, of name: String = "got.mp4") throws -> [Double] {
        try Tool.ffprobe.run(
            "-v", "error", "-select_streams", track, "-show_entries", "packet=pts_time", "-of", "csv=p=0",
            workspace.path(name)
        ).lines.compactMap { Double($0.prefix { $0 != "," }) }.sorted()
    }

    /// How long the recorded pictures are, and the gaps between two of them. Not at the very beginning: what was read
    /// to examine the stream comes at once there, and the stream's place on the clock is still found.
    private func pictures(_ name: String = "got.mp4") throws -> (seconds: Double, gaps: [Double]) {
        let times = try self.times("v:0", of: name).filter { $0 > 1 }
        return (times.last ?? 0, zip(times, times.dropFirst()).map { $1 - $0 }.filter { $0 >= 0.1 })
    }

    private func figures() throws -> JSON {
        try JSON(file: workspace.path("stats.json"))["stages"].first("id", "net")["figures"]
    }

    /// When an event was posted, in seconds of what is recorded to `got.mp4`.
    private static func time(of event: String, _ outcome: Outcome) throws -> Double {
        let events = try outcome.lines.map { try JSON(parsing: $0) }
        let begin = try #require(events.first { $0["event"].string == "recording-did-start" }?["startSeconds"].double)
        return try #require(events.first { $0["event"].string == event }?["time"].double) - begin
    }

    /// Ends the receiver, then its server.
    private func end(_ receiver: RunningProgram, before server: RunningProgram) throws -> Outcome {
        receiver.send(SIGINT)
        let received = try receiver.finish()
        server.send(SIGINT)
        _ = try server.finish()
        #expect(received.isDoneOrBusy, "\(received.error)")
        return received
    }

    /// Runs again while it gives false: where the machine has left out pictures or stood still, a run says nothing.
    private func untilWhole(_ run: () throws -> Bool) throws {
        for _ in 0..<20 { if try run() { return } }
        Issue.record("pictures or sound are missing in each of twenty runs")
    }

    /// The chain begins long after the connection, as beside a camera that is slow to answer: of the pictures only the newest
    /// are left then, and of the sound what belongs to them.
    @Test func beginsWithTheSoundOfItsFirstPicture() throws {
        try workspace.write(
            "serve.json",
            """
            { "stages": [
              { "id": "cam", "use": "test-source", "size": "160x120", "rate": 120, "live": true },
              { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 1, "bframes": 0 },
              { "id": "tone", "use": "tone-source", "live": true }, { "id": "aac", "use": "audio-encoder" },
              { "id": "live", "use": "rtsp-sink", "port": \(port), "path": "/live", "address": "127.0.0.1",
                "from": ["h264", "aac"] } ] }
            """)
        let server = try Program.framehost.start(["serve.json", "--events"], folder: workspace.folder.path)
        try server.waitForOutput(#""state":"streaming""#)
        let slow = "udp://127.0.0.1:\(try RTSPStream.freePort())"
        try workspace.write(
            "receive.json",
            """
            { "stages": [
              { "id": "net", "use": "network-source", "url": "\(url)", "decode": false, "connectSeconds": 60 },
              { "id": "slow", "use": "network-source", "url": "\(slow)", "connectSeconds": 60 },
              { "id": "none", "use": "null-sink" },
              { "id": "file", "use": "recorder", "path": "got.mkv", "from": ["net", "net.audio"] } ] }
            """)
        let receiver = try Program.framehost.start(["receive.json", "--events"], folder: workspace.folder.path)
        // 120 pictures a second: 512 wait at most.
        receiver.listen(seconds: 10)
        let sender = try Tool.ffmpeg.start(
            [
                "-nostdin", "-v", "quiet", "-re", "-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25", "-c:v",
                "libx264",
                "-preset", "ultrafast", "-tune", "zerolatency", "-g", "10", "-f", "mpegts", slow,
            ])
        try receiver.waitForOutput("recording-did-start")
        receiver.listen(seconds: 3)
        let received = try end(receiver, before: server)
        sender.send(SIGKILL)
        _ = try sender.finish()
        let (sound, pictures) = (try times("a:0", of: "got.mkv"), try times("v:0", of: "got.mkv"))
        let (first, begin) = (try #require(sound.first), try #require(pictures.first))
        #expect(first - begin < 0.5 && pictures.count > 100 && sound.count > 50, "\(begin) \(first) \(pictures.count)")
        #expect(!received.output.contains("sound-dropped"))
    }

    /// Who records a camera's pictures hears that it has sound, also where that is not asked for over RTSP.
    @Test func saysThatACameraHasSound() throws {
        let server = try serve()
        for (decode, isSaid) in [(false, true), (true, false)] {
            try workspace.write(
                "check.json",
                """
                { "stages": [ { "id": "net", "use": "network-source", "url": "\(url)", "decode": \(decode) },
                              { "use": "null-sink" } ] }
                """)
            let outcome = try Program.framehost.run(["check", "check.json"], folder: workspace.folder.path)
            #expect(outcome.status == 0, "\(outcome.error)")
            let text = #", and sound that no stage takes. To use it, link "from": "net.audio" too."#
            #expect(outcome.output.contains(text) == isSaid, "\(outcome.output)")
        }
        server.send(SIGINT)
        _ = try server.finish()
    }

    /// A server gives a new reader everything since its last keyframe at once, seconds of sound too: it is spread, since the
    /// queue behind a live source is short.
    @Test(arguments: [true, false]) func dropsNothingOfTheSoundThatAConnectionBeginsWith(isThere: Bool) throws {
        let made = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=60", "-f", "lavfi",
            "-i", "sine=frequency=1000:sample_rate=48000:duration=60", "-pix_fmt", "yuv420p", "-c:v", "libx264", "-bf",
            "0", "-g", "1500", "-sc_threshold", "0", "-c:a", "aac", workspace.path("long.mp4"))
        try #require(made.status == 0, "\(made.error)")
        try workspace.write(
            "serve.json",
            """
            { "stages": [
              { "id": "clip", "use": "file-source", "path": "long.mp4", "decode": false, "pace": "realtime" },
              { "id": "live", "use": "rtsp-sink", "port": \(port), "path": "/live", "address": "127.0.0.1", "from": ["clip", "clip.audio"] } ] }
            """)
        try untilWhole {
            let server = try Program.framehost.start(["serve.json", "--events"], folder: workspace.folder.path)
            try server.waitForOutput(#""state":"streaming""#)
            // As much as the first keyframe is old.
            server.listen(seconds: 6)
            let receiver = try receive(
                #""url": "\#(url)"\#(isThere ? "" : #", "ifMissing": "wait", "size": "320x240""#)"#, encoders: true)
            try receiver.waitForOutput("recording-did-start")
            receiver.listen(seconds: 7)
            receiver.send(SIGINT)
            let received = try receiver.finish()
            server.send(SIGINT)
            _ = try server.finish()
            let stats = try JSON(file: workspace.path("stats.json"))
            #expect(stats["ledger"]["dropped"].int == 0 || received.isDoneOrBusy, "\(received.error)")
            // An encoder that had no processor for a second drops some, too; not each time.
            return !received.error.contains("between net.audio and aac")
        }
    }

    @Test(arguments: ["tcp", "udp"], [true, false]) func keepsSoundAndPicturesTogether(
        transport: String, decode: Bool
    ) throws {
        try untilWhole {
            let server = try serve()
            let receiver = try receive(
                #""url": "\#(url)", "transport": "\#(transport)", "decode": \#(decode)"#, encoders: decode)
            try receiver.waitForOutput("recording-did-start")
            receiver.listen(seconds: 7)
            receiver.send(SIGINT)
            let received = try receiver.finish()
            server.send(SIGINT)
            let served = try server.finish()
            #expect(served.isDoneOrBusy, "\(served.error)")
            #expect(received.isDoneOrBusy, "\(received.error)")
            #expect(try tracks("got.mp4") == ["h264", "aac"])
            for name in ["sent.mp4", "got.mp4"] {
                let (seconds, gaps) = try pictures(name)
                guard seconds > 5, gaps.isEmpty else { return false }
            }
            let net = try figures()
            guard net["timeJumps"].int == 0, net["losses"].int == 0 else { return false }
            let (sent, got) = (
                try LipSync("-i", workspace.path("sent.mp4")), try LipSync("-i", workspace.path("got.mp4"))
            )
            let offsets = got.offsetsOfFlashes(after: 1)
            #expect(offsets.count >= 4 && sent.offsets.count >= 4, "\(got)")
            // A live flash is up to a picture late; pictures are placed by when they come, to some milliseconds.
            let apart = offsets.compactMap { offset in
                sent.offsets.map { offset - $0 }.min { abs($0) < abs($1) }
            }
            #expect(
                apart.count { abs($0) <= 40 } >= 4,
                "sound is \(apart) ms later than at the server: \(got.offsets), sent \(sent.offsets)")
            return true
        }
    }

    /// MPEG-TS of another program: AAC with ADTS headers, which a recording as it is has once.
    @Test(arguments: [true, false]) func givesTheSoundOfATransportStream(isDecoded: Bool) throws {
        var sender: RunningProgram?
        defer {
            sender?.send(SIGKILL)
            _ = try? sender?.finish()
        }
        func send() throws {
            sender?.send(SIGKILL)
            _ = try sender?.finish()
            sender = try Tool.ffmpeg.start([
                "-nostdin", "-v", "error", "-re", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-f", "lavfi",
                "-i", "sine=frequency=1000:sample_rate=48000", "-c:v", "libx264", "-preset", "ultrafast", "-g", "25",
                "-c:a", "aac", "-f", "mpegts", "udp://127.0.0.1:\(port)?pkt_size=1316",
            ])
        }
        try untilWhole {
            try send()
            let receiver = try receive(
                #""url": "udp://:\#(port)", "decode": \#(isDecoded)"#, encoders: isDecoded)
            try receiver.waitForOutput("recording-did-start")
            receiver.listen(seconds: 6)
            receiver.send(SIGINT)
            let received = try receiver.finish()
            #expect(received.isDoneOrBusy, "\(received.error)")
            #expect(try tracks("got.mp4") == ["h264", "aac"])
            let (seconds, gaps) = try pictures()
            let net = try figures()
            guard seconds > 4, gaps.isEmpty, net["timeJumps"].int == 0, net["losses"].int == 0 else { return false }
            let sound = try times("a:0")
            #expect((sound.last ?? 0) - (sound.first ?? 0) > 3.5, "\(sound)")
            // A whole tone: nothing was left out, and nothing put in. Its end fills up the encoder's last frame.
            let level = try Tool.ffmpeg.run([
                "-nostdin", "-hide_banner", "-ss", "1", "-t", "2.5", "-i", workspace.path("got.mp4"), "-map", "0:a",
                "-af",
                "silencedetect=noise=-40dB:d=0.005", "-f", "null", "-",
            ])
            #expect(!level.error.contains("silence_start"), "\(level.error.suffix(600))")
            return true
        }
    }

    /// An advertisement between two parts: the times jump by a thousand seconds, and the sound says so first.
    @Test func goesOnBehindAJumpOfTheTimes() throws {
        for (name, offset, video) in [("1", "0", "0"), ("2", "1000", "0.3")] {
            let made = try Tool.ffmpeg.run([
                "-nostdin", "-v", "error", "-itsoffset", video, "-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25",
                "-f", "lavfi", "-i", "sine=sample_rate=48000", "-t", "4", "-c:v", "libx264", "-preset", "ultrafast",
                "-g",
                "25", "-c:a", "aac", "-output_ts_offset", offset, "-f", "mpegts", "-pes_payload_size", "1",
                workspace.path("\(name).ts"),
            ])
            try #require(made.status == 0, "\(made.error)")
        }
        var bytes = try Data(contentsOf: URL(fileURLWithPath: workspace.path("1.ts")))
        bytes += try Data(contentsOf: URL(fileURLWithPath: workspace.path("2.ts")))
        try bytes.write(to: URL(fileURLWithPath: workspace.path("jump.ts")))
        let server = try Tool(name: "python3").start([
            "-u", "-m", "http.server", "\(port)", "--bind", "127.0.0.1", "--directory", workspace.folder.path,
        ])
        defer {
            server.send(SIGKILL)
            _ = try? server.finish()
        }
        try server.waitForOutput("Serving HTTP")
        let received = try receive(#""url": "http://127.0.0.1:\#(port)/jump.ts""#, encoders: true).finish()
        #expect(received.isDoneOrBusy, "\(received.error)")
        let lengths = try Tool.ffprobe.run(
            "-v", "error", "-show_entries", "stream=duration", "-of", "csv=p=0", workspace.path("got.mp4")
        ).lines.compactMap { Double($0.prefix { $0 != "," }) }
        #expect(lengths.count == 2 && lengths.allSatisfy { $0 > 7 && $0 < 12 }, "\(lengths)")
    }

    @Test func saysThatThereIsNone() throws {
        let server = try serve(sound: false)
        let outcome = try receive(#""url": "\#(url)""#, encoders: true).finish()
        server.send(SIGINT)
        _ = try server.finish()
        #expect(outcome.status == 2, "\(outcome.error)")
        #expect(
            outcome.error.contains(
                "url: the stream has no sound, or none that can be decoded. Take the pictures only,"),
            "\(outcome.error)")
    }

    @Test func goesOnWhenTheStreamIsBack() throws {
        try untilWhole {
            var server = try serve()
            let receiver = try receive(#""url": "\#(url)", "stallSeconds": 1"#, encoders: true)
            try receiver.waitForOutput("recording-did-start")
            receiver.listen(seconds: 3)
            server.send(SIGKILL)
            _ = try server.finish()
            try receiver.waitForOutput("stream-lost")
            server = try serve(file: "again.mp4")
            try receiver.waitForOutput("stream-back")
            receiver.listen(seconds: 5)
            let received = try end(receiver, before: server)
            let net = try figures()
            let (lost, back) = try (Self.time(of: "stream-lost", received), Self.time(of: "stream-back", received))
            // Pictures go on while the stream is away.
            let (seconds, gaps) = try pictures()
            guard lost > 2.5, seconds > back + 4, gaps.isEmpty, try pictures("again.mp4").gaps.isEmpty,
                net["timeJumps"].int == 0, net["losses"].int == 1
            else { return false }
            let sync = try LipSync("-i", workspace.path("got.mp4"))
            #expect(sync.beeps.count { $0 < lost } >= 1 && sync.beeps.count { $0 > back } >= 2, "\(sync)")
            // Where the stream is back, a flash may have begun before.
            #expect(sync.offsets.count { abs($0) <= 80 } >= 4, "\(sync)")
            return true
        }
    }

    /// What comes while the pictures stand still is late when they go on: they leave it out, and no time moves.
    @Test(arguments: [true, false]) func keepsBothTogetherBehindAPause(decode: Bool) throws {
        try untilWhole {
            let server = try serve()
            let receiver = try receive(#""url": "\#(url)", "decode": \#(decode)"#, encoders: decode)
            try receiver.waitForOutput("recording-did-start")
            receiver.listen(seconds: 2.5)
            let paused = try receiver.sendPatiently(#"{ "stage": "net", "command": "pause" }"#)
            receiver.listen(seconds: 3)
            let resumed = try receiver.sendPatiently(#"{ "stage": "net", "command": "resume" }"#)
            receiver.listen(seconds: 5)
            let received = try end(receiver, before: server)
            #expect(paused["ok"].bool == true && resumed["ok"].bool == true, "\(received.output)")
            let net = try figures()
            // The pause is the one gap. Access units go on with a keyframe, which comes each second.
            let (seconds, gaps) = try pictures()
            let pause = (resumed["time"].double ?? 0) - (paused["time"].double ?? 0)
            guard seconds > 9, gaps.count == 1, gaps[0] < pause + (decode ? 0.5 : 1.5), net["losses"].int == 0,
                try pictures("sent.mp4").gaps.isEmpty
            else { return false }
            #expect(net["timeJumps"].int == 0 && (net["skipped"].int ?? 0) > 30, "\(net)")
            let sync = try LipSync("-i", workspace.path("got.mp4"))
            // A beep each second, the pause included; flashes before it and behind it.
            #expect(sync.beeps.count >= 8, "\(sync)")
            // Not at the very beginning. On a busy machine the stream's place on the clock is found by pictures that come
            // some hundredths of a second late, and corrected later.
            let beeps = sync.beeps.filter { $0 > 1 }
            #expect(zip(beeps, beeps.dropFirst()).allSatisfy { abs($1 - $0 - 1) < 0.1 }, "\(sync)")
            #expect(sync.flashes.count { $0 < 4 } >= 1 && sync.flashes.count { $0 > 5 } >= 2, "\(sync)")
            #expect(sync.offsets.count { abs($0) <= 80 } >= 4, "\(sync)")
            return true
        }
    }
}
