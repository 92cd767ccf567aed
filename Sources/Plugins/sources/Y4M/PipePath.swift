// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The option `path` of both stages: a standard stream, or a pipe or file by its name.
struct PipePath {
    let stream: StandardStream
    /// Nil for the standard stream.
    let path: String?

    init(_ option: String, _ stream: StandardStream, _ context: StageContext) {
        self.stream = stream
        path = option == "-" ? nil : context.resolve(option)
    }

    /// - Throws: ``OptionFault`` for an impossible path.
    static func check(_ option: String, _ stream: StandardStream) throws(OptionFault) {
        if option.isEmpty {
            throw OptionFault("'path' is empty", remedy: "Name a pipe, or - for \(stream.rawValue).", options: ["path"])
        }
        if option.utf8.contains(0) {
            throw OptionFault(
                "'path' must not contain the character U+0000", remedy: "Remove its \\u0000.", options: ["path"])
        }
        if stream.paths.contains(option) {
            throw OptionFault(
                "'\(option)' is \(stream.rawValue), which must be written as \"-\"",
                remedy: "Write \"path\": \"-\", or leave 'path' out.", options: ["path"])
        }
    }

    /// The name in messages.
    var name: String { path.map { "'\($0)'" } ?? stream.rawValue }

    /// Claims the stream, since it has one reader and one writer among the stages of a chain.
    ///
    /// - Parameter remedy: The remedy for a second stage at a standard stream.
    func claims(remedy: String) -> [StageDemand.Claim] {
        let between =
            stream == .input
            ? "Put the stages of both chains into one file with a single 'y4m-source', or give each chain a pipe of its own, made with 'mkfifo'."
            : nil
        guard let path else {
            return [stream.claim(option: "path", remedy: remedy, remedyBetweenChains: between)]
        }
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFIFO else { return [] }
        let use = stream == .input ? "reads" : "writes to"
        return [
            StageDemand.Claim(
                "\(use) pipe \(status.st_dev):\(status.st_ino)", option: "path",
                what: "\(use) the pipe '\(path)', as does",
                remedy: stream == .input
                    ? "Leave this stage out and name the other one in 'from' of the stages that need its pictures."
                    : "Give each of them a pipe of its own.",
                remedyBetweenChains: between)
        ]
    }
}
