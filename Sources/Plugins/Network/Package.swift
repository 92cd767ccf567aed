// swift-tools-version: 6.2
// The network stack is one dynamic library in the process: nothing else lists swift-nio (docs/design/006-rtsp-sink.md).
import PackageDescription

let package = Package(
    name: "Network",
    products: [.library(name: "FrameNetwork", type: .dynamic, targets: ["FrameNetwork"])],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    ],
    targets: [
        .target(
            name: "FrameNetwork",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
