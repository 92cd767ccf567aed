// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Drain and stop with stages that do not do their part.
@Suite struct StoppingTests {
    let run: MisbehavingRun
    var workspace: Workspace { run.workspace }

    init() throws { run = try MisbehavingRun() }

    private func start(_ chain: String, _ arguments: String...) throws -> RunningProgram {
        try run.start(chain, arguments)
    }

    /// A recording beside a branch with a faulty stage.
    private func fork(_ faulty: String, top: String = "", live: Bool = true) -> String {
        """
        {
          \(top)
          "stages": [
            { "id": "camera", "use": "test-source", "size": "320x240", "rate": 50, "live": \(live), "frames": \(live ? 100_000 : 200) },
            { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 500 },
            { "id": "file", "use": "recorder", "path": "out.mp4" },
            { "id": "odd", "use": "misbehave", "from": "camera", \(faulty), "link": { "whenFull": "latest" } },
            { "id": "sink", "use": "null-sink" }
          ]
        }
        """
    }

    /// Frames that ffprobe finds in the recording.
    private func recordedFrames() throws -> Int {
        let outcome = try Tool.ffprobe.run(
            "-v", "error", "-count_frames", "-select_streams", "v:0", "-show_entries", "stream=nb_read_frames", "-of",
            "csv=p=0",
            workspace.path("out.mp4"))
        #expect(outcome.error == "")
        return Int(outcome.output.trimmingCharacters(in: .whitespacesAndNewlines)) ?? -1
    }

