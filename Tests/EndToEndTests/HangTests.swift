// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Stages that hang while a real program runs: who is named on standard error, in the events and in the figures, and
/// that a signal ends it.
@Suite struct HangTests {
    let run: MisbehavingRun
    var workspace: Workspace { run.workspace }

    init() throws { run = try MisbehavingRun() }

    private func start(_ faulty: String, _ arguments: String...) throws -> RunningProgram {
        try run.start(
            """
            {
              "drainSeconds": 0.5,
              "stages": [
                { "id": "camera", "use": "test-source", "size": "64x64", "rate": 50, "live": true },
                { "id": "odd", "use": "misbehave", \(faulty) }, { "use": "null-sink" }
              ]
            }
            """, ["--events"] + arguments)
    }

    @Test func namesStageCallFrameAndAgeWhileTheStageHangs() throws {
        let program = try start(#""fault": "pause", "at": 20"#, "--stats", "stats.json")
        try program.waitForOutput(#""event":"stage-hangs","stage":"odd""#)
        // The first signal is enough: the drain it states has an end.
        program.send(SIGTERM)
        let outcome = try program.finish()
        #expect(outcome.status == 1)
        let pattern =
            /warning: odd \(misbehave\): its call 'process' of frame \d+ has not returned for \d+\.\d s\. framehost keeps waiting for it\. Check the disk, the network or the device that the stage uses; if they work, tell its author\./
        #expect(outcome.errorLines.contains { (try? pattern.wholeMatch(in: $0)) != nil }, "\(outcome.error)")
        let drain = /error: the drain did not finish in 0\.500 s: .*odd \(misbehave\).* still at work\./
        #expect(outcome.error.contains(drain), "\(outcome.error)")
        #expect(
            outcome.error.contains(
                "error: odd (misbehave) did not return within 800 ms after the stop and was abandoned"))
        let event = try #require(
            try outcome.lines.map { try JSON(parsing: $0) }.first {
                $0["event"].string == "stage-hangs" && $0["stage"].string == "odd"
            })
        #expect(event["call"].string == "process")
        #expect((event["ms"].int ?? 0) >= 1000)
        let figures = try JSON(parsing: String(contentsOfFile: workspace.path("stats.json"), encoding: .utf8))["stages"]
            .first("id", "odd")
        #expect(figures["slowCalls"].int == 1)
        #expect((figures["longestCallMs"].int ?? 0) >= 1000)
    }

    @Test func namesAStartThatHangsAndEndsWithOneSignal() throws {
        let program = try start(#""inStart": true"#)
        try program.waitForOutput(#""event":"stage-hangs","stage":"odd""#)
        program.send(SIGTERM)
        let outcome = try program.finish()
        #expect(outcome.status == 1)
        #expect(
            outcome.error.contains(/warning: odd \(misbehave\): its call 'start' has not returned for \d+\.\d s/),
            "\(outcome.error)")
        #expect(
            outcome.error.contains(
                "error: odd (misbehave) did not return within 800 ms after the stop and was abandoned"))
    }
}
