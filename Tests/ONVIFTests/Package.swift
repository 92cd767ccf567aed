// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// The tests of ONVIF alone; the root package has the same tests (docs/design/014-packages.md).
import PackageDescription

let package = Package(
    name: "ONVIFTests",
    dependencies: [
        .package(path: "../../Sources/Core"), .package(path: "../../Sources/Plugins/services/ONVIF"),
        .package(path: "../../Sources/Plugins/support/ServerAccess"),
    ],
    targets: [
        .testTarget(
            name: "ONVIFTests",
            dependencies: [
                .product(name: "FrameCore", package: "Core"), .product(name: "ONVIF", package: "ONVIF"),
                .product(name: "ServerAccess", package: "ServerAccess"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
