import FrameCore

/// The files of a new plugin package.
struct PluginTemplate {
    let id: String
    private let core: String
    /// `NightMode` from `night-mode`.
    private let type: String

    /// - Throws: ``FrameHostError`` for a name that is no id.
    init(id: String, core: String) throws {
        let words = id.split(separator: "-", omittingEmptySubsequences: false)
        let isKebab = words.allSatisfy { word in
            !word.isEmpty && word.utf8.allSatisfy { (97...122).contains($0) || (48...57).contains($0) }
        }
        guard isKebab, id.utf8.first.map({ (97...122).contains($0) }) ?? false, id.utf8.count <= 40 else {
            throw FrameHostError(
                .invalidConfiguration, place: "'\(id)'", what: "is no id in kebab-case", remedy: "Use small letters, digits and '-': night-mode.")
        }
        self.id = id
        self.core = core
        type = words.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }

    /// Path in the package, text.
    var files: [(path: String, text: String)] {
        [
            ("Package.swift", package), ("Sources/\(module)/\(type).swift", source), ("Tests/\(module)Tests/\(type)Tests.swift", test),
            ("chain.json", chain), ("README.md", readme), (".gitignore", ".build/\nPackage.resolved\n"),
        ]
    }

    /// Module and type names differ, or neither could be named from outside.
    private var module: String { "\(type)Plugin" }

    var farewell: String {
        """
        \(id)/ is ready. In it:
          swift test                                        its own test
          swift build -c release                            the plugin
          framehost --plugin-path .build/release chain.json run it
        The filter is Sources/\(module)/\(type).swift.
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

    private var source: String {
        """
        import FrameCore

        /// Darkens the picture.
        ///
        /// Takes and gives I420, NV12 or GRAY8; works on the luma plane in place. Size, PTS and metadata pass through unchanged.
        public final class \(type): Filter {
            public static let info = StageInfo(
                id: "\(id)", summary: "Darkens the picture.",
                input: .video(.i420, .nv12, .gray8), output: .sameAsInput, access: .modify)

            public struct Options: StageOptions {
                @Option(help: "How dark: 0 leaves the picture as it is, 1 makes it black.", range: 0...1, live: true)
                public var strength = 0.5

                public init() {}
            }

            public var options: Options

            /// [control thread] Opens nothing; options arrive checked.
            public init(options: Options, context: StageContext) { self.options = options }

            /// [stage thread] One frame in, the same frame out. Does not block or allocate.
            public func process(_ frame: inout Frame) throws -> Verdict {
                let factor = Int((1 - options.strength) * 256)
                frame.withMutablePlane(0) { luma in
                    for y in 0..<luma.height {
                        luma.withRow(y) { row in
                            for x in row.indices { row[x] = UInt8(16 + (max(Int(row[x]), 16) - 16) * factor / 256) }
                        }
                    }
                }
                return .forward
            }
        }

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
            @Test func halvesTheLuma() throws {
                let format = VideoFormat(.i420, width: 64, height: 48, frameRate: Rational(30))
                let driver = try StageDriver(\(type).self, options: #"{ "strength": 0.5 }"#, input: .video(format))
                try driver.send(
                    driver.makeFrame { frame in
                        frame.withMutablePlane(0) { luma in
                            for y in 0..<luma.height { luma.row(y).update(repeating: 216) }
                        }
                    })
                guard let frame = driver.takeFrame() else {
                    Issue.record("no frame came out")
                    return
                }
                let sample = frame.withPlane(0) { $0.row(0)[0] }
                #expect(sample == 116)
            }

            @Test func refusesAStrengthAboveOne() {
                #expect(throws: FrameHostErrors.self) {
                    try StageDriver(\(type).self, options: #"{ "strength": 2 }"#, input: .video(VideoFormat(.i420, width: 2, height: 2)))
                }
            }
        }

        """
    }

    private var chain: String {
        """
        {
          "stages": [
            { "use": "test-source", "size": "640x360", "rate": 30, "frames": 90 },
            { "use": "\(id)", "strength": 0.5 },
            { "use": "null-sink" }
          ]
        }

        """
    }

    private var readme: String {
        """
        # \(id)

        A framehost filter: darkens the picture.

        | key | type | default | range | live | what |
        |---|---|---|---|---|---|
        | `strength` | number | 0.5 | 0...1 | yes | How dark: 0 leaves the picture as it is, 1 makes it black. |

        ```
        swift test
        swift build -c release
        framehost --plugin-path .build/release chain.json
        ```

        """
    }
}
