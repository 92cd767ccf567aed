// SPDX-License-Identifier: Apache-2.0

/// A JSON value that knows where in its text it stood.
///
/// Literals stand for themselves; variables go into ``string(_:)``, ``bool(_:)``, ``array(_:)`` and `number(_:)`:
///
/// ```swift
/// let details: JSONNode = ["path": .string(path), "frames": .number(count), "kind": "cut"]
/// ```
/// A number keeps the text in which it was written, so that 64-bit integers are exact and `1.0` differs from `1`.
public struct JSONNode: Sendable, Equatable {
    // Not named `Value`: dictionary literals give that name to their elements.
    /// What a value is.
    public enum Content: Sendable, Equatable {
        /// No value.
        case null
        /// True or false.
        case bool(Bool)
        /// The number as written, valid by RFC 8259 §6.
        case number(String)
        /// A string.
        case string(String)
        /// A list.
        case array([JSONNode])
        /// Members in the order of the file; keys are unique.
        case object([Member])
    }

    /// A key with its value.
    public struct Member: Sendable, Equatable {
        /// The key.
        public var key: String
        /// Where the key begins.
        public var keyPlace: TextPlace
        /// The value.
        public var value: JSONNode

        /// Makes a member.
        public init(key: String, keyPlace: TextPlace = TextPlace(line: 0, column: 0), value: JSONNode) {
            self.key = key
            self.keyPlace = keyPlace
            self.value = value
        }
    }

    /// What the value is.
    public var value: Content
    /// Where the value begins; line 0 for a value that a program made.
    public var place: TextPlace

    /// Makes a value.
    public init(_ value: Content, place: TextPlace = TextPlace(line: 0, column: 0)) {
        self.value = value
        self.place = place
    }
}
