// SPDX-License-Identifier: Apache-2.0

/// What a source's input promises and what the source gave of it, within the part of the input that its options choose.
///
/// A source that reads something with an end of its own, such as a file, says this of it:
/// ``StageContext/inputAccount``. `framehost batch` counts an input as done only where the account is whole.
public struct InputAccount: Sendable, Equatable {
    /// How many pictures the input says it has in this part; nil where it does not say.
    public var promised: Int?
    /// How many pictures the source gave.
    public var given = 0
    /// How many packets and pictures could not be decoded, or only in part.
    public var damaged = 0
    /// Why the source gave less than the input promises, as a sentence; nil where it did not.
    public var shortfall: String?
    /// Whether the source came to the end of the part. Otherwise the run ended it before.
    public var hasEnded = false

    /// An account of an input from which nothing was read yet.
    public init(promised: Int? = nil) { self.promised = promised }

    /// Whether the source gave all that the input promises, undamaged.
    public var isWhole: Bool { hasEnded && shortfall == nil && damaged == 0 }

    /// The account as figures: `promised`, `given`, `damaged`, `whole`.
    public var json: JSONNode {
        .object(
            (promised.map { [("promised", .number($0))] } ?? [])
                + (hasEnded
                    ? [
                        ("given", .number(given)), ("damaged", .number(damaged)),
                        ("whole", .bool(isWhole)),
                    ] : damaged > 0 ? [("damaged", .number(damaged))] : []))
    }
}
