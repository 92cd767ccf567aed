// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// FrameCore is a package of its own so that host and plugins share one libFrameCore.so (docs/design/002-one-core.md).
import PackageDescription

/// With FRAMEHOST_TESTABLE, as `make test` builds: the optimised modules let tests import what is internal in them.
let testable: [SwiftSetting] =
    Context.environment["FRAMEHOST_TESTABLE"] == nil
    ? []
    : [
        .unsafeFlags(["-enable-testing"], .when(configuration: .release)),
        .define("FRAMEHOST_TESTABLE"),
    ]

let package = Package(
    name: "Core",
    products: [
        .library(name: "FrameCore", type: .dynamic, targets: ["FrameCore", "FrameSupport"]),
        .plugin(name: "FramehostManifest", targets: ["FramehostManifest"]),
    ],
    targets: [
        .target(
            name: "FrameCore",
            dependencies: ["FrameSupport", "CStageLink"],
            path: ".",
            exclude: ["Tools", "Plugins", "FrameSupport", "StageLink"],
            sources: [
                "JSON", "Options", "Errors", "Events", "Files", "Media", "Drawing", "Pool", "Link", "Stage", "Service",
                "Rules", "Plan", "Isolation",
                "Runtime",
                "Support", "Trace",
            ],
            swiftSettings: testable,
            plugins: ["FramehostManifest"]),
        // Below FrameCore, for it and for built-in plugins: the same product, so its code is in the process once.
        .target(name: "FrameSupport", path: "FrameSupport", swiftSettings: testable),
        // What both sides of an isolated stage see, and calls that Swift does not import.
        .target(name: "CStageLink", path: "StageLink"),
        .executableTarget(name: "manifest-tool", path: "Tools/ManifestTool"),
        .plugin(
            name: "FramehostManifest", capability: .buildTool(), dependencies: ["manifest-tool"],
            path: "Plugins/FramehostManifest"),
    ],
    swiftLanguageModes: [.v6]
)
