// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension ColorDescription {
    /// Whether the transfer is one of HDR: PQ (SMPTE ST 2084) or HLG.
    package var isHDR: Bool { transfer == 16 || transfer == 18 }
}

extension VideoFormat {
    /// The same pictures in another size. Where no matrix is named and another one would be assumed for the new height,
    /// the former is named: samples mean the same as before.
    package func resized(to size: PictureSize) -> VideoFormat {
        var result = self
        (result.width, result.height) = (size.width, size.height)
        if color.matrix == 2, result.assumedMatrix != assumedMatrix { result.color.matrix = assumedMatrix }
        return result
    }
}
