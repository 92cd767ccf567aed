// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// An executable that tests run. It never hangs a test: at its time limit it is killed, and the test fails.
struct Program {
    let executable: URL

    init(_ executable: URL) { self.executable = executable }

    /// framehost.
    static var framehost: Program { get throws { Program(try Repository.executable) } }

    /// Runs it to its end.
    func run(
        _ arguments: [String], environment: [String: String] = [:], input: String? = nil, folder: String? = nil,
        timeout: Double = 180
    ) throws -> Outcome {
        let running = try start(arguments, environment: environment, folder: folder)
        if let input { try running.write(input) }
        running.closeInput()
        return try running.finish(timeout: timeout)
    }

    func run(_ arguments: String...) throws -> Outcome { try run(arguments) }

    /// Starts it, to talk with it.
    ///
    /// - Parameter onTerminal: Standard error is a terminal.
    func start(
        _ arguments: [String], environment: [String: String] = [:], folder: String? = nil, onTerminal: Bool = false
    ) throws -> RunningProgram {
        try RunningProgram(executable.path, arguments, environment: environment, folder: folder, onTerminal: onTerminal)
    }
}

/// How a program ended.
struct Outcome {
    /// Exit status; 128 + number for a signal, as in a shell.
    var status: Int
    var output: String
    var error: String
    var seconds: Double
    /// Time of all its threads on a processor: neighbours do not add to it.
    var processorSeconds: Double

    /// Lines of standard output.
    var lines: [String] { output.split(separator: "\n").map(String.init) }
    /// Lines of standard error, but not what planning waits for: a busy machine may let any plan take that long.
    var errorLines: [String] {
        error.split(separator: "\n").map(String.init).filter {
            !$0.hasSuffix(". It may be waiting for a file, pipe, device or server. Ctrl-C ends this.")
        }
    }

    /// Whether it ended as it should. On a machine that has no time for it a live chain loses frames, and says so with
    /// status 1 but no error.
    var isDoneOrBusy: Bool {
        status == 0
            || status == 1 && error.contains("the live chain lost") && !errorLines.contains { $0.hasPrefix("error") }
    }
}

extension Outcome {
    /// Lines of standard error that do not tell how long something took or waited: of those a busy machine may bring
    /// any.
    var untimedErrorLines: [String] {
        errorLines.filter {
            !$0.contains(/has not returned for \d+\.\d s|took \d+\.\d s|(?:full|empty) for \d+ ms/)
        }
    }
}
