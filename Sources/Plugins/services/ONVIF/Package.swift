// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// A package of its own, as the control server is: its tests can be built without the other plugins
// (docs/design/014-packages.md).
import PackageDescription

/// With FRAMEHOST_TESTABLE, as `make test` builds: the optimised modules let tests import what is internal in them.
let testable: [SwiftSetting] =
    Context.environment["FRAMEHOST_TESTABLE"] == nil
    ? [] : [.unsafeFlags(["-enable-testing"], .when(configuration: .release))]

let package = Package(
    name: "ONVIF",
    products: [.library(name: "ONVIF", type: .dynamic, targets: ["ONVIF"])],
    dependencies: [
        .package(path: "../../../Core"), .package(path: "../../support/Network"),
        .package(path: "../../support/ServerAccess"),
    ],
    targets: [
        .target(
            name: "ONVIF",
            dependencies: [
                "CXML2", .product(name: "FrameCore", package: "Core"),
                .product(name: "FrameNetwork", package: "Network"),
                .product(name: "ServerAccess", package: "ServerAccess"),
            ],
            path: ".",
            exclude: ["README.md", "Shims"],
            swiftSettings: testable,
            plugins: [.plugin(name: "FramehostManifest", package: "Core")]),
        .target(
            name: "CXML2", path: "Shims/CXML2",
            cSettings: [.unsafeFlags(["-isystem", "/usr/include/libxml2"])], linkerSettings: [.linkedLibrary("xml2")]),
    ],
    swiftLanguageModes: [.v6]
)
