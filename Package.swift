// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

/// What plugins are for a user: the folder that they lie in.
enum Room {
    case sources, filters, encoders, sinks, services
}

/// A built-in plugin: one folder, one module, one dynamic library.
struct Plugin {
    var room: Room
    var name: String
    var shims: [String] = []
    /// Whether it reads or paints pictures with what lies in Shared.
    var usesShared = false
    /// Whether it is a live source of pictures, with what lies in LiveInput.
    var usesLiveInput = false
    /// Further modules that are linked into several plugins.
    var modules: [String] = []
    /// Whether it reads access units with what lies in CodedVideo.
    var readsUnits = false
}

let plugins = [
    Plugin(room: .sources, name: "ALSASource", shims: ["CALSA", "CSWResample"], modules: ["LiveStates", "Reports"]),
    Plugin(
        room: .sources, name: "FileSource", shims: ["CAVFormat"], usesShared: true, usesLiveInput: true,
        modules: ["Reports", "Stills"], readsUnits: true),
    Plugin(room: .sources, name: "Motion", shims: ["CAVFormat"], modules: ["LiveStates", "Reports"]),
    Plugin(room: .sources, name: "TestSource", usesShared: true),
    Plugin(
        room: .sources, name: "V4L2Source", shims: ["CV4L2", "CYUV"], usesShared: true,
        usesLiveInput: true, modules: ["Conversion", "Reports", "Stills"], readsUnits: true),
    Plugin(room: .sources, name: "Y4M"),
    Plugin(room: .filters, name: "Audio", shims: ["CAudio"]),
    Plugin(room: .filters, name: "Compositor", shims: ["CYUV"], usesShared: true, modules: ["Conversion"]),
    Plugin(room: .filters, name: "Convert", usesShared: true, modules: ["Conversion"]),
    Plugin(room: .filters, name: "CropOrient", shims: ["CYUV"], usesShared: true),
    Plugin(room: .filters, name: "FPSMeter", usesShared: true),
    Plugin(
        room: .filters, name: "FaceEffect", shims: ["COpenCV", "CTurboJPEG"], usesShared: true,
        modules: ["Reports", "Stills"]),
    Plugin(room: .filters, name: "Frei0r", shims: ["CFrei0r"], usesShared: true),
    Plugin(room: .filters, name: "Mask", usesShared: true),
    Plugin(room: .filters, name: "MotionDetect", usesShared: true),
    Plugin(room: .filters, name: "MotionSync"),
    Plugin(room: .filters, name: "PictureOverlay", usesShared: true, modules: ["Stills"]),
    Plugin(room: .filters, name: "Rate", modules: ["Reports"]),
    Plugin(room: .filters, name: "Replicate", shims: ["CYUV"], usesShared: true),
    Plugin(room: .filters, name: "Text", usesShared: true, modules: ["Lettering"]),
    Plugin(room: .filters, name: "VideoSnake", shims: ["CYUV"], usesShared: true),
    Plugin(
        room: .encoders, name: "X264Encoder", shims: ["CX264"], usesShared: true, modules: ["PictureStamp", "Reports"]),
    Plugin(room: .encoders, name: "Pictures", usesShared: true, modules: ["PictureFiles"]),
    Plugin(room: .sinks, name: "ImageSink", usesShared: true, modules: ["PictureFiles", "Recordings", "Reports"]),
    Plugin(room: .sinks, name: "NullSink", modules: ["PictureStamp"]),
    Plugin(
        room: .sinks, name: "Recorder", shims: ["CAVFormat"], usesShared: true, modules: ["Recordings", "Reports"],
        readsUnits: true),
    Plugin(room: .sinks, name: "V4L2Sink", shims: ["CV4L2"], usesShared: true),
    Plugin(room: .sinks, name: "WindowPreview", shims: ["CSDL2"], usesShared: true, modules: ["Conversion"]),
    Plugin(room: .services, name: "MQTTEvents", usesShared: true, modules: ["Publishing"]),
    Plugin(room: .services, name: "NATSEvents", shims: ["COpenSSL"], usesShared: true, modules: ["Publishing"]),
    Plugin(
        room: .services, name: "Webhook", shims: ["CCurl", "COpenSSL"], usesShared: true, modules: ["Publishing"]),
]

let core = Target.Dependency.product(name: "FrameCore", package: "Core")
/// Built-in plugins that are packages of their own, each with its tests beside it (docs/design/014-packages.md).
let nestedPlugins = [(Room.services, "ControlServer"), (.services, "ONVIF"), (.sinks, "RTSPSink")]

/// A package of its own as well, since those plugins use it too.
let codedVideo = Target.Dependency.product(name: "CodedVideo", package: "CodedVideo")

/// Optimising the tests would take longer than they run.
let unoptimised: [SwiftSetting] = [.unsafeFlags(["-Onone"], .when(configuration: .release))]
/// With FRAMEHOST_TESTABLE, as `make test` builds: the optimised modules let tests import what is internal in them.
let testable: [SwiftSetting] =
    Context.environment["FRAMEHOST_TESTABLE"] == nil
    ? [] : [.unsafeFlags(["-enable-testing"], .when(configuration: .release))]

