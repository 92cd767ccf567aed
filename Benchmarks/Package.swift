// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// A package of its own, as a user's plugin is: what the benchmarks need beside the shipped plugins.
import PackageDescription

let names = ["PassThroughPlugin", "FrameLoopPlugin", "AccessUnitLoopPlugin", "SnowPlugin", "ChangesPlugin"]

let package = Package(
    name: "Benchmarks",
    products: names.map { .library(name: $0, type: .dynamic, targets: [$0]) },
    dependencies: [.package(path: "../Sources/Core")],
    targets: names.map {
        .target(
            name: $0,
            dependencies: [.product(name: "FrameCore", package: "Core")],
            plugins: [.plugin(name: "FramehostManifest", package: "Core")])
    },
    swiftLanguageModes: [.v6]
)
