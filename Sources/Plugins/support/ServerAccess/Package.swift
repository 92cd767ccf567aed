// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// A package of its own, since the RTSP sink, the control server and ONVIF, which are packages of their own, use it
// (docs/design/014-packages.md).
import PackageDescription

let package = Package(
    name: "ServerAccess",
    products: [.library(name: "ServerAccess", type: .static, targets: ["ServerAccess"])],
    dependencies: [.package(path: "../../../Core"), .package(path: "../Network")],
    targets: [
        .target(
            name: "ServerAccess",
            dependencies: [
                "CNettle", .product(name: "FrameCore", package: "Core"),
                .product(name: "FrameNetwork", package: "Network"),
            ],
            path: ".", exclude: ["README.md", "Shims"]),
        .systemLibrary(
            name: "CNettle", path: "Shims/CNettle", pkgConfig: "nettle", providers: [.apt(["nettle-dev"])]),
    ],
    swiftLanguageModes: [.v6]
)
