// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Files that are no plugins, or not for this program: each a sentence, none loaded.
@Suite struct GateTests {
    let workspace: Workspace
    let framehost: Program
    /// The bytes of a plugin that leaves a marker file when it is loaded.
    let good: Data
    let manifest: String

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
        good = try Data(contentsOf: PluginBuild.misbehave().appending(path: "libMisbehavePlugin.so"))
        let start = try #require(good.firstRange(of: Data("FRAMEHOST-PLUGIN\n".utf8))?.lowerBound)
        let end = try #require(good[start...].firstIndex(of: 0))
        manifest = String(decoding: good[start..<end], as: UTF8.self)
    }

    private let name = "libMisbehavePlugin.so"
    private var path: String { workspace.path("plugins/\(name)") }

    private static let chain = """
        { "stages": [ { "use": "test-source", "size": "64x64", "frames": 3 }, { "use": "misbehave" }, { "use": "null-sink" } ] }
        """

    /// The plugin with one text of its manifest replaced by another, filled with line feeds, which are skipped.
    private func patched(_ old: String, _ new: String) throws -> Data {
        #expect(new.utf8.count <= old.utf8.count)
        var data = good
        let start = try #require(data.firstRange(of: Data("FRAMEHOST-PLUGIN\n".utf8))?.lowerBound)
        let range = try #require(data[start...].firstRange(of: Data(old.utf8)))
        data.replaceSubrange(
            range, with: Data((new + String(repeating: "\n", count: old.utf8.count - new.utf8.count)).utf8))
        return data
    }

    private func field(_ key: String) throws -> String {
        try #require(manifest.split(separator: "\n").first { $0.hasPrefix("\(key)=") }.map(String.init))
    }

    /// What the program says of the only file in the plugin folder, and that it is not loaded.
    private func refusal(_ data: Data) throws -> String {
        try workspace.write("plugins/\(name)", data)
        return try refusal()
    }

    private func refusal() throws -> String {
        let marker = workspace.path("marker")
        let environment = ["MISBEHAVE_MARKER": marker]
        let list = try framehost.run(
            ["plugins", "--json", "--plugin-path", workspace.path("plugins")], environment: environment)
        #expect(list.status == 0)
        let skipped = try JSON(parsing: list.output)["skipped"]
        #expect(skipped.list.count == 1, "\(list.output)")
        #expect(skipped[0]["code"].string == "unusable-plugin")
        #expect(skipped[0]["place"].string == path)
        let people = try framehost.run(
            ["plugins", "--plugin-path", workspace.path("plugins")], environment: environment)
        let sentence = "\(skipped[0]["what"].string ?? ""). \(skipped[0]["remedy"].string ?? "")"
        #expect(people.lines.contains("  \(path): \(sentence)"))
        try workspace.write("chain.json", Self.chain)
        for command in ["run", "check"] {
            let outcome = try framehost.run(
                [command, workspace.path("chain.json"), "--plugin-path", workspace.path("plugins")],
                environment: environment)
            #expect(outcome.status == 2)
        }
        #expect(!workspace.exists("marker"), "it was loaded")
        return sentence.replacingOccurrences(of: workspace.folder.path, with: "DIR")
    }

    @Test func loadsAPluginThatFits() throws {
        try workspace.write("plugins/\(name)", good)
        try workspace.write("chain.json", Self.chain)
        let environment = ["MISBEHAVE_MARKER": workspace.path("marker")]
        let plain = try framehost.run(
            ["run", try workspace.write("short.json", Chains.short), "--plugin-path", workspace.path("plugins")],
            environment: environment)
        #expect(plain.status == 0)
        #expect(!workspace.exists("marker"), "a plugin that no chain names was loaded")
        let outcome = try framehost.run(
            ["run", workspace.path("chain.json"), "--plugin-path", workspace.path("plugins")], environment: environment)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(workspace.exists("marker"))
    }

    @Test func findsPluginsThroughTheEnvironment() throws {
        try workspace.write("plugins/\(name)", good)
        try workspace.write("chain.json", Self.chain)
        let outcome = try framehost.run(
            ["run", workspace.path("chain.json")],
            environment: ["FRAMEHOST_PLUGIN_PATH": "/nonexistent:\(workspace.path("plugins"))"])
        #expect(outcome.status == 0, "\(outcome.error)")
    }

    // MARK: Manifests

    private let rebuild = "Build it again: swift build -c release."

    @Test func refusesAWrongMagic() throws {
        #expect(
            try refusal(patched("FRAMEHOST-PLUGIN", "FRAMEHOST-PLUGIM"))
                == "its section .framehost does not start with FRAMEHOST-PLUGIN. \(rebuild)")
    }

    @Test func refusesAnotherInterface() throws {
        #expect(
            try refusal(patched("interface=1", "interface=0"))
                == "has plugin interface 0, this framehost has 1: the plugin is older. \(rebuild)")
        #expect(
            try refusal(patched("interface=1", "interface=7"))
                == "has plugin interface 7, this framehost has 1: the program is older. Build framehost again in its folder: swift build -c release."
        )
    }

    @Test func refusesAnotherCompiler() throws {
        let compiler = try field("compiler").dropFirst("compiler=".count)
        #expect(
            try refusal(patched("compiler=\(compiler)", "compiler=5.9"))
                == "was compiled by Swift 5.9, this framehost by Swift \(compiler). Build it again with Swift \(compiler): swift build -c release."
        )
    }

    @Test func refusesADebugBuild() throws {
        #expect(
            try refusal(patched("configuration=release", "configuration=debug"))
                == "is a debug build, but this framehost is a release build. Build it with `swift build -c release`, and name .build/release with --plugin-path."
        )
    }

    @Test func refusesAnotherCore() throws {
        let core = String(try field("core").dropFirst("core=".count))
        let other = String(repeating: "0", count: core.count)
        let sentence = try refusal(patched(core, other))
        let whole =
            "was built against another Core (000000000000, this framehost has \(core.prefix(12))). \(rebuild) If it is refused again, compare the Core folder in its Package.swift with `framehost --core-path`: where they differ, correct Package.swift; where they are the same, build framehost again in its folder: swift build -c release."
        #expect(sentence == whole)
        // Which side is older is not known: the date of a file that was copied says nothing.
        let old = Date(timeIntervalSince1970: 1_000_000_000)
        try FileManager.default.setAttributes([.modificationDate: old], ofItemAtPath: path)
        #expect(try refusal() == whole)
    }

    @Test func refusesADamagedManifest() throws {
        #expect(
            try refusal(patched("interface=1", "interface:1")) == "its manifest is damaged at 'interface:1'. \(rebuild)"
        )
        #expect(
            try refusal(patched("interface=1", "interface=x")) == "its manifest is damaged at 'interface'. \(rebuild)")
        #expect(
            try refusal(patched("stage=misbehave filter", "stage=misbehave"))
                == "its manifest is damaged at 'stage=misbehave'. \(rebuild)")
    }

    @Test func namesTheStalePluginThatAChainAsksFor() throws {
        try workspace.write("plugins/\(name)", patched("interface=1", "interface=0"))
        try workspace.write("chain.json", Self.chain)
        for command in ["run", "check"] {
            let outcome = try framehost.run(
                [command, "chain.json", "--plugin-path", "plugins"], folder: workspace.folder.path)
            #expect(outcome.status == 2)
            #expect(
                outcome.errorLines == [
                    "chain.json:1:80: stages[1].use: plugins/\(name): has plugin interface 0, this framehost has 1: the plugin is older. \(rebuild)"
                ])
        }
    }

    /// Without the warning its author would wonder why the run shows nothing of the last change.
    @Test func warnsOnceOfARefusedPluginWhoseStageAnotherFileHas() throws {
        try workspace.write("stale/\(name)", patched("interface=1", "interface=0"))
        try workspace.write("good/\(name)", good)
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "use": "test-source", "size": "64x64", "frames": 3 }, { "id": "a", "use": "misbehave" },
              { "id": "b", "use": "misbehave" }, { "use": "null-sink" } ] }
            """)
        let folder = workspace.folder.path
        for command in ["run", "check"] {
            let outcome = try framehost.run(
                [command, "chain.json", "--plugin-path", "stale", "--plugin-path", "good"], folder: folder)
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(
                outcome.errorLines.filter { $0.contains(" comes from ") } == [
                    "warning: stale/\(name): has plugin interface 0, this framehost has 1: the plugin is older. \(rebuild) 'misbehave' comes from good/\(name) instead."
                ])
        }
        // Of a folder that only the environment names it says nothing: that may be set for several machines.
        let quiet = try framehost.run(
            ["check", "chain.json", "--plugin-path", "good"], environment: ["FRAMEHOST_PLUGIN_PATH": "stale"],
            folder: folder)
        #expect(quiet.status == 0 && !quiet.error.contains(" comes from "), "\(quiet.error)")
    }

    @Test func namesThePackageToBuildAgain() throws {
        let folder = "night-mode/.build/release"
        try workspace.write("\(folder)/libNightMode.so", patched("interface=1", "interface=0"))
        let list = try framehost.run("plugins", "--plugin-path", workspace.path(folder))
        #expect(
            list.output.contains(
                "Build it again: swift build -c release --package-path \(workspace.path("night-mode")).\n"))
    }

    // MARK: Files

    @Test func refusesATruncatedFileOfAnyLength() throws {
        let lengths = Array(0...70) + (1...60).map { good.count * $0 / 61 } + [good.count - 64, good.count - 1]
        for length in lengths {
            try workspace.write(
                "plugins/\(String(repeating: "0", count: 8 - "\(length)".count))\(length).so", good.prefix(length))
        }
        let environment = ["MISBEHAVE_MARKER": workspace.path("marker")]
        let list = try framehost.run(
            ["plugins", "--json", "--plugin-path", workspace.path("plugins")], environment: environment)
        #expect(list.status == 0)
        #expect(!workspace.exists("marker"))
        let skipped = try JSON(parsing: list.output)["skipped"].list
        #expect(skipped.count == lengths.count)
        for (fault, length) in zip(skipped, lengths.sorted()) {
            let whole =
                length < 4
                ? "is not a shared library (it does not start with the ELF magic)"
                : "is cut short: its section table points past its end"
            #expect(fault["what"].string == whole, "\(length) bytes")
            #expect(fault["remedy"].string?.isEmpty == false)
        }
    }

    @Test func survivesDamageAnywhereInTheHeaders() throws {
        // Every byte of the ELF header, and every byte of the section table's first entries, each set to 0xFF and to 0.
        let table = good[40..<48].enumerated().reduce(0) { $0 | Int($1.element) << (8 * $1.offset) }
        for place in Array(0..<64) + Array(table..<min(table + 320, good.count)) {
            for value in [UInt8(0), 0xff] {
                var data = good
                data[place] = value
                try workspace.write("plugins/\(place)-\(value).so", data)
            }
        }
        let list = try framehost.run(
            ["describe", "no-such-id", "--plugin-path", workspace.path("plugins")], timeout: 600)
        #expect(list.status == 2)
        #expect(list.errorLines.first?.hasPrefix("no-such-id: no such stage type or service.") == true)
    }

    @Test func refusesWhatIsNoELFFile() throws {
        #expect(
            try refusal(Data("#!/bin/sh\necho hello\n".utf8))
                == "is not a shared library (it does not start with the ELF magic). Remove it: rm DIR/plugins/\(name)."
        )
    }

    @Test func refusesOtherKindsOfELF() throws {
        var data = good
        data[4] = 1
        #expect(try refusal(data) == "is not a 64-bit little-endian shared library. \(rebuild)")
        data = good
        data[16] = 1
        #expect(try refusal(data) == "is not a 64-bit little-endian shared library. \(rebuild)")
        data = good
        data[18] = 40
        #expect(try refusal(data) == "was built for another processor. \(rebuild)")
    }

    @Test func refusesALibraryWithoutManifest() throws {
        let library = try Data(contentsOf: Repository.programFolder.appending(path: "libFrameCore.so"))
        #expect(
            try refusal(library)
                == "is a library but not a framehost plugin: it has no section .framehost. Add `plugins: [.plugin(name: \"FramehostManifest\", package: \"Core\")]` to its target and run swift build -c release, or remove it from the plugin folder."
        )
    }

    @Test func refusesALinkThatLeadsNowhereAndAFolder() throws {
        try workspace.write("plugins/note.txt", "")
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/nonexistent/plugin.so")
        #expect(
            try refusal()
                == "the link's target does not exist. Build the target, or remove the link: rm DIR/plugins/\(name).")
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        #expect(try refusal() == "must be a regular file. Remove it from the plugin folder.")
        try FileManager.default.removeItem(atPath: path)
        // Opening a pipe that nobody writes to must not wait.
        #expect(mkfifo(path, 0o644) == 0)
        #expect(try refusal() == "must be a regular file. Remove it from the plugin folder.")
    }

    /// Root may read everything, so the program runs as nobody there.
    @Test(
        .enabled(
            if: geteuid() != 0 || Tool(name: "setpriv").path != nil || Tool.isCI,
            "as root this needs setpriv (util-linux)"))
    func refusesAFileItMayNotRead() throws {
        try workspace.write("plugins/\(name)", good)
        for file in [try Repository.executable.lastPathComponent, "libFrameCore.so"] {
            // Not by this process: a program another test starts meanwhile would inherit the open file, which then is
            // busy.
            let copy = try Tool(name: "cp").run(
                Repository.programFolder.appending(path: file).path, workspace.path(file))
            #expect(copy.status == 0, "\(copy.error)")
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: workspace.folder.path)
        try FileManager.default.setAttributes([.posixPermissions: 0o000], ofItemAtPath: path)
        let command = [workspace.path("framehost"), "plugins", "--plugin-path", workspace.path("plugins")]
        let asNobody = ["--reuid=65534", "--regid=65534", "--clear-groups"]
        let outcome =
            geteuid() == 0
            ? try Tool(name: "setpriv").run(asNobody + command)
            : try Program(URL(fileURLWithPath: command[0])).run(Array(command[1...]))
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(
            outcome.lines.contains(
                "  \(path): the file cannot be read: Permission denied. Make it readable: chmod a+r \(path)."),
            "\(outcome.output)")
    }

    // MARK: Plugins that are loaded first

    @Test func refusesTwoPluginsWithOneID() throws {
        try workspace.write("plugins/a.so", good)
        try workspace.write("plugins/b.so", good)
        try workspace.write("chain.json", Self.chain)
        let sentence =
            "plugins/a.so: has the id 'misbehave', and so has plugins/b.so. Remove one of these files, or give one of the plugins another id."
        let outcome = try framehost.run(
            ["check", "chain.json", "--plugin-path", "plugins"], folder: workspace.folder.path)
        #expect(outcome.status == 2)
        #expect(outcome.errorLines == ["chain.json:1:80: stages[1].use: \(sentence)"])
        let list = try framehost.run(["plugins", "--plugin-path", "plugins"], folder: workspace.folder.path)
        #expect(list.lines.contains("  \(sentence)"))
        #expect(list.status == 0)
    }

    @Test func refusesAnOptionWithAReservedName() throws {
        let library = try PluginBuild.misbehave().appending(path: "libReservedPlugin.so")
        try workspace.write("plugins/libReservedPlugin.so", Data(contentsOf: library))
        let outcome = try framehost.run(["describe", "reserved", "--plugin-path", workspace.path("plugins")])
        #expect(outcome.status == 2)
        #expect(
            outcome.errorLines == [
                "\(workspace.path("plugins/libReservedPlugin.so")): the option 'link' of 'reserved' is a reserved key of the chain file. Give the option another name in the plugin, or tell the plugin's author."
            ])
    }

    @Test func refusesAManifestThatDoesNotTellTheTruth() throws {
        try workspace.write("plugins/\(name)", patched("stage=swallow transform", "stage=swallow filter"))
        let outcome = try framehost.run(["describe", "misbehave", "--plugin-path", workspace.path("plugins")])
        #expect(outcome.status == 2)
        #expect(
            outcome.errorLines == [
                "\(path): declares misbehave (filter), swallow (filter) and fall (filter) in its manifest but exports misbehave (filter), swallow (transform) and fall (filter). \(rebuild)"
            ])
    }

    @Test func namesAFolderThatCannotBeRead() throws {
        let folder = workspace.path("nowhere")
        let list = try framehost.run("plugins", "--plugin-path", folder)
        #expect(list.status == 2)
        #expect(
            list.errorLines == [
                "--plugin-path \(folder): does not exist. Build your plugin first (`swift build -c release`), or name another folder."
            ])
    }

    // MARK: A real other Core

    /// One private method more makes another Core: the plugin would call the wrong method.
    @Test func refusesAPluginOfAnotherCoreAndNothingOfItRuns() throws {
        let copy = PluginBuild.folder.appending(path: "other-core-tree")
        let oneMore = "\nextension Output { private func oneMore() -> Int { 1 } }\n"
        // In a folder of a folder.
        let changes = ["Runtime/Calling/Output.swift": oneMore]
        try update(copy.appending(path: "Sources/Core"), to: Repository.core, adding: changes)
        let mirror = copy.appending(path: "examples/plugins/mirror")
        try update(mirror, to: Repository.mirror)
        let folder = try PluginBuild.build(mirror, scratch: "other-core", isOptimised: false)
        try workspace.write(
            "chain.json",
            #"{ "stages": [ { "use": "test-source", "frames": 3 }, { "use": "mirror" }, { "use": "null-sink" } ] }"#)
        let outcome = try framehost.run(
            [workspace.path("chain.json"), "--plugin-path", folder.path], environment: ["LD_DEBUG": "files"])
        #expect(outcome.status == 2)
        // Among the dynamic linker's own lines, which begin with the process's number.
        let fault = outcome.errorLines.first { $0.hasPrefix(workspace.path("chain.json")) } ?? ""
        #expect(fault.contains("libMirrorPlugin.so: was built against another Core ("), "\(fault)")
        #expect(
            fault.contains("). Build it again: swift build -c release --package-path ")
                && fault.contains(
                    "If it is refused again, compare the Core folder in its Package.swift with `framehost --core-path`: where they differ, correct Package.swift; where they are the same, build framehost again in its folder: swift build -c release."
                ), "\(fault)")
        #expect(!outcome.error.contains("file=\(folder.path)/libMirrorPlugin.so"), "the dynamic linker saw it")
    }

    /// Makes `copy` one of `source` without its builds, and leaves the files alone that are so already: what was built
    /// of them in an earlier run of the tests stays good.
    private func update(_ copy: URL, to source: URL, adding: [String: String] = [:]) throws {
        let files = FileManager.default
        func names(_ folder: URL) throws -> Set<String> {
            guard files.fileExists(atPath: folder.path) else { return [] }
            return Set(try files.subpathsOfDirectory(atPath: folder.path).filter { !$0.hasPrefix(".build") })
        }
        let wanted = try names(source)
        for name in try names(copy).subtracting(wanted) { try? files.removeItem(at: copy.appending(path: name)) }
        for name in wanted {
            let (old, new) = (copy.appending(path: name), source.appending(path: name))
            guard try new.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true else { continue }
            let bytes = try Data(contentsOf: new) + Data((adding[name] ?? "").utf8)
            if (try? Data(contentsOf: old)) == bytes { continue }
            try files.createDirectory(at: old.deletingLastPathComponent(), withIntermediateDirectories: true)
            try bytes.write(to: old)
        }
    }
}
