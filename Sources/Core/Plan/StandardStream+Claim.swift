// SPDX-License-Identifier: Apache-2.0

extension StandardStream {
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
