// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// A package of its own, as the RTSP sink is: its tests can be built without the other plugins
// (docs/design/014-packages.md).
import PackageDescription

/// The files of the page. PageFiles.swift names each one too.
let pageFiles = [
    "announce.js", "api.js", "areas.js", "curve.js", "dialogs.js", "dom.js", "events.js", "feed.js", "forms.js",
    "graph.js", "h264.js",
    "h265.js", "icon.svg", "index.html", "layout.js", "list.js", "live.js", "login.js", "main.js", "model.js",
    "page.css", "previews.js", "reason.js", "snapshot.js", "stage.js", "video.js", "words.js",
]

/// With FRAMEHOST_TESTABLE, as `make test` builds: the optimised modules let tests import what is internal in them.
let testable: [SwiftSetting] =
    Context.environment["FRAMEHOST_TESTABLE"] == nil
    ? [] : [.unsafeFlags(["-enable-testing"], .when(configuration: .release))]

let package = Package(
    name: "ControlServer",
    products: [.library(name: "ControlServer", type: .dynamic, targets: ["ControlServer"])],
    dependencies: [
        .package(path: "../../../Core"), .package(path: "../../support/CodedVideo"),
        .package(path: "../../support/Network"), .package(path: "../../support/Rates"),
        .package(path: "../../support/ServerAccess"),
    ],
    targets: [
        .target(
            name: "ControlServer",
            dependencies: [
                "ControlPage",
                .product(name: "CodedVideo", package: "CodedVideo"),
                .product(name: "FrameCore", package: "Core"),
                .product(name: "FrameNetwork", package: "Network"), .product(name: "Rates", package: "Rates"),
                .product(name: "ServerAccess", package: "ServerAccess"),
            ],
            path: ".",
            exclude: ["README.md", "Page"],
            swiftSettings: testable,
            plugins: [.plugin(name: "FramehostManifest", package: "Core")]),
        // A module of its own: the files are compiled again only when one of them changes.
        .target(name: "ControlPage", path: "Page", resources: pageFiles.map { .embedInCode($0) }),
    ],
    swiftLanguageModes: [.v6]
)
