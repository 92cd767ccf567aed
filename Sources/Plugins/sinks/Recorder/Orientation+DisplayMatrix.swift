// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension Orientation {
    /// The display matrix of a track (ISO/IEC 14496-12, 8.3.2): nine numbers, row by row, that map a stored point to a
    /// shown one, with y pointing down. It mirrors first, then turns, then moves the picture so that x and y are not
    /// negative, which some players need.
    ///
    /// - Parameters:
    ///   - width: The stored picture's width after its sample aspect ratio was applied, at most 32767.
    ///   - height: Of the stored picture.
    func displayMatrix(width: Int, height: Int) -> [Int32] {
        // Where the unit vectors along x and y are mapped, by quarter turns clockwise.
        let alongX: [(Int32, Int32)] = [(1, 0), (0, 1), (-1, 0), (0, -1)]
        let alongY: [(Int32, Int32)] = [(0, 1), (-1, 0), (0, -1), (1, 0)]
        let sign: Int32 = isMirrored ? -1 : 1
        let (a, b) = (sign * alongX[quarterTurns].0, sign * alongX[quarterTurns].1)
        let (c, d) = alongY[quarterTurns]
        func moved(_ x: Int32, _ y: Int32) -> Int32 { Int32((x < 0 ? width : 0) + (y < 0 ? height : 0)) << 16 }
        // 16.16 fixed point, the last column 2.30.
        return [a << 16, b << 16, 0, c << 16, d << 16, 0, moved(a, c), moved(b, d), 1 << 30]
    }
}
