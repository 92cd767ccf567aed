// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// `"ifMissing": "wait"` with `"decode": false`: a camera that is away at the start costs nothing else.
@Suite(.serialized, .needs(.ffmpeg), .needs(.ffprobe)) struct MissingStreamTests {
    private let workspace: Workspace
    private let port: Int

    init() throws {
        workspace = try Workspace()
        port = try RTSPStream.freePort()
    }

    private var url: String { "rtsp://127.0.0.1:\(port)/live" }
    private var environment: [String: String] { ["STATE_DIRECTORY": workspace.path("state")] }

    /// A camera with sound and, beside it, another camera that is always there.
    private func write(_ more: String = "", sound: Bool = false) throws {
        try workspace.write(
            "door.json",
            """
            { "stages": [
              { "id": "door", "use": "network-source", "url": "\(url)", "decode": false, "ifMissing": "wait"\(more) },
              { "id": "film", "use": "recorder", "from": \(sound ? #"["door", "door.audio"]"# : #""door""#), "path": "door.mp4", "overwrite": true },
              { "id": "here", "use": "test-source", "size": "64x64", "rate": 25, "live": true },
              { "id": "shown", "use": "null-sink", "from": "here" } ] }
            """)
    }

    private func start() throws -> RunningProgram {
        try Program.framehost.start(
            ["door.json", "--events", "--commands", "--stats", "stats.json"], environment: environment,
            folder: workspace.folder.path)
    }

    private func streams(_ name: String) throws -> [JSON] {
        let outcome = try Tool.ffprobe.run(
            "-v", "error", "-show_entries", "stream=codec_name,width,height", "-of", "json", workspace.path(name))
        return try JSON(parsing: outcome.output)["streams"].list
    }

    /// Once it was there, it is remembered, with its sound.
    @Test(arguments: [false, true]) func beginsWithoutAStreamThatItRemembers(hasSound: Bool) throws {
        try write(sound: hasSound)
        var camera = try RTSPStream(sound: hasSound ? "aac" : nil, port: port)
        let first = try start()
        try first.waitForOutput("recording-did-start")
        first.listen(seconds: 1)
        first.send(SIGINT)
        #expect(try first.finish().isDoneOrBusy)
        camera.program.send(SIGKILL)
        _ = try camera.program.finish()
        #expect(workspace.names(below: "state").count == 1)

        try FileManager.default.removeItem(atPath: workspace.path("door.mp4"))
        let check = try Program.framehost.run(
            ["check", "door.json"], environment: environment, folder: workspace.folder.path)
        #expect(
            check.status == 0 && (check.output + check.error).contains("which it was when it was last there"),
            "\(check)")
        let second = try start()
        // The other camera flows meanwhile.
        try second.waitForFrames(30)
        #expect(second.output.contains("stream-refused") && !workspace.exists("door.mp4"))
        camera = try RTSPStream(sound: hasSound ? "aac" : nil, port: port)
        try second.waitForOutput("recording-did-start")
        second.listen(seconds: 1.5)
        second.send(SIGINT)
        #expect(try second.finish().isDoneOrBusy)
        _ = try camera.finish()
        #expect(try streams("door.mp4").map { $0["codec_name"].string } == (hasSound ? ["h264", "aac"] : ["h264"]))
        #expect(try !RTSPStream.pictures(["-i", workspace.path("door.mp4")]).isEmpty)
    }

    /// By `codec` and `size`, where it was never there. The header of the recording is that of the stream.
    @Test func beginsWithoutAStreamThatIsDescribed() throws {
        try write(#", "codec": "h264", "size": "320x240", "rate": 50"#)
        let program = try start()
        try program.waitForFrames(30)
        let camera = try RTSPStream(port: port)
        try program.waitForOutput("recording-did-start")
        program.listen(seconds: 1.5)
        program.send(SIGINT)
        #expect(try program.finish().isDoneOrBusy)
        _ = try camera.finish()
        let stream = try #require(try streams("door.mp4").first)
        #expect(stream["codec_name"].string == "h264" && stream["width"].int == 320 && stream["height"].int == 240)
        #expect(try !RTSPStream.pictures(["-i", workspace.path("door.mp4")]).isEmpty)
    }

    /// A server of a stream that is not there yet describes it without its parameter sets, which are in the stream.
    @Test func servesAStreamOnThatWasNotThereAtTheStart() throws {
        let served = try RTSPStream.freePort()
        try workspace.write(
            "door.json",
            """
            { "stages": [
              { "id": "door", "use": "network-source", "url": "\(url)", "decode": false, "ifMissing": "wait", "codec": "h264", "size": "320x240" },
              { "id": "on", "use": "rtsp-sink", "port": \(served), "path": "/on", "address": "127.0.0.1" } ] }
            """)
        let program = try start()
        try program.waitForOutput("stream-refused")
        let camera = try RTSPStream(port: port)
        try program.waitForOutput("stream-back")
        #expect(
            try !RTSPStream.pictures(["-rtsp_transport", "tcp", "-i", "rtsp://127.0.0.1:\(served)/on", "-t", "1"])
                .isEmpty)
        program.send(SIGINT)
        #expect(try program.finish().isDoneOrBusy)
        _ = try camera.finish()
    }

    /// Where nothing is known of it, the chain begins with it.
    @Test func beginsWithAStreamOfWhichItKnowsNothing() throws {
        try write()
        let program = try start()
        try program.waitForError("The chain is tried again")
        program.listen(seconds: 1.5)
        #expect(program.error.contains("To start the chain without the stream, set 'codec' and 'size'."))
        #expect(
            program.error.contains("'\(url)' cannot be opened") && !program.output.contains(#""state":"streaming""#))
        let camera = try RTSPStream(port: port)
        try program.waitForError("The chain begins.")
        try program.waitForOutput("recording-did-start")
        program.send(SIGINT)
        #expect(try program.finish().isDoneOrBusy)
        _ = try camera.finish()
        #expect(workspace.names(below: "state").count == 1)
    }

    @Test func endsWhileItWaits() throws {
        try write()
        let waiting = try start()
        try waiting.waitForError("The chain is tried again")
        waiting.send(SIGTERM)
        let outcome = try waiting.finish()
        #expect(outcome.status == 1 && outcome.error.contains("Stopped before the chain was ready to run."))
        // With --for no longer than that.
        let limited = try Program.framehost.run(
            ["door.json", "--for", "1"], environment: environment, folder: workspace.folder.path)
        #expect(limited.status == 2 && limited.error.contains("cannot be opened: Connection refused"))
    }

    /// A camera that was set to another size in the meantime is refused, and remembered as it is now.
    @Test func remembersWhatItRefuses() throws {
        func serve(_ size: String) throws -> RunningProgram {
            try workspace.write(
                "camera.json",
                """
                { "stages": [
                  { "id": "cam", "use": "test-source", "size": "\(size)", "rate": 25, "live": true },
                  { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 0.5 },
                  { "id": "live", "use": "rtsp-sink", "port": \(port), "path": "/live", "address": "127.0.0.1" } ] }
                """)
            let camera = try Program.framehost.start(["camera.json", "--events"], folder: workspace.folder.path)
            try camera.waitForOutput(#""state":"streaming""#)
            return camera
        }
        func end(_ program: RunningProgram) throws {
            program.send(SIGINT)
            #expect(try program.finish().isDoneOrBusy)
        }
        try write()
        var camera = try serve("320x240")
        let first = try start()
        try first.waitForOutput("recording-did-start")
        try end(first)
        try end(camera)
        camera = try serve("160x120")
        let second = try start()
        try second.waitForOutput("now has pictures of 160x120, but the chain was planned for 320x240")
        #expect(second.output.contains("restart the chain, which is then planned for what it gives now"))
        try end(second)
        let third = try start()
        try third.waitForOutput("recording-did-start")
        third.listen(seconds: 1)
        try end(third)
        try end(camera)
        #expect(try streams("door.mp4").first?["width"].int == 160)
    }

    @Test func refusesACodecThatSaysNothing() throws {
        for more in [#", "codec": "h264""#, #", "size": "320x240""#, #", "codec": "vp9", "size": "320x240""#] {
            try write(more)
            let check = try Program.framehost.run(["check", "door.json"], folder: workspace.folder.path)
            #expect(check.status == 2, "\(more): \(check.error)")
        }
    }
}
