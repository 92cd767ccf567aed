// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
// Core's tests are a package of their own, so that the sanitizers build Core and nothing else.
import PackageDescription

/// With FRAMEHOST_OPTIMISED: the tests that want optimised code, and what they need. Optimising all of them would take
/// minutes, and the sanitizers run the rest.
let optimised: [String]? =
    Context.environment["FRAMEHOST_OPTIMISED"] == nil
    ? nil
    : [
        "Budget", "Drawing", "Pool/TestPool.swift", "Runtime/AllocationStages.swift",
        "Runtime/AllocationTests.swift", "Runtime/ChainResult.swift",
        "Runtime/GraphStages.swift", "Runtime/JoinTimesTests.swift", "Runtime/KindStages.swift",
        "Runtime/ProgressWatch.swift", "Runtime/RandomChainTests.swift", "Runtime/RandomKindsTests.swift",
        "Runtime/TestStages.swift", "Support/AddressTests.swift", "Support/TestThread.swift",
    ]

let package = Package(
    name: "CoreTests",
    dependencies: [.package(path: "../../Sources/Core")],
    targets: [
        // Counts heap allocations: the tests' own malloc before the C library's.
        .target(name: "CMallocCount"),
        .testTarget(
            name: "FrameCoreTests", dependencies: ["CMallocCount", .product(name: "FrameCore", package: "Core")],
            sources: optimised),
    ],
    swiftLanguageModes: [.v6]
)
