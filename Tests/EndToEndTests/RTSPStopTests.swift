// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// Ctrl-C, once and twice, with readers that are there.
@Suite(.serialized) struct RTSPStopTests {
    private static let crowd = Repository.root.appending(path: "Tests/Conformance/crowd.py").path

    /// A chain of so many streams on one port; each at `/sN`.
    private static func start(
        streams count: Int, rate: Int, _ workspace: Workspace, port: Int, drainSeconds: Double = 10
    ) throws
        -> RunningProgram
    {
        let stages = (0..<count).map { number in
            """
            { "id": "camera\(number)", "use": "test-source", "size": "160x120", "rate": \(rate), "live": true },
            { "id": "h264n\(number)", "use": "x264-encoder", "preset": "ultrafast", "threads": 1, "keyframeSeconds": 1 },
            { "id": "live\(number)", "use": "rtsp-sink", "port": \(port), "path": "/s\(number)" }
            """
        }
        try workspace.write(
            "chain.json", #"{ "drainSeconds": \#(drainSeconds), "stages": [ \#(stages.joined(separator: ",\n")) ] }"#)
        let program = try Program.framehost.start(["chain.json", "--events"], folder: workspace.folder.path)
        program.closeInput()
        try program.waitForOutput(#""state":"streaming""#)
        return program
    }

    private static func readers(_ urls: [String], count: Int, _ transport: String) throws -> [RunningProgram] {
        let clients = try urls.map {
            try Tool.python.start([crowd, $0, "--count", "\(count)", "--transport", transport])
        }
        for client in clients { try client.waitForOutput("ready", timeout: 180) }
        return clients
    }

    /// A thread that gets no processor for 800 ms is abandoned, whatever it does. What these tests look for was there
    /// each time, so one run of five must be without.
    ///
    /// - Parameter run: How it ended, and whether its readers saw what they should.
    private static func check(_ run: () throws -> (outcome: Outcome, isSeen: Bool)) throws {
        var errors: [String] = []
        for _ in 0..<5 {
            let (outcome, isSeen) = try run()
            // NIO says so where somebody hands a loop work that has ended.
            #expect(!outcome.error.contains("EventLoop"), "\(outcome.error)")
            if isSeen, outcome.isDoneOrBusy, !outcome.error.contains("abandoned"),
                !outcome.error.contains("the drain did not finish")
            {
                return
            }
            errors.append("status \(outcome.status), seen \(isSeen): \(outcome.error)")
        }
        Issue.record("none of five runs ended as it should: \(errors.joined(separator: "\n"))")
    }

    /// Three streams were too many: their readers' grace was spent one after the other under a lock, a second stop had
    /// to wait for all of it, and the stages were abandoned.
    @Test(.needs(.python)) func threeStreamsWithUDPReadersEndWhenStoppedTwice() throws {
        try Self.check {
            let (workspace, port) = (try Workspace(), try RTSPStream.freePort())
            let program = try Self.start(streams: 3, rate: 25, workspace, port: port)
            let clients = try Self.readers((0..<3).map { "rtsp://127.0.0.1:\(port)/s\($0)" }, count: 2, "udp")
            program.send(SIGINT)
            program.listen(seconds: 0.02)
            let begin = Date()
            program.send(SIGINT)
            let outcome = try program.finish()
            let milliseconds = Int(Date().timeIntervalSince(begin) * 1000)
            print("3 streams with UDP readers: \(milliseconds) ms from the second signal to the end")
            return (outcome, try clients.map { try $0.finish().status }.allSatisfy { $0 == 0 })
        }
    }

    /// Thirty took 30 × 0.9 s, more than the drain grants.
    @Test(.needs(.python), .timeLimit(.minutes(60))) func thirtyStreamsDrainTogether() throws {
        try Self.check {
            let (workspace, port) = (try Workspace(), try RTSPStream.freePort())
            let program = try Self.start(streams: 30, rate: 4, workspace, port: port, drainSeconds: 25)
            let clients = try Self.readers((0..<30).map { "rtsp://127.0.0.1:\(port)/s\($0)" }, count: 1, "udp")
            let begin = Date()
            program.send(SIGTERM)
            let outcome = try program.finish()
            let milliseconds = Int(Date().timeIntervalSince(begin) * 1000)
            print("30 streams with UDP readers: \(milliseconds) ms from the signal to the end")
            for client in clients { _ = try client.finish() }
            return (outcome, true)
        }
    }

    @Test(.needs(.python), .timeLimit(.minutes(60)), arguments: [1, 2]) func fiveHundredReadersHoldNothingUp(
        signals: Int
    ) throws {
        try Self.check {
            let (workspace, port) = (try Workspace(), try RTSPStream.freePort())
            let program = try Self.start(streams: 1, rate: 25, workspace, port: port)
            let clients = try Self.readers(["rtsp://127.0.0.1:\(port)/s0"], count: 500, "mixed")
            program.send(SIGTERM)
            if signals == 2 { program.listen(seconds: 0.02) }
            let begin = Date()
            if signals == 2 { program.send(SIGTERM) }
            let outcome = try program.finish()
            print("500 readers, \(signals) signals: \(Int(Date().timeIntervalSince(begin) * 1000)) ms to the end")
            let left = outcome.output.components(separatedBy: #""event":"client-left""#).count - 1
            let areClosed = try clients[0].finish().output.contains("500 of 500 readers were closed")
            return (outcome, left == 500 && areClosed)
        }
    }
}
