// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// A package of its own, since the program and the control server, which is a package of its own, use it
// (docs/design/014-packages.md).
import PackageDescription

let package = Package(
    name: "Rates",
    products: [.library(name: "Rates", type: .static, targets: ["Rates"])],
    dependencies: [.package(path: "../../../Core")],
    targets: [
        .target(
            name: "Rates", dependencies: [.product(name: "FrameCore", package: "Core")], path: ".",
            exclude: ["README.md"])
    ],
    swiftLanguageModes: [.v6]
)
