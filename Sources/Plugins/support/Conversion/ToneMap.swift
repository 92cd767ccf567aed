// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Shared

/// Makes 8 bits for ordinary screens of 10 bits in HLG or PQ (ITU-R BT.2100), by John Hable's curve as ffmpeg's `tonemap` has it.
///
/// Luma goes through a table; chroma is scaled with the luma beside it, so that hues stay. 100 nits are 1, and 1,000 nits are as
/// bright as it gets. Primaries and matrix stay those of the source; a player that knows BT.2020 shows its colours.
package struct ToneMap {
    /// By the source's sample of 10 bits.
    private let luma: [UInt8]
    /// How much of the chroma is kept, in 256ths.
    private let gain: [Int32]

    /// ITU-R BT.709, for what is made.
    package static let transferOfResult: UInt8 = 1
    private static let pq: UInt8 = 16
    private static let hlg: UInt8 = 18
    private static let peak = 10.0

    /// `HLG` or `PQ`; nil where the transfer is for ordinary screens.
    package static func name(_ transfer: UInt8) -> String? {
        switch transfer {
        case pq: "PQ"
        case hlg: "HLG"
        default: nil
        }
    }

    /// nil where nothing is to be mapped.
    package init?(from source: VideoFormat, to target: VideoFormat) {
        guard Self.name(source.color.transfer) != nil, source.pixelFormat.bitDepth > 8, target.pixelFormat.bitDepth == 8
        else { return nil }
        let isFull = source.color.range == .full
        let (black, white, highest) = isFull ? (0.0, 1023.0, 255.0) : (64.0, 940.0, 219.0)
        var (luma, gain) = ([UInt8](), [Int32]())
        for code in 0..<1024 {
            let signal = min(max((Double(code) - black) / (white - black), 0), 1)
            let light = min(Self.light(signal, source.color.transfer), Self.peak)
            let mapped = pow(Self.hable(light) / Self.hable(Self.peak), 1 / 2.4)
            luma.append(UInt8((mapped * highest).rounded()) + (isFull ? 0 : 16))
            gain.append(Int32((min(signal > 0 ? mapped / signal : 1, 2) * 256).rounded()))
        }
        (self.luma, self.gain) = (luma, gain)
    }

    /// What a screen shows, 1 for 100 nits.
    private static func light(_ signal: Double, _ transfer: UInt8) -> Double {
        if transfer == pq {
            // SMPTE ST 2084.
            let (m1, m2, c1, c2, c3) = (0.1593017578125, 78.84375, 0.8359375, 18.8515625, 18.6875)
            let root = pow(signal, 1 / m2)
            return pow(max(root - c1, 0) / (c2 - c3 * root), 1 / m1) * 100
        }
        // ARIB STD-B67, on a screen of 1,000 nits.
        let (a, b, c) = (0.17883277, 0.28466892, 0.55991073)
        let scene = signal <= 0.5 ? signal * signal / 3 : (exp((signal - c) / a) + b) / 12
        return pow(scene, 1.2) * 10
    }

    private static func hable(_ x: Double) -> Double {
        let (a, b, c, d, e, f) = (0.15, 0.5, 0.1, 0.2, 0.02, 0.3)
        return (x * (x * a + c * b) + d * e) / (x * (x * a + b) + d * f) - e / f
    }

    /// Converts i010 into i420, p010 into nv12, or either into gray8.
    func convert(_ source: Picture, into target: Picture) {
        let shift: UInt16 = source.pixelFormat == .p010 ? 6 : 0
        for y in 0..<target[0].rows {
            let (row, out) = (Self.words(source[0], y), Self.bytes(target[0], y))
            for x in 0..<target[0].rowBytes { out[x] = luma[Int((row[x] &>> shift) & 1023)] }
        }
        for plane in 1..<max(target.planeCount, 1) {
            let samples = target.planeCount == 2 ? 2 : 1
            for y in 0..<target[plane].rows {
                let (row, out) = (Self.words(source[plane], y), Self.bytes(target[plane], y))
                let beside = Self.words(source[0], 2 * y)
                for x in 0..<target[plane].rowBytes {
                    let gain = gain[Int((beside[x / samples * 2] &>> shift) & 1023)]
                    let value = (Int32((row[x] &>> shift) & 1023) - 512) &* gain
                    out[x] = UInt8(clamping: 128 + (value + 512) >> 10)
                }
            }
        }
    }

    private static func words(_ layer: Picture.Layer, _ y: Int) -> UnsafeMutablePointer<UInt16> {
        (layer.base + y * layer.strideBytes).assumingMemoryBound(to: UInt16.self)
    }

    private static func bytes(_ layer: Picture.Layer, _ y: Int) -> UnsafeMutablePointer<UInt8> {
        layer.bytes + y * layer.strideBytes
    }
}
