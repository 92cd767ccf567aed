// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Plugin packages outside and inside the tree, built as their author would.
@Suite struct PluginPackageTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    @Test func theMirrorExamplePassesItsTestsAndRuns() throws {
        let folder = try PluginBuild.mirror()
        let outcome = try framehost.run(
            ["chain.json", "--plugin-path", folder.path], folder: Repository.mirror.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.error.contains("90 delivered, 0 dropped."))
        let tests = try PluginBuild.swift("test", package: Repository.mirror)
        #expect(tests.status == 0, "\(tests.output)\n\(tests.error)")
        // A debug build of a plugin is refused by a release build of the program.
        let debug = try PluginBuild.libraries(of: Repository.mirror, "debug")
        let refused = try framehost.run(["chain.json", "--plugin-path", debug.path], folder: Repository.mirror.path)
        #expect(refused.status == 2)
        #expect(
            refused.errorLines.last?.contains(
                "libMirrorPlugin.so: is a debug build, but this framehost is a release build. Build it with `swift build -c release --package-path "
            ) == true,
            "\(refused.error)")
    }

    @Test func mirrorsThePicture() throws {
        let folder = try PluginBuild.mirror()
        func dump(_ middle: String) throws -> Data {
            let chain = """
                { "stages": [
                    { "use": "test-source", "size": "64x48", "pattern": "gradient", "number": false, "frames": 1 }, \(middle)
                    { "use": "null-sink", "dump": "out.yuv" } ] }
                """
            try workspace.write("chain.json", chain)
            let outcome = try framehost.run(
                ["chain.json", "--plugin-path", folder.path], folder: workspace.folder.path)
            #expect(outcome.status == 0, "\(outcome.error)")
            return try workspace.data("out.yuv")
        }
        let plain = try dump("")
        let mirrored = try dump(#"{ "use": "mirror" },"#)
        #expect(plain.count == 64 * 48 * 3 / 2)
        #expect(plain != mirrored)
        // Y, U and V rows are 64, 32 and 32 bytes.
        var expected = Data()
        for start in stride(from: 0, to: 64 * 48, by: 64) { expected += plain[start..<start + 64].reversed() }
        for start in stride(from: 64 * 48, to: plain.count, by: 32) { expected += plain[start..<start + 32].reversed() }
        #expect(mirrored == expected)
    }

    // MARK: Sources of an earlier commit

    @Test func whatNewWroteEarlierBuildsAndRuns() throws {
        let package = Repository.root.appending(path: "Tests/Fixtures/plugins/earlier")
        let folder = try PluginBuild.build(package)
        for kind in ["filter", "source", "transform", "join", "sink"] {
            let outcome = try framehost.run(
                ["chain-\(kind).json", "--plugin-path", folder.path], folder: package.path)
            #expect(outcome.status == 0, "\(kind): \(outcome.error)")
            #expect(outcome.error.contains(" delivered, 0 dropped."), "\(kind): \(outcome.error)")
        }
    }

    // MARK: framehost new filter

    @Test func aNewFilterPassesItsTestBuildsAndRuns() throws {
        let made = try framehost.run(["new", "filter", "night-mode"], folder: workspace.folder.path)
        #expect(made.status == 0, "\(made.error)")
        #expect(made.lines.first == "night-mode/ is ready. In it:")
        #expect(workspace.names == ["night-mode"])
        let package = workspace.folder.appending(path: "night-mode")
        #expect(
            workspace.names(below: "night-mode") == [
                ".gitignore", "Package.swift", "README.md", "Sources/NightModePlugin/NightMode.swift",
                "Tests/NightModePluginTests/NightModeTests.swift", "chain.json",
            ])
        let tests = try PluginBuild.swift("test", package: package)
        #expect(tests.status == 0, "\(tests.output)\n\(tests.error)")
        #expect((tests.output + tests.error).contains("Test run with 2 tests"))
        #expect(!(tests.output + tests.error).contains("warning:"), "\(tests.output)")
        let folder = try PluginBuild.build(package)
        let outcome = try framehost.run(["chain.json", "--plugin-path", folder.path], folder: package.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.error.contains("90 delivered, 0 dropped."))
        #expect(
            try framehost.run("describe", "night-mode", "--plugin-path", folder.path).output.contains(
                "strength: number, 0...1, live; default 0.5"))
    }

    /// One package for all kinds, so that Core is compiled once.
    @Test func aNewStageOfEachKindPassesItsTestsBuildsAndRuns() throws {
        let kinds = ["source": "Source", "filter": "Filter", "transform": "Transform", "join": "Join", "sink": "Sink"]
        var targets = ""
        for (kind, type) in kinds.sorted(by: { $0.key < $1.key }) {
            // Names of options that the templates' code has for other things.
            let option = ["source": "grey", "filter": "factor", "transform": "last", "join": "result", "sink": "mean"][
                kind]
            let made = try framehost.run(
                ["new", kind, "my-\(kind)", "--option", option ?? ""], folder: workspace.folder.path)
            #expect(made.status == 0, "\(made.error)")
            // The test of a join needs no option.
            for file in ["chain.json", "README.md", "Tests/My\(type)PluginTests/My\(type)Tests.swift"] {
                let text = String(decoding: try workspace.data("my-\(kind)/\(file)"), as: UTF8.self)
                #expect(!text.contains("STAGEOPTION"), "\(text)")
                #expect(text.contains("\(option ?? "?")") || kind == "join" && file.hasSuffix(".swift"), "\(text)")
            }
            let module = "My\(type)Plugin"
            for folder in ["Sources/\(module)", "Tests/\(module)Tests"] {
                let target = workspace.folder.appending(path: "all/\(folder)")
                try FileManager.default.createDirectory(
                    at: target.deletingLastPathComponent(), withIntermediateDirectories: true)
                try FileManager.default.moveItem(
                    at: workspace.folder.appending(path: "my-\(kind)/\(folder)"), to: target)
            }
            targets += """
                .target(
                    name: "\(module)", dependencies: [.product(name: "FrameCore", package: "Core")],
                    plugins: [.plugin(name: "FramehostManifest", package: "Core")]),
                .testTarget(
                    name: "\(module)Tests", dependencies: ["\(module)", .product(name: "FrameCore", package: "Core")],
                    linkerSettings: [.unsafeFlags(["-Xlinker", "--allow-multiple-definition"])]),

                """
        }
        try writeGuidesBlocks(to: "all/Sources/Guide")
        targets += #".target(name: "Guide", dependencies: [.product(name: "FrameCore", package: "Core")]),"#
        let products = kinds.values.sorted().map {
            #".library(name: "My\#($0)Plugin", type: .dynamic, targets: ["My\#($0)Plugin"])"#
        }
        try workspace.write(
            "all/Package.swift",
            """
            // swift-tools-version: 6.2
            import PackageDescription

            let package = Package(
                name: "all", products: [\(products.joined(separator: ", "))],
                dependencies: [.package(path: "\(Repository.core.path)")],
                targets: [
            \(targets)
                ],
                swiftLanguageModes: [.v6])
            """)
        let package = workspace.folder.appending(path: "all")
        let tests = try PluginBuild.swift("test", package: package)
        #expect(tests.status == 0, "\(tests.output)\n\(tests.error)")
        #expect((tests.output + tests.error).contains("Test run with 11 tests"), "\(tests.output)")
        let folder = try PluginBuild.build(package)
        for kind in kinds.keys.sorted() {
            let outcome = try framehost.run(
                ["chain.json", "--plugin-path", folder.path],
                folder: workspace.folder.appending(path: "my-\(kind)").path)
            #expect(outcome.status == 0, "\(kind): \(outcome.error)")
            #expect(outcome.errorLines.last?.hasPrefix("Done: ") == true, "\(kind): \(outcome.error)")
        }
    }

    /// Blocks of docs/writing-a-plugin.md that begin with "// in a KIND", each in a class of that kind: they compile.
    private func writeGuidesBlocks(to folder: String) throws {
        let guide = try String(contentsOf: Repository.root.appending(path: "docs/writing-a-plugin.md"), encoding: .utf8)
        let blocks = guide.components(separatedBy: "```swift\n").dropFirst().compactMap {
            $0.components(separatedBy: "\n```").first
        }
        var number = 0
        for block in blocks {
            guard let start = block.firstRange(of: "// in a ") else { continue }
            number += 1
            let kind = block[start.upperBound...].prefix { $0.isLetter }
            let before = block[..<start.lowerBound]
            let needed =
                switch kind {
                case "Transform": "func negotiate(_ input: MediaFormat) throws -> MediaFormat { input }"
                case "Join": "func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat { inputs[0] }"
                default: ""
                }
            try workspace.write(
                "\(folder)/Guide\(number).swift",
                """
                import FrameCore
                enum Block\(number) {
                \(before)
                final class Stage: \(kind) {
                    static let info = StageInfo(id: "guide", summary: "Of the guide.", input: .video(.gray8))
                    struct Options: StageOptions { @Option(help: "Count.", range: 1...30) var frames = 1 }
                    var options: Options
                    let context: StageContext
                    var total = 0
                    init(options: Options, context: StageContext) {
                        self.options = options
                        self.context = context
                    }
                    \(needed)
                \(block[start.lowerBound...])
                }
                }
                """)
        }
        #expect(number >= 4)
    }

    @Test(arguments: [
        "Night", "night_mode", "-night", "night-", "night--mode", "9lives", "nächte", "",
        String(repeating: "a", count: 41), "../x", "a/b",
    ])
    func refusesNamesThatAreNoIDs(name: String) throws {
        let outcome = try framehost.run(["new", "filter", "--", name], folder: workspace.folder.path)
        #expect(outcome.status == 2)
        #expect(
            outcome.errorLines == [
                "'\(name)': must be an id in kebab-case: at most 40 lowercase letters, digits and single '-', with a letter first. Write for example night-mode."
            ])
        #expect(workspace.names.isEmpty)
    }

    @Test(arguments: [
        ("frame", "Frame"), ("media-time", "MediaTime"), ("j-s-o-n-node", "JSONNode"), ("u-int8", "UInt8"),
    ])
    func refusesAnIDWhoseTypeWouldHideAnother(name: String, type: String) throws {
        let outcome = try framehost.run(["new", "filter", name], folder: workspace.folder.path)
        #expect(outcome.status == 2)
        #expect(
            outcome.errorLines == [
                "'\(name)': the Swift type of the stage would have the name \(type), which FrameCore or Swift uses already. Choose another id, such as my-\(name)."
            ])
        #expect(workspace.names.isEmpty)
    }

    @Test(arguments: [
        ("Strength", "must be a name of at most 40 letters and digits, with a lowercase letter first"),
        ("", "must be a name of at most 40 letters and digits, with a lowercase letter first"),
        ("a-b", "must be a name of at most 40 letters and digits, with a lowercase letter first"),
        ("if", "is a word of Swift or of StageOptions"), ("from", "is a key that each stage has"),
        ("size", "is another option of this stage"),
    ])
    func refusesNamesThatNoOptionCanHave(name: String, fault: String) throws {
        let outcome = try framehost.run(
            ["new", "source", "my-source", "--option", name], folder: workspace.folder.path)
        #expect(outcome.status == 2)
        #expect(outcome.errorLines == ["--option \"\(name)\": \(fault). Write for example frames."])
        #expect(workspace.names.isEmpty)
    }

    /// The names in Sources/Host/Commands/TakenTypeNames.swift.
    private func takenNames() throws -> (core: Set<String>, swift: Set<String>) {
        let list = try String(
            contentsOf: Repository.root.appending(path: "Sources/Host/Commands/TakenTypeNames.swift"), encoding: .utf8)
        let parts = list.components(separatedBy: "\"\"\"")
        try #require(parts.count == 5)
        func words(_ text: String) -> Set<String> {
            Set(text.split(whereSeparator: \.isWhitespace).map { String($0) })
        }
        return (words(parts[1]), words(parts[3]))
    }

    /// The names that `framehost new` refuses are those of Core's public types.
    @Test func knowsThePublicTypesOfCore() throws {
        let known = try takenNames().core
        let declaration =
            #/(?m)^(?:@\w+(?:\([^)\n]*\))? )*public (?:(?:final|indirect) )*(?:class|struct|enum|protocol|typealias|actor) (\w+)/#
        var found = Set<String>()
        let files = try #require(FileManager.default.enumerator(at: Repository.core, includingPropertiesForKeys: nil))
        for case let file as URL in files where file.pathExtension == "swift" && !file.path.contains("/.build/") {
            let text = try String(contentsOf: file, encoding: .utf8)
            for match in text.matches(of: declaration) { found.insert(String(match.1)) }
        }
        #expect(known == found, "\(known.symmetricDifference(found).sorted())")
    }

    /// A stage of one of these names would hide the type that its own code or its test means.
    @Test(arguments: ["source", "filter", "transform", "join", "sink"])
    func knowsTheTypesThatANewStageNames(kind: String) throws {
        let made = try framehost.run(["new", kind, "own-\(kind)"], folder: workspace.folder.path)
        #expect(made.status == 0, "\(made.error)")
        var named = Set<String>()
        for file in workspace.names(below: "own-\(kind)") where file.hasSuffix(".swift") && file != "Package.swift" {
            // Comments and texts name things in words.
            let code = String(decoding: try workspace.data("own-\(kind)/\(file)"), as: UTF8.self)
                .replacing(#/\/\/.*/#, with: "").replacing(#/"(?:\\.|[^"\\\n])*"/#, with: "")
            for match in code.matches(of: #/\b[A-Z]\w*/#) { named.insert(String(match.output)) }
        }
        let type = "Own\(kind.prefix(1).uppercased())\(kind.dropFirst())"
        #expect(named.isSuperset(of: [type, "\(type)Plugin", "\(type)Tests", "StageInfo", "Testing"]), "\(named)")
        let taken = try takenNames()
        let others = named.subtracting([type, "\(type)Plugin", "\(type)Tests", "Options"])
        #expect(others.subtracting(taken.core).subtracting(taken.swift).sorted() == [])
    }

    @Test func refusesAnIDThatAnotherPluginHas() throws {
        let outcome = try framehost.run(["new", "filter", "convert"], folder: workspace.folder.path)
        #expect(outcome.status == 2)
        #expect(outcome.error.contains("'convert': is already the id of a stage type of "), "\(outcome.error)")
        #expect(workspace.names.isEmpty)
    }

    @Test func leavesAFolderThatIsThereAlone() throws {
        try workspace.write("night-mode/mine.txt", "mine")
        let outcome = try framehost.run(["new", "filter", "night-mode"], folder: workspace.folder.path)
        #expect(outcome.status == 2)
        #expect(
            outcome.errorLines == [
                "night-mode: is already in this folder. Choose another name, or move it away. Nothing was written."
            ])
        #expect(workspace.names(below: "night-mode") == ["mine.txt"])
    }

    @Test func saysWhereCoreIsMissing() throws {
        let outcome = try framehost.run(
            ["new", "filter", "night-mode", "--core", "nowhere"], folder: workspace.folder.path)
        #expect(outcome.status == 2)
        #expect(
            outcome.errorLines == [
                "--core nowhere: has no Package.swift that can be read. Name framehost's folder Sources/Core."
            ])
        #expect(workspace.names.isEmpty)
    }
}

