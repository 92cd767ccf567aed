// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The place of a picture of another size within the pictures of the chain: in the middle, undistorted, as large as
/// possible.
struct PictureFit: Equatable {
    var x: Int
    var y: Int
    var width: Int
    var height: Int

    /// Sides and corner lie on whole chroma samples of 4:2:0.
    ///
    /// - Parameters:
    ///   - aspect: The width of a sample divided by its height; 0 when unknown, which counts as square.
    ///   - format: The chain's format.
    init(width: Int, height: Int, aspect: Rational, in format: VideoFormat) {
        self.init(x: 0, y: 0, width: format.width, height: format.height)
        // The shown width divided by the shown height, for the picture and for the target.
        let shown = Double(width) * Self.ratio(aspect) / Double(max(height, 1))
        let room = Double(format.width) * Self.ratio(format.sampleAspectRatio) / Double(format.height)
        // Coded sizes are whole blocks, so equal shapes can differ slightly.
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
