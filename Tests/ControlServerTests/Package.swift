// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// The control server's tests, for the thread sanitizer; the root package has the same tests, without sanitizers
// (docs/design/014-packages.md).
import PackageDescription

let package = Package(
    name: "ControlServerTests",
    dependencies: [
        .package(path: "../../Sources/Core"), .package(path: "../../Sources/Plugins/services/ControlServer"),
        .package(path: "../../Sources/Plugins/support/ServerAccess"),
    ],
    targets: [
        .testTarget(
            name: "ControlServerTests",
            dependencies: [
                .product(name: "FrameCore", package: "Core"),
                .product(name: "ControlServer", package: "ControlServer"),
                .product(name: "ServerAccess", package: "ServerAccess"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
