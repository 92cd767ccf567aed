// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The files of a new plugin package, with a stage of one kind. What differs from kind to kind is in ``StageTemplate``.
struct PluginTemplate {
    let id: String
    let kind: StageKind
    private let core: String
    private let stage: StageTemplate
    /// The name of the stage's main option, in its source, test, chain and README.
    private let option: String
    /// `NightMode` from `night-mode`.
    private let type: String

    /// - Parameter option: The name of the stage's main option; nil for the template's own.
    /// - Throws: ``FrameHostError`` for a name that is not a valid id, or whose type would hide another, and for a name of
    ///   an option that cannot be one.
    init(_ kind: StageKind, id: String, option: String? = nil, core: String) throws {
        try Self.checkID(id)
        self.id = id
        self.kind = kind
        self.core = core
        stage = Self.stage(of: kind)
        self.option = try option.map { try Self.checked($0, of: kind) } ?? stage.option
        type = id.split(separator: "-").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
        guard !TakenTypeNames.ofCore.contains(type), !TakenTypeNames.ofSwift.contains(type) else {
            throw FrameHostError(
                .invalidConfiguration, place: "'\(id)'",
                what: "the Swift type of the stage would have the name \(type), which FrameCore or Swift uses already",
                remedy: "Choose another id, such as my-\(id).")
        }
    }

    /// - Throws: ``FrameHostError`` for a name that is not a valid id.
    static func checkID(_ id: String) throws {
        let isKebab = id.split(separator: "-", omittingEmptySubsequences: false).allSatisfy { word in
            !word.isEmpty && word.utf8.allSatisfy { (97...122).contains($0) || (48...57).contains($0) }
        }
        guard isKebab, id.utf8.first.map({ (97...122).contains($0) }) ?? false, id.utf8.count <= 40 else {
            throw FrameHostError(
                .invalidConfiguration, place: "'\(id)'",
                what:
                    "must be an id in kebab-case: at most 40 lowercase letters, digits and single '-', with a letter first",
                remedy: "Write for example night-mode.")
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

    private static func stage(of kind: StageKind) -> StageTemplate {
        switch kind {
        case .source: .source
        case .filter: .filter
        case .transform: .transform
        case .join: .join
        case .sink: .sink
        }
    }

    /// Words of Swift that cannot be the name of a property without quotes, or that mean something else behind a dot.
    private static let swiftWords: Set<String> = [
        "as", "associatedtype", "break", "case", "catch", "class", "continue", "default", "defer", "deinit", "do",
        "else",
        "enum", "extension", "fallthrough", "false", "fileprivate", "for", "func", "guard", "if", "import", "in",
        "init",
        "inout", "internal", "is", "let", "nil", "operator", "precedencegroup", "private", "protocol", "public",
        "repeat", "rethrows", "return", "self", "static", "struct", "subscript", "super", "switch", "throw", "throws",
        "true", "try", "typealias", "var", "where", "while", "validate",
    ]

    private static func checked(_ option: String, of kind: StageKind) throws -> String {
        func refusal(_ what: String) -> FrameHostError {
            FrameHostError(
                .invalidConfiguration, place: "--option \(JSONNode(.string(option)).text())", what: what,
                remedy: "Write for example \(stage(of: kind).option).")
        }
        let isName = option.utf8.allSatisfy { byte in
            (97...122).contains(byte) || (65...90).contains(byte) || (48...57).contains(byte)
        }
        guard isName, option.utf8.first.map({ (97...122).contains($0) }) ?? false, option.utf8.count <= 40 else {
            throw refusal("must be a name of at most 40 letters and digits, with a lowercase letter first")
        }
        if swiftWords.contains(option) { throw refusal("is a word of Swift or of StageOptions") }
        if ChainKeys.stage.keys.contains(where: { $0.name == option }) { throw refusal("is a key that each stage has") }
        if stage(of: kind).otherOptions.contains(option) { throw refusal("is another option of this stage") }
        return option
    }

    /// The text with the stage's own names filled in.
    private func filled(_ text: String) -> String {
        text.replacing("STAGEOPTION", with: option).replacing("STAGETYPE", with: type).replacing("STAGEID", with: id)
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
        \(filled(stage.options))

        ```
        swift test
        swift build -c release
        framehost --plugin-path .build/release chain.json
        ```

        """
    }
}
