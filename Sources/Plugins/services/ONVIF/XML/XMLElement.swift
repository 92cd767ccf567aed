// SPDX-License-Identifier: Apache-2.0

/// An element of a document that was read: names without prefixes, with their namespaces.
struct XMLElement: Sendable, Hashable {
    struct Attribute: Sendable, Hashable {
        var name: String
        var value: String
    }

    var name: String
    /// Empty without one.
    var space: String
    var attributes: [Attribute] = []
    /// Prefixes that it declares, with their namespaces. The empty one is the default.
    var declared: [Attribute] = []
    /// All text directly in it.
    var text = ""
    var children: [XMLElement] = []

    /// The first child of this name in any namespace: recorders mix those of a service and of its schema.
    subscript(name: String) -> XMLElement? { children.first { $0.name == name } }

    func attribute(_ name: String) -> String? { attributes.first { $0.name == name }?.value }

    /// The text without blanks and line breaks at both ends.
    var value: String {
        let bytes = Array(text.utf8)
        func isBlank(_ byte: UInt8) -> Bool { byte == 32 || byte == 9 || byte == 10 || byte == 13 }
        guard let first = bytes.firstIndex(where: { !isBlank($0) }), let last = bytes.lastIndex(where: { !isBlank($0) })
        else { return "" }
        return String(decoding: bytes[first...last], as: UTF8.self)
    }

    /// The value without what stands before its last colon: the local part of a qualified name.
    var localValue: String { Self.local(value) }

    static func local(_ name: some StringProtocol) -> String { String(name.split(separator: ":").last ?? "") }
}
