// SPDX-License-Identifier: Apache-2.0

import CTurboJPEG
import FrameCore

/// Decodes JPEG pictures of cameras and files into 4:2:0 with libjpeg-turbo.
///
/// 4:2:0 goes straight into its planes. 4:2:2, which most webcams give, has twice the rows of chroma: they are
/// decoded into scratch rows and halved into the planes. Cameras leave out the Huffman tables that the standard proposes
/// (ITU-T T.81, K.3); libjpeg-turbo puts them in. Used by one thread at a time.
package final class JPEGDecoder {
    package enum Outcome: Equatable {
        case decoded
        /// Not a JPEG, cut short, or of another size, in libjpeg-turbo's own words.
        case damaged(String)
        /// A kind of JPEG that cameras do not give.
        case unknown(String)
    }

    /// Where the rows of a plane go.
    package struct Target {
        package let base: UnsafeMutablePointer<UInt8>
        package let stride: Int

        package init(_ base: UnsafeMutablePointer<UInt8>, stride: Int) { (self.base, self.stride) = (base, stride) }

        fileprivate init(_ plane: MutablePlane) { self.init(plane.baseAddress, stride: plane.strideBytes) }
    }

    private let handle: tjhandle
    /// Chroma of 4:2:2, one plane after the other.
    private var scratch: UnsafeMutablePointer<UInt8>?
    private var scratchSize = PictureSize(0, 0)

    /// - Throws: ``FrameHostError`` `.exhausted`.
    package init() throws {
        guard let handle = tjInitDecompress() else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a JPEG decoder",
                remedy: "Free some memory on this machine.")
        }
        self.handle = handle
    }

    deinit {
        tjDestroy(handle)
        scratch?.deallocate()
    }

    /// [stage thread] Decodes a picture of the frame's size.
    package func decode(_ bytes: UnsafeRawBufferPointer, to frame: inout Frame) -> Outcome {
        let size = PictureSize(frame.format.width, frame.format.height)
        let (y, u, v) = (
            frame.withMutablePlane(0) { Target($0) }, frame.withMutablePlane(1) { Target($0) },
            frame.withMutablePlane(2) { Target($0) }
        )
        return decode(bytes, size: size, y, u, v)
    }

    /// Decodes a picture of this size. Luma of an odd width or height is written one column or row further.
    package func decode(_ bytes: UnsafeRawBufferPointer, size: PictureSize, _ y: Target, _ u: Target, _ v: Target)
        -> Outcome
    {
        guard let base = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count > 4 else {
            return .damaged("empty")
        }
        var (width, height, sampling, space): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
        guard tjDecompressHeader3(handle, base, UInt(bytes.count), &width, &height, &sampling, &space) == 0 else {
            return .damaged(words)
        }
        guard Int(width) == size.width, Int(height) == size.height else {
            return .damaged("\(width)x\(height) instead of \(size)")
        }
        let (chromaWidth, chromaHeight) = ((size.width + 1) / 2, (size.height + 1) / 2)
        switch sampling {
        case Int32(TJSAMP_420.rawValue):
            return decode(base, bytes.count, size, y, u, v)
        case Int32(TJSAMP_422.rawValue):
            let rows = makeScratch(for: size)
            let (first, second) = (
                Target(rows, stride: chromaWidth), Target(rows + chromaWidth * (size.height + 1), stride: chromaWidth)
            )
            let outcome = decode(base, bytes.count, size, y, first, second)
            Self.halve(first, rows: size.height, into: u, width: chromaWidth)
            Self.halve(second, rows: size.height, into: v, width: chromaWidth)
            return outcome
        case Int32(TJSAMP_GRAY.rawValue):
            for plane in [u, v] {
                for row in 0..<chromaHeight {
                    (plane.base + row * plane.stride).update(repeating: 128, count: chromaWidth)
                }
            }
            return decode(base, bytes.count, size, y, u, v)
        default: return .unknown("chroma is neither 4:2:0 nor 4:2:2")
        }
    }

    private func decode(
        _ base: UnsafePointer<UInt8>, _ count: Int, _ size: PictureSize, _ y: Target, _ u: Target, _ v: Target
    ) -> Outcome {
        withUnsafeTemporaryAllocation(of: UnsafeMutablePointer<UInt8>?.self, capacity: 3) { planes in
            withUnsafeTemporaryAllocation(of: Int32.self, capacity: 3) { strides in
                (planes[0], planes[1], planes[2]) = (y.base, u.base, v.base)
                (strides[0], strides[1], strides[2]) = (Int32(y.stride), Int32(u.stride), Int32(v.stride))
                let result = tjDecompressToYUVPlanes(
                    handle, base, UInt(count), planes.baseAddress, Int32(size.width), strides.baseAddress,
                    Int32(size.height), 0)
                return result == 0 || isHarmless ? .decoded : .damaged(words)
            }
        }
    }

    private func makeScratch(for size: PictureSize) -> UnsafeMutablePointer<UInt8> {
        if let scratch, scratchSize == size { return scratch }
        scratch?.deallocate()
        scratchSize = size
        // An odd number of rows is written rounded up.
        let made = UnsafeMutablePointer<UInt8>.allocate(capacity: 2 * ((size.width + 1) / 2) * (size.height + 1))
        scratch = made
        return made
    }

    /// Whether the last call only warned of extra bytes, which many cameras put before a marker: the picture is
    /// complete. The library returns -1 for any warning; a picture that is cut short has another one.
    private var isHarmless: Bool {
        tjGetErrorCode(handle) == Int32(TJERR_WARNING.rawValue) && words.contains("extraneous bytes before marker")
    }

    private var words: String { tjGetErrorStr2(handle).map { String(cString: $0) } ?? "" }

    /// Makes one row of chroma from two, rounded to nearest. A last row that is alone stays.
    private static func halve(_ source: Target, rows: Int, into target: Target, width: Int) {
        for y in 0..<(rows + 1) / 2 {
            let upper = source.base + 2 * y * source.stride
            let lower = 2 * y + 1 < rows ? upper + source.stride : upper
            let row = target.base + y * target.stride
            for x in 0..<width {
                row[x] = UInt8(truncatingIfNeeded: (UInt16(upper[x]) + UInt16(lower[x]) + 1) >> 1)
            }
        }
    }
}
