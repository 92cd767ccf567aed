// SPDX-License-Identifier: Apache-2.0

/// Which bytes of a slab are free: first fit, lowest address first, neighbours joined. A value, tested without threads.
///
/// First fit at low addresses keeps the number of used pages small. All memory that it needs is reserved at `init`.
struct SlabState {
    private struct Hole {
        var start: Int
        var count: Int
    }

    /// Payloads begin at multiples of this many bytes.
    static let alignment = 64
    let byteCount: Int
    private var holes: [Hole]
    private(set) var usedBytes = 0

    init(byteCount: Int, mostBlocks: Int) {
        self.byteCount = byteCount
        holes = []
        holes.reserveCapacity(mostBlocks + 2)
        holes.append(Hole(start: 0, count: byteCount))
    }

    static func rounded(_ count: Int) -> Int { (max(count, 1) + alignment - 1) / alignment * alignment }

    /// The start of a block of at least `count` bytes, nil when no hole is large enough.
    mutating func take(_ count: Int) -> Int? {
        guard count <= byteCount else { return nil }
        let size = Self.rounded(count)
        guard let index = holes.firstIndex(where: { $0.count >= size }) else { return nil }
        let start = holes[index].start
        if holes[index].count == size {
            holes.remove(at: index)
        } else {
            holes[index].start += size
            holes[index].count -= size
        }
        usedBytes += size
        return start
    }

    /// Gives a block back; `count` as it was asked for.
    mutating func giveBack(start: Int, count: Int) {
        let size = Self.rounded(count)
        usedBytes -= size
        let next = holes.firstIndex { $0.start > start } ?? holes.count
        let joinsBefore = next > 0 && holes[next - 1].start + holes[next - 1].count == start
        let joinsAfter = next < holes.count && start + size == holes[next].start
        switch (joinsBefore, joinsAfter) {
        case (true, true):
            holes[next - 1].count += size + holes[next].count
            holes.remove(at: next)
        case (true, false): holes[next - 1].count += size
        case (false, true):
            holes[next].start = start
            holes[next].count += size
        case (false, false): holes.insert(Hole(start: start, count: size), at: next)
        }
    }
}
