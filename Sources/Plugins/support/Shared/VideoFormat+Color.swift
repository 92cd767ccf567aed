// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension ColorDescription {
    /// Whether the transfer is one of HDR: PQ (SMPTE ST 2084) or HLG.
    package var isHDR: Bool { transfer == 16 || transfer == 18 }

    /// The matrix of luma and chroma in the numbers of ISO/IEC 23091-2, also where none is named, or one that cannot be
    /// converted: then it is what players assume, BT.709 from 720 rows on and BT.601 for fewer.
    package func assumedMatrix(height: Int) -> UInt8 {
        switch matrix {
        case 1, 4, 5, 6, 7, 9, 10: matrix
        default: height >= 720 ? 1 : 6
        }
    }
}

extension VideoFormat {
    /// The matrix of luma and chroma, also where none is named.
    package var assumedMatrix: UInt8 { color.assumedMatrix(height: height) }

    /// The same pictures in another size. Where no matrix is named and another one would be assumed for the new height,
    /// the former is named: samples mean the same as before.
    package func resized(to size: PictureSize) -> VideoFormat {
        var result = self
        (result.width, result.height) = (size.width, size.height)
        if color.matrix == 2, result.assumedMatrix != assumedMatrix { result.color.matrix = assumedMatrix }
        return result
    }
}
