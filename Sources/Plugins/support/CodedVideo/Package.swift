// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// A package of its own, since the plugins that are packages of their own use it too (docs/design/038-coded-video.md).
import PackageDescription

let package = Package(
    name: "CodedVideo",
    products: [.library(name: "CodedVideo", type: .static, targets: ["CodedVideo"])],
    dependencies: [.package(path: "../../../Core")],
    targets: [
        .target(
            name: "CodedVideo", dependencies: [.product(name: "FrameCore", package: "Core")], path: ".",
            exclude: ["README.md"])
    ],
    swiftLanguageModes: [.v6]
)
