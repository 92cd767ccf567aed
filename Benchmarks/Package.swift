// swift-tools-version: 6.2
// A package of its own, as a user's plugin is: what the benchmarks need beside the shipped plugins.
import PackageDescription

let package = Package(
    name: "Benchmarks",
    products: [.library(name: "PassThroughPlugin", type: .dynamic, targets: ["PassThroughPlugin"])],
    dependencies: [.package(path: "../Sources/Core")],
    targets: [
        .target(
            name: "PassThroughPlugin",
            dependencies: [.product(name: "FrameCore", package: "Core")],
            plugins: [.plugin(name: "FramehostManifest", package: "Core")])
    ],
    swiftLanguageModes: [.v6]
)
