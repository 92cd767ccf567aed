// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Counts a program's allocations by thread name while it runs (Tests/Tools/malloc-counts.c, loaded before it).
struct MallocCounts {
    private let library: String
    private let file: String

    /// Builds the counter with the C compiler.
    init(_ workspace: Workspace) throws {
        library = workspace.path("malloc-counts.so")
        file = workspace.path("malloc-counts.bin")
        let source = Repository.root.appendingPathComponent("Tests/Tools/malloc-counts.c").path
        let outcome = try Tool.clang.run(
            "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, source)
        guard outcome.status == 0 else { throw TestFault("clang: \(outcome.error)") }
        try Data(count: 4096).write(to: URL(fileURLWithPath: file))
    }

    var environment: [String: String] { ["LD_PRELOAD": library, "MALLOC_COUNTS": file] }

    /// Allocations so far, by the name of the thread.
    func read() throws -> [String: Int] {
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
        return stride(from: 0, to: bytes.count, by: 32).reduce(into: [:]) { counts, entry in
            let name = bytes[entry..<entry + 16].prefix { $0 != 0 }
            guard !name.isEmpty else { return }
            counts[String(decoding: name, as: UTF8.self)] = (0..<8).reduce(0) {
                $0 | Int(bytes[entry + 16 + $1]) << (8 * $1)
            }
        }
    }
}

extension Tool {
    static let clang = Tool(name: "clang")
}
