// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Shared

/// The effect of gain, tint and hue on luma and chroma, relative to black and grey: a matrix of three by three, in
/// 4096ths.
///
/// It is computed by way of RGB, with the format's own matrix. The result is clipped to the samples' 8 bits, not to
/// the RGB cube.
struct ColorMatrix: Equatable {
    /// Rows for the new Y, U and V; columns for the old Y (less black), U and V (less 128).
    private(set) var weights: [Int32] = [4096, 0, 0, 0, 4096, 0, 0, 0, 4096]
    /// The black level of luma.
    let black: Int32

    init(gain: Double, tint: (red: Double, green: Double, blue: Double), hue: Double, for format: VideoFormat) {
        let isVideo = format.color.range == .video
        black = isVideo ? 16 : 0
        let luma = LumaWeights(of: format)
        // In video range luma has 219 steps and chroma 224; in full range both have 255.
        let chroma = isVideo ? 224.0 / 219 : 1
        let (angle, factors) = (hue * .pi / 180, [tint.red * gain, tint.green * gain, tint.blue * gain])
        for column in 0..<3 {
            let (y, u, v) = (column == 0 ? 1.0 : 0, column == 1 ? 1 / chroma : 0, column == 2 ? 1 / chroma : 0)
            // To RGB, times tint and gain, back, and rotated in the plane of U and V.
            let red = y + 2 * (1 - luma.red) * v
            let blue = y + 2 * (1 - luma.blue) * u
            let green = (y - luma.red * red - luma.blue * blue) / luma.green
            let (r, g, b) = (red * factors[0], green * factors[1], blue * factors[2])
            let newY = luma.red * r + luma.green * g + luma.blue * b
            let newU = (b - newY) / (2 * (1 - luma.blue)) * chroma
            let newV = (r - newY) / (2 * (1 - luma.red)) * chroma
            let result = [newY, newU * cos(angle) - newV * sin(angle), newU * sin(angle) + newV * cos(angle)]
            for row in 0..<3 { weights[row * 3 + column] = Int32((result[row] * 4096).rounded()) }
        }
    }

    /// Whether nothing changes.
    var isIdentity: Bool { weights == [4096, 0, 0, 0, 4096, 0, 0, 0, 4096] }
    /// Whether luma depends on chroma, as with a tint.
    var mixesChroma: Bool { weights[1] != 0 || weights[2] != 0 }

    /// In place. `u` and `v` have one sample for each of luma. The loop becomes vector instructions.
    func applyToLuma(_ y: UnsafeMutablePointer<UInt8>, u: UnsafePointer<UInt8>, v: UnsafePointer<UInt8>, count: Int) {
        let (ofY, ofU, ofV) = (weights[0], weights[1], weights[2])
        let offset = black * 4096 + 2048 - ofY * black - (ofU + ofV) * 128
        for x in 0..<count {
            let value = (Int32(y[x]) &* ofY &+ Int32(u[x]) &* ofU &+ Int32(v[x]) &* ofV &+ offset) &>> 12
            y[x] = UInt8(truncatingIfNeeded: min(max(value, 0), 255))
        }
    }

    /// In place, where luma does not depend on chroma.
    func applyToLuma(_ y: UnsafeMutablePointer<UInt8>, count: Int) {
        let offset = black * 4096 + 2048 - weights[0] * black
        let ofY = weights[0]
        for x in 0..<count {
            y[x] = UInt8(truncatingIfNeeded: min(max((Int32(y[x]) &* ofY &+ offset) &>> 12, 0), 255))
        }
    }

    /// In place. `y` has one sample for each of chroma: the mean of the pixels that share it.
    func applyToChroma(
        _ u: UnsafeMutablePointer<UInt8>, _ v: UnsafeMutablePointer<UInt8>, y: UnsafePointer<UInt8>, count: Int
    ) {
        let (uY, uU, uV, vY, vU, vV) = (weights[3], weights[4], weights[5], weights[6], weights[7], weights[8])
        let uOffset = 128 * 4096 + 2048 - uY * black - (uU + uV) * 128
        let vOffset = 128 * 4096 + 2048 - vY * black - (vU + vV) * 128
        for x in 0..<count {
            let (luma, first, second) = (Int32(y[x]), Int32(u[x]), Int32(v[x]))
            let newU = (luma &* uY &+ first &* uU &+ second &* uV &+ uOffset) &>> 12
            let newV = (luma &* vY &+ first &* vU &+ second &* vV &+ vOffset) &>> 12
            u[x] = UInt8(truncatingIfNeeded: min(max(newU, 0), 255))
            v[x] = UInt8(truncatingIfNeeded: min(max(newV, 0), 255))
        }
    }
}
