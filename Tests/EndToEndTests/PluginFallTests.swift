// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Plugins that crash, throw what is not ours, or print.
@Suite struct PluginFallTests {
    let workspace: Workspace
    let framehost: Program
    let plugins: URL

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
        plugins = try PluginBuild.misbehave()
    }

    private func run(_ options: String, id: String = "odd", _ arguments: String...) throws -> Outcome {
        try workspace.write(
            "chain.json",
            """
            { "stages": [
                { "id": "pictures", "use": "test-source", "size": "64x64", "frames": 10 }, { "id": "\(id)", "use": "fall", \(options) },
                { "use": "null-sink" } ] }
            """)
        // Without the backtrace, which takes half a minute of symbols.
        return try framehost.run(
            ["chain.json", "--plugin-path", plugins.path] + arguments, environment: ["SWIFT_BACKTRACE": "enable=no"],
            folder: workspace.folder.path)
    }

    /// The line of ours.
    private func sentence(_ outcome: Outcome) -> String {
        outcome.errorLines.first { $0.contains("crashed") } ?? "\(outcome.error)"
    }

    @Test(arguments: [
        ("segv", SIGSEGV, "SIGSEGV, it used memory that is not mapped (or its stack overflowed)"),
        ("recurse", SIGSEGV, "SIGSEGV, it used memory that is not mapped (or its stack overflowed)"),
        (
            "trap", SIGILL,
            "a check in it failed, such as an index out of range, an overflow or a nil (Swift's own lines, above or below, may say which), or this processor lacks an instruction that it uses"
        ),
        ("abort", SIGABRT, "it called abort"),
    ])
    func aCrashNamesStagePluginCallAndFrameAndEndsByItsSignal(way: String, signal: Int32, what: String) throws {
        let outcome = try run(#""way": "\#(way)", "at": 3"#)
        #expect(outcome.status == 128 + Int(signal))
        let expected =
            "error: odd (fall, \(plugins.path)/libMisbehavePlugin.so) crashed in its call 'process', at frame 3: \(what). To run without it, remove the stage from the chain. If the stage is not yours, send this and the lines that follow to its author."
        // Where Swift's backtrace is on, the line says so.
        #expect([expected, expected + " The backtrace can take half a minute."].contains(sentence(outcome)))
    }

    @Test func aCrashBeforeTheFirstFrameNamesTheStageToo() throws {
        let inStart = try run(#""way": "segv", "inStart": true"#)
        #expect(inStart.status == 128 + Int(SIGSEGV))
        #expect(
            sentence(inStart).contains(
                "odd (fall, \(plugins.path)/libMisbehavePlugin.so) crashed in its call 'start': SIGSEGV"))
        let early = try run(#""way": "segv", "early": true"#)
        #expect(early.status == 128 + Int(SIGSEGV))
        #expect(sentence(early).hasPrefix("error: the program crashed while odd (fall) was being made: SIGSEGV"))
    }

    @Test func anErrorOfAnotherTypeIsASentence() throws {
        let outcome = try run(#""way": "plain", "at": 3"#)
        #expect(outcome.status == 1)
        #expect(
            outcome.error.contains(
                "error: odd (fall): frame 3, PTS 0.100 s: an error of type 'MisbehavePlugin.Fall.Plain' was thrown: Plain(code: 5). If this says too little, ask the plugin's author to throw a FrameHostError, which says what to do."
            ), "\(outcome.error)")
    }

    @Test func whatAPluginPrintsStaysOutOfTheEvents() throws {
        let outcome = try run(#""way": "print", "at": 2"#, "--events")
        #expect(outcome.status == 0)
        for line in outcome.lines { #expect(try JSON(parsing: line)["event"].string != nil, "\(line)") }
        #expect(outcome.error.contains("printed by a plugin") && outcome.error.contains("written by a plugin"))
    }

    @Test func namesAStageWhoseIDTheTextBeginsWith() throws {
        for id in ["r", "rec", "recording"] {
            #expect(try run(#""way": "event""#, id: id).errorLines.contains("\(id): recording begins"))
        }
    }

    @Test func anEventHasFrameAndTimeOfTheItemInHand() throws {
        let outcome = try run(#""way": "event", "at": 6"#, "--events")
        let event = try outcome.lines.map { try JSON(parsing: $0) }.first { $0["event"].string == "fell" }
        #expect(event?["frame"].int == 6)
        #expect(event?["pts"].double == 0.2)
        #expect(event?["deep"].int == 3 && event?["why"].string == "on purpose")
    }
}
