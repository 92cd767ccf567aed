// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Knows how the scene looks when nothing moves, and which of its cells move now.
///
/// A cell moves if its picture differs from the background, which follows within ten seconds, and also from the picture
/// of a quarter of a second ago: somebody who stands still does not move, and neither does what a parked car uncovers.
/// For both, each cell learns how much it usually differs, so that leaves, rain and noise need more than elsewhere.
final class MotionModel {
    let grid: CellGrid
    /// For each cell: it moves.
    let moves: UnsafeMutablePointer<Bool>
    /// For each cell: it is not looked at.
    let ignored: UnsafeMutablePointer<Bool>
    /// For each cell: something that moves is there, so that it learns slowly what is usual.
    let isHeld: UnsafeMutablePointer<Bool>
    /// Cells that are looked at.
    private(set) var watchedCount: Int
    /// The share of these that move now.
    private(set) var movingShare: Float = 0
    /// The same of all cells, also of those that are not looked at.
    private(set) var changingShare: Float = 0

    private let background: CellChanges
    private let recent: CellChanges
    private let usualBackground: UsualChanges
    private let usualRecent: UsualChanges
    /// The present picture, as levels around 0.
    private let present: UnsafeMutablePointer<Float>
    private let sums: UnsafeMutablePointer<SIMD2<Float>>
    private let windowRows: UnsafeMutablePointer<SIMD4<Float>>
    private let windows: UnsafeMutablePointer<SIMD4<Float>>

    /// Seconds in which the background follows.
    private static let backgroundTime: Float = 10
    private static let recentTime: Float = 0.25
    private static let usualTime: Float = 8
    /// The same where something moves.
    private static let heldFactor: Float = 4
    /// The share of a window's structure that another light may leave over.
    private static let unevenness: Float = 0.03

    init(_ grid: CellGrid) {
        self.grid = grid
        func filled<T>(_ value: T) -> UnsafeMutablePointer<T> {
            let memory = UnsafeMutablePointer<T>.allocate(capacity: grid.count)
            memory.initialize(repeating: value, count: grid.count)
            return memory
        }
        present = .allocate(capacity: grid.width * grid.height)
        present.initialize(repeating: 0, count: grid.width * grid.height)
        moves = filled(false)
        ignored = filled(false)
        isHeld = filled(false)
        sums = filled(.zero)
        windowRows = filled(.zero)
        windows = filled(.zero)
        background = CellChanges(grid)
        recent = CellChanges(grid)
        usualBackground = UsualChanges(grid.count)
        usualRecent = UsualChanges(grid.count)
        watchedCount = grid.count
    }

    deinit {
        present.deallocate()
        moves.deallocate()
        ignored.deallocate()
        isHeld.deallocate()
        sums.deallocate()
        windowRows.deallocate()
        windows.deallocate()
    }

    /// Counts the cells anew after `ignored` was changed.
    func ignoredChanged() { watchedCount = (0..<grid.count).count { !ignored[$0] } }

    /// Takes a picture as the scene at rest.
    func begin(_ luma: UnsafePointer<UInt8>) {
        level(luma)
        background.remember(present)
        recent.remember(present)
        for cell in 0..<grid.count { (moves[cell], isHeld[cell]) = (false, false) }
        (movingShare, changingShare) = (0, 0)
    }

    /// Takes a picture as the one of just now, and leaves the background as it is: after a gap.
    func resume(_ luma: UnsafePointer<UInt8>) {
        level(luma)
        recent.remember(present)
    }

    private func level(_ luma: UnsafePointer<UInt8>) {
        for index in 0..<grid.width * grid.height { present[index] = Float(luma[index]) - 128 }
    }

    /// Compares a picture, tells which cells move, and learns.
    ///
    /// - Parameters:
    ///   - luma: The small picture, without padding.
    ///   - seconds: Since the last one, greater than 0.
    ///   - threshold: Levels of luma by which a cell must differ beyond what is usual.
    ///   - haste: How much faster than usual everything is learned: 1 or more.
    func take(_ luma: UnsafePointer<UInt8>, seconds: Float, threshold: Float, haste: Float = 1) {
        level(luma)
        sumPresent()
        background.compare(present, sums, windows)
        recent.compare(present, sums, windows)
        decide(threshold)
        learn(seconds, haste)
    }

