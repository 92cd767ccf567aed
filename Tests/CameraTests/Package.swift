// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// The camera's tests, for the address sanitizer: it builds every module anew, and with all plugins that would take
// several times as long. The root package has the same tests, without sanitizers; the sources are the same files.
import PackageDescription

let core = Target.Dependency.product(name: "FrameCore", package: "Core")

let package = Package(
    name: "CameraTests",
    dependencies: [
        .package(path: "../../Sources/Core"), .package(path: "../../Sources/Plugins/support/CodedVideo"),
    ],
    targets: [
        .target(name: "Shared", dependencies: [core], path: "Plugins/support/Shared", exclude: ["README.md"]),
        .target(
            name: "Lettering", dependencies: [core, "Shared", "CFreeType"], path: "Plugins/support/Lettering",
            exclude: ["README.md"]),
        .target(
            name: "Stills", dependencies: [core, "CPNG", "CTurboJPEG"], path: "Plugins/support/Stills",
            exclude: ["README.md"]),
        .target(name: "LiveStates", dependencies: [core], path: "Plugins/support/LiveStates", exclude: ["README.md"]),
        .target(name: "Reports", dependencies: [core], path: "Plugins/support/Reports", exclude: ["README.md"]),
        .target(
            name: "LiveInput", dependencies: [core, "LiveStates", "Shared", "Lettering", "Stills"],
            path: "Plugins/support/LiveInput", exclude: ["README.md"]),
        .target(
            name: "Conversion", dependencies: [core, "Shared", "CYUV"], path: "Plugins/support/Conversion",
            exclude: ["README.md"]),
        .target(
            name: "V4L2Source",
            dependencies: [
                core, .product(name: "CodedVideo", package: "CodedVideo"), "Shared", "LiveInput", "Conversion",
                "Reports",
                "CV4L2", "CTurboJPEG", "CYUV",
            ],
            path: "Plugins/sources/V4L2Source", exclude: ["README.md"]),
        .target(name: "CYUV", path: "Plugins/support/Shims/CYUV", linkerSettings: [.linkedLibrary("yuv")]),
        .target(name: "CPNG", path: "Plugins/support/Shims/CPNG", linkerSettings: [.linkedLibrary("png16")]),
        .systemLibrary(name: "CFreeType", path: "Plugins/support/Shims/CFreeType", pkgConfig: "freetype2"),
        .systemLibrary(name: "CV4L2", path: "Plugins/support/Shims/CV4L2", pkgConfig: "libv4l2"),
        .systemLibrary(name: "CTurboJPEG", path: "Plugins/support/Shims/CTurboJPEG", pkgConfig: "libturbojpeg"),
        .testTarget(
            name: "CameraTests", dependencies: [core, "V4L2Source"], path: "Tests",
            // One test of these has an ffmpeg as its peer, and helpers beside it.
            exclude: ["V4L2UnitsTests.swift"]),
    ],
    swiftLanguageModes: [.v6]
)
