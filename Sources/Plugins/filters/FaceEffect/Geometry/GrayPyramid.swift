// SPDX-License-Identifier: Apache-2.0

/// One plane of luma without padding.
struct GrayPlane {
    let base: UnsafeMutablePointer<UInt8>
    let width: Int
    let height: Int
}

/// A small upright picture of luma in three sizes, each half of the one before. Its memory is its own.
final class GrayPyramid {
    static let levelCount = 3
    let levels: [GrayPlane]
    private let memory: UnsafeMutablePointer<UInt8>

    init(width: Int, height: Int) {
        var sides = [(width: width, height: height)]
        for _ in 1..<Self.levelCount { sides.append((max(sides.last!.width / 2, 1), max(sides.last!.height / 2, 1))) }
        let total = sides.reduce(0) { $0 + $1.width * $1.height }
        memory = .allocate(capacity: total)
        memory.initialize(repeating: 0, count: total)
        var end = memory
        levels = sides.map { side in
            defer { end += side.width * side.height }
            return GrayPlane(base: end, width: side.width, height: side.height)
        }
    }

    deinit { memory.deallocate() }

    var full: GrayPlane { levels[0] }

    /// Makes the smaller levels from the first.
    func build() {
        for index in 1..<Self.levelCount {
            let source = levels[index - 1]
            let target = levels[index]
            guard source.width > 1, source.height > 1 else { continue }
            for y in 0..<target.height {
                let first = source.base + 2 * y * source.width
                let second = first + source.width
                let row = target.base + y * target.width
                for x in 0..<target.width {
                    let sum =
                        UInt16(first[2 * x]) &+ UInt16(first[2 * x + 1]) &+ UInt16(second[2 * x])
                        &+ UInt16(second[2 * x + 1])
                    row[x] = UInt8(truncatingIfNeeded: (sum &+ 2) >> 2)
                }
            }
        }
    }

    /// Copies the picture of another pyramid of the same size.
    func copy(from other: GrayPyramid) {
        for (target, source) in zip(levels, other.levels) {
            target.base.update(from: source.base, count: source.width * source.height)
        }
    }
}
