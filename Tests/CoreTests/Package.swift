// swift-tools-version: 6.2
// Core's tests are a package of their own, so that the sanitizers build Core and nothing else.
import PackageDescription

let package = Package(
    name: "CoreTests",
    dependencies: [.package(path: "../../Sources/Core")],
    targets: [
        .testTarget(name: "FrameCoreTests", dependencies: [.product(name: "FrameCore", package: "Core")])
    ],
    swiftLanguageModes: [.v6]
)
