// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// A plugin that is built anew while a chain runs with it.
@Suite struct HotSwapTests {
    let workspace: Workspace
    let framehost: Program
    let images: [Int: Data]

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
        images = try PluginBuild.swap()
        try FileManager.default.createDirectory(
            atPath: workspace.path("tmp"), withIntermediateDirectories: true)
    }

    private let name = "plugins/libSwapPlugin.so"
    private static let side = 16

    /// Live, with room for forty seconds of pictures, so that a machine with other work to do loses none.
    private static func chain() -> String {
        """
        { "stages": [
            { "id": "camera", "use": "test-source", "size": "\(side)x\(side)", "rate": 100, "live": true, "format": "gray8" },
            { "id": "mark", "use": "swap-mark", "gain": 5, "fail": "fail.txt",
              "link": { "queue": 4000 } },
            { "id": "count", "use": "swap-count" },
            { "id": "end", "use": "null-sink", "dump": "frames.gray" } ] }
        """
    }

    /// Puts a file in the place of another as build tools do.
    private func put(_ data: Data) throws {
        let next = workspace.path("next.so")
        try data.write(to: URL(fileURLWithPath: next))
        try FileManager.default.createDirectory(
            atPath: workspace.path("plugins"), withIntermediateDirectories: true)
        #expect(rename(next, workspace.path(name)) == 0)
    }

    private func start(_ arguments: String..., chain: String = Self.chain()) throws -> RunningProgram {
        try put(try #require(images[1]))
        try workspace.write("chain.json", chain)
        // Without the backtrace of a crash, which takes half a minute of symbols.
        let program = try framehost.start(
            ["chain.json", "--plugin-path", "plugins", "--commands", "--events"] + arguments,
            environment: ["TMPDIR": workspace.path("tmp"), "SWIFT_BACKTRACE": "enable=no"],
            folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        try program.waitForFrames(20)
        return program
    }

    /// Sends a command and gives its answer.
    private func ask(_ program: RunningProgram, _ command: String) throws -> JSON {
        try program.sendPatiently("{ \(command) }")
    }

    private func figures(_ program: RunningProgram) throws -> JSON {
        try ask(program, #""command": "figures""#)["figures"]
    }

    private func stage(_ id: String, _ figures: JSON) -> JSON {
        figures["stages"].list.first { $0["id"].string == id }?["figures"] ?? figures["nothing"]
    }

    private func finish(_ program: RunningProgram) throws -> Outcome {
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: workspace.path("tmp")).isEmpty)
        return outcome
    }

    /// Which image marked each frame that came to the sink.
    private func versions() throws -> [UInt8] {
        let data = try workspace.data("frames.gray")
        return stride(from: 0, to: data.count, by: Self.side * Self.side).map { data[$0] }
    }

    private func captured(_ outcome: Outcome) throws -> Int {
        let line = try #require(outcome.error.firstMatch(of: /Done: (\d+) frames/))
        return Int(line.1) ?? -1
    }

    // MARK: The command

    @Test func takesTheRebuiltPluginAtTheFrameItSaysWithItsOptionsAsTheyAreNow() throws {
        let program = try start()
        #expect(try ask(program, #""stage": "mark", "set": { "gain": 7 }"#)["ok"].bool == true)
        try put(try #require(images[2]))
        let answer = try ask(program, #""command": "reload-plugin", "plugin": "swap-mark""#)
        #expect(answer["ok"].bool == true, "\(answer)")
        #expect(answer["replaced"].list.map(\.string) == ["mark", "count"])
        // The image of a try that was refused for busyness stays.
        let tries = 1 + program.refusals
        #expect(answer["plugin"].string == name && answer["images"].int == 1 + tries, "\(answer)")
        let frame = try #require(answer["frame"].int)
        try program.waitForFrames(frame + 30)
        var figures = try figures(program)
        let deadline = Date() + 120
        while stage("count", figures)["marked"].int != 2, Date() < deadline {
            program.listen(seconds: 0.05)
            figures = try self.figures(program)
        }
        let count = stage("count", figures)
        #expect(count["version"].int == 2 && count["marked"].int == 2 && count["gain"].int == 7, "\(count)")
        #expect(count["unmarked"].int == 0 && count["gaps"].int == 0, "\(count)")
        let plugin = try #require(figures["plugins"].list.first { $0["path"].string == name })
        #expect(plugin["images"].int == 1 + tries && plugin["oldImages"].int == tries, "\(plugin)")
        #expect((plugin["oldBytes"].int ?? 0) > 8192)
        let outcome = try finish(program)
        let versions = try versions()
        #expect(try versions.count == captured(outcome), "a frame was lost")
        #expect(versions.prefix(frame).allSatisfy { $0 == 1 } && versions.dropFirst(frame).allSatisfy { $0 == 2 })
    }

    @Test func refusesWhatCannotBeAndGoesOnWithTheOldOne() throws {
        let program = try start()
        let reload = #""command": "reload-plugin", "plugin": "swap-count""#
        func refusal() throws -> String { try #require(try ask(program, reload)["error"].string) }

        var other = try #require(images[2])
        let core = try #require(other.firstRange(of: Data("\ncore=".utf8))?.upperBound)
        other.replaceSubrange(core..<core + 4, with: Data("0000".utf8))
        try put(other)
        let byGate = try refusal()
        #expect(byGate.hasPrefix("\(name): was built against another Core (0000"), "\(byGate)")
        #expect(byGate.hasSuffix(" The chain goes on without this change."), "\(byGate)")

        try put(try #require(images[2]).prefix(5000))
        #expect(
            try refusal().hasPrefix("\(name): is cut short: its section table points past its end. Build it again: "))

        try put(try #require(images[3]))
        let byLayout = try refusal()
        for id in ["mark", "count"] {
            let what =
                "\(id).use: needs a restart: '\(id)' (swap-\(id)) has another memory layout of the metadata 'marker' than the frames of the running chain. "
            #expect(byLayout.contains(what), "\(byLayout)")
        }

        try put(try #require(images[2]))
        try workspace.write("fail.txt", "init")
        let inInit = try refusal()
        #expect(
            inInit.hasSuffix("version 2 does not want to. Ask it later. The chain goes on without this change."),
            "\(inInit)")
        try workspace.write("fail.txt", "start")
        #expect(
            try refusal()
                == "mark (swap-mark): version 2 does not want to. Ask it later. The chain goes on without this change.")
        try FileManager.default.removeItem(atPath: workspace.path("fail.txt"))

        let writer = try FileHandle(forWritingTo: URL(fileURLWithPath: workspace.path(name)))
        #expect(
            try refusal()
                == "\(name): is being written. Wait until the file is complete, and try again. The chain goes on without this change."
        )
        try writer.close()

        #expect(
            try ask(program, #""command": "reload-plugin", "plugin": "swap-mork""#)["error"].string
                == "swap-mork: no such plugin. Did you mean 'swap-mark'? The chain goes on without this change.")
        #expect(
            try ask(program, #""command": "reload-plugin""#)["error"].string
                == "'plugin' is missing. Name the plugin's file or one of its stage types: \"plugin\": \"night-mode\".")
        let count = stage("count", try figures(program))
        #expect(count["version"].int == 1 && count["gaps"].int == 0, "\(count)")
        // Nothing of all that is in the way of one that fits.
        #expect(try ask(program, reload)["ok"].bool == true)
        let outcome = try finish(program)
        #expect(try versions().count == captured(outcome))
    }

    @Test func findsAPluginThatWasNotThereAndOneThatIsNotInUse() throws {
        try put(try #require(images[1]))
        let chain = """
            { "spare": 6, "stages": [ { "id": "camera", "use": "test-source", "size": "16x16", "rate": 100, "live": true, "format": "gray8" },
              { "use": "null-sink" } ] }
            """
        try workspace.write("chain.json", chain)
        try FileManager.default.removeItem(atPath: workspace.path(name))
        let program = try framehost.start(
            ["chain.json", "--plugin-path", "plugins", "--commands", "--events"],
            environment: ["TMPDIR": workspace.path("tmp")], folder: workspace.folder.path)
        try program.waitForFrames(10)
        let attach =
            #""command": "attach", "at": "camera", "stages": [ { "id": "count", "use": "swap-count" }, { "id": "late", "use": "null-sink" } ]"#
        #expect(try ask(program, attach)["ok"].bool == false)
        try put(try #require(images[1]))
        let found = try ask(program, #""command": "reload-plugin", "plugin": "libSwapPlugin.so""#)
        #expect(found["ok"].bool == true && found["images"].int == 0, "\(found)")
        // Metadata of a plugin that the chain was started without has no room in its frames.
        let refused = try ask(program, attach)["error"].string ?? ""
        #expect(refused.contains("needs metadata 'marker', for which"), "\(refused)")
        _ = try finish(program)
    }

    @Test func aCrashOfTheNewImageNamesTheStageAndThePlugin() throws {
        let program = try start()
        try put(try #require(images[2]))
        let reloaded = try ask(program, #""command": "reload-plugin", "plugin": "swap-mark""#)
        #expect(reloaded["ok"].bool == true, "\(reloaded)")
        // `count` becomes another stage of the same plugin.
        let replace = #""stage": "count", "command": "replace", "with": { "use": "swap-mark" }"#
        #expect(try ask(program, replace)["ok"].bool == true)
        try program.write(#"{ "stage": "count", "set": { "gain": 13 } }"# + "\n")
        let outcome = try program.finish()
        #expect(outcome.status == 128 + Int(SIGILL))
        let sentence = outcome.errorLines.first { $0.contains("crashed") } ?? outcome.error
        #expect(
            sentence.hasPrefix("error: count (swap-mark, \(name)) crashed in its call 'process', at frame "),
            "\(sentence)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: workspace.path("tmp")).isEmpty)
    }

    // MARK: --watch-plugins

    /// What takes a plugin's name may have no end, or none within a day.
    @Test(arguments: ["/dev/zero", "sparse"]) func whatStandsUnderItsNameHoldsUpNothing(file: String) throws {
        let program = try start("--watch-plugins")
        if file == "sparse" {
            try Data([0x7f, 0x45, 0x4c, 0x46]).write(to: URL(fileURLWithPath: workspace.path("next.so")))
            #expect(truncate(workspace.path("next.so"), 1 << 40) == 0)
        } else {
            #expect(symlink(file, workspace.path("next.so")) == 0)
        }
        #expect(rename(workspace.path("next.so"), workspace.path(name)) == 0)
        // It is looked at 0.2 s after it came.
        program.listen(seconds: 1)
        #expect(try figures(program)["ledger"]["captured"].int ?? 0 > 0)
        _ = try finish(program)
    }

    /// The first chain's trace may be there when the second one's plugin is copied. The third one's stream never comes,
    /// so the signal is there before all are planned on a machine with other work to do, too.
    @Test func aSignalWhileChainsArePlannedLeavesNothing() throws {
        try put(try #require(images[1]))
        // Sections lie before what is added. Its copy takes a second or more.
        #expect(truncate(workspace.path(name), 200 << 20) == 0)
        try workspace.write(
            "first.json", #"{ "stages": [ { "use": "test-source", "live": true }, { "use": "null-sink" } ] }"#)
        try workspace.write("second.json", Self.chain())
        try workspace.write(
            "third.json",
            """
            { "stages": [ { "use": "network-source", "url": "udp://127.0.0.1:\(try RTSPStream.freePort())",
                            "connectSeconds": 60 }, { "use": "null-sink" } ] }
            """)
        let program = try framehost.start(
            [
                "first.json", "second.json", "third.json", "--plugin-path", "plugins", "--watch-plugins", "--trace",
                "trace.pftrace",
            ],
            environment: ["TMPDIR": workspace.path("tmp")], folder: workspace.folder.path)
        let folders = { try FileManager.default.contentsOfDirectory(atPath: workspace.path("tmp")) }
        let deadline = Date() + 120
        while try folders().isEmpty, Date() < deadline { usleep(1000) }
        #expect(try folders().count == 1)
        program.send(SIGTERM)
        let outcome = try program.finish()
        #expect(outcome.status == 1 && outcome.error.contains("Stopped before the chains were ready to run."))
        #expect(try folders().isEmpty)
        #expect(!workspace.names.contains { $0.hasPrefix("trace") }, "\(workspace.names)")
    }

    /// Waits until `count` is of an image. The program tries again where a stage that got no processor for a second has
    /// refused the exchange as a whole.
    private func waitForImage(_ version: Int, _ program: RunningProgram) throws {
        let deadline = Date() + 180
        while try stage("count", figures(program))["version"].int != version {
            guard Date() < deadline else {
                throw TestFault("image \(version) is not in use: \(program.output.suffix(4000))")
            }
            program.listen(seconds: 0.1)
        }
    }

    @Test func watchesTheFileAndTakesItOnceItIsWhole() throws {
        let program = try start("--watch-plugins")
        // In place, in two halves, over the very file that was loaded.
        let path = workspace.path(name)
        let data = try #require(images[2])
        let file = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC)
        #expect(file >= 0)
        let half = data.count / 2
        #expect(data.withUnsafeBytes { write(file, $0.baseAddress, half) } == half)
        let seen = try #require(try ask(program, #""command": "figures""#)["frame"].int)
        try program.waitForFrames(seen + 60)
        #expect(!program.output.contains(#""replaced":["#), "half a file was loaded")
        #expect(data.withUnsafeBytes { write(file, $0.baseAddress! + half, data.count - half) } == data.count - half)
        close(file)
        try waitForImage(2, program)
        try program.waitForOutput(#""replaced":["mark","count"]"#)
        // The same bytes again are no news; a damaged file is refused with a sentence.
        try data.write(to: URL(fileURLWithPath: path))
        try put(data)
        try put(data.prefix(5000))
        try program.waitForOutput("is cut short")
        try put(try #require(images[1]))
        try waitForImage(1, program)
        let plugins = try figures(program)["plugins"]
        // Further tries use the image of the first.
        #expect(plugins.first("path", name)["images"].int == 3, "\(plugins)")
        let outcome = try finish(program)
        #expect(try versions().count == captured(outcome))
    }

    @Test func findsItsFolderAgainAfterItHasGone() throws {
        let program = try start("--watch-plugins")
        try FileManager.default.removeItem(atPath: workspace.path("plugins"))
        try program.waitForFrames(try program.frames() + 130)
        try put(try #require(images[2]))
        try waitForImage(2, program)
        try program.waitForOutput(#""replaced":["mark","count"]"#)
        _ = try finish(program)
    }

    /// The reader of a pipe takes nothing for a while, so the thread before it has no time for the exchange.
    @Test func triesAgainWhatTheChainHadNoTimeFor() throws {
        #expect(mkfifo(workspace.path("pipe"), 0o600) == 0)
        let reader = open(workspace.path("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        #expect(reader >= 0)
        let chain = """
            { "stages": [
                { "id": "camera", "use": "test-source", "size": "640x480", "rate": 50, "live": true, "format": "gray8" },
                { "id": "mark", "use": "swap-mark", "link": { "queue": 2, "whenFull": "dropOldest" } },
                { "id": "out", "use": "y4m-sink", "path": "pipe", "link": { "queue": 0 } } ] }
            """
        let program = try start("--watch-plugins", chain: chain)
        // The sink makes the pipe as large as it can: 1 MiB, three pictures.
        try program.waitForFrames(50)
        try put(try #require(images[2]))
        try program.waitForOutput(
            ", so nothing was changed. Wait: framehost tries the change again until the chain has time for it.")
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let deadline = Date() + 180
        while !program.output.contains(#""replaced":["mark"]"#), Date() < deadline {
            while read(reader, &bytes, bytes.count) > 0 {}
            program.listen(seconds: 0.05)
        }
        #expect(program.output.contains(#""replaced":["mark"]"#), "\(program.output)")
        // Said once, and loaded once, however often it was tried.
        #expect(program.refusals == 1, "\(program.output)")
        let plugins = try figures(program)["plugins"]
        #expect(plugins.first("path", name)["images"].int == 2, "\(plugins)")
        // Without its reader the sink fails, so that nothing waits at the end.
        close(reader)
        program.send(SIGINT)
        _ = try program.finish()
    }

    /// Of a build that the chain had no time for: given up with another file, and with the build that runs.
    @Test func takesABuildThatComesBackAfterItWasGivenUp() throws {
        #expect(mkfifo(workspace.path("pipe"), 0o600) == 0)
        let reader = open(workspace.path("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        #expect(reader >= 0)
        let chain = """
            { "stages": [
                { "id": "camera", "use": "test-source", "size": "640x480", "rate": 50, "live": true, "format": "gray8" },
                { "id": "mark", "use": "swap-mark", "link": { "queue": 2, "whenFull": "dropOldest" } },
                { "id": "out", "use": "y4m-sink", "path": "pipe", "link": { "queue": 0 } } ] }
            """
        let program = try start("--watch-plugins", chain: chain)
        func isReplaced() -> Bool { program.output.contains(#""replaced":["mark"]"#) }
        func emptyPipe(seconds: Double) {
            var bytes = [UInt8](repeating: 0, count: 1 << 16)
            let deadline = Date() + seconds
            while !isReplaced(), Date() < deadline {
                while read(reader, &bytes, bytes.count) > 0 {}
                program.listen(seconds: 0.05)
            }
        }
        // The sink makes the pipe as large as it can: 1 MiB, three pictures.
        try program.waitForFrames(50)
        let build = try #require(images[2])
        try put(build)
        try program.waitForOutput(
            ", so nothing was changed. Wait: framehost tries the change again until the chain has time for it.")
        try put(build.prefix(5000))
        try program.waitForOutput("is cut short")
        try put(build)
        let deadline = Date() + 60
        while program.refusals < 2, Date() < deadline { program.listen(seconds: 0.05) }
        #expect(program.refusals == 2, "the build was not tried: \(program.output)")
        // The build that runs comes back. An attempt that is under way ends, and the next one is not made.
        try put(try #require(images[1]))
        program.listen(seconds: 4)
        emptyPipe(seconds: 1.5)
        #expect(!isReplaced(), "\(program.output)")
        try put(build)
        emptyPipe(seconds: 120)
        #expect(isReplaced(), "\(program.output)")
        let plugins = try figures(program)["plugins"]
        #expect(plugins.first("path", name)["images"].int == 2, "\(plugins)")
        close(reader)
        program.send(SIGINT)
        _ = try program.finish()
    }
}
