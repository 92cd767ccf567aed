// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Joins as a person uses them: files of two containers, lengths and cameras, and what the chain file says of them.
@Suite struct JoinsTests {
    private static let isInstalled: Testing.ConditionTrait = .enabled(
        if: FileManager.default.fileExists(atPath: "/usr/lib/frei0r-1/blend.so") || Tool.isCI,
        "frei0r-plugins is not installed: make test-packages")

    let workspace: Workspace

    init() throws { workspace = try Workspace() }

    /// Runs a chain of two inputs `a` and `b` and a mixer; the figures of the run besides.
    private func mix(_ a: String, _ b: String, join: String? = nil) throws -> (outcome: Outcome, figures: JSON) {
        let chain = try workspace.write(
            "mix.json",
            """
            { "stages": [
              { "id": "a", \(a) }, { "id": "b", \(b) },
              { "id": "mix", "use": "frei0r-mixer", "from": ["a", "b"], "effect": "blend"\(join.map { ", \"join\": \($0)" } ?? "") },
              { "id": "end", "use": "null-sink" } ] }
            """)
        let outcome = try Program.framehost.run(
            ["run", chain, "--stats", "stats.json"], folder: workspace.folder.path, timeout: 300)
        let text = try String(contentsOf: workspace.folder.appending(path: "stats.json"), encoding: .utf8)
        return (outcome, try JSON(parsing: text))
    }

    private func delivered(_ figures: JSON) -> Int? { figures["ledger"]["delivered"].int }

