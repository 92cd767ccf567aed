// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Where things are in this tree.
enum Repository {
    /// The folder with the root Package.swift.
    static let root: URL = {
        var folder = URL(fileURLWithPath: #filePath)
        for _ in 0..<4 { folder.deleteLastPathComponent() }
        return folder
    }()

    static let core = root.appending(path: "Sources/Core")
    static let mirror = root.appending(path: "examples/plugins/mirror")
    static let misbehave = root.appending(path: "Tests/Fixtures/plugins/misbehave")
    static let swap = root.appending(path: "Tests/Fixtures/plugins/swap")
    static let media = root.appending(path: "examples/media")

    /// The program under test: `$FRAMEHOST`, else the release build.
    static var executable: URL {
        get throws {
            let path = ProcessInfo.processInfo.environment["FRAMEHOST"]
            let file = path.map { URL(fileURLWithPath: $0) } ?? root.appending(path: ".build/release/framehost")
            guard FileManager.default.isExecutableFile(atPath: file.path) else {
                throw TestFault("\(file.path) is not there. Build it first: make build.")
            }
            return file
        }
    }

    /// The folder with the program and its plugins.
    static var programFolder: URL {
        get throws { try executable.resolvingSymlinksInPath().deletingLastPathComponent() }
    }
}

/// Why a test could not do its work.
struct TestFault: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
