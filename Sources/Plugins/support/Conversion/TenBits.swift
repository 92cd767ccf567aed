// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Rounds samples of 10 bits to the nearest of 8. libyuv's own conversions cut bits off, which is half a step too
/// dark on average.
enum TenBits {
    /// - Parameter shift: Bits below the sample in each 16: 0 for i010, 6 for p010.
    static func round(_ source: Picture.Layer, shift: UInt16, into target: Picture.Layer) {
        let count = target.rowBytes
        for y in 0..<target.rows {
            let row = (source.base + y * source.strideBytes).assumingMemoryBound(to: UInt16.self)
            let out = target.bytes + y * target.strideBytes
            for x in 0..<count {
                // 1023 would become 256.
                let value = min((row[x] &>> shift) & 1023, 1021)
                out[x] = UInt8(truncatingIfNeeded: (value &+ 2) &>> 2)
            }
        }
    }
}
