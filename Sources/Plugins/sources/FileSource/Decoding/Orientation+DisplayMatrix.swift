// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension Orientation {
    /// From a display matrix as containers carry it (ISO/IEC 14496-12, 8.3.2; libavutil/display.h): nine numbers, row
    /// by row, that map a stored point to a shown one, with y pointing down.
    ///
    /// - Returns: nil where the matrix cannot be inverted. `isExact` is false where it slants, or turns by an angle
    ///   that is not a multiple of 90°: the orientation is then the nearest.
    static func fromDisplayMatrix(_ matrix: [Int32]) -> (orientation: Orientation, isExact: Bool)? {
        guard matrix.count == 9 else { return nil }
        let (a, b, c, d) = (Int64(matrix[0]), Int64(matrix[1]), Int64(matrix[3]), Int64(matrix[4]))
        let determinant = a * d - b * c
        guard determinant != 0 else { return nil }
        // Mirroring comes first, so undoing it changes the sign of x's part. What is left is a turn.
        let isMirrored = determinant < 0
        let (cosine, sine) = isMirrored ? (-a, -b) : (a, b)
        let turns = cosine.magnitude >= sine.magnitude ? (cosine > 0 ? 0 : 2) : (sine > 0 ? 1 : 3)
        let isExact = min(cosine.magnitude, sine.magnitude) == 0 && min(c.magnitude, d.magnitude) == 0
        return (Orientation(quarterTurns: turns, mirrored: isMirrored), isExact)
    }
}
