// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// `framehost graph`: what it prints is read by Graphviz, what that draws by Python's XML reader.
@Suite struct GraphTests {
    private let workspace: Workspace

    init() throws { workspace = try Workspace() }

    private static let chain = """
        {
          "stages": [
            { "id": "cam", "use": "test-source", "size": "320x240", "rate": 30, "live": true },
            { "id": "text", "use": "text", "text": "one", "link": { "queue": 3, "whenFull": "dropOldest" } },
            { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 500 },
            { "id": "file", "use": "recorder", "path": "out.mp4" },
            { "id": "look", "use": "null-sink", "from": "text", "link": { "whenFull": "latest" } }
          ]
        }
        """

    private func graph(_ words: String..., environment: [String: String] = [:]) throws -> Outcome {
        try Program.framehost.run(["graph"] + words, environment: environment, folder: workspace.folder.path)
    }

    /// Nodes and edges as Graphviz reads them: names, and labels as they are drawn.
    private func parsed(_ dot: String) throws -> (nodes: Int, edges: Int, clusters: Int) {
        let program = Program(URL(fileURLWithPath: try #require(Tool.dot.path)))
        let outcome = try program.run(["-Tjson"], input: dot)
        #expect(outcome.status == 0 && outcome.error == "", "\(outcome.error)\n\(dot)")
        let json = try JSON(parsing: outcome.output)
        let nodes = json["objects"].list.filter { $0["label"].value != nil && $0["nodes"].value == nil }
        return (nodes.count, json["edges"].list.count, json["objects"].list.count - nodes.count)
    }

    /// All that is written in a drawing, read by a parser of XML that is not ours: a line for each text.
    private func texts(_ svg: String) throws -> [String] {
        let script = """
            import sys, xml.etree.ElementTree as tree
            root = tree.fromstring(sys.stdin.buffer.read())
            assert root.tag == '{http://www.w3.org/2000/svg}svg', root.tag
            for text in root.iter('{http://www.w3.org/2000/svg}text'):
                print(''.join(text.itertext()))
            """
        let outcome = try Program(URL(fileURLWithPath: try #require(Tool.python.path))).run(["-c", script], input: svg)
        #expect(outcome.status == 0, "\(outcome.error)")
        return outcome.output.split(separator: "\n").map { String($0).replacing("\u{a0}", with: " ") }
    }

    // MARK: Of a file

    @Test(.needs(.dot)) func drawsStagesThreadsQueuesAndBudgets() throws {
        try workspace.write("chain.json", Self.chain)
        let dot = try graph("chain.json")
        #expect(dot.status == 0 && dot.error == "", "\(dot.error)")
        let plan = try JSON(
            parsing: Program.framehost.run(["check", "chain.json", "--json"], folder: workspace.folder.path).output)
        let (nodes, edges, clusters) = try parsed(dot.output)
        #expect(nodes == plan["stages"].list.count && edges == plan["links"].list.count)
        #expect(clusters == plan["threads"].int)
        let svg = try graph("chain.json", "--format", "svg")
        #expect(svg.status == 0 && svg.error == "", "\(svg.error)")
        let texts = try texts(svg.output)
        for stage in plan["stages"].list {
            #expect(texts.contains(stage["id"].string!), "\(texts)")
            if let output = stage["output"].string { #expect(texts.contains(output), "\(output) in \(texts)") }
        }
        #expect(texts.contains("x264-encoder, transform") && texts.contains("chain"))
        #expect(texts.contains("thread src:cam") && texts.contains("thread stg:text"))
        #expect(texts.contains("queue 3, dropOldest") && texts.contains("queue 1, latest"))
        for pool in plan["pools"].list {
            let words = "\(pool["buffers"].int!) buffers (min \(pool["min"].int!), need \(pool["need"].int!))"
            #expect(texts.contains { $0.contains(words) }, "\(words) in \(texts)")
        }
        #expect(texts.contains { $0.hasPrefix("access units: ") })
    }

    @Test(.needs(.dot)) func drawsEveryExampleThatCanRunHere() throws {
        let folder = Repository.root.appending(path: "examples")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter {
            $0.hasSuffix(".json") && $0 != "framehost.schema.json"
        }.sorted()
        var drawn = 0
        for name in names {
            let dot = try Program.framehost.run(["graph", name], folder: folder.path)
            let check = try Program.framehost.run(["check", name], folder: folder.path)
            #expect(dot.status == check.status, "\(name): \(dot.error)")
            guard dot.status == 0 else {
                #expect(dot.errorLines == check.errorLines, "\(name)")
                continue
            }
            drawn += 1
            #expect(try parsed(dot.output).nodes > 1, "\(name)")
        }
        #expect(drawn > 8, "\(names)")
    }

    @Test func saysTheFaultsOfTheChain() throws {
        try workspace.write(
            "bad.json", #"{ "stages": [ { "use": "test-source", "szie": 1 }, { "use": "null-snk" } ] }"#)
        let outcome = try graph("bad.json")
        #expect(outcome.status == 2 && outcome.output == "" && outcome.errorLines.count == 2, "\(outcome.error)")
        #expect(outcome.error.contains("Did you mean 'size'?") && outcome.error.contains("Did you mean 'null-sink'?"))
        let missing = try graph("no.json")
        #expect(missing.status == 2 && missing.error.contains("no.json"), "\(missing.error)")
        try workspace.write("chain.json", Chains.short)
        #expect(try graph("chain.json", "--set", "pictures.rate=x").status == 2)
        #expect(try graph("chain.json", "--set", "pictures.rate=25").output.contains("320x240 25 fps"))
        #expect(try graph("chain.json", "--format", "png").status == 2)
        #expect(try graph("chain.json", "--token-file", "x").status == 2)
        #expect(try graph("127.0.0.1:1", "--set", "a.b=1").status == 2)
        #expect(try graph("127.0.0.1:1").status == 1)
    }

    // MARK: Files

    @Test(.needs(.dot)) func writesFilesAndReplacesNoneUnasked() throws {
        try workspace.write("chain.json", Chains.short)
        #expect(try graph("chain.json", "-o", "a.svg").status == 0)
        #expect(try texts(String(decoding: workspace.data("a.svg"), as: UTF8.self)).contains("pictures"))
        #expect(try graph("chain.json", "--output", "a.gv").status == 0)
        #expect(try String(decoding: workspace.data("a.gv"), as: UTF8.self).hasPrefix("digraph "))
        try workspace.write("mine.svg", "mine")
        let refused = try graph("chain.json", "-o", "mine.svg")
        #expect(
            refused.status == 1
                && refused.error.contains(
                    "mine.svg' already exists. Name another file, or add --overwrite to replace it."),
            "\(refused.error)")
        #expect(try workspace.data("mine.svg") == Data("mine".utf8))
        #expect(try graph("chain.json", "-o", "mine.svg", "--overwrite").status == 0)
        #expect(try workspace.data("mine.svg").count > 500)
        let odd = try graph("chain.json", "-o", "a.png")
        #expect(odd.status == 2 && odd.error.contains("must end in .svg, .dot or .gv"), "\(odd.error)")
        // What was asked for stands above the name.
        #expect(try graph("chain.json", "-o", "a.txt", "--format", "dot").status == 0)
        #expect(try graph("chain.json", "-o", "no/such/a.svg").status == 1)
        #expect(try graph("chain.json", "-o", "chain.json", "--format", "dot").status == 1)
        #expect(workspace.names == ["a.gv", "a.svg", "a.txt", "chain.json", "mine.svg"])
    }

    @Test func saysWhatDrawsAndWhatPackageHasIt() throws {
        try workspace.write("chain.json", Chains.short)
        let missing = try graph("chain.json", "--format", "svg", environment: ["PATH": workspace.folder.path])
        #expect(missing.status == 1)
        #expect(
            missing.error
                == "dot: is not installed, and SVG needs it. Install the package graphviz, or print the graph with --format dot.\n",
            "\(missing.error)")
        #expect(try graph("chain.json", environment: ["PATH": workspace.folder.path]).status == 0)
        // One that fails, one that reads nothing, one that says nothing.
        for (script, words) in [
            ("echo broken >&2; exit 3", "did not draw the graph (status 3)"),
            ("exec 0<&-; sleep 0.2; exit 0", "did not draw the graph (status 0)"),
            ("kill -SEGV $$", "did not draw the graph (signal 11)"),
        ] {
            let file = try workspace.write("dot", "#!/bin/sh\n\(script)\n")
            chmod(file, 0o755)
            let path = "\(workspace.folder.path):/usr/bin:/bin"
            let failed = try graph("chain.json", "--format", "svg", environment: ["PATH": path])
            #expect(failed.status == 1 && failed.error.contains(words), "\(failed.error)")
            #expect(!script.contains("broken") || failed.error.contains("broken"))
        }
    }

    /// A pipe holds 64 kB; what reads it may do so late.
    @Test func waitsForASlowReader() throws {
        let stages = (0..<300).map { #"{ "id": "s\#($0)", "use": "fps-meter" }"# }.joined(separator: ",")
        try workspace.write(
            "chain.json",
            #"{ "stages": [ { "use": "test-source", "size": "64x64" }, \#(stages), { "use": "null-sink" } ] }"#)
        let program = try Program.framehost.executable.path
        let outcome = try Program(URL(fileURLWithPath: "/bin/sh")).run([
            "-c", "'\(program)' graph '\(workspace.path("chain.json"))' | (sleep 2.5; cat)",
        ])
        #expect(outcome.output.utf8.count > 100_000 && outcome.output.hasSuffix("}\n"), "\(outcome.output.utf8.count)")
    }

    // MARK: Of a running chain

    @Test(.needs(.dot)) func drawsARunningChainWithItsFigures() throws {
        let run = try ControlledRun()
        let svg = try graph(run.url, "--format", "svg", "--interval", "1.5")
        #expect(svg.status == 0, "\(svg.error)")
        let texts = try texts(svg.output)
        #expect(texts.contains("chain") && texts.contains { $0.hasPrefix("streaming, healthy, captured ") }, "\(texts)")
        #expect(texts.contains { $0.contains("/s, busy ") && $0.contains(", p99 ") })
        #expect(texts.contains { $0.contains(" now") } && texts.contains { $0.contains(" free, ") })
        try run.finish()
        #expect(try graph(run.url).status == 1)
    }

    @Test(.needs(.dot)) func saysInWordsWhereItHurts() throws {
        let looks = (0..<3).map { second in
            StandIn.look(
                uptime: Double(100 + second), problems: second > 0 ? ["enc (some-transform) has failed."] : [],
                stages: [
                    StandIn.Stage("cam", kind: "source", out: 30 * second, output: "i420 64x64 30 fps"),
                    StandIn.Stage(
                        "enc", kind: "transform", in: 30 * second, out: 30 * second, dropped: ["damaged": 4 * second],
                        state: "failed", output: "h264 64x64", thread: 1),
                    StandIn.Stage("sink", kind: "sink", in: 30 * second, state: "paused", thread: 1),
                ],
                links: [
                    StandIn.Link(
                        "cam", "enc", depth: 2, capacity: 2, offered: 30 * second, dropped: ["queueFull": second]),
                    StandIn.Link("enc", "sink", depth: 0, capacity: 0, offered: 30 * second),
                ], pools: [["name": "cam", "buffers": 6, "free": 1, "starvedSeconds": 0]])
        }
        let server = try StandIn(looks)
        let svg = try graph(server.url, "--format", "svg", "--interval", "0.1")
        #expect(svg.status == 0, "\(svg.error)")
        let texts = try texts(svg.output)
        for words in [
            "! failed", "! lost 5", "paused", "2 of 2 now", "! full", "! lost 1", "1 dropped",
            "! enc (some-transform) has failed.",
            "streaming, not healthy, captured 30.0/s, CPU 25 % of a core",
            "pool: 6 buffers (min 2, need 4), 1 free, 9.0 MB",
        ] {
            #expect(texts.contains(words), "\(words) in \(texts)")
        }
    }

    /// Names come from a server, options from files: whatever is in them is drawn, not obeyed.
    @Test(.needs(.dot)) func drawsAnyNameAsText() throws {
        let names = [
            #"a"b"#, #"a\"#, #"\N\G\n"#, "&amp;", "&#x41;", "<b>x</b>", "<br/>", "\"]; evil [label=\"", "}", "]>", "--",
            "a;b", "日本語",
            "\u{1b}[31m\u{0}\u{7f}\u{ffff}", "é\u{301}\u{301}", " ", "%", "\n", "<!-- ", "<![CDATA[x]]>", "x\u{202e}y",
            String(repeating: "long ", count: 60),
        ]
        let stages = names.enumerated().map { index, name in
            StandIn.Stage(
                name, kind: index == 0 ? "source" : "filter", output: "\(name) 64x64", thread: index % 3)
        }
        let links = zip(names, names.dropFirst()).map { StandIn.Link($0, $1, depth: 1, capacity: 2, offered: 5) }
        let look = StandIn.look(name: names.joined(), uptime: 1, problems: names, stages: stages, links: links)
        let server = try StandIn([look, look, look])
        let dot = try graph(server.url, "--interval", "0.1")
        #expect(dot.status == 0, "\(dot.error)")
        let (nodes, edges, _) = try parsed(dot.output)
        #expect(nodes == names.count && edges == names.count - 1)
        let svg = try graph(server.url, "--interval", "0.1", "--format", "svg")
        #expect(svg.status == 0, "\(svg.error)")
        let texts = try texts(svg.output)
        for name in names.prefix(13) { #expect(texts.contains(name), "\(name) in \(texts)") }
        #expect(texts.contains { $0.hasPrefix("long long ") && $0.hasSuffix("…") && $0.count < 130 })
        // More than any chain has.
        let many = StandIn.look(uptime: 1, stages: (0..<4500).map { StandIn.Stage("s\($0)", kind: "filter") })
        let crowd = try StandIn([many])
        let refused = try withExtendedLifetime(crowd) { try graph(crowd.url, "--interval", "0.1") }
        #expect(refused.status == 1 && refused.error.contains("which no chain can have"), "\(refused.error)")
    }
}

extension Tool {
    static let dot = Tool(name: "dot")
}
