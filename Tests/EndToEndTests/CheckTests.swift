// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// `framehost check`: the plan.
@Suite struct CheckPlanTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    private static let chain = """
        {
          // A fork: a recording, and a meter that draws.
          "stages": [
            { "id": "camera", "use": "test-source", "size": "640x360", "rate": 25, "live": true },
            { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "tune": "zerolatency", "bframes": 0, "threads": 1 },
            { "id": "file", "use": "recorder", "path": "out.mp4" },
            { "id": "fps", "use": "fps-meter", "draw": true, "from": "camera" },
            { "id": "watch", "use": "null-sink" },
          ],
        }
        """

    private func check(_ chain: String, _ arguments: String...) throws -> Outcome {
        try workspace.write("chain.json", chain)
        return try framehost.run(["check", "chain.json"] + arguments, folder: workspace.folder.path)
    }

    /// The rows under a heading of the plan, columns by two spaces or more.
    private func rows(_ heading: String, _ text: String) -> [[String]] {
        let lines = text.components(separatedBy: "\n")
        guard let start = lines.firstIndex(of: heading) else { return [] }
        return lines[(start + 2)...].prefix { $0.hasPrefix("  ") }.map { line in
            line.trimmingCharacters(in: .whitespaces).components(separatedBy: "  ")
                .map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
        }
    }

    /// Every name in the table of docs/comparisons.md is answered with the type in its row.
    @Test func answersNamesOfOtherProgramsWithTheTypeThatDoesTheirWork() throws {
        let page = try String(
            contentsOf: Repository.root.appending(path: "docs/comparisons.md"), encoding: .utf8)
        let table = try #require(page.components(separatedBy: "<!-- names -->\n").last)
        var expected: [(name: String, types: [String])] = []
        for line in table.components(separatedBy: "\n").dropFirst(2).prefix(while: { $0.hasPrefix("|") }) {
            let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst()
            func words(_ cell: Substring) -> [String] {
                cell.split(separator: "`", omittingEmptySubsequences: false).enumerated().filter { $0.offset % 2 == 1 }
                    .map { String($0.element) }
            }
            let types = cells.first.map { $0.contains("none:") ? [] : words($0) } ?? []
            expected += cells.dropFirst().flatMap(words).map { ($0, types) }
        }
        #expect(expected.count > 60)
        let stages = expected.map { #"{ "use": "\#($0.name)" }"# }.joined(separator: ",\n")
        let outcome = try check(#"{ "stages": [\#n\#(stages)\#n] }"#)
        #expect(outcome.status == 2)
        for (index, (name, types)) in expected.enumerated() {
            let prefix = "chain.json:\(index + 2):10: stages[\(index)].use: no stage type '\(name)'. "
            let answer = outcome.errorLines.first { $0.hasPrefix(prefix) }?.dropFirst(prefix.count) ?? ""
            if types.isEmpty {
                #expect(answer.hasPrefix("Leave it out: "), "\(name): \(answer)")
            } else {
                #expect(
                    types.contains { answer == "Use '\($0)': `framehost describe \($0)` lists its options." },
                    "\(name): \(answer)")
            }
        }
    }

    @Test func printsThePlanForPeople() throws {
        let outcome = try check(Self.chain)
        #expect(outcome.status == 0)
        #expect(outcome.errorLines.isEmpty, "\(outcome.error)")
        #expect(
            rows("Stages", outcome.output) == [
                ["camera", "test-source", "0", "i420 640x360 25 fps"],
                ["h264", "x264-encoder", "1", "H.264 640x360 25 fps"],
                ["fps", "fps-meter", "2", "i420 640x360 25 fps"],
                ["file", "recorder", "3", "–"],
                ["watch", "null-sink", "2", "–"],
            ])
        #expect(
            rows("Links", outcome.output) == [
                ["camera", "h264", "2, drops when full", "i420 640x360 25 fps"],
                ["camera", "fps", "2, drops when full", "i420 640x360 25 fps"],
                ["h264", "file", "512, dropToKeyframe, 64.0 MB, 8.0 s", "H.264 640x360 25 fps"],
                ["fps", "watch", "inline", "i420 640x360 25 fps"],
            ])
        let pools = rows("Pools", outcome.output)
        #expect(pools.map { $0[0] } == ["camera", "fps (copies)"])
        #expect(pools[0][1...4] == ["1", "7", "3", "10"])
        #expect(pools[0].last == "threads 3, queue before h264 2, queue before fps 2")
        #expect(outcome.output.contains("4 threads for frames; pools "))
        #expect(outcome.output.contains("Usual added latency: none apart from the stages' own processing time."))
        #expect(outcome.output.contains("up to 1 copy per frame at fps: its input is shared with h264."))
        #expect(workspace.names == ["chain.json"])
    }

    @Test func refusesAFolderThatIsNotThereAsTheRunDoes() throws {
        let fault =
            "chain.json:6:40: stages[2].path: the folder 'nowhere' does not exist. Create it, or correct 'path'."
        let outcome = try check(Self.chain.replacing("\"out.mp4\"", with: "\"nowhere/out.mp4\""))
        #expect(outcome.status == 2 && outcome.errorLines == [fault], "\(outcome.error)")
        let run = try framehost.run(["chain.json", "--frames", "3"], folder: workspace.folder.path)
        #expect(run.status == 2 && run.errorLines == [fault], "\(run.error)")
        #expect(workspace.names == ["chain.json"])
    }

    @Test func printsThePlanForPrograms() throws {
        let outcome = try check(Self.chain, "--json")
        #expect(outcome.status == 0)
        let plan = try JSON(parsing: outcome.output)
        #expect(plan["threads"].int == 4)
        #expect(plan["copies"][0].string == "fps")
        #expect(plan["conversions"].list.isEmpty)
        #expect(plan["worstLatencyMs"].double! > 0)
        #expect(plan["usualLatencyMs"].double == 0)
        #expect(plan["stages"].first("id", "camera")["live"].bool == true)
        #expect(plan["stages"].first("id", "file")["output"].isNull)
        let pool = plan["pools"].first("stage", "camera")
        #expect(pool["min"].int == 1 && pool["need"].int == 7)
        #expect(pool["spare"].int == 3 && pool["buffers"].int == 10)
        #expect(pool["bytes"].int! >= 10 * 640 * 360 * 3 / 2)
        #expect(pool["shares"]["queue before fps"].int == 2)
        let link = plan["links"].first("to", "file")
        #expect(link["queue"].int == 512 && link["whenFull"].string == "dropToKeyframe")
        #expect(workspace.names == ["chain.json"])
    }

    @Test func insertsAConverterAndSaysSo() throws {
        let outcome = try check(
            """
            { "stages": [ { "use": "test-source", "format": "bgra" }, { "id": "h264", "use": "x264-encoder" }, { "use": "null-sink" } ] }
            """, "--json")
        let plan = try JSON(parsing: outcome.output)
        #expect(plan["conversions"].list.count == 1)
        #expect(plan["conversions"][0]["stage"].string == "h264-convert")
        #expect(plan["conversions"][0]["use"].string == "convert")
        #expect(plan["stages"].first("id", "h264-convert")["output"].string == "i420 1280x720 30 fps")
    }

    @Test func appliesSettingsAndEnvironment() throws {
        let chain =
            #"{ "stages": [ { "id": "s", "use": "test-source", "size": "${FH_SIZE:-640x480}" }, { "use": "null-sink" } ] }"#
        #expect(try check(chain).output.contains("i420 640x480 30 fps"))
        #expect(try check(chain, "--set", "s.size=64x48").output.contains("i420 64x48 30 fps"))
        let outcome = try framehost.run(
            ["check", "chain.json"], environment: ["FH_SIZE": "320x240"], folder: workspace.folder.path)
        #expect(outcome.output.contains("i420 320x240 30 fps"))
    }

    @Test func namesWhatABufferCountBelowMinNeeds() throws {
        let chain = """
            {
              "buffers": { "s": 2 },
              "stages": [ { "id": "s", "use": "test-source" }, { "use": "null-sink", "link": { "queue": 4 } } ]
            }
            """
        let outcome = try check(chain)
        #expect(outcome.status == 0)
        #expect(outcome.output.contains("pool s: has 2 buffers, needs 6: 's' may wait for a free one."))
    }

    @Test func sparesAsManyBuffersAsTheFileSays() throws {
        let chain = #"{ "spare": 4, "stages": [ { "id": "s", "use": "test-source" }, { "use": "null-sink" } ] }"#
        let pool = try JSON(parsing: check(chain, "--json").output)["pools"][0]
        #expect(pool["spare"].int == 4 && pool["buffers"].int == pool["need"].int! + 4)
        let plain = try JSON(parsing: check(chain.replacing("\"spare\": 4, ", with: ""), "--json").output)["pools"][0]
        #expect(plain["spare"].int == 0)
    }

    @Test func readsFromAPipe() throws {
        let outcome = try framehost.run(["check", "/dev/stdin"], input: Chains.short)
        #expect(outcome.status == 0)
    }

    // MARK: What is missing before the run

    @Test func findsFilesAndFoldersThatAreMissing() throws {
        let outcome = try check(
            """
            {
              "control": { "tokenFile": "no/token" },
              "stages": [
                { "id": "cam", "use": "test-source", "frames": 3 },
                { "id": "raw", "use": "null-sink", "dump": "no/dump.yuv" },
                { "id": "pipe", "use": "y4m-sink", "from": "cam", "path": "no/pipe" },
                { "id": "folder", "use": "y4m-sink", "from": "cam", "path": "." }
              ]
            }
            """)
        #expect(outcome.status == 2)
        #expect(
            outcome.errorLines == [
                "chain.json:2:16: control.tokenFile: the file './no/token' does not exist. Create it, or correct 'tokenFile'.",
                "chain.json:5:40: stages[1].dump: 'no/dump.yuv' cannot be written: No such file or directory. Create the folder, or correct the name.",
                "chain.json:6:55: stages[2].path: 'no/pipe' cannot be written: No such file or directory. Create the folder, or correct the name.",
                "chain.json:7:57: stages[3].path: '.' is a folder. Name a file in it.",
            ], "\(outcome.error)")
    }

    /// A name begins at the chain file's folder once, and not twice.
    @Test func writesBesideAChainOfAnotherFolder() throws {
        let folder = workspace.folder.appending(path: "kitchen")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        try Data(
            """
            { "stages": [ { "use": "test-source", "size": "64x48", "frames": 2 }, { "use": "y4m-sink", "path": "two.y4m" } ] }
            """.utf8
        ).write(to: folder.appending(path: "chain.json"))
        let outcome = try framehost.run(["kitchen/chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(FileManager.default.fileExists(atPath: folder.appending(path: "two.y4m").path))
    }

    @Test func findsOnePortThatTwoServersWant() throws {
        func chain(_ listen: String, _ options: String = "") -> String {
            """
            { "control": { "listen": "\(listen)" },
              "stages": [ { "use": "test-source" }, { "use": "x264-encoder" }, { "id": "rtsp", "use": "rtsp-sink", "port": 8600\(options) } ] }
            """
        }
        let outcome = try check(chain("127.0.0.1:8600"))
        #expect(outcome.status == 2)
        #expect(
            outcome.errorLines.count == 1
                && outcome.error.contains(
                    "stages[2].port: 'rtsp' listens on port 8600, as does 'control'. Set another 'port' for one of them."
                ),
            "\(outcome.error)")
        #expect(try check(chain("127.0.0.1:8600", #", "address": "127.0.0.1""#)).status == 2)
        #expect(try check(chain("127.0.0.1:8600", #", "address": "0.0.0.0""#)).status == 2)
        // Two addresses of one machine have a port each.
        #expect(try check(chain("127.0.0.1:8600", #", "address": "127.0.0.2""#)).status == 0)
        #expect(try check(chain("127.0.0.1:8601")).status == 0)
        #expect(try check(chain("127.0.0.1:0")).status == 0)
    }

    @Test func listsEveryFaultOfAnRTSPSink() throws {
        let outcome = try check(
            """
            { "stages": [ { "use": "test-source" }, { "use": "x264-encoder" },
                { "id": "rtsp", "use": "rtsp-sink", "path": "live", "address": "here", "allow": ["me"], "users": "", "certificate": "c.pem" } ] }
            """)
        #expect(outcome.status == 2)
        let options = outcome.errorLines.compactMap { $0.firstMatch(of: #/stages\[2\]\.(\w+): /#).map { String($0.1) } }
        #expect(Set(options) == ["path", "address", "allow", "users", "certificate"], "\(outcome.error)")
        #expect(outcome.errorLines.count == 5)
    }

    @Test func saysOnceThatARateIsNone() throws {
        let outcome = try check(
            #"{ "stages": [ { "use": "test-source" }, { "use": "rate", "rate": "x" }, { "use": "null-sink" } ] }"#)
        #expect(outcome.errorLines.count == 1, "\(outcome.error)")
    }

    @Test func refusesSignalSnapshotsThatCannotBeWritten() throws {
        try workspace.write("chain.json", Chains.short)
        func fault(_ wishes: String...) throws -> String {
            let outcome = try framehost.run(
                ["chain.json"] + wishes.flatMap { ["--snapshot-on-signal", $0] }, folder: workspace.folder.path)
            #expect(outcome.status == 2)
            return outcome.errorLines.first ?? ""
        }
        #expect(
            try fault("pictures=no/a.jpg")
                == "--snapshot-on-signal: 'no/a.jpg' cannot be written: No such file or directory. Create the folder, or correct the name."
        )
        #expect(
            try fault("pictures=a.jpg", "pictures=a.jpg")
                == "--snapshot-on-signal: 'pictures' is given twice with the file 'a.jpg'. Give it once.")
    }
}
