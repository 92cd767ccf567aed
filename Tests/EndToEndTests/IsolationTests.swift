// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Filters in processes of their own: they give what they give in the host's process, and their end ends nothing else.
/// docs/design/050-isolation.md.
@Suite struct IsolationTests {
    let workspace: Workspace
    let framehost: Program
    let plugins: URL

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
        plugins = try PluginBuild.misbehave()
    }

    /// Ten pictures through `fall`, into a file.
    private func fall(
        _ options: String, isolate: String = #"{ "deadlineMs": 20000 }"#, frames: Int = 10, _ arguments: String...
    ) throws -> Outcome {
        try workspace.write(
            "chain.json",
            """
            { "stages": [
                { "id": "pictures", "use": "test-source", "size": "64x64", "frames": \(frames) },
                { "id": "odd", "use": "fall", "isolate": \(isolate), \(options) },
                { "id": "out", "use": "y4m-sink", "path": "out.y4m" } ] }
            """)
        return try framehost.run(
            ["chain.json", "--plugin-path", plugins.path, "--events"] + arguments,
            environment: ["SWIFT_BACKTRACE": "enable=no"], folder: workspace.folder.path)
    }

    private func events(_ outcome: Outcome, _ name: String) throws -> [JSON] {
        try outcome.lines.map { try JSON(parsing: $0) }.filter { $0["event"].string == name }
    }

    /// Bytes of a picture of 64x64 in I420, and of the file's header.
    private func pictureCount() throws -> Int {
        let bytes = try Data(contentsOf: workspace.folder.appending(path: "out.y4m"))
        return bytes.count / (64 * 64 * 3 / 2)
    }

    @Test(arguments: [
        ("segv", "ended by signal 11 (Segmentation fault)"), ("trap", "ended by signal 4 (Illegal instruction)"),
        ("abort", "ended by signal 6 (Aborted)"), ("recurse", "ended by signal 11 (Segmentation fault)"),
        ("exit", "ended with status 3. It wrote last: the filter has had enough"),
    ])
    func aFallCostsItsOwnProcess(way: String, what: String) throws {
        let outcome = try fall(#""way": "\#(way)", "at": 3"#)
        #expect(outcome.status == 1, "\(outcome.error)")
        #expect(outcome.error.contains("1 of 10 frames were not processed, since its process ended"))
        #expect(try pictureCount() == 10)
        let lost = try events(outcome, "stage-lost")
        #expect(lost.count == 1 && lost.first?["stage"].string == "odd" && lost.first?["deaths"].int == 1)
        #expect(lost.first?["frame"].int == 3)
        let text = lost.first?["text"].string ?? ""
        #expect(text.contains("The process of the stage \(what)"), "\(text)")
        #expect(text.hasSuffix("Frames go on without it until another process has taken over."), "\(text)")
    }

    @Test func aHangEndsAtTheDeadline() throws {
        let begin = Date()
        let outcome = try fall(#""way": "hang", "at": 3"#, isolate: #"{ "deadlineMs": 300 }"#)
        #expect(outcome.status == 1, "\(outcome.error)")
        #expect(outcome.error.contains("1 of 10 frames were not processed, since its process ended"))
        #expect(try pictureCount() == 10)
        let lost = try events(outcome, "stage-lost")
        #expect(
            lost.first?["reason"].string?.hasPrefix("was ended, because it did not answer within 300 ms") == true,
            "\(lost)")
        #expect(Date().timeIntervalSince(begin) < 30)
    }

    @Test(arguments: [("drop", 9), ("cover", 10), ("pass", 10)])
    func theFrameInItsHandsFollowsTheChainFile(onDeath: String, count: Int) throws {
        let outcome = try fall(
            #""way": "segv", "at": 3"#, isolate: #"{ "onDeath": "\#(onDeath)", "deadlineMs": 20000 }"#)
        #expect(outcome.status == 1, "\(outcome.error)")
        #expect(outcome.error.contains("1 of 10 frames were not processed, since its process ended"))
        #expect(try pictureCount() == count)
        let bytes = try Data(contentsOf: workspace.folder.appending(path: "out.y4m"))
        let header = bytes.firstIndex(of: 10)! + 1
        let picture = 64 * 64 * 3 / 2
        // Behind "FRAME\n"; limited-range grey.
        let luma = bytes[(header + 3 * (picture + 6) + 6)...].prefix(64 * 64)
        #expect(luma.allSatisfy { $0 == 126 } == (onDeath == "cover"))
    }

    /// One fall more than the file allows fails the stage, and `onError` decides.
    @Test func aStageWhoseProcessesKeepEndingFails() throws {
        let outcome = try fall(#""way": "segv", "at": 0, "inStart": true"#)
        #expect(outcome.status != 0)
        #expect(
            outcome.error.contains("odd (fall): its process ended by signal 11 (Segmentation fault) while it started"),
            "\(outcome.error)")
        let often = try fall(#""way": "segv", "at": 3"#, isolate: #"{ "deathsPerMinute": 0, "deadlineMs": 20000 }"#)
        #expect(often.status == 1)
        #expect(often.error.contains("its process ended 1 times within a minute"), "\(often.error)")
    }

    @Test func aFallWhileItIsMadeIsAFaultOfTheStage() throws {
        let outcome = try fall(#""way": "segv", "early": true"#)
        #expect(outcome.status == 2, "\(outcome.error)")
        #expect(
            outcome.error.contains(
                "its process ended by signal 11 (Segmentation fault) while it was made and negotiated"),
            "\(outcome.error)")
    }

    @Test func eventsErrorsAndPrintsAreThoseOfTheStage() throws {
        let event = try events(try fall(#""way": "event", "at": 6"#), "fell").first
        #expect(event?["frame"].int == 6 && event?["pts"].double == 0.2 && event?["stage"].string == "odd")
        #expect(event?["deep"].int == 3 && event?["why"].string == "on purpose")
        let outcome = try fall(#""way": "plain", "at": 3"#)
        #expect(outcome.status == 1)
        #expect(
            outcome.error.contains(
                "odd (fall): frame 3, PTS 0.100 s: an error of type 'MisbehavePlugin.Fall.Plain' was thrown: Plain(code: 5)."
            ), "\(outcome.error)")
        let flood = try fall(#""way": "flood", "at": 3"#)
        #expect(flood.status == 0, "\(flood.error)")
    }

    /// Built-in filters give the same pictures in a process of their own.
    @Test(arguments: [
        #""use": "text", "text": "{frame} {pts}", "size": "20%""#,
        #""use": "mask", "areas": [{ "polygon": [[0, 0], [0.5, 0], [0.5, 1], [0, 1]], "with": "blur" }]"#,
    ])
    func givesTheSamePictures(filter: String) throws {
        func pictures(_ isolate: String) throws -> Data {
            try workspace.write(
                "chain.json",
                """
                { "stages": [ { "use": "test-source", "size": "322x182", "frames": 20 }, { "id": "it", \(filter)\(isolate) },
                  { "use": "y4m-sink", "path": "out.y4m" } ] }
                """)
            let outcome = try framehost.run(["chain.json"], folder: workspace.folder.path)
            #expect(outcome.status == 0, "\(outcome.error)")
            return try Data(contentsOf: workspace.folder.appending(path: "out.y4m"))
        }
        #expect(try pictures("") == pictures(#", "isolate": true"#))
    }

    @Test func optionsCommandsAndMetadataReachTheProcess() throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "id": "pictures", "use": "test-source", "size": "64x64", "live": true },
              { "id": "words", "use": "text", "text": "one", "isolate": true }, { "use": "null-sink" } ] }
            """)
        let program = try framehost.start(
            ["chain.json", "--commands", "--events", "--for", "4"], folder: workspace.folder.path)
        try program.write(#"{"stage": "words", "set": {"text": "two"}}"# + "\n")
        try program.write(#"{"stage": "words", "set": {"size": "no size"}}"# + "\n")
        let outcome = try program.finish()
        let answers = try outcome.lines.map { try JSON(parsing: $0) }.filter { $0["ok"].bool != nil }
        #expect(answers.map { $0["ok"].bool } == [true, false], "\(answers)")
        #expect(outcome.status == 0, "\(outcome.error)")
    }

    /// A fall never shows what a privacy stage hides: the process of `mask` is killed again and again.
    @Test func noPictureIsBareWhenAPrivacyStageFalls() throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "pictures", "use": "test-source", "pattern": "solid", "color": "#fff", "size": "64x64", "rate": 50, "live": true },
              { "id": "hide", "use": "mask", "privacy": true, "isolate": { "deathsPerMinute": 1000 },
                "areas": [{ "polygon": [[0, 0], [1, 0], [1, 1], [0, 1]], "with": "#000" }] },
              { "use": "y4m-sink", "path": "out.y4m" } ] }
            """)
        let program = try framehost.start(["chain.json", "--events", "--for", "7"], folder: workspace.folder.path)
        // A process that falls before there are pictures ends the start, as any stage that cannot begin.
        let out = workspace.folder.appending(path: "out.y4m")
        while program.isRunning, (try? Data(contentsOf: out).count) ?? 0 < 1000 { usleep(50_000) }
        var kills = 0
        let end = Date() + 5
        while Date() < end {
            for child in Self.children(of: program.pid) {
                kill(child, SIGKILL)
                kills += 1
            }
            usleep(100_000)
        }
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(kills > 3)
        let bytes = try Data(contentsOf: out)
        let (header, picture) = (bytes.firstIndex(of: 10)! + 1, 64 * 64 * 3 / 2 + 6)
        var covered = 0
        for begin in stride(from: header, to: bytes.count - picture + 1, by: picture) {
            let luma = bytes[(begin + 6)...].prefix(64 * 64)
            let isBlack = luma.allSatisfy { $0 == 16 }
            let isGrey = luma.allSatisfy { $0 == 126 }
            #expect(isBlack || isGrey)
            covered += isGrey ? 1 : 0
        }
        #expect(covered > 0)
        #expect(try events(outcome, "stage-lost").count > 3)
    }

    /// Whatever ends the host ends its children.
    @Test func noProcessOutlivesTheHost() throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "use": "test-source", "size": "64x64", "live": true },
              { "id": "words", "use": "text", "text": "one", "isolate": true }, { "use": "null-sink" } ] }
            """)
        let program = try framehost.start(["chain.json", "--for", "60"], folder: workspace.folder.path)
        var children: [pid_t] = []
        let end = Date() + 20
        while children.isEmpty, Date() < end { children = Self.children(of: program.pid) }
        #expect(children.count == 1)
        kill(program.pid, SIGKILL)
        _ = try? program.finish()
        while children.contains(where: { kill($0, 0) == 0 }), Date() < end { usleep(10_000) }
        #expect(children.allSatisfy { kill($0, 0) != 0 })
    }

    private static func children(of parent: pid_t) -> [pid_t] {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(parent)/task")) ?? []
        return threads.flatMap { thread in
            let text = (try? String(contentsOfFile: "/proc/\(parent)/task/\(thread)/children", encoding: .utf8)) ?? ""
            return text.split(separator: " ").compactMap { pid_t($0) }
        }
    }

    @Test func refusesWhatHasNoProcessOfItsOwnYet() throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "use": "test-source", "isolate": true }, { "use": "null-sink", "isolate": {} } ] }
            """)
        let outcome = try framehost.run(["check", "chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 2)
        #expect(
            outcome.errorLines == [
                "chain.json:1:50: stages[0].isolate: 'test-source' (test-source) is a source, and only filters can have a process of their own yet. Leave 'isolate' out.",
                "chain.json:1:91: stages[1].isolate: 'null-sink' (null-sink) is a sink, and only filters can have a process of their own yet. Leave 'isolate' out.",
            ])
    }

    @Test func passIsRefusedWhereNothingMayPass() throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "use": "test-source" }, { "id": "hide", "use": "mask", "privacy": true, "areas": [{ "polygon": [[0, 0], [1, 0], [1, 1]] }], "isolate": { "onDeath": "pass" } }, { "use": "null-sink" } ] }
            """)
        let outcome = try framehost.run(["check", "chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 2)
        #expect(outcome.error.contains("'pass' would let frames go on unchanged"), "\(outcome.error)")
    }
}
