// SPDX-License-Identifier: Apache-2.0

/// Reads JSON with comments and trailing commas into a ``JSONNode``.
///
/// The rest is RFC 8259 to the letter. `//` comments end with their line, `/* */` comments do not nest. A line ends
/// with LF, CR LF or CR. A byte order mark at the beginning is skipped and takes no column.
public struct JSONReader {
    /// How large a text may be. A level of depth also costs stack.
    public struct Limits: Sendable, Equatable {
        /// Lists and objects within each other.
        public var depth = 64
        /// Bytes of the whole text.
        public var bytes = 16 << 20
        /// Bytes of one key.
        public var keyBytes = 256
        /// Values in the whole text, lists and objects included.
        public var nodes = 1_000_000
        /// Faults that are collected before reading ends.
        public var faults = 100

        /// The usual limits.
        public init() {}
    }

    /// The value that `bytes` hold, with the place of every value and key.
    ///
    /// A duplicate key is noted and reading goes on; any other fault ends it. Keys are the same when their strings
    /// are equal in Swift, so that `é` in one and in two code points is one key. Where the text is not UTF-8, only
    /// that is reported.
    ///
    /// - Parameters:
    ///   - bytes: The text, in UTF-8.
    ///   - file: The name at the front of each fault's place, `file:line:column`.
    ///   - limits: Most bytes, depth and so on.
    ///   - remedy: What to write, as a sentence, where the text is empty or begins with something else than a value;
    ///     nil where any value will do.
    /// - Throws: ``FrameHostErrors`` with code `.invalidConfiguration`, in the order of the text.
    /// - Complexity: O(bytes).
    public static func read(
        _ bytes: [UInt8], file: String, limits: Limits = Limits(), remedy: String? = nil
    ) throws -> JSONNode {
        guard bytes.count <= limits.bytes else {
            throw FrameHostErrors([
                .tooLong(bytes.count, file: file, limits: limits, remedy: "Make the text shorter.")
            ])
        }
        var parser = JSONParser(bytes, file: file, limits: limits, valueRemedy: remedy)
        do {
            let node = try parser.readText()
            if parser.faults.isEmpty { return node }
        } catch {
            parser.faults.append(error)
        }
        throw FrameHostErrors(parser.faults)
    }
}
