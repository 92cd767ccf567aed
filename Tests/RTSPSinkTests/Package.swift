// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// The RTSP sink's tests, for the thread sanitizer: it builds every module anew, and with all plugins that would take
// several times as long. The root package has the same tests, without sanitizers.
import PackageDescription

let package = Package(
    name: "RTSPSinkTests",
    dependencies: [
        .package(path: "../../Sources/Core"), .package(path: "../../Sources/Plugins/sinks/RTSPSink"),
        .package(path: "../../Sources/Plugins/support/ServerAccess"),
    ],
    targets: [
        .testTarget(
            name: "RTSPSinkTests",
            dependencies: [
                .product(name: "FrameCore", package: "Core"), .product(name: "RTSPSink", package: "RTSPSink"),
                .product(name: "ServerAccess", package: "ServerAccess"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
