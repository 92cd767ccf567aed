// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// The header fields of a message in their order; names are compared without regard to case (RFC 2326, 4.2).
struct HeaderFields: Sendable, Equatable {
    struct Field: Sendable, Equatable {
        var name: String
        var value: String
    }

    private(set) var fields: [Field] = []

    init(_ fields: [(String, String)] = []) { self.fields = fields.map { Field(name: $0.0, value: $0.1) } }

    /// The value of the first field of this name.
    subscript(name: String) -> String? { fields.first { ASCII.equalsIgnoringCase($0.name, name) }?.value }

    /// The values of all fields of this name.
    func all(_ name: String) -> [String] { fields.filter { ASCII.equalsIgnoringCase($0.name, name) }.map(\.value) }

    mutating func append(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }

    /// Continues the value of the last field (folding, RFC 2326, 4.2); false when there is none.
    mutating func extendLast(with text: String) -> Bool {
        guard !fields.isEmpty else { return false }
        guard !text.isEmpty else { return true }
        let last = fields.count - 1
        fields[last].value += fields[last].value.isEmpty ? text : " " + text
        return true
    }
}
