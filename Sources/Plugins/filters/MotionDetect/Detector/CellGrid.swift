// SPDX-License-Identifier: Apache-2.0

/// The small picture of luma in which motion is looked for, and its cells of 4 × 4 pixels.
struct CellGrid: Equatable, Sendable {
    /// Pixels of a side of a cell.
    static let side = 4
    /// The long side of the small picture: enough for somebody who is a sixth of the picture tall.
    private static let longSide = 320

    /// Pixels of the small picture, a multiple of 4.
    let width: Int
    /// Rows of the small picture, a multiple of 4.
    let height: Int

    /// Cells in a row.
    var columns: Int { width / Self.side }
    /// Rows of cells.
    var rows: Int { height / Self.side }
    /// How many cells there are.
    var count: Int { columns * rows }

    /// The grid of pictures of a size; nil if a side has less than 16 pixels, in which nothing can be told apart.
    init?(pictureWidth: Int, pictureHeight: Int) {
        guard min(pictureWidth, pictureHeight) >= 16 else { return nil }
        let factor = min(Double(Self.longSide) / Double(max(pictureWidth, pictureHeight)), 1)
        func side(_ full: Int) -> Int {
            max(Int(Double(full) * factor) / Self.side * Self.side, 4 * Self.side)
        }
        (width, height) = (side(pictureWidth), side(pictureHeight))
    }
}
