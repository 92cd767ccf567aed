// SPDX-License-Identifier: Apache-2.0

/// Standard input or standard output. A process has one of each, so a stage that uses one claims it.
public enum StandardStream: String, Sendable {
    /// Standard input.
    case input = "standard input"
    /// Standard output; ``StandardOutput/descriptor`` is where to write.
    case output = "standard output"

    /// `writes to standard output`
    var use: String { "\(self == .input ? "reads" : "writes to") \(rawValue)" }

    /// Makes the claim of a stage that uses the stream, for ``StageDemand/claims``. The plan then refuses a second
    /// claim.
    ///
    /// - Parameters:
    ///   - option: The option at which the fault is shown.
    ///   - terms: `lines` for a stage that writes whole lines of text, which several stages may; nil for a stage
    ///     that must have the stream to itself.
    ///   - remedy: What the person can do when another stage claims it too.
    ///   - remedyBetweenChains: The same where that stage is in another chain file; nil where it is the same.
    public func claim(
        option: String, terms: String? = nil, remedy: String, remedyBetweenChains: String? = nil
    ) -> StageDemand.Claim {
        StageDemand.Claim(
            rawValue, terms: terms, option: option, what: "\(use), as does", remedy: remedy,
            remedyBetweenChains: remedyBetweenChains)
    }

    /// Paths that stand for the stream. Opened by any but ``RunFiles`` they would lead to another file, since the program
    /// gives its descriptor 1 away (``StandardOutput``).
    public var paths: [String] {
        let (word, descriptor) = self == .input ? ("stdin", 0) : ("stdout", 1)
        return ["/dev/\(word)", "/dev/fd/\(descriptor)", "/proc/self/fd/\(descriptor)"]
    }
}

extension ChainRequest {
    /// A standard stream that the program itself uses for as long as the chain runs.
    public struct OwnStream: Sendable, Equatable {
        var stream: StandardStream
        var argument: String
        var what: String

        /// Says that the program itself uses a stream.
        ///
        /// - Parameters:
        ///   - stream: Standard input or standard output.
        ///   - argument: What asks for it on the command line: `--events`.
        ///   - what: What the program does with it: `where events would go`.
        public init(_ stream: StandardStream, argument: String, what: String) {
            (self.stream, self.argument, self.what) = (stream, argument, what)
        }
    }
}
