// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// What `framehost new` wrote on 2026-11-29, as it was, and built against Core of today: sources of plugins must go on
// compiling.
import PackageDescription

let kinds = ["Filter", "Source", "Transform", "Join", "Sink"]

let package = Package(
    name: "earlier",
    products: kinds.map {
        .library(name: "Earlier\($0)Plugin", type: .dynamic, targets: ["Earlier\($0)Plugin"])
    },
    dependencies: [.package(path: "../../../../Sources/Core")],
    targets: kinds.map {
        .target(
            name: "Earlier\($0)Plugin", dependencies: [.product(name: "FrameCore", package: "Core")],
            plugins: [.plugin(name: "FramehostManifest", package: "Core")])
    }
)