    @Test(.needs(.ffprobe)) func abandonsAStageThatSleepsInCAndFinishesTheOtherFile() throws {
        let program = try start(fork(#""fault": "pause", "at": 20"#), "--events", "--commands")
        try program.waitForOutput(#""state":"streaming""#)
        try program.waitForFrames(300)
        program.send(SIGINT)
        try program.waitForOutput(#""state":"draining""#)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 1)
        #expect(
            outcome.error.contains(
                "error: odd (misbehave) did not return within 800 ms after the stop and was abandoned, with the buffers it holds. Check the disk, the network or the device that it uses; if they work, tell its author.\n"
            ))
        #expect(outcome.output.contains(#""event":"stage-abandoned""#))
        #expect(try recordedFrames() >= 50)
    }

    @Test(.needs(.ffprobe)) func endsADrainThatTakesTooLong() throws {
        let program = try start(fork(#""fault": "pause", "at": 5"#, top: #""drainSeconds": 5,"#), "--commands")
        try program.waitForFrames(200)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 1)
        // On a busy machine others may still be at work too.
        #expect(
            outcome.error.contains(
                /error: the drain did not finish in 5\.000 s: .*odd \(misbehave\).* still at work\. Raise "drainSeconds" in the chain file if (this stage needs|these stages need) longer\.\n/
            ), "\(outcome.error)")
        #expect(outcome.error.contains("odd (misbehave) did not return within 800 ms after the stop"))
        #expect(try recordedFrames() >= 20)
    }

    @Test func endsAtTheThirdSignalAtOnce() throws {
        let program = try start(fork(#""fault": "pause", "at": 5"#), "--events")
        try program.waitForOutput(#""event":"stage-hangs""#)
        program.send(SIGINT)
        try program.waitForOutput(#""state":"draining""#)
        // Two of one number that come before the first is taken are one: sent until it has ended, the drain's ten
        // seconds far from over.
        let outcome = try program.finish { program.send(SIGINT) }
        #expect(outcome.status == 1)
        #expect(!outcome.error.contains("the drain did not finish"))
    }

    @Test func abandonsAStageThatSleepsInItsStart() throws {
        let program = try start(fork(#""inStart": true"#), "--events")
        try program.waitForOutput(#""event":"stage-hangs""#)
        program.send(SIGINT)
        // Long enough for the two to be two signals.
        program.listen(seconds: 0.5)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 1)
        #expect(
            outcome.error.contains(
                "error: odd (misbehave) did not return within 800 ms after the stop and was abandoned"),
            "\(outcome.error)")
    }

    @Test(.needs(.ffprobe)) func drainsWhenAStageThrows() throws {
        let outcome = try start(fork(#""fault": "throw", "at": 200"#)).finish()
        #expect(outcome.status == 1)
        #expect(
            outcome.errorLines.filter { $0.hasPrefix("error:") }.map {
                $0.replacing(/frame \d+, [0-9.]+ s after/, with: "frame …, … s after")
            } == [
                "error: odd (misbehave): frame …, … s after the start: the picture is not to be borne. Look away."
            ])
        // The first one from 200 on that its link has not dropped.
        let frame = outcome.error.firstMatch(of: /frame (\d+), [0-9.]+ s/).flatMap { Int($0.1) }
        #expect(try #require(frame) >= 200)
        #expect(outcome.errorLines.last?.hasPrefix("Failed: ") == true)
        #expect(try recordedFrames() >= 15)
    }

    @Test(.needs(.ffprobe)) func goesOnWithoutAFailedStageWhenAsked() throws {
        let outcome = try start(fork(#""fault": "throw", "at": 20, "onError": "continue""#, live: false)).finish()
        #expect(outcome.status == 1)
        #expect(outcome.errorLines.count { $0.hasPrefix("error:") } == 1)
        #expect(try recordedFrames() == 200)
    }

    @Test func catchesAFrameThatIsSwallowedOrDoubled() throws {
        for (double, verb) in [(false, "lost 1 item"), (true, "gave 1 item too many")] {
            let chain = """
                {
                  "stages": [
                    { "use": "test-source", "size": "64x64", "frames": 20 }, { "id": "odd", "use": "swallow", "double": \(double) },
                    { "use": "null-sink" }
                  ]
                }
                """
            let outcome = try start(chain).finish()
            #expect(outcome.status == 1)
            let errors = outcome.errorLines.filter { $0.hasPrefix("error: ") }
            #expect(
                errors.first
                    == "error: Ledger, odd (swallow): the stage \(verb): it took 20 and made 0, but accounts for \(double ? 21 : 19) (emitted, ended, dropped or held). This is a bug of the stage or of framehost: report it, with the chain file."
            )
        }
    }

    @Test func namesTheStageThatKeepsTheBuffers() throws {
        let chain = """
            {
              "stages": [
                { "id": "camera", "use": "test-source", "size": "64x64", "rate": 100, "live": true },
                { "id": "odd", "use": "misbehave", "fault": "keep", "at": 3 }, { "id": "sink", "use": "null-sink" }
              ]
            }
            """
        let program = try start(chain, "--events")
        try program.waitForOutput(#""event":"out-of-buffers""#)
        program.send(SIGINT)
        let outcome = try program.finish()
        let events = try outcome.lines.map { try JSON(parsing: $0) }
        let kept = try #require(events.first { $0["event"].string == "over-retention" })
        #expect(
            kept["text"].string
                == "odd (misbehave) keeps 1 buffer after its call but declares a 'hold' of 0. The chain may run out of buffers. In the plugin, raise 'hold' or release buffers earlier; if it is not yours, tell its author."
        )
        let empty = try #require(events.first { $0["event"].string == "out-of-buffers" })
        let pattern =
            /The pool 'camera' has been empty for \d+ ms \((\d+) of \1 buffers held\): odd \d+ \(oldest \d+\.\d\d s, declared 0\)\. 'odd' holds more buffers than it declares\. Report this to the author of its plugin\./
        #expect(try pattern.wholeMatch(in: empty["text"].string ?? "") != nil, "\(empty)")
        #expect(empty["pool"].string == "camera")
        #expect(empty["holders"].first("stage", "odd")["declared"].int == 0)
        #expect(empty["overDeclaration"][0].string == "odd")
    }
}
