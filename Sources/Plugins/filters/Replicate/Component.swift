// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// One component of a picture: a plane, or one of two that share it.
struct Component {
    let base: UnsafeMutablePointer<UInt8>
    let strideBytes: Int
    /// Bytes from one sample to the next: 2 in interleaved chroma.
    let step: Int
    let width: Int
    let height: Int

    /// - Parameter index: 0 luma, 1 U, 2 V. The picture is i420 or nv12.
    init(_ picture: Picture, _ index: Int) {
        let isPair = picture.pixelFormat == .nv12 && index > 0
        let layer = picture[isPair ? 1 : index]
        base = layer.base.assumingMemoryBound(to: UInt8.self) + (isPair ? index - 1 : 0)
        strideBytes = layer.strideBytes
        step = isPair ? 2 : 1
        width = layer.rowBytes / step
        height = layer.rows
    }

    func row(_ y: Int) -> UnsafeMutablePointer<UInt8> { base + y * strideBytes }
}

/// All three components of a picture.
struct Components {
    let y: Component
    let u: Component
    let v: Component

    init(_ picture: Picture) {
        (y, u, v) = (Component(picture, 0), Component(picture, 1), Component(picture, 2))
    }

    /// 0 luma, 1 U, 2 V.
    subscript(index: Int) -> Component { index == 0 ? y : index == 1 ? u : v }
}
