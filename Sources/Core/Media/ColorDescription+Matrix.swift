// SPDX-License-Identifier: Apache-2.0

extension ColorDescription {
    /// The matrix of luma and chroma in the numbers of ISO/IEC 23091-2, also where none is named, or one that cannot be
    /// converted: then it is what players assume, BT.709 from 720 rows on and BT.601 for fewer.
    public func assumedMatrix(height: Int) -> UInt8 {
        switch matrix {
        case 1, 4, 5, 6, 7, 9, 10: matrix
        default: height >= 720 ? 1 : 6
        }
    }
}

extension VideoFormat {
    /// The matrix of luma and chroma, also where none is named; see ``ColorDescription/assumedMatrix(height:)``.
    public var assumedMatrix: UInt8 { color.assumedMatrix(height: height) }
}
