/// A place in a text: line and column, both counted from 1, columns in bytes of UTF-8.
public struct TextPlace: Sendable, Equatable {
    public var line: Int
    public var column: Int

    public init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }
}

extension TextPlace: CustomStringConvertible {
    /// `line:column`.
    public var description: String { "\(line):\(column)" }
}

/// A JSON value that knows where in its text it stood.
///
/// Numbers keep the text they were written as, so that 64-bit integers are exact and `1.0` can be told from `1`.
public struct JSONNode: Sendable, Equatable {
    /// What a value is. Not named `Value`: in a type made from dictionary literals that name is their element's.
    public enum Content: Sendable, Equatable {
        case null
        case bool(Bool)
        /// The number as written, valid by RFC 8259 §6.
        case number(String)
        case string(String)
        case array([JSONNode])
        /// Members in the order of the file; keys are unique.
        case object([Member])
    }

    public struct Member: Sendable, Equatable {
        public var key: String
        public var keyPlace: TextPlace
        public var value: JSONNode

        public init(key: String, keyPlace: TextPlace = TextPlace(line: 0, column: 0), value: JSONNode) {
            self.key = key
            self.keyPlace = keyPlace
            self.value = value
        }
    }

    public var value: Content
    /// Where the value begins; line 0 for one that was made by the program.
    public var place: TextPlace

    public init(_ value: Content, place: TextPlace = TextPlace(line: 0, column: 0)) {
        self.value = value
        self.place = place
    }
}
