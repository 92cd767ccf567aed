// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// The frame's number as white digits on black, at least six of them, below where the strip may be.
///
/// Left edge at `W/32`, top edge at `H/8`, a dot is `H/240 * 2` pixels (at least 2); all rounded down to even.
struct SequenceNumber {
    private let ink: Paint
    private let ground: Paint
    private let x: Int
    private let y: Int
    private let scale: Int

    init(_ format: VideoFormat) {
        ink = Paint(RGBColor(red: 255, green: 255, blue: 255), for: format)
        ground = Paint(RGBColor(red: 0, green: 0, blue: 0), for: format)
        x = format.width / 32 / 2 * 2
        y = format.height / 8 / 2 * 2
        scale = max(format.height / 240 * 2, 2)
    }

    func paint(_ number: Int, on picture: Picture) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var left = number
            var start = digits.count
            repeat {
                start -= 1
                digits[start] = UInt8(ascii: "0") + UInt8(left % 10)
                left /= 10
            } while left > 0 || digits.count - start < 6
            picture.draw(
                UnsafeBufferPointer(rebasing: digits[start...]), x: x, y: y, scale: scale, ink: ink, ground: ground)
        }
    }
}