    /// 89 frames at 30 per second: Matroska rounds their times to milliseconds.
    private func writeClips() throws {
        let chain = try workspace.write(
            "clips.json",
            """
            { "stages": [
              { "id": "pictures", "use": "test-source", "size": "320x240", "frames": 89 },
              { "id": "h264", "use": "x264-encoder", "preset": "ultrafast" },
              { "id": "mp4", "use": "recorder", "path": "clip.mp4" },
              { "id": "mkv", "use": "recorder", "from": "h264", "path": "clip.mkv" } ] }
            """)
        let outcome = try Program.framehost.run([chain], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
    }

    /// A branch with a lower rate answers once for many items of the other: the queue beside it is as long as that takes.
    @Test(arguments: [2, 5, 10, 30]) func aBranchWithALowerRateStopsNoJoin(rate: Int) throws {
        for from in [#"["s", "slow"]"#, #"["slow", "s"]"#] {
            let chain = try workspace.write(
                "slow.json",
                """
                { "stages": [
                  { "id": "s", "use": "test-source", "size": "64x64", "rate": 60, "frames": 180, "pattern": "none" },
                  { "id": "slow", "use": "rate", "rate": \(rate) },
                  { "id": "m", "use": "mosaic", "from": \(from) }, { "use": "null-sink" } ] }
                """)
            let outcome = try Program.framehost.run([chain], folder: workspace.folder.path, timeout: 300)
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(!outcome.error.contains(", 0 delivered"), "\(outcome.error)")
        }
    }

    /// The first item of a join that lost its own first ones comes after the first item of the other input.
    @Test(arguments: 0..<4) func aJoinBeginsThoughAnotherLostItsFirstItems(_: Int) throws {
        let chain = try workspace.write(
            "late.json",
            """
            { "stages": [
              { "id": "a", "use": "test-source", "size": "64x64", "frames": 90, "pattern": "none" },
              { "id": "b", "use": "test-source", "size": "64x64", "frames": 60, "pattern": "none" },
              { "id": "one", "use": "mosaic", "from": ["a", "b"], "size": "64x64", "rate": 30,
                "link": { "whenFull": "latest" } },
              { "id": "two", "use": "mosaic", "from": ["b", "one"], "size": "64x64", "rate": 30 },
              { "use": "null-sink" } ] }
            """)
        let outcome = try Program.framehost.run([chain], folder: workspace.folder.path, timeout: 300)
        #expect(!outcome.error.contains("deadlocked"), "\(outcome.error)")
        #expect(!outcome.error.contains(", 0 delivered"), "\(outcome.error)")
    }

    @Test(isInstalled) func mixesTheSameClipFromMP4AndMatroska() throws {
        try writeClips()
        let (a, b) = (#""use": "file-source", "path": "clip.mp4""#, #""use": "file-source", "path": "clip.mkv""#)
        let near = try mix(a, b)
        #expect(near.outcome.status == 0 && delivered(near.figures) == 89, "\(near.outcome.error)")
        #expect(!near.outcome.untimedErrorLines.contains { $0.contains("warning") }, "\(near.outcome.error)")
        let exact = try mix(a, b, join: #"{ "match": "exact" }"#)
        #expect(delivered(exact.figures) ?? 89 < 45)
        #expect(
            exact.outcome.error.contains("items of 'a' found no match in another input."),
            "\(exact.outcome.error)")
    }

    @Test(isInstalled) func endsWithTheLeadingInputThoughAnotherLoops() throws {
        try writeClips()
        let looped = #""use": "file-source", "path": "clip.mkv", "loop": true"#
        let ran = try mix(#""use": "file-source", "path": "clip.mp4""#, looped)
        #expect(ran.outcome.status == 0 && delivered(ran.figures) == 89, "\(ran.outcome.error)")
    }

    @Test(isInstalled) func keepsTheLastPictureOfAShorterInput() throws {
        let (long, short) = (source("bars", 60), source("balls", 20))
        let held = try mix(long, short, join: #"{ "hold": true }"#)
        #expect(held.outcome.status == 0 && delivered(held.figures) == 60)
        let lone = try mix(long, short)
        #expect(delivered(lone.figures) == 20)
        #expect(lone.outcome.error.contains("'b' ended early: 40 of 60 times it had no item."), "\(lone.outcome.error)")
        let last = try mix(short, long, join: #"{ "hold": true, "whenEnded": "last" }"#)
        #expect(last.outcome.status == 0 && delivered(last.figures) == 60, "\(last.outcome.error)")
    }

    /// The second input leads: the result has its times, which rise.
    @Test(isInstalled) func takesTheTimesOfTheInputThatLeads() throws {
        let ran = try mix(source("bars", 20), source("balls", 60), join: #"{ "lead": "b", "hold": true }"#)
        #expect(ran.outcome.status == 0 && delivered(ran.figures) == 60, "\(ran.outcome.error)")
    }

    @Test(isInstalled) func givesEveryFrameOfTheLeadingCamera() throws {
        let (a, b) = (
            #""use": "test-source", "size": "320x240", "live": true, "frames": 45"#,
            #""use": "test-source", "size": "320x240", "live": true, "rate": 25"#
        )
        let ran = try mix(a, b, join: #"{ "match": "newest" }"#)
        #expect(ran.outcome.isDoneOrBusy, "\(ran.outcome.error)")
        // The first one or two may come before the other camera's; a busy machine drops further ones.
        func count(_ dropped: JSON) -> Int { dropped.keys.reduce(0) { $0 + (dropped[$1].int ?? 0) } }
        let (stages, links) = (ran.figures["stages"], ran.figures["links"])
        let lost =
            count(stages.first("id", "a")["dropped"]) + count(links.first("from", "a")["dropped"])
            + (stages.first("id", "mix")["inputs"].first("from", "a")["unmatched"].int ?? 0)
        let delivered = delivered(ran.figures) ?? 0
        #expect(delivered > 0 && delivered + lost >= 40, "\(delivered), \(lost): \(ran.outcome.error)")
    }

    /// The join asked for the newest picture of the faster camera, so those before it are no drops.
    @Test(isInstalled) func countsWhatTheNewestReplacesApart() throws {
        let (a, b) = (
            #""use": "test-source", "size": "64x64", "live": true, "rate": 10, "frames": 15"#,
            #""use": "test-source", "size": "64x64", "live": true, "rate": 50"#
        )
        let ran = try mix(a, b, join: #"{ "match": "newest", "whenEnded": "lead" }"#)
        #expect(ran.outcome.isDoneOrBusy, "\(ran.outcome.error)")
        let (ledger, links) = (ran.figures["ledger"], ran.figures["links"].list)
        let replaced = links.reduce(0) { $0 + ($1["replaced"].int ?? 0) }
        #expect(replaced > 20 && ledger["replaced"].int == replaced, "\(ran.figures)")
        #expect(!links.contains { $0["dropped"].keys.contains("replaced") })
        #expect(
            ran.outcome.error.contains(", \(ledger["dropped"].int ?? -1) dropped, \(replaced) replaced by newer ones."),
            "\(ran.outcome.error)")
        #expect(!ran.outcome.error.contains("frames dropped"), "\(ran.outcome.error)")
    }

    private func source(_ pattern: String, _ frames: Int) -> String {
        #""use": "test-source", "size": "320x240", "pattern": "\#(pattern)", "frames": \#(frames)"#
    }

    /// Each fault with its place; nothing runs.
    @Test func refusesWhatAJoinCannotBe() throws {
        func faults(_ join: String, at stage: String = #""use": "frei0r-mixer", "from": ["a", "b"]"#) throws -> [String]
        {
            let chain = try workspace.write(
                "bad.json",
                """
                { "stages": [
                  { "id": "a", "use": "test-source" }, { "id": "b", "use": "test-source" },
                  { "id": "mix", \(stage), "join": \(join) }, { "use": "null-sink" } ] }
                """)
            let outcome = try Program.framehost.run(["check", chain], folder: workspace.folder.path)
            #expect(outcome.status == 2)
            return outcome.errorLines.filter { $0.contains(".join") }.map { line in
                line.range(of: "stages[2]").map { String(line[$0.lowerBound...]) } ?? line
            }
        }
        #expect(
            try faults(#"{ "match": "nearst", "whenEnded": 3, "lead": "camera", "hold": 1, "latest": 2 }"#) == [
                "stages[2].join.match: 'nearst' must be one of 'nearest', 'newest' or 'exact'. Did you mean 'nearest'?",
                #"stages[2].join.whenEnded: expected 'lead', 'first' or 'last', found 3. Correct the value, or leave the key out for "lead"."#,
                "stages[2].join.lead: 'camera' must be one of the inputs. Name 'a' or 'b'.",
                "stages[2].join.hold: expected true or false, found 1. Correct the value, or leave the key out for false.",
                "stages[2].join.latest: no such key. A join has 'match', 'lead', 'whenEnded' and 'hold'.",
            ])
        #expect(
            try faults(#""newest""#) == [
                #"stages[2].join: expected an object, found a string. Write { "match": "nearest" }."#
            ])
        #expect(
            try faults("{}", at: #""use": "fps-meter", "from": "a""#) == [
                "stages[2].join: 'mix' (fps-meter) is not a join. Leave 'join' out."
            ])
    }
}
