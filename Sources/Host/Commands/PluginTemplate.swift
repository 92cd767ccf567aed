// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The files of a new plugin package, with a stage of one kind. What differs from kind to kind is in ``StageTemplate``.
struct PluginTemplate {
    let id: String
    let kind: StageKind
    private let core: String
    /// `NightMode` from `night-mode`.
    private let type: String

    /// - Throws: ``FrameHostError`` for a name that is not a valid id, or whose type would hide another.
    init(_ kind: StageKind, id: String, core: String) throws {
        let words = id.split(separator: "-", omittingEmptySubsequences: false)
        let isKebab = words.allSatisfy { word in
            !word.isEmpty && word.utf8.allSatisfy { (97...122).contains($0) || (48...57).contains($0) }
        }
        guard isKebab, id.utf8.first.map({ (97...122).contains($0) }) ?? false, id.utf8.count <= 40 else {
            throw FrameHostError(
                .invalidConfiguration, place: "'\(id)'",
                what:
                    "must be an id in kebab-case: at most 40 lowercase letters, digits and single '-', with a letter first",
                remedy: "Write for example night-mode.")
        }
        self.id = id
        self.kind = kind
        self.core = core
        type = words.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
        guard !TakenTypeNames.ofCore.contains(type), !TakenTypeNames.ofSwift.contains(type) else {
            throw FrameHostError(
                .invalidConfiguration, place: "'\(id)'",
                what: "the Swift type of the stage would have the name \(type), which FrameCore or Swift uses already",
                remedy: "Choose another id, such as my-\(id).")
        }
    }

    /// Path in the package, text.
    var files: [(path: String, text: String)] {
        [
            ("Package.swift", package), ("Sources/\(module)/\(type).swift", source),
            ("Tests/\(module)Tests/\(type)Tests.swift", test),
            ("chain.json", chain), ("README.md", readme), (".gitignore", ".build/\nPackage.resolved\n"),
        ]
    }

    /// Module and type must have different names, or neither could be named from outside.
    private var module: String { "\(type)Plugin" }

    var nextSteps: String {
        """
        \(id)/ is ready. In it:
          swift test                                         runs its test
          swift build -c release                             builds the plugin
          framehost --plugin-path .build/release chain.json  runs the chain
        The \(kind.rawValue) is Sources/\(module)/\(type).swift.
        """
    }

    private var package: String {
        """
        // swift-tools-version: 6.2
        import PackageDescription

        let package = Package(
            name: "\(id)",
            products: [.library(name: "\(module)", type: .dynamic, targets: ["\(module)"])],
            dependencies: [.package(path: "\(core)")],
            targets: [
                .target(
                    name: "\(module)",
                    dependencies: [.product(name: "FrameCore", package: "Core")],
                    plugins: [.plugin(name: "FramehostManifest", package: "Core")]),
                .testTarget(name: "\(module)Tests", dependencies: ["\(module)", .product(name: "FrameCore", package: "Core")]),
            ]
        )

        """
    }

    private var stage: StageTemplate {
        switch kind {
        case .source: .source
        case .filter: .filter
        case .transform: .transform
        case .join: .join
        case .sink: .sink
        }
    }

    /// The text with the stage's own names filled in.
    private func filled(_ text: String) -> String {
        text.replacing("STAGETYPE", with: type).replacing("STAGEID", with: id)
    }

    private var source: String {
        filled(stage.source) + """


            /// The one symbol the host looks for.
            @c(framehost_plugin_v1)
            public func pluginEntry() -> OpaquePointer { PluginEntry.export(\(type).self) }

            """
    }

    private var test: String {
        """
        import FrameCore
        import Testing

        @testable import \(module)

        @Suite struct \(type)Tests {

        """ + filled(stage.test) + "\n}\n"
    }

    private var chain: String {
        "{\n  \"stages\": [\n" + filled(stage.chain) + "\n  ]\n}\n"
    }

    private var readme: String {
        """
        # \(id)

        A framehost \(kind.rawValue): \(stage.summary)

        | key | type | default | range | live | what |
        |---|---|---|---|---|---|
        \(stage.options)

        ```
        swift test
        swift build -c release
        framehost --plugin-path .build/release chain.json
        ```

        """
    }
}