/// One libFrameCore.so in the process, whoever built the plugin.
@Suite struct SharedCoreTests {
    @Test func aPluginOfAThirdPackageSharesTheProgramsCore() throws {
        let workspace = try Workspace()
        let folder = try PluginBuild.mirror()
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "use": "test-source", "size": "64x64", "live": true }, { "use": "mirror" }, { "use": "null-sink" } ] }
            """)
        let program = try Program.framehost.start(
            ["chain.json", "--events", "--plugin-path", folder.path], folder: workspace.folder.path)
        program.closeInput()
        try program.waitForOutput(#""state":"streaming""#)
        let files = try mappedFiles(program.pid)
        #expect(
            files.filter { $0.hasSuffix("/libFrameCore.so") } == [
                try Repository.programFolder.path + "/libFrameCore.so"
            ])
        #expect(files.contains { $0.hasSuffix("/libMirrorPlugin.so") })
        let programFolder = try Repository.programFolder.path
        // Nor is there any of SwiftNIO: the host links no network code.
        for file in files where file.hasPrefix(Repository.root.path) || file.hasPrefix(programFolder) {
            #expect(
                try Data(contentsOf: URL(fileURLWithPath: file)).firstRange(of: Data("7NIOCore".utf8)) == nil, "\(file)"
            )
        }
        program.send(SIGINT)
        #expect(try program.finish().status == 0)
    }

    /// Paths of all files in the process's address space; proc(5), /proc/pid/maps.
    private func mappedFiles(_ pid: pid_t) throws -> Set<String> {
        // Foundation's String(contentsOfFile:) reads only the first part of a file without a size.
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/\(pid)/maps"))
        let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        return Set(
            text.split(separator: "\n").compactMap { line in
                line.firstIndex(of: "/").map { String(line[$0...]) }
            })
    }
}
