// SPDX-License-Identifier: Apache-2.0

/// A value that travels with a frame, and with the access unit made of it: faces, a location, a marker.
///
/// Declare the type in ``StageInfo/metadata``. The chain then reserves a slot for it in every lease before the first
/// frame, and ``StageContext/slot(for:)`` gives the slot. A type without arrays and strings costs no allocation.
///
/// ```swift
/// struct Mark: FrameMetadata {
///     static let metadataName = "mark"
///     var level = 0.0
/// }
/// ```
public protocol FrameMetadata: Sendable, Codable {
    /// A short name for listings: `faces`.
    static var metadataName: String { get }
}

/// The place of a kind of metadata in each lease of a chain. ``StageContext/slot(for:)`` gives it.
///
/// Read and write with it as a subscript: `frame[slot] = Mark(level: 0.5)`.
public struct MetadataSlot<Value: FrameMetadata>: Sendable {
    let index: Int
    let offset: Int
}

/// The slots of a chain. Made once per plan; immutable. At most 64 kinds.
final class MetadataLayout: Sendable {
    struct Entry: Sendable {
        let type: any FrameMetadata.Type
        let offset: Int
        let byteCount: Int
        /// Ends the life of the value at this address.
        let destroy: @Sendable (UnsafeMutableRawPointer) -> Void
        /// Makes a copy of the value at the first address, at the second address.
        let copy: @Sendable (UnsafeMutableRawPointer, UnsafeMutableRawPointer) -> Void
        /// Moves the value at the first address to the second.
        let move: @Sendable (UnsafeMutableRawPointer, UnsafeMutableRawPointer) -> Void
    }

    static let none = MetadataLayout([])
    /// The alignment of each region, in bytes.
    static let alignment = 64
    let entries: [Entry]
    let byteCount: Int

    init(_ types: [any FrameMetadata.Type]) {
        var entries: [Entry] = []
        var end = 0
        func add<Value: FrameMetadata>(_ type: Value.Type) {
            guard !entries.contains(where: { $0.type == type }) else { return }
            let offset =
                (end + MemoryLayout<Value>.alignment - 1) / MemoryLayout<Value>.alignment
                * MemoryLayout<Value>.alignment
            end = offset + MemoryLayout<Value>.size
            entries.append(
                Entry(
                    type: type, offset: offset, byteCount: MemoryLayout<Value>.size,
                    destroy: { $0.assumingMemoryBound(to: Value.self).deinitialize(count: 1) },
                    copy: { source, target in
                        target.initializeMemory(
                            as: Value.self, from: source.assumingMemoryBound(to: Value.self), count: 1)
                    },
                    move: { source, target in
                        target.moveInitializeMemory(
                            as: Value.self, from: source.assumingMemoryBound(to: Value.self), count: 1)
                    }))
        }
        for type in types { add(type) }
        precondition(entries.count <= 64, "a chain can have at most 64 kinds of metadata, but has \(entries.count)")
        self.entries = entries
        byteCount = (end + 63) / 64 * 64
    }

    func slot<Value: FrameMetadata>(for type: Value.Type) -> MetadataSlot<Value>? {
        guard let index = index(of: type) else { return nil }
        return MetadataSlot(index: index, offset: entries[index].offset)
    }

    /// Ends the life of all values of a header.
    func clear(_ header: inout ItemHeader) {
        // Most headers of most chains have none, and the loop is not free.
        guard header.metadataPresent != 0 else { return }
        for (index, entry) in entries.enumerated() where header.metadataPresent & (1 << UInt64(index)) != 0 {
            entry.destroy(header.metadata! + entry.offset)
        }
        header.metadataPresent = 0
    }

    /// - Precondition: `target` has no metadata.
    func copy(from source: borrowing ItemHeader, to target: inout ItemHeader) {
        guard source.metadataPresent != 0 else {
            target.metadataPresent = 0
            return
        }
        for (index, entry) in entries.enumerated() where source.metadataPresent & (1 << UInt64(index)) != 0 {
            entry.copy(source.metadata! + entry.offset, target.metadata! + entry.offset)
        }
        target.metadataPresent = source.metadataPresent
    }

    /// Moves the values that `target` does not have; the others stay where they are.
    func move(from source: inout ItemHeader, to target: inout ItemHeader) {
        let moved = source.metadataPresent & ~target.metadataPresent
        guard moved != 0 else { return }
        for (index, entry) in entries.enumerated() where moved & (1 << UInt64(index)) != 0 {
            entry.move(source.metadata! + entry.offset, target.metadata! + entry.offset)
        }
        source.metadataPresent &= ~moved
        target.metadataPresent |= moved
    }
}
