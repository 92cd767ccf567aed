// SPDX-License-Identifier: Apache-2.0

import Shared

/// What an effect puts into a region: samples of each plane, rows as wide as the region. Memory for a whole picture is
/// taken at the start.
final class EffectLayer {
    /// Y, U, V. Chroma has half the region's sides, rounded up.
    let planes: (UnsafeMutablePointer<UInt8>, UnsafeMutablePointer<UInt8>, UnsafeMutablePointer<UInt8>)

    init(width: Int, height: Int) {
        let half = (width / 2 + 1) * (height / 2 + 1)
        planes = (.allocate(capacity: (width + 1) * (height + 1)), .allocate(capacity: half), .allocate(capacity: half))
    }

    deinit {
        planes.0.deallocate()
        planes.1.deallocate()
        planes.2.deallocate()
    }

    subscript(component: Int) -> UnsafeMutablePointer<UInt8> {
        component == 0 ? planes.0 : component == 1 ? planes.1 : planes.2
    }
}

/// One component (Y, U or V) of an i420 or nv12 picture, wherever its samples lie.
struct Component {
    let base: UnsafeMutablePointer<UInt8>
    let strideBytes: Int
    /// Bytes from one sample to the next: 2 in interleaved chroma.
    let step: Int

    /// - Parameter index: 0 Y, 1 U, 2 V.
    init(_ picture: Picture, _ index: Int) {
        let isPair = picture.pixelFormat == .nv12 && index > 0
        let layer = picture[isPair ? 1 : index]
        base = layer.base.assumingMemoryBound(to: UInt8.self) + (isPair ? index - 1 : 0)
        strideBytes = layer.strideBytes
        step = isPair ? 2 : 1
    }

    @inline(__always)
    func row(_ y: Int) -> UnsafeMutablePointer<UInt8> { base + y * strideBytes }
}

extension EffectRegion {
    /// Where the region lies in a component: its first sample, and its numbers of columns and rows.
    func area(of component: Int) -> (left: Int, top: Int, columns: Int, rows: Int) {
        component == 0 ? (left, top, width, height) : (left / 2, top / 2, (width + 1) / 2, (height + 1) / 2)
    }
}

extension EffectLayer {
    /// Puts the layer over the picture, by the mask, in the given components.
    func blend(into picture: Picture, _ region: EffectRegion, _ mask: RegionMask, components: Range<Int> = 0..<3) {
        for index in components {
            let area = region.area(of: index)
            let component = Component(picture, index)
            let alphas = index == 0 ? mask.luma : mask.chroma
            for y in 0..<area.rows {
                let target = component.row(area.top + y) + area.left * component.step
                let source = self[index] + y * area.columns
                let alpha = alphas + y * area.columns
                if component.step == 1 {
                    for x in 0..<area.columns { target[x] = Self.mix(target[x], source[x], alpha[x]) }
                } else {
                    for x in 0..<area.columns { target[2 * x] = Self.mix(target[2 * x], source[x], alpha[x]) }
                }
            }
        }
    }

    /// Puts the layer in place of the picture's samples.
    func copy(into picture: Picture, _ region: EffectRegion) {
        for index in 0..<3 {
            let area = region.area(of: index)
            let component = Component(picture, index)
            for y in 0..<area.rows {
                let target = component.row(area.top + y) + area.left * component.step
                let source = self[index] + y * area.columns
                for x in 0..<area.columns { target[x &* component.step] = source[x] }
            }
        }
    }

    /// Mixes `a` with the weight 255 − alpha and `b` with the weight alpha, rounded to the nearest.
    @inline(__always)
    static func mix(_ a: UInt8, _ b: UInt8, _ alpha: UInt8) -> UInt8 {
        let sum = UInt32(a) &* (255 &- UInt32(alpha)) &+ UInt32(b) &* UInt32(alpha) &+ 127
        // Divides values of up to 16 bits exactly by 255.
        return UInt8(truncatingIfNeeded: (sum &+ 1 &+ (sum >> 8)) >> 8)
    }
}
