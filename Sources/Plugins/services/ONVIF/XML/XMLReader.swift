// SPDX-License-Identifier: Apache-2.0

import CXML2

/// Reads a document of a client into a tree, by libxml2's SAX parser: an element that is too many ends the parse before
/// anything is kept of it.
enum XMLReader {
    static let mostBytes = 64 << 10
    static let mostDepth = 16
    static let mostElements = 512
    static let mostAttributes = 1024
    /// Of a name, and of a namespace.
    static let mostNameBytes = 256

    /// Why a document is refused.
    enum Fault: Error, Equatable {
        case malformed
        /// A document type declaration, an entity or a processing instruction.
        case forbidden
        case tooLarge
    }

    /// Used on one thread, during one call.
    private final class Tree {
        var open: [XMLElement] = []
        var root: XMLElement?
        var (elements, attributes) = (0, 0)
        var fault: Fault?

        func refuse(_ fault: Fault) -> CInt {
            self.fault = fault
            return 1
        }
    }

    /// - Throws: ``Fault``.
    static func read(_ bytes: [UInt8]) throws(Fault) -> XMLElement {
        guard bytes.count <= mostBytes else { throw .tooLarge }
        // UTF-16 and UTF-32, by their marks or by the zeros beside '<' (XML 1.0, appendix F).
        guard let first = bytes.first, first != 0, first < 0xfe, bytes.count < 2 || bytes[1] != 0 else {
            throw .malformed
        }
        let tree = Tree()
        var events = fh_xml_events()
        events.context = Unmanaged.passUnretained(tree).toOpaque()
        events.begin = { XMLReader.begin($0, $1, $2, $3, $4, $5, $6) }
        events.end = { XMLReader.end($0) }
        events.text = { XMLReader.text($0, $1, $2) }
        events.extra = { XMLReader.tree(of: $0).refuse(.forbidden) }
        let result = withExtendedLifetime(tree) { fh_xml_parse(bytes, CInt(bytes.count), &events) }
        if let fault = tree.fault { throw fault }
        guard result == 0, let root = tree.root, tree.open.isEmpty else { throw .malformed }
        return root
    }

    private static func tree(of context: UnsafeMutableRawPointer?) -> Tree {
        Unmanaged<Tree>.fromOpaque(context!).takeUnretainedValue()
    }

    private static func begin(
        _ context: UnsafeMutableRawPointer?, _ name: UnsafePointer<CChar>?, _ space: UnsafePointer<CChar>?,
        _ declaredCount: CInt, _ declared: UnsafePointer<UnsafePointer<CChar>?>?,
        _ count: CInt, _ values: UnsafePointer<UnsafePointer<UInt8>?>?
    ) -> CInt {
        let tree = tree(of: context)
        tree.elements += 1
        tree.attributes += Int(count) + Int(declaredCount)
        guard tree.elements <= mostElements, tree.attributes <= mostAttributes, tree.open.count < mostDepth,
            let name = short(name), let space = space == nil ? "" : short(space)
        else { return tree.refuse(.tooLarge) }
        var element = XMLElement(name: name, space: space)
        for index in 0..<Int(declaredCount) {
            // Prefix, or none for the default, and namespace, or none where the default ends.
            guard let declared, let prefix = declared[2 * index] == nil ? "" : short(declared[2 * index]),
                let space = declared[2 * index + 1] == nil ? "" : short(declared[2 * index + 1])
            else { return tree.refuse(.tooLarge) }
            element.declared.append(.init(name: prefix, value: space))
        }
        for index in 0..<Int(count) {
            // Local name, prefix, namespace, begin and end of the value.
            guard let values, let begin = values[5 * index + 3], let end = values[5 * index + 4], begin <= end,
                let local = values[5 * index],
                let name = local.withMemoryRebound(to: CChar.self, capacity: 1, { short($0) })
            else { return tree.refuse(.tooLarge) }
            // Where entities are not replaced, the parser leaves each & as a reference to it (libxml2,
            // xmlParseAttValueInternal).
            let value = String(decoding: UnsafeBufferPointer(start: begin, count: end - begin), as: UTF8.self)
            element.attributes.append(.init(name: name, value: value.replacing("&#38;", with: "&")))
        }
        tree.open.append(element)
        return 0
    }

    private static func short(_ text: UnsafePointer<CChar>?) -> String? {
        guard let text else { return nil }
        var count = 0
        while text[count] != 0 {
            count += 1
            if count > mostNameBytes { return nil }
        }
        return String(cString: text)
    }

    private static func end(_ context: UnsafeMutableRawPointer?) -> CInt {
        let tree = tree(of: context)
        guard let element = tree.open.popLast() else { return tree.refuse(.malformed) }
        if tree.open.isEmpty {
            tree.root = element
        } else {
            tree.open[tree.open.count - 1].children.append(element)
        }
        return 0
    }

    private static func text(
        _ context: UnsafeMutableRawPointer?, _ text: UnsafePointer<CChar>?, _ count: CInt
    ) -> CInt {
        let tree = tree(of: context)
        guard let text, count > 0, !tree.open.isEmpty else { return 0 }
        text.withMemoryRebound(to: UInt8.self, capacity: Int(count)) { bytes in
            tree.open[tree.open.count - 1].text += String(
                decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
        }
        return 0
    }
}
