// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import ControlServer
@testable import FrameCore

@Suite struct MetricsTextTests {
    private var text: String {
        get async {
            let run = FakeRun()
            run.state.withLock { $0.status.stages[1].id = #"te"xt"# }
            let asked = await ControlAPI.over(run).ask("GET", "/metrics")
            #expect(asked.status == 200)
            #expect(asked.field("Content-Type") == "text/plain; version=0.0.4; charset=utf-8")
            return asked.text
        }
    }

    @Test(arguments: [
        #"framehost_chain_info{chain="demo"} 1"#, #"framehost_chain_state{state="streaming"} 1"#,
        #"framehost_chain_state{state="failed"} 0"#, "framehost_chain_healthy 1",
        #"framehost_stage_info{stage="cam",use="test-source",kind="source"} 1"#,
        #"framehost_stage_state{stage="te\"xt",state="paused"} 1"#,
        #"framehost_stage_frames_out_total{stage="cam"} 10"#,
        #"framehost_stage_frames_dropped_total{stage="te\"xt",reason="queue-full"} 1"#,
        #"framehost_stage_busy_seconds_bucket{stage="cam",le="1e-05"} 0"#,
        #"framehost_stage_busy_seconds_bucket{stage="cam",le="+Inf"} 10"#,
        #"framehost_stage_busy_seconds_sum{stage="cam"} 0.02"#, #"framehost_stage_busy_seconds_count{stage="cam"} 10"#,
        #"framehost_stage_figure{stage="te\"xt",figure="readers.playing"} 3"#,
        #"framehost_stage_figure{stage="te\"xt",figure="bitrateKbps"} 812.5"#,
        #"framehost_stage_figure{stage="te\"xt",figure="isSecure"} 1"#,
        #"framehost_link_queue_depth{from="cam",to="te\"xt"} 0"#,
        #"framehost_link_queue_depth{from="cam",to="te\"xt",number="2"} 1"#,
        #"framehost_link_items_dropped_total{from="cam",to="te\"xt",reason="oldest"} 1"#,
        #"framehost_link_items_replaced_total{from="cam",to="te\"xt"} 7"#,
        #"framehost_pool_size_bytes{pool="cam"} 8294400"#, #"framehost_pool_starved_seconds_total{pool="cam"} 0.25"#,
        #"framehost_control_viewers{stream="events"} 0"#, #"framehost_control_viewers{stream="previews"} 0"#,
    ]) func says(line: String) async { #expect(await text.split(separator: "\n").contains(line[...])) }

    @Test func tellsNoSampleTwiceAndEachFamilyOnce() async {
        let lines = await text.split(separator: "\n")
        let samples = lines.filter { !$0.hasPrefix("#") }.map { line in
            line.lastIndex(of: " ").map { line[..<$0] } ?? line
        }
        #expect(Set(samples).count == samples.count)
        let types = lines.filter { $0.hasPrefix("# TYPE") }
        #expect(Set(types).count == types.count)
        // Prometheus: a family's samples stand together, below its TYPE.
        #expect(lines.count { $0.hasPrefix("# HELP") } == types.count)
    }

    @Test func leavesOutWhatIsNoNumber() async {
        let text = await text
        #expect(!text.contains("mode") && !text.contains("names") && !text.contains("null") && !text.contains("nan"))
    }

    @Test func knowsTheProcess() {
        let figures = ProcessFigures.now()
        #expect(figures.residentBytes > 1_000_000)
        #expect(figures.processorSeconds > 0)
        #expect(figures.openFiles >= 3)
    }

    private static let promtool = ["/usr/bin/promtool", "/bin/promtool"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }
    private static let isCI = ProcessInfo.processInfo.environment["CI"] == "true"

    @Test(.enabled(if: promtool != nil || isCI, "promtool is not installed: make test-packages"))
    func promtoolFindsNothing() async throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try #require(Self.promtool))
        process.arguments = ["check", "metrics"]
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        process.standardError = output
        let text = await text
        try process.run()
        try input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
        try input.fileHandleForWriting.close()
        let said = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(said)")
        #expect(said == "")
    }
}
