// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// `framehost latency`: the time of capture goes through encoder, server and client.
@Suite struct RTSPLatencyTests {
    private let workspace: Workspace
    private let port: Int

    init() throws {
        workspace = try Workspace()
        port = try RTSPStream.freePort()
    }

    private func start(_ encoder: String) throws -> RunningProgram {
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "cam", "use": "test-source", "size": "160x120", "rate": 30, "live": true },
              { "id": "h264", "use": "x264-encoder", "preset": "ultrafast"\(encoder) },
              { "use": "rtsp-sink", "port": \(port), "path": "/live" }
            ] }
            """)
        let program = try Program.framehost.start(
            ["chain.json", "--commands", "--events"], folder: workspace.folder.path)
        try program.waitForFrames(10)
        return program
    }

    private func measure(_ arguments: String...) throws -> Outcome {
        try Program.framehost.run(["latency", "rtsp://127.0.0.1:\(port)/live", "--for", "4"] + arguments)
    }

    @Test func measuresFromTheCaptureToTheClient() throws {
        let program = try start(#", "stamp": true"#)
        let outcome = try measure("--json")
        program.send(SIGINT)
        _ = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        let figures = try JSON(parsing: outcome.output)
        #expect((figures["pictures"].int ?? 0) >= 20 && figures["unstamped"].int == 0, "\(outcome.output)")
        // One clock; a picture is complete when the next one begins.
        let (least, p50) = (figures["leastMs"].double ?? -1, figures["p50Ms"].double ?? -1)
        #expect(least > 0 && p50 >= least && p50 < 2000, "\(outcome.output)")
    }

    @Test func saysThatTheStreamHasNoTimes() throws {
        let program = try start("")
        let outcome = try measure()
        program.send(SIGINT)
        _ = try program.finish()
        #expect(outcome.status == 1)
        #expect(
            outcome.error.contains(
                #"pictures says when it was captured. Set "stamp": true at its x264-encoder."#), "\(outcome.error)")
    }

    @Test func saysThatNobodyAnswers() throws {
        let outcome = try measure()
        #expect(outcome.status == 1 && outcome.error.contains("Connection refused"), "\(outcome.error)")
    }
}
