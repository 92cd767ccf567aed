// swift-tools-version: 6.2
// The RTSP sink and its tests alone, for the sanitizers: with all plugins the build would take several times as long.
// The folders are links to where sources and tests live; without sanitizers the same tests run with those of the other
// plugins.
import PackageDescription

let package = Package(
    name: "RTSPSinkTests",
    dependencies: [.package(path: "../../Sources/Core"), .package(path: "../../Sources/Plugins/Network")],
    targets: [
        .target(name: "CDatagram", path: "Links/CDatagram"),
        .systemLibrary(name: "CNettle", path: "Links/CNettle", pkgConfig: "nettle", providers: [.apt(["nettle-dev"])]),
        .target(
            name: "RTSPSink",
            dependencies: [
                "CDatagram", "CNettle", .product(name: "FrameCore", package: "Core"),
                .product(name: "FrameNetwork", package: "Network"),
            ],
            path: "Links/RTSPSink", exclude: ["README.md"]),
        .testTarget(name: "RTSPSinkTests", dependencies: ["RTSPSink"], path: "Links/Tests"),
    ],
    swiftLanguageModes: [.v6]
)