let package = Package(
    name: "framehost",
    products: [.executable(name: "framehost", targets: ["framehost"])]
        // What the host loads when a model is fetched, and at no other time: nothing depends on it.
        + [.library(name: "CFetch", type: .dynamic, targets: ["CFetch"])]
        + plugins.map { .library(name: $0.name, type: .dynamic, targets: [$0.name]) },
    dependencies: [
        .package(path: "Sources/Core"),
        .package(path: "Sources/Plugins/support/CodedVideo"),
        .package(path: "Sources/Plugins/support/Rates"),
        .package(path: "Sources/Plugins/support/ServerAccess"),
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
    ] + nestedPlugins.map { .package(path: "Sources/Plugins/\($0)/\($1)") },
    targets: [
        .executableTarget(
            name: "framehost",
            dependencies: [
                core, .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"), .product(name: "Rates", package: "Rates"),
            ],
            path: "Sources/Host"),
        // Linked into each plugin that uses it; not a library of its own (docs/design/014-packages.md).
        .target(
            name: "Shared", dependencies: [core], path: "Sources/Plugins/support/Shared", exclude: ["README.md"],
            swiftSettings: testable),
        .target(
            name: "LiveInput", dependencies: [core, "LiveStates", "Shared", "Lettering", "Stills"],
            path: "Sources/Plugins/support/LiveInput",
            exclude: ["README.md"], swiftSettings: testable),
        .target(
            name: "LiveStates", dependencies: [core], path: "Sources/Plugins/support/LiveStates",
            exclude: ["README.md"], swiftSettings: testable),
        .target(
            name: "Lettering", dependencies: [core, "Shared", "CFreeType"], path: "Sources/Plugins/support/Lettering",
            exclude: ["README.md"], swiftSettings: testable),
        .target(
            name: "Conversion", dependencies: [core, "Shared", "CYUV"], path: "Sources/Plugins/support/Conversion",
            exclude: ["README.md"],
            // Generic vectors are far slower where they are not specialised: most of the time of the plugins' tests was theirs.
            swiftSettings: [.unsafeFlags(["-O"], .when(configuration: .debug))] + testable),
        .target(
            name: "Stills", dependencies: [core, "CPNG", "CTurboJPEG"], path: "Sources/Plugins/support/Stills",
            exclude: ["README.md"], swiftSettings: testable),
        .target(
            name: "PictureFiles", dependencies: [core, "Shared", "Conversion", "CTurboJPEG", "CPNG", "CYUV"],
            path: "Sources/Plugins/support/PictureFiles", exclude: ["README.md"], swiftSettings: testable),
        .target(
            name: "Recordings", dependencies: [core], path: "Sources/Plugins/support/Recordings",
            exclude: ["README.md"], swiftSettings: testable),
        .target(
            name: "Reports", dependencies: [core], path: "Sources/Plugins/support/Reports", exclude: ["README.md"],
            swiftSettings: testable),
        .target(
            name: "PictureStamp", dependencies: [core, codedVideo], path: "Sources/Plugins/support/PictureStamp",
            exclude: ["README.md"],
            swiftSettings: testable),
        .target(
            name: "Publishing", dependencies: [core, "COpenSSL"], path: "Sources/Plugins/support/Publishing",
            exclude: ["README.md"],
            swiftSettings: testable),
        // C libraries: a module map and a header each, at most one small .c beside them.
        // Without aligned loops, where the linker happens to put them decides whether scaling takes a fifth longer.
        .target(
            name: "CYUV", path: "Sources/Plugins/support/Shims/CYUV", cSettings: [.unsafeFlags(["-falign-loops=32"])],
            linkerSettings: [.linkedLibrary("yuv")]),
        .target(name: "CX264", path: "Sources/Plugins/support/Shims/CX264", linkerSettings: [.linkedLibrary("x264")]),
        .target(
            name: "CAVFormat", path: "Sources/Plugins/support/Shims/CAVFormat",
            linkerSettings: [
                .linkedLibrary("avformat"), .linkedLibrary("avcodec"), .linkedLibrary("swresample"),
                .linkedLibrary("avutil"),
            ]),
        // No pkgConfig: a system library has one, and this one stands for four.
        .systemLibrary(
            name: "CAudio", path: "Sources/Plugins/support/Shims/CAudio",
            providers: [.apt(["libavcodec-dev", "libavutil-dev", "libswresample-dev", "libebur128-dev"])]),
        .systemLibrary(
            name: "CFreeType", path: "Sources/Plugins/support/Shims/CFreeType", pkgConfig: "freetype2",
            providers: [.apt(["libfreetype-dev"])]),
        .systemLibrary(
            name: "CFrei0r", path: "Sources/Plugins/support/Shims/CFrei0r", pkgConfig: "frei0r",
            providers: [.apt(["frei0r-plugins-dev"])]),
        .systemLibrary(
            name: "CV4L2", path: "Sources/Plugins/support/Shims/CV4L2", pkgConfig: "libv4l2",
            providers: [.apt(["libv4l-dev"])]),
        // No pkgConfig: alsa.pc has a flag that the package manager warns of; the headers are in the usual place.
        .systemLibrary(
            name: "CALSA", path: "Sources/Plugins/support/Shims/CALSA", providers: [.apt(["libasound2-dev"])]),
        .systemLibrary(
            name: "CSWResample", path: "Sources/Plugins/support/Shims/CSWResample", pkgConfig: "libswresample",
            providers: [.apt(["libswresample-dev"])]),
        .systemLibrary(
            name: "CSDL2", path: "Sources/Plugins/support/Shims/CSDL2", pkgConfig: "sdl2",
            providers: [.apt(["libsdl2-dev"])]),
        .systemLibrary(
            name: "CTurboJPEG", path: "Sources/Plugins/support/Shims/CTurboJPEG", pkgConfig: "libturbojpeg",
            providers: [.apt(["libturbojpeg0-dev"])]),
        .systemLibrary(
            name: "COpenSSL", path: "Sources/Plugins/support/Shims/COpenSSL", pkgConfig: "openssl",
            providers: [.apt(["libssl-dev"])]),
        // No pkgConfig: libcurl.pc names all that libcurl itself links. CFetch is the host's own, and loads libcurl only to fetch.
        .systemLibrary(
            name: "CCurl", path: "Sources/Plugins/support/Shims/CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        // No pkgConfig: opencv4.pc names every module, and a program that links them all loads 375 libraries.
        .target(
            name: "COpenCV", path: "Sources/Plugins/support/Shims/COpenCV",
            cxxSettings: [.unsafeFlags(["-isystem", "/usr/include/opencv4"])],
            linkerSettings: ["opencv_objdetect", "opencv_imgproc", "opencv_core"].map { .linkedLibrary($0) }),
        .target(
            name: "CFetch", path: "Sources/Plugins/support/Shims/CFetch",
            linkerSettings: [.linkedLibrary("curl"), .linkedLibrary("nettle")]),
        .target(name: "CPNG", path: "Sources/Plugins/support/Shims/CPNG", linkerSettings: [.linkedLibrary("png16")]),
    ]
        + plugins.map { plugin in
            .target(
                name: plugin.name,
                dependencies: [core] + plugin.shims.map { .target(name: $0) } + (plugin.usesShared ? ["Shared"] : [])
                    + (plugin.usesLiveInput ? ["LiveInput"] : []) + (plugin.readsUnits ? [codedVideo] : [])
                    + plugin.modules.map { .target(name: $0) },
                path: "Sources/Plugins/\(plugin.room)/\(plugin.name)",
                exclude: ["README.md"],
                swiftSettings: testable,
                plugins: [.plugin(name: "FramehostManifest", package: "Core")])
        }
        + [
            .target(
                name: "NestedPlugins",
                dependencies: nestedPlugins.map { .product(name: $1, package: $1) },
                path: "Sources/Plugins/support/NestedPlugins"),
            // Scenes for tests of motion: optimised also in a debug build, since each picture is drawn pixel by pixel.
            .target(
                name: "MovingScenes", path: "Tests/MovingScenes",
                swiftSettings: [.unsafeFlags(["-O"], .when(configuration: .debug))]),
            .testTarget(
                name: "PluginTests",
                dependencies: [
                    core, codedVideo, "Shared", "LiveInput", "LiveStates", "Lettering", "Stills", "Conversion",
                    "Publishing", "PictureStamp", "PictureFiles", "Recordings", "Reports", "MovingScenes",
                ]
                    + plugins.map { .target(name: $0.name) },
                path: "Tests/PluginTests",
                // The tests build it themselves: ALSA loads it.
                exclude: ["ALSA/fake-microphone.c"],
                swiftSettings: unoptimised,
                // Every plugin exports the one entry symbol; a test program that links several takes any of them.
                linkerSettings: [.unsafeFlags(["-Xlinker", "--allow-multiple-definition"])]),
            // Also in a package of its own, which the thread sanitizer builds.
            .testTarget(
                name: "RTSPSinkTests",
                dependencies: [
                    core, .product(name: "RTSPSink", package: "RTSPSink"),
                    .product(name: "ServerAccess", package: "ServerAccess"),
                ],
                path: "Tests/RTSPSinkTests/Tests/RTSPSinkTests", swiftSettings: unoptimised),
            .testTarget(
                name: "ControlServerTests",
                dependencies: [
                    core, .product(name: "ControlServer", package: "ControlServer"),
                    .product(name: "ServerAccess", package: "ServerAccess"),
                ],
                path: "Tests/ControlServerTests/Tests/ControlServerTests", swiftSettings: unoptimised),
            .testTarget(
                name: "ONVIFTests",
                dependencies: [
                    core, .product(name: "ONVIF", package: "ONVIF"),
                    .product(name: "ServerAccess", package: "ServerAccess"),
                ],
                path: "Tests/ONVIFTests/Tests/ONVIFTests", swiftSettings: unoptimised),
            .testTarget(
                name: "EndToEndTests", dependencies: [core], path: "Tests/EndToEndTests", swiftSettings: unoptimised),
        ],
    swiftLanguageModes: [.v6],
    cxxLanguageStandard: .cxx17
)
