/// Standard input and standard output, of which a process has one each: how claims and sentences name them.
public enum StandardStream: String, Sendable {
    case input = "standard input"
    case output = "standard output"

    /// `writes to standard output`
    var use: String { "\(self == .input ? "reads" : "writes to") \(rawValue)" }

    /// What a stage claims that uses it (``StageDemand/claims``), so that a second one is refused.
    ///
    /// - Parameters:
    ///   - option: The option at which the fault is shown.
    ///   - terms: `lines` for a stage that writes whole lines of text, which several stages may; nil for a stage that
    ///     needs the stream alone.
    ///   - remedy: What the person can do when another stage claims it too.
    public func claim(option: String, terms: String? = nil, remedy: String) -> StageDemand.Claim {
        StageDemand.Claim(rawValue, terms: terms, option: option, what: "\(use), as does", remedy: remedy)
    }

    /// Paths that mean it too. The program gives its descriptor away (``StandardOutput``), so that they lead to another
    /// file.
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

        /// - Parameters:
        ///   - stream: Standard input or standard output.
        ///   - argument: What asks for it on the command line: `--events`.
        ///   - what: What the program does with it: `where events would go`.
        public init(_ stream: StandardStream, argument: String, what: String) {
            (self.stream, self.argument, self.what) = (stream, argument, what)
        }
    }
}
