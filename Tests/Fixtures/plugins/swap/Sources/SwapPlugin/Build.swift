// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Of this image.
let version: Int32 = 1

/// Which image marked a frame.
struct Marker: FrameMetadata {
    static let metadataName = "marker"
    var version: Int32
    var gain: Int32
}

extension Marker {
    init(gain: Int32) { self.init(version: SwapPlugin.version, gain: gain) }
}
