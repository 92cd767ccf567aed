// SPDX-License-Identifier: Apache-2.0

/// Means of square blocks of a region: what pixelate shows, and what blur begins with.
///
/// Blocks are counted from the point that the caller gives as the middle: with pixelate that of the region, so that
/// they move with the face. Memory for a whole picture is taken at the start.
final class BlockMeans {
    /// Means of the component last measured, `columns` in a row.
    let values: UnsafeMutablePointer<UInt8>
    private(set) var columns = 0
    private(set) var rows = 0
    /// How many samples the first block reaches beyond the region, to the left and above.
    private(set) var offsetX = 0
    private(set) var offsetY = 0
    private(set) var side = 1
    private let sums: UnsafeMutablePointer<UInt32>

    init(width: Int, height: Int) {
        // Blocks of two samples are the smallest; one more each way since they begin at the middle.
        values = .allocate(capacity: (width / 2 + 3) * (height / 2 + 3))
        sums = .allocate(capacity: width / 2 + 3)
    }

    deinit {
        values.deallocate()
        sums.deallocate()
    }

    /// - Parameter blockSide: In samples of this component, at least 2 (luma) or 1 (chroma, half of luma's).
    func measure(
        _ component: Component, _ area: (left: Int, top: Int, columns: Int, rows: Int), middleX: Int, middleY: Int,
        blockSide: Int
    ) {
        side = blockSide
        offsetX = (blockSide - (middleX - area.left) % blockSide) % blockSide
        offsetY = (blockSide - (middleY - area.top) % blockSide) % blockSide
        columns = (area.columns + offsetX + blockSide - 1) / blockSide
        rows = (area.rows + offsetY + blockSide - 1) / blockSide
        for row in 0..<rows {
            let top = max(row * blockSide - offsetY, 0)
            let bottom = min((row + 1) * blockSide - offsetY, area.rows)
            for column in 0..<columns { sums[column] = 0 }
            for y in top..<bottom {
                let line = component.row(area.top + y) + area.left * component.step
                for column in 0..<columns {
                    var sum: UInt32 = 0
                    for x in max(
                        column * blockSide - offsetX, 0)..<min((column + 1) * blockSide - offsetX, area.columns)
                    {
                        sum &+= UInt32(line[x &* component.step])
                    }
                    sums[column] &+= sum
                }
            }
            for column in 0..<columns {
                let width = min((column + 1) * blockSide - offsetX, area.columns) - max(column * blockSide - offsetX, 0)
                let count = UInt32(width * (bottom - top))
                values[row * columns + column] = UInt8(truncatingIfNeeded: (sums[column] &+ count / 2) / count)
            }
        }
    }
}
