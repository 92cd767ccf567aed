// swift-tools-version: 6.2
// Core's tests are a package of their own, so that the sanitizers build Core and nothing else.
import PackageDescription

let package = Package(
    name: "CoreTests",
    dependencies: [.package(path: "../../Sources/Core")],
    targets: [
        // Counts heap allocations: the tests' own malloc before the C library's.
        .target(name: "CMallocCount"),
        .testTarget(
            name: "FrameCoreTests", dependencies: ["CMallocCount", .product(name: "FrameCore", package: "Core")]),
    ],
    swiftLanguageModes: [.v6]
)
