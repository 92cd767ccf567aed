// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// `framehost latency`: the time of capture goes through encoder, server and client.
@Suite struct RTSPLatencyTests {
    private let workspace: Workspace
    private let port: Int
    private let controlPort: Int

    init() throws {
        workspace = try Workspace()
        port = try RTSPStream.freePort()
        controlPort = try RTSPStream.freePort()
    }

    private func start(_ encoder: String, control: Bool = false) throws -> RunningProgram {
        try workspace.write(
            "chain.json",
            """
            { \(control ? #""control": { "listen": "127.0.0.1:\#(controlPort)" },"# : "") "stages": [
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

    @Test func showsEachStageWhereTheChainHasAControlServer() throws {
        let program = try start(#", "stamp": true"#, control: true)
        let address = "127.0.0.1:\(controlPort)"
        let outcome = try measure("--json", "--control", address)
        let text = try measure("--control", address)
        let elsewhere = try measure("--control", "127.0.0.1:1")
        program.send(SIGINT)
        _ = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        let stages = try JSON(parsing: outcome.output)["stages"].list
        #expect(stages.map { $0["id"].string } == ["cam", "h264", "rtsp-sink"])
        for key in ["p50Ms", "p99Ms"] {
            let times = stages.map { $0[key].double ?? -1 }
            #expect(times[0] >= 0 && times[1] > times[0] && times[2] >= times[1] * 0.9, "\(key): \(times)")
        }
        #expect(text.output.contains("Age of the items when each stage handed them on, over the whole run so far:\n"))
        let line = text.output.split(separator: "\n").first { $0.contains("x264-encoder") } ?? ""
        #expect(line.hasPrefix("  h264       p50 ") && line.contains(" ms, p99 "), "\(text.output)")
        #expect(elsewhere.status == 1 && elsewhere.output.isEmpty, "\(elsewhere.error)")
        #expect(elsewhere.error.contains("127.0.0.1:1"), "\(elsewhere.error)")
    }

    @Test(.needs(.openssl), .needs(.ffmpeg)) func measuresOverTLSWhereAnyCertificateIsAccepted() throws {
        let stream = try RTSPStream(encoder: #""stamp": true"#, isSecure: true)
        let refused = try Program.framehost.run(["latency", stream.url])
        let outcome = try Program.framehost.run(["latency", stream.url, "--no-verify", "--for", "4", "--json"])
        _ = try stream.finish()
        #expect(refused.status == 2)
        #expect(
            refused.errorLines == [
                "url: the address is rtsps, but the certificate of an RTSP server cannot be verified. If you trust the network, add --no-verify, which accepts any certificate."
            ])
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect((try JSON(parsing: outcome.output)["pictures"].int ?? 0) >= 20, "\(outcome.output)")
    }

    @Test func saysThatTheStreamHasNoTimes() throws {
        let program = try start("")
        let outcome = try measure()
        program.send(SIGINT)
        _ = try program.finish()
        #expect(outcome.status == 1)
        #expect(
            outcome.error.contains(
                #"pictures says when it was captured. Set "stamp": true at the x264-encoder that gives the stream: other encoders do not give this time."#
            ),
            "\(outcome.error)")
    }

    /// Nobody has seen the chain that the command makes.
    @Test func namesTheArgumentWithTheFault() throws {
        let address = try Program.framehost.run(["latency", "live.mp4"])
        #expect(address.status == 2 && address.errorLines.count == 1, "\(address.error)")
        #expect(address.error.hasPrefix("url: "), "\(address.error)")
        // No fault quotes what may hold a password.
        for secret in ["rtsps://anna:secret@127.0.0.1:1/live", "rtsps://127.0.0.1:1/live?token=secret"] {
            let outcome = try Program.framehost.run(["latency", secret])
            #expect(outcome.status == 2 && !outcome.error.contains("secret"), "\(outcome.error)")
        }
        let login = try Program.framehost.run(["latency", "rtsp://127.0.0.1:1/live", "--login", "env:NO_SUCH_VARIABLE"])
        #expect(
            login.errorLines == [
                "--login: the environment variable 'NO_SUCH_VARIABLE' is not set. Set it to name:password, or name a file."
            ], "\(login.error)")
        let control = try Program.framehost.run(
            ["latency", "rtsp://127.0.0.1:1/live", "--control", "ftp://127.0.0.1:8080"])
        #expect(control.status == 2)
        #expect(
            control.errorLines.last?.hasPrefix(
                "--control: 'ftp://127.0.0.1:8080' is not the address of a control server.") == true,
            "\(control.error)")
    }

    @Test func saysThatNobodyAnswers() throws {
        let outcome = try measure()
        #expect(outcome.status == 1 && outcome.error.contains("Connection refused"), "\(outcome.error)")
    }
}
