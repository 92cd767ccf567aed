// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

/// A plugin that the tests of hot swaps build several times, with another version and another layout in it.
let package = Package(
    name: "swap",
    products: [.library(name: "SwapPlugin", type: .dynamic, targets: ["SwapPlugin"])],
    dependencies: [.package(path: "../../../../Sources/Core")],
    targets: [
        .target(
            name: "SwapPlugin",
            dependencies: [.product(name: "FrameCore", package: "Core")],
            plugins: [.plugin(name: "FramehostManifest", package: "Core")])
    ],
    swiftLanguageModes: [.v6]
)
