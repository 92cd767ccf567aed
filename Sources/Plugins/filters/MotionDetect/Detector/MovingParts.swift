// SPDX-License-Identifier: Apache-2.0

/// A rectangle of cells, with fractions: `right` and `bottom` are where it ends.
struct CellBox: Equatable, Sendable {
    var left: Float = 0
    var top: Float = 0
    var right: Float = 0
    var bottom: Float = 0

    var width: Float { right - left }
    var height: Float { bottom - top }
    var middle: SIMD2<Float> { SIMD2(left + right, top + bottom) * 0.5 }

    /// Whether the boxes touch when this one is widened by `reach`.
    func touches(_ other: CellBox, reach: Float) -> Bool {
        other.left < right + reach && other.right > left - reach && other.top < bottom + reach
            && other.bottom > top - reach
    }

    /// A box between this one and another: this one at `share` 0.
    func moved(to other: CellBox, by share: Float) -> CellBox {
        CellBox(
            left: left + (other.left - left) * share, top: top + (other.top - top) * share,
            right: right + (other.right - right) * share, bottom: bottom + (other.bottom - bottom) * share)
    }

    mutating func include(_ other: CellBox) {
        left = min(left, other.left)
        top = min(top, other.top)
        right = max(right, other.right)
        bottom = max(bottom, other.bottom)
    }
}

/// Cells that move and lie together.
struct MovingPart: Equatable, Sendable {
    var box = CellBox()
    /// Cells that move.
    var cells = 0
}

/// Finds the parts of a picture in which cells move. Its memory is taken once.
struct PartFinder: ~Copyable {
    private let grid: CellGrid
    private let labels: UnsafeMutablePointer<Bool>
    private let pending: UnsafeMutablePointer<Int32>
    /// The largest parts of the last picture, in no particular order.
    private(set) var parts: [MovingPart] = []
    /// More parts than that are not things that move.
    static let most = 32

    init(_ grid: CellGrid) {
        self.grid = grid
        labels = .allocate(capacity: grid.count)
        labels.initialize(repeating: false, count: grid.count)
        pending = .allocate(capacity: grid.count)
        parts.reserveCapacity(Self.most)
    }

    deinit {
        labels.deallocate()
        pending.deallocate()
    }

    /// Joins cells that touch, and those that a row or column of other cells separates.
    ///
    /// - Parameter least: Parts of fewer cells are left out.
    mutating func find(_ moves: UnsafePointer<Bool>, least: Int) {
        parts.removeAll(keepingCapacity: true)
        labels.update(repeating: false, count: grid.count)
        for cell in 0..<grid.count where moves[cell] && !labels[cell] {
            let part = gather(cell, moves)
            guard part.cells >= least else { continue }
            if parts.count < Self.most {
                parts.append(part)
            } else if let smallest = parts.indices.min(by: { parts[$0].cells < parts[$1].cells }),
                parts[smallest].cells < part.cells
            {
                parts[smallest] = part
            }
        }
    }

    private func gather(_ seed: Int, _ moves: UnsafePointer<Bool>) -> MovingPart {
        let columns = grid.columns
        var part = MovingPart(box: CellBox(left: .infinity, top: .infinity, right: 0, bottom: 0))
        var count = 1
        pending[0] = Int32(seed)
        labels[seed] = true
        while count > 0 {
            count -= 1
            let cell = Int(pending[count])
            let (row, column) = (cell / columns, cell % columns)
            part.cells += 1
            part.box.include(
                CellBox(
                    left: Float(column), top: Float(row), right: Float(column + 1), bottom: Float(row + 1)))
            for y in max(row - 2, 0)...min(row + 2, grid.rows - 1) {
                for x in max(column - 2, 0)...min(column + 2, columns - 1) {
                    let near = y * columns + x
                    guard moves[near], !labels[near] else { continue }
                    labels[near] = true
                    pending[count] = Int32(near)
                    count += 1
                }
            }
        }
        return part
    }
}
