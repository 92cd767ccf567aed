// SPDX-License-Identifier: Apache-2.0

/// How much each cell's picture differs from an earlier one, beyond what another light explains.
///
/// In a window of 3 × 3 cells, the present luma is fitted as `gain × earlier + offset`. What the fit leaves over is
/// structure that was not there: the outline of somebody who walks. A lamp that is switched on, a cloud or the exposure
/// of the camera change gain and offset alone.
struct CellChanges: ~Copyable {
    private let grid: CellGrid
    /// Sums over each cell: earlier, earlier², earlier × present.
    private let own: UnsafeMutablePointer<SIMD4<Float>>
    private let rows: UnsafeMutablePointer<SIMD4<Float>>
    /// Luma of the earlier picture.
    let earlier: UnsafeMutablePointer<Float>
    /// For each cell, what is left over in its window, as a standard deviation in levels of luma.
    let leftOver: UnsafeMutablePointer<Float>
    /// The same in the cell alone, by the window's fit.
    let inCell: UnsafeMutablePointer<Float>
    /// For each cell, how much structure the window of the earlier picture has, as a variance.
    let structure: UnsafeMutablePointer<Float>

    init(_ grid: CellGrid) {
        self.grid = grid
        func zeros<T>(_ value: T, _ count: Int) -> UnsafeMutablePointer<T> {
            let memory = UnsafeMutablePointer<T>.allocate(capacity: count)
            memory.initialize(repeating: value, count: count)
            return memory
        }
        own = zeros(.zero, grid.count)
        rows = zeros(.zero, grid.count)
        earlier = zeros(0, grid.width * grid.height)
        leftOver = zeros(0, grid.count)
        inCell = zeros(0, grid.count)
        structure = zeros(0, grid.count)
    }

    deinit {
        own.deallocate()
        rows.deallocate()
        earlier.deallocate()
        leftOver.deallocate()
        inCell.deallocate()
        structure.deallocate()
    }

    /// Takes a picture as the earlier one.
    func remember(_ luma: UnsafePointer<Float>) { earlier.update(from: luma, count: grid.width * grid.height) }

    /// Compares a picture with the earlier one.
    ///
    /// - Parameters:
    ///   - luma: The small picture as levels around 0, without padding.
    ///   - sums: Of `luma`: sum and sum of squares of each cell.
    ///   - windows: Of `luma`: the same of each window, and its pixels.
    func compare(
        _ luma: UnsafePointer<Float>, _ sums: UnsafePointer<SIMD2<Float>>, _ windows: UnsafePointer<SIMD4<Float>>
    ) {
        sumCells(luma)
        sumRows()
        let (columns, rowCount) = (grid.columns, grid.rows)
        for row in 0..<rowCount {
            let (above, below) = (max(row - 1, 0), min(row + 1, rowCount - 1))
            for column in 0..<columns {
                let cell = row * columns + column
                var sum = rows[cell]
                if above < row { sum += rows[cell - columns] }
                if below > row { sum += rows[cell + columns] }
                fit(cell, sum, sums[cell], windows[cell])
            }
        }
    }

    private func sumCells(_ luma: UnsafePointer<Float>) {
        let width = grid.width
        for row in 0..<grid.rows {
            for column in 0..<grid.columns {
                let first = row * CellGrid.side * width + column * CellGrid.side
                var (a, b, c) = (SIMD4<Float>.zero, SIMD4<Float>.zero, SIMD4<Float>.zero)
                for line in 0..<CellGrid.side {
                    let now = four(luma + first + line * width)
                    let then = four(earlier + first + line * width)
                    a += then
                    b += then * then
                    c += then * now
                }
                own[row * grid.columns + column] = SIMD4(a.sum(), b.sum(), c.sum(), 0)
            }
        }
    }

    private func sumRows() {
        let columns = grid.columns
        for row in 0..<grid.rows {
            let line = row * columns
            for column in 0..<columns {
                var sum = own[line + column]
                if column > 0 { sum += own[line + column - 1] }
                if column < columns - 1 { sum += own[line + column + 1] }
                rows[line + column] = sum
            }
        }
    }

    /// Another light within these bounds explains a change.
    private static let gains: (least: Float, most: Float) = (0.3, 3.5)
    /// Keeps the gain near 1 where there is no structure to tell it from: a variance.
    private static let stiffness: Float = 4

    @inline(__always)
    private func fit(_ cell: Int, _ earlier: SIMD4<Float>, _ now: SIMD2<Float>, _ window: SIMD4<Float>) {
        let count = window[2]
        let (meanNow, meanThen) = (window[0] / count, earlier[0] / count)
        let varianceNow = max(window[1] / count - meanNow * meanNow, 0)
        let varianceThen = max(earlier[1] / count - meanThen * meanThen, 0)
        let common = earlier[2] / count - meanNow * meanThen
        let gain = min(
            max((common + Self.stiffness) / (varianceThen + Self.stiffness), Self.gains.least), Self.gains.most)
        leftOver[cell] = max(varianceNow - 2 * gain * common + gain * gain * varianceThen, 0).squareRoot()
        structure[cell] = varianceThen
        // The same sum over the cell alone: (now - gain * then - offset)², with the window's gain and offset.
        let offset = meanNow - gain * meanThen
        let size = Float(CellGrid.side * CellGrid.side)
        let mine = own[cell]
        let squares =
            now[1] + gain * gain * mine[1] + size * offset * offset - 2 * gain * mine[2] - 2 * offset * now[0]
            + 2 * gain * offset * mine[0]
        inCell[cell] = max(squares / size, 0).squareRoot()
    }
}

/// Four pixels of a row.
@inline(__always)
func four(_ levels: UnsafePointer<Float>) -> SIMD4<Float> {
    UnsafeRawPointer(levels).loadUnaligned(as: SIMD4<Float>.self)
}
