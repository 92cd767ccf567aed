// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

/// Plugins with faults on purpose, for the tests end to end.
let package = Package(
    name: "misbehave",
    products: [
        .library(name: "MisbehavePlugin", type: .dynamic, targets: ["MisbehavePlugin"]),
        .library(name: "ReservedPlugin", type: .dynamic, targets: ["ReservedPlugin"]),
    ],
    dependencies: [.package(path: "../../../../Sources/Core")],
    targets: [
        .target(name: "CMarker"),
        .target(
            name: "MisbehavePlugin",
            dependencies: [.product(name: "FrameCore", package: "Core"), "CMarker"],
            plugins: [.plugin(name: "FramehostManifest", package: "Core")]),
        .target(
            name: "ReservedPlugin",
            dependencies: [.product(name: "FrameCore", package: "Core")],
            plugins: [.plugin(name: "FramehostManifest", package: "Core")]),
    ],
    swiftLanguageModes: [.v6]
)
