// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// Reads the numbers of the command line.
///
/// A number is checked where it is read, so that a wrong one is refused whatever else is on the command line. The parser
/// puts the value as it was written and the option before the sentence.
enum NumberOption {
    /// A whole number in `range`.
    static func whole(_ range: ClosedRange<Int>) -> @Sendable (String) throws -> Int {
        { text in
            if let value = Int(text), range.contains(value) { return value }
            throw ValidationError("it must be a whole number from \(range.lowerBound) to \(range.upperBound).")
        }
    }

    /// One of `values`.
    static func one(of values: [Int]) -> @Sendable (String) throws -> Int {
        { text in
            if let value = Int(text), values.contains(value) { return value }
            throw ValidationError("it must be \(wordList(values.map { "\($0)" }, "or")).")
        }
    }

    /// A time in `range`, seconds.
    ///
    /// - Parameter example: A value that people may want.
    static func seconds(_ range: ClosedRange<Double>, example: Int) -> @Sendable (String) throws -> Double {
        { text in
            if let value = Double(text), range.contains(value) { return value }
            throw ValidationError(
                "it must be a number of seconds from \(Self.plain(range.lowerBound)) to \(Self.plain(range.upperBound)), such as \(example)."
            )
        }
    }

    /// `0.001`, `1000000000`.
    private static func plain(_ value: Double) -> String {
        value == value.rounded() ? "\(Int(value))" : "\(value)"
    }
}
