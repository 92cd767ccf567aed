// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// `"from": "net.units"`: the access units of a `network-source` beside its pictures, over one connection.
@Suite(.serialized, .needs(.ffmpeg), .needs(.ffprobe)) struct NetworkUnitsTests {
    private let workspace: Workspace
    private let port: Int

    init() throws {
        workspace = try Workspace()
        port = try RTSPStream.freePort()
    }

    private var url: String { "rtsp://127.0.0.1:\(port)/live" }

    /// A clip of 20 s with B-frames and a keyframe each second.
    private func makeClip(_ codec: [String]) throws {
        let made = try Tool.ffmpeg.run(
            [
                "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=20", "-pix_fmt",
                "yuv420p",
            ] + codec + ["-an", "-y", workspace.path("clip.mp4")])
        try #require(made.status == 0, "\(made.error)")
    }

    private static let h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "25", "-sc_threshold", "0"]
    private static let h265 = [
        "-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1", "-x265-params",
        "bframes=2:keyint=25:min-keyint=25:scenecut=0:open-gop=0:log-level=none",
    ]

    /// Serves the clip as it is.
    private func serve() throws -> RunningProgram {
        try workspace.write(
            "serve.json",
            """
            { "stages": [
              { "id": "clip", "use": "file-source", "path": "clip.mp4", "decode": false, "pace": "realtime", "loop": true },
              { "id": "live", "use": "rtsp-sink", "port": \(port), "path": "/live", "address": "127.0.0.1" } ] }
            """)
        let server = try Program.framehost.start(["serve.json", "--events"], folder: workspace.folder.path)
        try server.waitForOutput(#""state":"streaming""#)
        return server
    }

    /// Records the units, and the pictures coded anew; each part of the units has its own file.
    private func write(_ source: String) throws {
        try workspace.write(
            "receive.json",
            """
            { "stages": [
              { "id": "net", "use": "network-source", "url": "\(url)", \(source) },
              { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "tune": "zerolatency", "link": { "queue": 8 } },
              { "id": "pictures", "use": "recorder", "path": "pictures.mp4", "overwrite": true },
              { "id": "units", "use": "recorder", "path": "units.mkv", "overwrite": true, "from": "net.units" } ] }
            """)
    }

    private func receive(_ source: String = #""connectSeconds": 60"#) throws -> RunningProgram {
        try write(source)
        return try Program.framehost.start(
            ["receive.json", "--events", "--commands"], environment: ["STATE_DIRECTORY": workspace.path("state")],
            folder: workspace.folder.path)
    }

    /// The chain clock's time of each picture of a recording, seconds.
    private func times(_ name: String, of stage: String, _ outcome: Outcome) throws -> [Double] {
        let events = try outcome.lines.map { try JSON(parsing: $0) }
        let begun = events.first { $0["event"].string == "recording-did-start" && $0["stage"].string == stage }
        let begin = try #require(begun?["startSeconds"].double)
        return try Tool.ffprobe.run(
            "-v", "error", "-select_streams", "v", "-show_entries", "packet=pts_time", "-of", "csv=p=0",
            workspace.path(name)
        ).lines.compactMap { Double($0.prefix { $0 != "," }) }.map { $0 + begin }.sorted()
    }

    private func end(_ receiver: RunningProgram) throws -> Outcome {
        receiver.send(SIGINT)
        let outcome = try receiver.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        return outcome
    }

    @Test(arguments: [h264, h265]) func givesWhatTheCameraSentAtThePicturesTimes(codec: [String]) throws {
        try makeClip(codec)
        let server = try serve()
        let receiver = try receive()
        try receiver.waitForOutput("recording-did-start")
        receiver.listen(seconds: 6)
        let outcome = try end(receiver)
        server.send(SIGINT)
        _ = try server.finish()
        let (units, pictures) = try (
            times("units.mkv", of: "units", outcome), times("pictures.mp4", of: "pictures", outcome)
        )
        #expect(units.count >= 125, "\(units)")
        // A picture is one frame, also where its unit is taken too.
        let done = try #require(
            outcome.errorLines.last.flatMap { try? /Done: (\d+) frames and (\d+) access units in/.firstMatch(in: $0) })
        #expect(Int(done.1)! < Int(done.2)! + 40 && Int(done.2)! >= units.count, "\(outcome.error)")
        // Where the machine has left pictures out, the others' times are the same all the same. A unit comes some periods
        // before its picture, and the offset may fall by a sixteenth of one with each meanwhile.
        let found = pictures.count { time in units.contains { abs($0 - time) < 0.008 } }
        #expect(found >= pictures.count * 9 / 10 && pictures.count > 50, "\(found) of \(pictures.count)")
        // A file that is played again and again begins anew with its first picture.
        let sent = try pictureHashes("clip.mp4")
        // The end may lie between a picture and those that are shown before it.
        let got = try pictureHashes("units.mkv").dropLast(3)
        let begin = try #require(sent.firstIndex(of: got[0]))
        #expect(Array(got) == (0..<got.count).map { sent[(begin + $0) % sent.count] }, "\(got.count) of \(sent.count)")
    }

    /// A hash of each decoded picture, in the order of showing.
    private func pictureHashes(_ name: String) throws -> [String] {
        try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-i", workspace.path(name), "-map", "0:v", "-fps_mode", "passthrough", "-f",
            "framemd5", "-"
        ).lines.filter { !$0.hasPrefix("#") }.compactMap {
            $0.split(separator: ",").last?.trimmingCharacters(in: .whitespaces)
        }
    }

    /// A connection's first packets have no DTS where pictures are reordered.
    @Test func placesTheFirstUnitsOfAConnectionByTheirPictures() throws {
        try makeClip(Self.h264)
        let server = try serve()
        server.listen(seconds: 1.5)
        try workspace.write(
            "receive.json",
            """
            { "stages": [
              { "id": "net", "use": "network-source", "url": "\(url)", "decode": false, "connectSeconds": 60 },
              { "id": "units", "use": "recorder", "path": "units.mkv", "overwrite": true } ] }
            """)
        let receiver = try Program.framehost.start(["receive.json", "--events"], folder: workspace.folder.path)
        try receiver.waitForOutput("recording-did-start")
        receiver.listen(seconds: 3)
        let outcome = try end(receiver)
        server.send(SIGINT)
        _ = try server.finish()
        let times = try times("units.mkv", of: "units", outcome)
        // The server's own times are within a few milliseconds of the clip's. The very first one may have none.
        let steps = zip(times.dropFirst(), times.dropFirst(2)).map { $1 - $0 }
        #expect(times.count > 40 && steps.allSatisfy { $0 > 0.015 }, "\(steps.prefix(8))")
    }

    @Test func goesOnAtAKeyframeWhenTheStreamIsBack() throws {
        try makeClip(Self.h264)
        var server = try serve()
        let receiver = try receive(#""connectSeconds": 60, "stallSeconds": 1"#)
        try receiver.waitForOutput("recording-did-start")
        receiver.listen(seconds: 3)
        server.send(SIGKILL)
        _ = try server.finish()
        try receiver.waitForOutput("stream-lost")
        receiver.listen(seconds: 1)
        server = try serve()
        try receiver.waitForOutput("stream-back")
        receiver.listen(seconds: 4)
        let outcome = try end(receiver)
        server.send(SIGINT)
        _ = try server.finish()
        let times = try times("units.mkv", of: "units", outcome)
        let gaps = zip(times, times.dropFirst()).filter { $1 - $0 > 0.9 }
        #expect(gaps.count == 1, "\(gaps)")
        // Also those of the burst with which the stream is back, most of whose pictures have been stood in for.
        #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 > 0.015 }, "\(times)")
        // The keyframe behind the gap can be decoded without what was before it.
        let decoded = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-i", workspace.path("units.mkv"), "-f", "null", "-")
        #expect(!decoded.error.contains("[h264"), "\(decoded.error)")
        #expect(times.count > 120, "\(times.count)")
    }

    /// The recorder of the units leaves and is put back, also after a reload that was refused; then the source itself is
    /// replaced, and with it the recorder.
    @Test func isTakenAnewInARunningChain() throws {
        try makeClip(Self.h264)
        let server = try serve()
        func chain(_ name: String, _ options: String, url: String? = nil, takesUnits: Bool) throws {
            let units =
                takesUnits
                ? #", { "id": "units", "use": "recorder", "path": "units-{nn}.mkv", "from": "net.units" }"# : ""
            try workspace.write(
                name,
                """
                { "stages": [ { "id": "net", "use": "network-source", "url": "\(url ?? self.url)", \(options) "connectSeconds": 60 },
                  { "id": "screen", "use": "null-sink" }\(units) ] }
                """)
        }
        try chain("with.json", "", takesUnits: true)
        try chain("without.json", "", takesUnits: false)
        try chain("other.json", #""stallSeconds": 4,"#, takesUnits: true)
        try chain("bad.json", "", url: "rtsp://127.0.0.1:1/nobody", takesUnits: true)
        let receiver = try Program.framehost.start(
            ["with.json", "--events", "--commands"], folder: workspace.folder.path)
        func reload(_ name: String) throws {
            let answer = try receiver.sendPatiently(
                #"{ "command": "reload", "file": "\#(workspace.path(name))" }"#)
            #expect(answer["ok"].bool == true, "\(answer)")
        }
        func waitForRecording(_ count: Int) throws {
            let deadline = Date() + 60
            while receiver.output.components(separatedBy: #""event":"recording-did-start""#).count <= count {
                try #require(Date() < deadline, "recording \(count) did not begin: \(receiver.output)")
                receiver.listen(seconds: 0.1)
            }
        }
        try waitForRecording(1)
        try reload("without.json")
        receiver.listen(seconds: 2)
        // A reload that is refused leaves the running connection as it was.
        let refused = try receiver.sendPatiently(
            #"{ "command": "reload", "file": "\#(workspace.path("bad.json"))" }"#)
        #expect(refused["ok"].bool == false, "\(refused)")
        try reload("with.json")
        try waitForRecording(2)
        // Which of two threads takes its new instance first is by chance.
        for number in 0..<4 {
            try reload(number % 2 == 0 ? "other.json" : "with.json")
            receiver.listen(seconds: 2.5)
        }
        let outcome = try end(receiver)
        server.send(SIGINT)
        _ = try server.finish()
        let events = try outcome.lines.map { try JSON(parsing: $0) }
        let ends = events.filter { $0["event"].string == "recording-did-stop" }
        let begins = events.filter { $0["event"].string == "recording-did-start" }.compactMap {
            $0["startSeconds"].double
        }
        #expect(begins.count >= 2 && ends.count == begins.count, "\(outcome.output)")
        let last = try #require(ends.last)
        #expect((last["frames"].int ?? 0) > 150, "10 s and more at 25 a second: \(ends)")
    }

    /// A stream without times: a unit has the time at which its picture came.
    @Test(.needs(.python)) func givesTheJPEGsOfACameraWithoutTimes() throws {
        let made = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=4", "-c:v", "mjpeg",
            "-f", "mjpeg", workspace.path("sent.mjpeg"))
        try #require(made.status == 0, "\(made.error)")
        let camera = try Tool.python.start([
            Repository.root.appending(path: "Tests/Tools/mjpeg-camera.py").path, workspace.path("sent.mjpeg"), "8",
        ])
        camera.closeInput()
        try camera.waitForOutput("\n")
        try workspace.write(
            "receive.json",
            """
            { "stages": [
              { "id": "net", "use": "network-source", "url": "http://127.0.0.1:\(camera.output.prefix { $0 != "\n" })/" },
              { "id": "screen", "use": "null-sink" },
              { "id": "units", "use": "recorder", "path": "units.mkv", "from": "net.units" } ] }
            """)
        let receiver = try Program.framehost.start(["receive.json", "--events"], folder: workspace.folder.path)
        try receiver.waitForOutput("recording-did-start")
        receiver.listen(seconds: 5)
        let outcome = try end(receiver)
        camera.send(SIGKILL)
        _ = try camera.finish()
        let times = try times("units.mkv", of: "units", outcome)
        // What was read to find out what is in the stream comes at once.
        let steady = zip(times, times.dropFirst()).map { $1 - $0 }.suffix(16)
        #expect(times.count >= 35 && abs(steady.reduce(0, +) / 16 - 0.125) < 0.02, "\(times)")
    }

    /// What the stream was at the last time is what the chain is planned for.
    @Test func beginsWithoutAStreamThatItKnows() throws {
        try makeClip(Self.h264)
        var server = try serve()
        let waits = #""ifMissing": "wait", "size": "320x240""#
        let first = try receive(waits)
        try first.waitForOutput("recording-did-start")
        first.listen(seconds: 2)
        _ = try end(first)
        server.send(SIGINT)
        _ = try server.finish()
        let again = try receive(waits)
        try again.waitForOutput(#""state":"streaming""#)
        again.listen(seconds: 1)
        #expect(!again.output.contains("stream-back"))
        server = try serve()
        try again.waitForOutput("stream-back")
        again.listen(seconds: 3)
        let outcome = try end(again)
        server.send(SIGINT)
        _ = try server.finish()
        #expect(try times("units.mkv", of: "units", outcome).count >= 50)
    }

    /// Where it was never there, by what the options say. A wrong 'codec' costs the units, not the pictures.
    @Test(arguments: ["h264", "h265"]) func beginsWithoutAStreamThatIsDescribed(codec: String) throws {
        try makeClip(Self.h264)
        let receiver = try receive(#""ifMissing": "wait", "codec": "\#(codec)", "size": "320x240""#)
        try receiver.waitForOutput("stream-refused")
        let server = try serve()
        try receiver.waitForOutput("stream-back")
        if codec == "h264" {
            receiver.listen(seconds: 3)
        } else {
            try receiver.waitForOutput("Correct 'codec', and restart the chain.")
        }
        receiver.send(SIGINT)
        let outcome = try receiver.finish()
        server.send(SIGINT)
        _ = try server.finish()
        #expect(try pictureHashes("pictures.mp4").count > 10)
        guard codec == "h264" else { return #expect(outcome.output.contains("units-missing")) }
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let sent = try pictureHashes("clip.mp4")
        let got = try pictureHashes("units.mkv").dropLast(3)
        #expect(got.count >= 40 && got.allSatisfy(sent.contains), "\(got.count)")
    }

    /// Nothing is known of it: the chain begins with it, and the remedy that is named is one.
    @Test func saysHowToBeginWithoutAStream() throws {
        try write(#""ifMissing": "wait", "size": "320x240""#)
        let unknown = try Program.framehost.run(
            ["check", "receive.json"], environment: ["STATE_DIRECTORY": workspace.path("state")],
            folder: workspace.folder.path)
        #expect(
            unknown.status == 2 && unknown.error.contains("To start the chain without the stream, set 'codec'."),
            "\(unknown.error)")
        try write(#""ifMissing": "wait", "codec": "h264", "size": "320x240""#)
        let known = try Program.framehost.run(
            ["check", "receive.json"], environment: ["STATE_DIRECTORY": workspace.path("state")],
            folder: workspace.folder.path)
        #expect(known.status == 0, "\(known.error)")
        try workspace.write(
            "pictures.json",
            """
            { "stages": [
              { "id": "net", "use": "network-source", "url": "\(url)", "ifMissing": "wait", "codec": "h264", "size": "320x240" },
              { "id": "screen", "use": "null-sink" } ] }
            """)
        let pictures = try Program.framehost.run(["check", "pictures.json"], folder: workspace.folder.path)
        #expect(
            pictures.status == 2
                && pictures.error.contains("no stage takes them: decoded pictures need no 'codec'. Leave it out;"),
            "\(pictures.error)")
    }

    @Test func saysWhatItCannotGive() throws {
        try makeClip(Self.h264)
        let server = try serve()
        try workspace.write(
            "receive.json",
            """
            { "stages": [
              { "id": "net", "use": "network-source", "url": "\(url)", "decode": false },
              { "id": "screen", "use": "null-sink" },
              { "id": "units", "use": "recorder", "path": "units.mkv", "from": "net.units" } ] }
            """)
        let undecoded = try Program.framehost.run(["check", "receive.json"], folder: workspace.folder.path)
        #expect(undecoded.status == 2)
        #expect(
            undecoded.error.contains(
                "decode: with \"decode\": false 'net' gives its access units itself, and has no output 'units'. Write \"from\": \"net\""
            ), "\(undecoded.error)")
        server.send(SIGINT)
        _ = try server.finish()
        let sender = try Tool.ffmpeg.start([
            "-nostdin", "-v", "error", "-re", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-c:v",
            "mpeg2video", "-f", "mpegts", "udp://127.0.0.1:\(port)?pkt_size=1316",
        ])
        try workspace.write(
            "mpeg.json",
            """
            { "stages": [
              { "id": "net", "use": "network-source", "url": "udp://127.0.0.1:\(port)", "connectSeconds": 20 },
              { "id": "screen", "use": "null-sink" },
              { "id": "units", "use": "recorder", "path": "units.mkv", "from": "net.units" } ] }
            """)
        let other = try Program.framehost.run(["check", "mpeg.json"], folder: workspace.folder.path)
        sender.send(SIGKILL)
        _ = try sender.finish()
        #expect(other.status == 2)
        #expect(
            other.error.contains(
                "the output 'units' needs H.264, H.265, MJPEG or AV1, but the video of 'udp://127.0.0.1:\(port)' is mpeg2video. Take the pictures, and put an encoder behind them."
            ), "\(other.error)")
    }
}
