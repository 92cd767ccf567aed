// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// A program that a test needs besides ours: without it the test is skipped by name on a desk, and fails in CI.
struct Tool: CustomStringConvertible {
    let name: String

    static let ffprobe = Tool(name: "ffprobe")
    static let python = Tool(name: "python3")
    static let prlimit = Tool(name: "prlimit")

    var description: String { name }

    var path: String? {
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    static var isCI: Bool { ProcessInfo.processInfo.environment["CI"] == "true" }

    func run(_ arguments: String..., timeout: Double = 180) throws -> Outcome { try run(arguments, timeout: timeout) }

    func run(_ arguments: [String], folder: String? = nil, timeout: Double = 180) throws -> Outcome {
        try program.run(arguments, folder: folder, timeout: timeout)
    }

    func start(_ arguments: [String]) throws -> RunningProgram { try program.start(arguments) }

    private var program: Program {
        get throws {
            guard let path else {
                throw TestFault("\(name) is not installed. Install what tests need: make test-packages.")
            }
            return Program(URL(fileURLWithPath: path))
        }
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips by name where the tool is missing, except in CI: there the test runs, and fails for want of it.
    static func needs(_ tool: Tool) -> Self {
        .enabled(if: tool.path != nil || Tool.isCI, "\(tool.name) is not installed: make test-packages")
    }
}
