// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// Every effect that is installed, each in a process of its own: a crash in one is then a failure of that one.
///
/// scripts/frei0r-table.py does the same over more frames and sizes, and writes it down.
@Suite struct PaintFrei0rTests {
    /// Where Debian installs them.
    private static let folder = "/usr/lib/frei0r-1"
    /// Effects that need something else, and what.
    private static let special = [
        // It draws its graph by default, and loops for ever doing so (in ffmpeg likewise).
        "curves": #", "parameters": { "Show curves": false }"#
    ]

    /// It writes beyond the end of pictures smaller than about 320x240.
    private static let sizes = ["partik0l": "640x360"]

    static let effects: [String] = {
        let entries = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return entries.filter { $0.hasSuffix(".so") }.map { String($0.dropLast(3)) }.sorted()
    }()
    private static let isInstalled: Testing.ConditionTrait = .enabled(
        if: !effects.isEmpty || Tool.isCI, "frei0r-plugins is not installed: make test-packages")

    /// Three frames each, of a size that is no multiple of eight.
    @Test(isInstalled) func everyEffectRuns() throws {
        #expect(Self.effects.count > 100)
        for effect in Self.effects {
            let size = Self.sizes[effect] ?? "179x133"
            let options = "\"effect\": \"\(effect)\"\(Self.special[effect] ?? "")"
            let first = try run(size, stages: "{ \"id\": \"f\", \"use\": \"frei0r\", \(options) }")
            if first.status == 0 { continue }
            #expect(
                first.status == 2 && first.error.contains("Use the stage type 'frei0r-mixer'"),
                "\(effect): \(first.error)")
            let names = first.error.contains("three") ? ["balls", "gradient"] : ["balls"]
            let others = names.map {
                #"{ "id": "\#($0)", "use": "test-source", "size": "\#(size)", "frames": 3, "pattern": "\#($0)" },"#
            }
            let from = (["pictures"] + names).map { "\"\($0)\"" }.joined(separator: ", ")
            let mixed = try run(
                size,
                stages: others.joined()
                    + "{ \"id\": \"f\", \"use\": \"frei0r-mixer\", \"from\": [\(from)], \(options) }")
            #expect(mixed.status == 0, "\(effect): \(mixed.error)")
        }
    }

    @Test(isInstalled, .needs(.ffmpeg)) func mixesOnlyPicturesThatLieTheSameWay() throws {
        let workshop = try ClipWorkshop()
        let clip = try workshop.ffmpeg(
            ["-i", workshop.make("whole.mp4", ClipWorkshop.moving(count: 3)), "-c", "copy"]
                + ["-metadata:s:v:0", "rotate=90", "turned.mp4"])
        func mix(_ turn: String, from: String) throws -> Outcome {
            try run(
                "240x320",
                stages: """
                    { "id": "clip", "use": "file-source", "path": "\(clip)" },
                    \(turn)
                    { "id": "f", "use": "frei0r-mixer", "effect": "addition", "from": ["pictures", "\(from)"] }
                    """)
        }
        let stored = try mix("", from: "clip")
        #expect(stored.status == 2)
        #expect(
            stored.error.contains("from: all inputs must have the same orientation, but 'pictures' is stored ")
                && stored.error.contains(
                    ". Put a 'crop-orient' between 'clip' and this stage: it turns pictures upright."),
            "\(stored.error)")
        let upright = try mix(#"{ "id": "turn", "use": "crop-orient" },"#, from: "turn")
        #expect(upright.status == 0, "\(upright.error)")
    }

    private func run(_ size: String, stages: String) throws -> Outcome {
        let workspace = try Workspace()
        let chain = try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "pictures", "use": "test-source", "size": "\(size)", "frames": 3 },
              \(stages),
              { "id": "end", "use": "null-sink" } ] }
            """)
        return try Program.framehost.run([chain], timeout: 90)
    }

    @Test(isInstalled) func describesEffects() throws {
        let list = try JSON(parsing: Program.framehost.run("describe", "frei0r", "--json").output)
        #expect(list["topics"].list.count > 90)
        let topic = try JSON(parsing: Program.framehost.run("describe", "frei0r", "Cartoon", "--json").output)
        #expect(topic["name"].string == "cartoon" && topic["option"].string == "parameters")
        let values = topic["values"].list
        #expect(values.map { $0["name"].string } == ["triplevel", "diffspace"])
        #expect(values[0]["minimum"].int == 0 && values[0]["maximum"].int == 1 && values[0]["live"].bool == true)
        let text = try Program.framehost.run("describe", "frei0r", "cartoon")
        #expect(
            text.output.contains("\nValues of \"parameters\"\n")
                && text.output.contains("\n  triplevel: number, 0...1, live; default 1\n"))
        #expect(
            try Program.framehost.run("describe", "frei0r").output.contains(
                "\nTopics: `framehost describe frei0r NAME` tells"))
        let wrong = try Program.framehost.run("describe", "frei0r", "cartoom")
        #expect(wrong.status == 2)
        #expect(
            wrong.error.hasPrefix("frei0r: 'cartoom' is not among its ")
                && wrong.error.hasSuffix("Did you mean 'cartoon'?\n"))
    }

    @Test(isInstalled) func changesAParameterWhileRunning() throws {
        let workspace = try Workspace()
        let chain = try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "camera", "use": "test-source", "size": "320x240", "rate": 50, "live": true },
              { "id": "f", "use": "frei0r", "effect": "brightness", "parameters": { "Brightness": 0.5 } },
              { "id": "end", "use": "null-sink" } ] }
            """)
        let running = try Program.framehost.start([chain, "--commands"])
        try running.write(#"{"stage":"f","set":{"parameters":{"Brightness":0.9}},"tag":1}"# + "\n")
        try running.write(#"{"stage":"f","set":{"parameters":{"Brightnes":0.9}},"tag":2}"# + "\n")
        try running.waitForAnswers(2)
        running.send(SIGINT)
        let outcome = try running.finish()
        #expect(outcome.status == 0)
        let answers = try outcome.lines.map { try JSON(parsing: $0) }
        #expect(answers.first { $0["tag"].int == 1 }?["ok"].bool == true)
        let refusal = answers.first { $0["tag"].int == 2 }?["error"].string ?? ""
        #expect(refusal.contains("brightness has no such parameter. Did you mean 'Brightness'?"), "\(refusal)")
    }
}
