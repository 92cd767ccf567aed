// SPDX-License-Identifier: Apache-2.0

/// The way to a value within a JSON text, written so that it works in `jq` with a dot before it:
/// `stages[3].bitrateKbps`.
///
/// A key that is not an identifier is written in brackets: `stages[0]["odd key"]`.
public struct JSONPath: Sendable, Equatable, CustomStringConvertible {
    public private(set) var description: String

    /// The path of the top value: empty.
    public init() { description = "" }

    /// The path of a member of the object here.
    public func appending(_ key: String) -> JSONPath {
        guard Self.isIdentifier(key) else { return JSONPath(description + "[\(JSONNode(.string(key)).text())]") }
        return JSONPath(description + (description.isEmpty ? key : ".\(key)"))
    }

    /// The path of an element of the list here, counted from 0.
    public func appending(_ index: Int) -> JSONPath { JSONPath(description + "[\(index)]") }

    private init(_ description: String) { self.description = description }

    private static func isIdentifier(_ key: String) -> Bool {
        guard let first = key.utf8.first, !first.isDigit else { return false }
        return key.utf8.allSatisfy { $0.isWord && ($0.isDigit || !$0.beginsNumber) && $0 != UInt8(ascii: "$") }
    }
}
