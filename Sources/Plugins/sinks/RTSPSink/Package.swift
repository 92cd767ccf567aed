// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// A package of its own, so that its tests can be built without the other plugins: the thread sanitizer builds every
// module anew (docs/design/014-packages.md).
import PackageDescription

/// With FRAMEHOST_TESTABLE, as `make test` builds: the optimised modules let tests import what is internal in them.
let testable: [SwiftSetting] =
    Context.environment["FRAMEHOST_TESTABLE"] == nil
    ? [] : [.unsafeFlags(["-enable-testing"], .when(configuration: .release))]

let package = Package(
    name: "RTSPSink",
    products: [.library(name: "RTSPSink", type: .dynamic, targets: ["RTSPSink"])],
    dependencies: [
        .package(path: "../../../Core"), .package(path: "../../support/CodedVideo"),
        .package(path: "../../support/Network"), .package(path: "../../support/ServerAccess"),
    ],
    targets: [
        .target(
            name: "RTSPSink",
            dependencies: [
                "CDatagram",
                .product(name: "CodedVideo", package: "CodedVideo"),
                .product(name: "FrameCore", package: "Core"),
                .product(name: "FrameNetwork", package: "Network"),
                .product(name: "ServerAccess", package: "ServerAccess"),
            ],
            path: ".",
            exclude: ["README.md", "Shims"],
            swiftSettings: testable,
            plugins: [.plugin(name: "FramehostManifest", package: "Core")]),
        .target(name: "CDatagram", path: "Shims/CDatagram"),
    ],
    swiftLanguageModes: [.v6]
)
