// SPDX-License-Identifier: Apache-2.0

/// Standard input or standard output. A process has one of each, so a stage that uses one claims it.
public enum StandardStream: String, Sendable {
    /// Standard input.
    case input = "standard input"
    /// Standard output; ``StandardOutput/descriptor`` is where to write.
    case output = "standard output"

    /// `writes to standard output`
    var use: String { "\(self == .input ? "reads" : "writes to") \(rawValue)" }

    /// Paths that stand for the stream. Opened by any but ``RunFiles`` they would lead to another file, since the program
    /// gives its descriptor 1 away (``StandardOutput``).
    public var paths: [String] {
        let (word, descriptor) = self == .input ? ("stdin", 0) : ("stdout", 1)
        return ["/dev/\(word)", "/dev/fd/\(descriptor)", "/proc/self/fd/\(descriptor)"]
    }
}
