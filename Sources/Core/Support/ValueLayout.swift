// SPDX-License-Identifier: Apache-2.0

/// Describes in text how the bytes of a type's values are laid out. Two images of a plugin agree on a type where
/// their texts are equal.
///
/// It reads Swift's metadata and reflection records (docs/ABI/TypeMetadata.rst of the compiler's sources), and so only
/// the constant sections of an image. The caller makes sure that the same compiler built both images.
enum ValueLayout {
    /// What the first word of a type's metadata says.
    private enum Kind {
        static let structure = 0x200
        static let enumeration = 0x201
        static let optional = 0x202
        /// A type of the compiler's own: `Builtin.Int32`.
        static let builtin = 0x300
        static let tuple = 0x301
        /// The storage of an `InlineArray`.
        static let fixedArray = 0x308
    }

    /// Deeper than any sensible value.
    private static let mostDepth = 32

    /// Nil where values are more than plain bytes, or the image does not say what they are made of.
    static func text<Value>(of type: Value.Type) -> String? {
        guard _isPOD(type), let fields = fields(of: type, depth: 0) else { return nil }
        let sizes = (MemoryLayout<Value>.size, MemoryLayout<Value>.stride, MemoryLayout<Value>.alignment)
        return "\(sizes.0)/\(sizes.1)/\(sizes.2) \(fields)"
    }

    private static func fields(of type: Any.Type, depth: Int) -> String? {
        guard depth < mostDepth else { return nil }
        let metadata = unsafeBitCast(type, to: UnsafeRawPointer.self)
        switch metadata.load(as: Int.self) {
        case Kind.structure, Kind.enumeration, Kind.optional: return nominal(type, metadata, depth)
        case Kind.builtin: return _typeName(type)
        case Kind.tuple:
            // Count, labels, then type and offset of each element.
            let count = metadata.load(fromByteOffset: 8, as: Int.self)
            let elements = (0..<count).map { self.type(at: metadata + 24 + 16 * $0) }
            return list(elements.map { fields(of: $0, depth: depth + 1) }).map { "(\($0))" }
        case Kind.fixedArray:
            let count = metadata.load(fromByteOffset: 8, as: Int.self)
            return fields(of: self.type(at: metadata + 16), depth: depth + 1).map { "\(count)*\($0)" }
        default: return nil
        }
    }

    private static func type(at address: UnsafeRawPointer) -> Any.Type {
        unsafeBitCast(address.load(as: UnsafeRawPointer.self), to: Any.Type.self)
    }

    /// `Point{x:Double{…},y:Double{…}}`: stored properties, or cases with what they carry.
    private static func nominal(_ type: Any.Type, _ metadata: UnsafeRawPointer, _ depth: Int) -> String? {
        let descriptor = metadata.load(fromByteOffset: 8, as: UnsafeRawPointer.self)
        guard let records = target(of: descriptor + 16) else { return nil }
        let size = Int(records.load(fromByteOffset: 10, as: UInt16.self))
        let count = Int(records.load(fromByteOffset: 12, as: UInt32.self))
        let texts = (0..<count).map { index -> String? in
            // Flags, type and name, the last two as distances from where they stand.
            let record = records + 16 + index * size
            guard let name = target(of: record + 8) else { return nil }
            let label = String(cString: name.assumingMemoryBound(to: CChar.self))
            guard let mangled = target(of: record + 4) else { return label }
            let named = _getTypeByMangledNameInContext(
                mangled.assumingMemoryBound(to: UInt8.self), UInt(length(ofMangled: mangled)),
                genericContext: descriptor, genericArguments: metadata + 16)
            return named.flatMap { fields(of: $0, depth: depth + 1) }.map { "\(label):\($0)" }
        }
        return list(texts).map { "\(_typeName(type, qualified: false)){\($0)}" }
    }

    private static func list(_ texts: [String?]) -> String? {
        let known = texts.compactMap { $0 }
        return known.count == texts.count ? known.joined(separator: ",") : nil
    }

    /// What a relative pointer leads to; nil where it leads nowhere.
    private static func target(of place: UnsafeRawPointer) -> UnsafeRawPointer? {
        let distance = Int(place.loadUnaligned(as: Int32.self))
        return distance == 0 ? nil : place + distance
    }

    /// Bytes before the 0 that ends a mangled name. The name may contain references, whose bytes may be 0.
    private static func length(ofMangled name: UnsafeRawPointer) -> Int {
        var end = 0
        while true {
            switch name.load(fromByteOffset: end, as: UInt8.self) {
            case 0: return end
            case 0x01...0x17: end += 5
            case 0x18...0x1f: end += 9
            default: end += 1
            }
        }
    }
}
