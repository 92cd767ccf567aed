// SPDX-License-Identifier: Apache-2.0

import CXML2

/// An element that is to be written. Its name has the prefix of ``Namespaces``.
struct XMLNode: Sendable, Equatable {
    var name: String
    var attributes: [(name: String, value: String)]
    var text: String
    var children: [XMLNode]

    /// An element with elements.
    init(_ name: String, _ attributes: [(name: String, value: String)] = [], _ children: [XMLNode] = []) {
        (self.name, self.attributes, text, self.children) = (name, attributes, "", children)
    }

    /// An element with text.
    init(_ name: String, _ text: String, _ attributes: [(name: String, value: String)] = []) {
        (self.name, self.attributes, self.text, children) = (name, attributes, text, [])
    }

    init(_ name: String, _ number: Int) { self.init(name, "\(number)") }
    init(_ name: String, _ isTrue: Bool) { self.init(name, isTrue ? "true" : "false") }

    static func == (one: XMLNode, other: XMLNode) -> Bool { one.bytes == other.bytes }

    /// The document, by libxml2's writer, which escapes what must be escaped. Empty where memory is lacking.
    var bytes: [UInt8] {
        guard let writer = fh_xml_writer_new() else { return [] }
        defer { fh_xml_writer_free(writer) }
        guard write(to: writer) else { return [] }
        var count: CInt = 0
        guard let bytes = fh_xml_writer_bytes(writer, &count), count > 0 else { return [] }
        return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
    }

    private func write(to writer: OpaquePointer) -> Bool {
        guard fh_xml_writer_begin(writer, name) == 0 else { return false }
        for attribute in attributes {
            guard fh_xml_writer_attribute(writer, attribute.name, Self.allowed(attribute.value)) == 0 else {
                return false
            }
        }
        if !text.isEmpty { guard fh_xml_writer_text(writer, Self.allowed(text)) == 0 else { return false } }
        for child in children { guard child.write(to: writer) else { return false } }
        return fh_xml_writer_end(writer) == 0
    }

    /// Without what no XML document may have (XML 1.0, 2.2).
    private static func allowed(_ text: String) -> String {
        let isAllowed: (Unicode.Scalar) -> Bool = { scalar in
            switch scalar.value {
            case 9, 10, 13, 0x20...0xd7ff, 0xe000...0xfffd, 0x10000...0x10ffff: true
            default: false
            }
        }
        if text.unicodeScalars.allSatisfy(isAllowed) { return text }
        var result = ""
        for scalar in text.unicodeScalars { result.unicodeScalars.append(isAllowed(scalar) ? scalar : "\u{fffd}") }
        return result
    }
}
