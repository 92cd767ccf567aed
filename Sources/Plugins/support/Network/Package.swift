// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// The network stack is one dynamic library in the process: nothing else lists swift-nio or hummingbird
// (docs/design/006-rtsp-sink.md, docs/design/021-live-operation.md).
import PackageDescription

/// With FRAMEHOST_WITHOUT_HTTP, for the RTSP sink's tests under the thread sanitizer: only what that sink uses. A
/// sanitizer builds every module anew.
let hasHTTP = Context.environment["FRAMEHOST_WITHOUT_HTTP"] == nil

let http = Target.target(
    name: "FrameHTTP",
    dependencies: [
        "FrameNetwork",
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOWebSocket", package: "swift-nio"),
        .product(name: "NIOHTTPTypes", package: "swift-nio-extras"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "HummingbirdCore", package: "hummingbird"),
    ])
let httpPackages: [Package.Dependency] = [
    .package(url: "https://github.com/apple/swift-nio-extras", exact: "1.35.2"),
    .package(url: "https://github.com/apple/swift-http-types", exact: "1.8.0", traits: []),
    .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
    // Without its traits: they bring Foundation and swift-configuration.
    .package(url: "https://github.com/hummingbird-project/hummingbird", exact: "2.28.1", traits: []),
]

let package = Package(
    name: "Network",
    products: [
        .library(name: "FrameNetwork", type: .dynamic, targets: ["FrameNetwork"] + (hasHTTP ? ["FrameHTTP"] : []))
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", exact: "2.37.6"),
    ] + (hasHTTP ? httpPackages : []),
    targets: [
        .target(
            name: "FrameNetwork",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ])
    ] + (hasHTTP ? [http] : []),
    swiftLanguageModes: [.v6]
)