    private func decide(_ threshold: Float) {
        var (moving, changing) = (0, 0)
        for cell in 0..<grid.count {
            let uneven = Self.unevenness * background.structure[cell]
            func exceeds(_ changes: borrowing CellChanges, _ usual: borrowing UsualChanges) -> Bool {
                let least = threshold + usual.bound(cell)
                return changes.leftOver[cell] * changes.leftOver[cell] > least * least + uneven
            }
            let isChanged =
                exceeds(background, usualBackground) && exceeds(recent, usualRecent)
                && background.inCell[cell] > threshold + usualBackground.bound(cell)
                && recent.inCell[cell] > 0.5 * (threshold + usualRecent.bound(cell))
            moves[cell] = isChanged && !ignored[cell]
            changing += isChanged ? 1 : 0
            moving += moves[cell] ? 1 : 0
        }
        movingShare = Float(moving) / Float(max(watchedCount, 1))
        changingShare = Float(changing) / Float(grid.count)
    }

    private func learn(_ seconds: Float, _ haste: Float) {
        func rate(_ time: Float) -> Float { 1 - exp(-seconds * haste / time) }
        let (quick, slow) = (rate(Self.usualTime), rate(Self.usualTime * Self.heldFactor))
        for cell in 0..<grid.count {
            let rate = isHeld[cell] ? slow : quick
            usualBackground.learn(cell, background.leftOver[cell], rate)
            usualRecent.learn(cell, recent.leftOver[cell], rate)
        }
        let (normal, held, recentRate) = (
            rate(Self.backgroundTime), rate(Self.backgroundTime * Self.heldFactor), 1 - exp(-seconds / Self.recentTime)
        )
        let width = grid.width
        for row in 0..<grid.rows {
            for column in 0..<grid.columns {
                let part = isHeld[row * grid.columns + column] ? held : normal
                let first = row * CellGrid.side * width + column * CellGrid.side
                for line in 0..<CellGrid.side {
                    let place = first + line * width
                    let now = four(present + place)
                    follow(background.earlier + place, now, part)
                    follow(recent.earlier + place, now, recentRate)
                }
            }
        }
    }

    @inline(__always)
    private func follow(_ memory: UnsafeMutablePointer<Float>, _ now: SIMD4<Float>, _ rate: Float) {
        let raw = UnsafeMutableRawPointer(memory)
        let then = raw.loadUnaligned(as: SIMD4<Float>.self)
        raw.storeBytes(of: then + (now - then) * rate, as: SIMD4<Float>.self)
    }

    /// Sums of the present picture over cells and windows.
    private func sumPresent() {
        let (width, columns) = (grid.width, grid.columns)
        for row in 0..<grid.rows {
            for column in 0..<columns {
                let first = present + row * CellGrid.side * width + column * CellGrid.side
                var (a, b) = (SIMD4<Float>.zero, SIMD4<Float>.zero)
                for line in 0..<CellGrid.side {
                    let now = four(first + line * width)
                    a += now
                    b += now * now
                }
                sums[row * columns + column] = SIMD2(a.sum(), b.sum())
            }
            let size = Float(CellGrid.side * CellGrid.side)
            for column in 0..<columns {
                var total = SIMD4<Float>.zero
                for near in max(column - 1, 0)...min(column + 1, columns - 1) {
                    let sum = sums[row * columns + near]
                    total += SIMD4(sum[0], sum[1], size, 0)
                }
                windowRows[row * columns + column] = total
            }
        }
        for row in 0..<grid.rows {
            for column in 0..<columns {
                let cell = row * columns + column
                var total = windowRows[cell]
                if row > 0 { total += windowRows[cell - columns] }
                if row < grid.rows - 1 { total += windowRows[cell + columns] }
                windows[cell] = total
            }
        }
    }
}

/// How much each cell usually differs: mean and mean deviation.
struct UsualChanges: ~Copyable {
    private let values: UnsafeMutablePointer<SIMD2<Float>>
    /// Deviations beyond the mean that are still usual.
    private static let deviations: Float = 4
    /// How fast calm is learned, beside unrest.
    private static let forgetting: Float = 0.1

    init(_ count: Int) {
        values = .allocate(capacity: count)
        values.initialize(repeating: .zero, count: count)
    }

    deinit { values.deallocate() }

    /// What is usual at most.
    @inline(__always)
    func bound(_ cell: Int) -> Float { values[cell][0] + Self.deviations * values[cell][1] }

    @inline(__always)
    func learn(_ cell: Int, _ value: Float, _ rate: Float) {
        // What a gust of wind did is remembered for a while.
        let difference = value - values[cell][0]
        let deviation = abs(difference) - values[cell][1]
        values[cell][0] += (difference > 0 ? rate : rate * Self.forgetting) * difference
        values[cell][1] += (deviation > 0 ? rate : rate * Self.forgetting) * deviation
    }
}
