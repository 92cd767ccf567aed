// SPDX-License-Identifier: Apache-2.0

/// A place in a text: line and column, both counted from 1, columns in bytes of UTF-8. `JSONParser` counts them, and
/// `StageRequest.place(file:of:at:)` gives them to a stage's error.
public struct TextPlace: Sendable, Equatable {
    /// The line, counted from 1; 0 where a program made the value.
    public var line: Int
    /// The column in bytes of UTF-8, counted from 1.
    public var column: Int

    /// A place.
    public init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }
}

extension TextPlace: CustomStringConvertible {
    /// `line:column`.
    public var description: String { "\(line):\(column)" }
}
