// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What the tests of stages with pictures share: frames as plain bytes.
struct NoFrame: Error {}

extension StageDriver {
    /// The next frame the stage has given. `#require` cannot unwrap a value that moves.
    func nextFrame() throws -> Frame {
        guard let frame = takeFrame() else { throw NoFrame() }
        return frame
    }
}

extension Frame {
    /// Plane after plane, rows without padding.
    var planeBytes: [[UInt8]] {
        (0..<planeCount).map { index in
            withPlane(index) { plane in (0..<plane.height).flatMap { Array(plane.row($0)) } }
        }
    }
}
