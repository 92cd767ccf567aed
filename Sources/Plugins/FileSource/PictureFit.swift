// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Where a picture of another size goes in the pictures of the chain: in the middle, undistorted, as large as there is
/// room.
struct PictureFit: Equatable {
    var x: Int
    var y: Int
    var width: Int
    var height: Int

    /// Sides and corner fall on whole chroma samples of 4:2:0.
    ///
    /// - Parameters:
    ///   - aspect: Width of one of its samples over its height; 0 when unknown, then they are square.
    ///   - format: The chain's.
    init(width: Int, height: Int, aspect: Rational, in format: VideoFormat) {
        self.init(x: 0, y: 0, width: format.width, height: format.height)
        // Shown width over shown height, of the picture and of what it goes into.
        let shown = Double(width) * Self.ratio(aspect) / Double(max(height, 1))
        let room = Double(format.width) * Self.ratio(format.sampleAspectRatio) / Double(format.height)
        // Coded sizes are whole blocks, so the same shape can differ by a little.
        guard (shown / room - 1).magnitude > 0.02 else { return }
        if shown > room {
            self.height = Self.even(Double(format.height) * room / shown, atMost: format.height)
            y = (format.height - self.height) / 2 & ~1
        } else {
            self.width = Self.even(Double(format.width) * shown / room, atMost: format.width)
            x = (format.width - self.width) / 2 & ~1
        }
    }

    init(x: Int, y: Int, width: Int, height: Int) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
    }

    private static func ratio(_ aspect: Rational) -> Double { aspect.isZero ? 1 : aspect.value }

    private static func even(_ value: Double, atMost limit: Int) -> Int {
        min(max(Int(value.rounded()) & ~1, 2), limit)
    }
}
