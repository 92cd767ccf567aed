// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Shared

/// Pictures as frei0r requires them: rows without padding, sides multiples of 8, red first where the effect says so.
///
/// A picture in this form is handed over as it is. Any other is copied to memory of this object, where its right
/// and lower edges are repeated as padding. Made once; allocates nothing afterwards.
final class EffectPixels {
    /// The size that the effect sees.
    let width: Int
    let height: Int
    private let swapsRed: Bool
    private let format: VideoFormat
    private let scratch: UnsafeMutablePointer<UInt32>?

    /// - Parameter format: bgra.
    init(_ format: VideoFormat, colorModel: EffectLibrary.ColorModel) {
        self.format = format
        width = Self.filled(format.width)
        height = Self.filled(format.height)
        swapsRed = colorModel == .rgba
        let fits =
            !swapsRed && width == format.width && height == format.height
            && format.strideBytes(plane: 0) == 4 * format.width
        // Rows are aligned to 64 bytes for vector instructions; frei0r requires 16.
        scratch =
            fits
            ? nil
            : UnsafeMutableRawPointer.allocate(byteCount: 4 * width * height, alignment: 64)
                .initializeMemory(as: UInt32.self, repeating: 0, count: width * height)
    }

    deinit { scratch?.deallocate() }

    /// The next multiple of 8.
    static func filled(_ side: Int) -> Int { (side + 7) / 8 * 8 }

    /// The pixels of `picture` for the effect to read; valid until the next call.
    func load(_ picture: Picture) -> UnsafePointer<UInt32> {
        guard let scratch else { return UnsafePointer(picture[0].base.assumingMemoryBound(to: UInt32.self)) }
        for y in 0..<format.height {
            let row = scratch + y * width
            copy(picture[0].pixels(y), to: row)
            for x in format.width..<width { row[x] = row[format.width - 1] }
        }
        for y in format.height..<height {
            (scratch + y * width).update(from: scratch + (format.height - 1) * width, count: width)
        }
        return UnsafePointer(scratch)
    }

    /// Where the effect must write its output; ``finish(_:)`` copies it to `picture`.
    func target(_ picture: Picture) -> UnsafeMutablePointer<UInt32> {
        scratch ?? picture[0].base.assumingMemoryBound(to: UInt32.self)
    }

    func finish(_ picture: Picture) {
        guard let scratch else { return }
        for y in 0..<format.height { copy(scratch + y * width, to: picture[0].pixels(y)) }
    }

    /// One row; the loop becomes vector instructions.
    private func copy(_ source: UnsafePointer<UInt32>, to target: UnsafeMutablePointer<UInt32>) {
        guard swapsRed else { return target.update(from: source, count: format.width) }
        for x in 0..<format.width {
            let pixel = source[x]
            target[x] = pixel & 0xFF00_FF00 | pixel &>> 16 & 0xFF | (pixel & 0xFF) &<< 16
        }
    }
}

extension Picture.Layer {
    fileprivate func pixels(_ y: Int) -> UnsafeMutablePointer<UInt32> {
        (base + y * strideBytes).assumingMemoryBound(to: UInt32.self)
    }
}
