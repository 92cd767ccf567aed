// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

let package = Package(
    name: "mirror",
    products: [.library(name: "MirrorPlugin", type: .dynamic, targets: ["MirrorPlugin"])],
    dependencies: [.package(path: "../../../Sources/Core")],
    targets: [
        .target(
            name: "MirrorPlugin",
            dependencies: [.product(name: "FrameCore", package: "Core")],
            plugins: [.plugin(name: "FramehostManifest", package: "Core")]),
        .testTarget(
            name: "MirrorPluginTests", dependencies: ["MirrorPlugin", .product(name: "FrameCore", package: "Core")]),
    ],
    swiftLanguageModes: [.v6]
)
