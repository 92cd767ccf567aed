// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// What the RTSP sink tells of its readers, and what it allocates for one.
@Suite(.serialized) struct RTSPFiguresTests {
    let workspace: Workspace
    let port: Int

    init() throws {
        workspace = try Workspace()
        port = try RTSPStream.freePort()
    }

    private func start(_ environment: [String: String] = [:]) throws -> RunningProgram {
        try workspace.write(
            "chain.json",
            """
            {
              "stages": [
                { "id": "camera", "use": "test-source", "size": "320x240", "rate": 50, "live": true },
                { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 1500, "keyframeSeconds": 0.5 },
                { "id": "live", "use": "rtsp-sink", "port": \(port), "path": "/live" }
              ]
            }
            """)
        let program = try Program.framehost.start(
            ["chain.json", "--events", "--commands", "--stats", "stats.json"], environment: environment,
            folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        return program
    }

    private func play(_ transport: String, seconds: Double) throws -> RunningProgram {
        guard let path = Tool.ffmpeg.path else { throw TestFault("ffmpeg is not installed") }
        return try Program(URL(fileURLWithPath: path)).start(
            [
                "-nostdin", "-v", "error", "-rtsp_transport", transport, "-i", "rtsp://127.0.0.1:\(port)/live", "-t",
                "\(seconds)", "-f", "null", "-",
            ])
    }

    /// The answer to the command `figures`: the frame, and the entry of a stage.
    private func figures(_ program: RunningProgram, tag: Int) throws -> (frame: Int, sink: JSON) {
        try program.write(#"{ "command": "figures", "tag": \#(tag) }"# + "\n")
        try program.waitForOutput("\"tag\":\(tag),")
        let line = program.output.split(separator: "\n").last { $0.contains("\"tag\":\(tag),") }
        let answer = try JSON(parsing: String(try #require(line)))
        #expect(answer["ok"].bool == true)
        return (try #require(answer["frame"].int), answer["figures"]["stages"].first("id", "live"))
    }

    @Test(.needs(.ffmpeg)) func listsReadersWhileTheyPlayAndCountsThemAfterwards() throws {
        let program = try start()
        #expect(try figures(program, tag: 1).sink["figures"]["readers"].list.isEmpty)
        let players = [try play("tcp", seconds: 60), try play("udp", seconds: 60)]
        // Until both have packets, and their first receiver reports have come.
        var (sink, tag) = (try figures(program, tag: 2).sink["figures"], 2)
        while sink["readers"].list.count < 2 || sink["readers"].list.contains(where: { $0["packetsLost"].int == nil }) {
            tag += 1
            try #require(tag < 2000)
            program.listen(seconds: 0.05)
            sink = try figures(program, tag: tag).sink["figures"]
        }
        #expect(Set(sink["readers"].list.map { $0["transport"].string }) == ["tcp", "udp"])
        for reader in sink["readers"].list {
            #expect(reader["address"].string == "127.0.0.1")
            #expect((reader["queueMs"].int ?? -1) >= 0)
            // A player that is held up may lose datagrams, and no others.
            if reader["transport"].string == "tcp" { #expect(reader["packetsLost"].int == 0) }
        }
        players[0].send(SIGKILL)
        _ = try players[0].finish()
        try program.waitForOutput(#""event":"client-left""#)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let after = try JSON(file: workspace.path("stats.json"))["stages"].first("id", "live")["figures"]
        #expect(after["joined"].int == 2)
        #expect(after["mostAtOnce"].int == 2)
        #expect(after["left"]["closed"].int == 1)
        // FFmpeg says TEARDOWN when it is told of the end, if it is quick enough.
        #expect((after["left"]["teardown"].int ?? 0) + (after["left"]["streamEnded"].int ?? 0) == 1)
        #expect(after["readers"].list.isEmpty)
    }

    /// Source, encoder and sink allocate nothing for a frame once warm; event loops are NIO's, and allocate a task or
    /// two for a frame.
    @Test(.needs(.ffmpeg), .needs(.clang), arguments: ["tcp", "udp"]) func allocatesNothingForAFrame(transport: String)
        throws
    {
        let counts = try MallocCounts(workspace)
        let program = try start(counts.environment)
        let player = try play(transport, seconds: 60)
        try program.waitForOutput(#""event":"client-joined""#)
        // All blocks of the ring have been used, and most have had a keyframe.
        try program.waitForFrames(250)
        func eventsOfALateSource() -> Int {
            program.output.split(separator: "\n").count { $0.contains(#""event":"late""#) }
        }
        let lateBefore = eventsOfALateSource()
        let before = (try figures(program, tag: 1).frame, try counts.read())
        try program.waitForFrames(before.0 + 300)
        let after = (try figures(program, tag: 2).frame, try counts.read())
        let late = eventsOfALateSource() - lateBefore
        player.send(SIGKILL)
        program.send(SIGINT)
        let ended = try program.finish()
        #expect(ended.isDoneOrBusy, "\(ended.error)")
        let frames = after.0 - before.0
        func perFrame(_ isWanted: (String) -> Bool) -> Double {
            let names = after.1.keys.filter(isWanted)
            return Double(names.reduce(0) { $0 + after.1[$1]! - before.1[$1, default: 0] }) / Double(frames)
        }
        #expect(after.1.keys.contains("stg:live"))
        // What is not for a frame: an event where the machine was too slow (at most one a second), a sender report
        // every 5 s, a block that grows.
        #expect(perFrame { $0 == "src:camera" } < 0.1 + 40 * Double(late) / Double(frames))
        #expect(perFrame { $0 == "stg:h264" } < 0.1)
        #expect(perFrame { $0 == "stg:live" } < 0.2)
        #expect(perFrame { $0.hasPrefix("NIO-ELT") } < 2)
    }
}
