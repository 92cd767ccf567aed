// SPDX-License-Identifier: Apache-2.0

import CTurboJPEG
import FrameCore

/// Decodes a camera's JPEG pictures into I420 frames; the only file that imports libjpeg-turbo.
///
/// 4:2:0 goes straight into the frame's planes. 4:2:2, which most webcams give, has twice the rows of chroma: they are
/// decoded into scratch rows and halved into the frame. Cameras leave out the Huffman tables that the standard proposes
/// (ITU-T T.81, K.3); libjpeg-turbo puts them in.
final class JPEGDecoder {
    enum Outcome: Equatable {
        case decoded
        /// Not a JPEG, cut short, or of another size, in libjpeg-turbo's own words.
        case damaged(String)
        /// A kind of JPEG that cameras do not give.
        case unknown(String)
    }

    private let handle: tjhandle
    private let size: PictureSize
    /// Chroma of 4:2:2, one plane after the other.
    private let scratch: UnsafeMutablePointer<UInt8>
    private let scratchStride: Int

    /// - Throws: ``FrameHostError`` `.exhausted`.
    init(_ size: PictureSize) throws {
        guard let handle = tjInitDecompress() else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a JPEG decoder",
                remedy: "Free some memory on this machine.")
        }
        self.handle = handle
        self.size = size
        scratchStride = (size.width + 1) / 2
        scratch = .allocate(capacity: 2 * scratchStride * size.height)
    }

    deinit {
        tjDestroy(handle)
        scratch.deallocate()
    }

    /// [stage thread]
    func decode(_ bytes: UnsafeRawBufferPointer, to frame: inout Frame) -> Outcome {
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
        let y = frame.withMutablePlane(0) { $0 }
        let u = frame.withMutablePlane(1) { $0 }
        let v = frame.withMutablePlane(2) { $0 }
        switch sampling {
        case Int32(TJSAMP_420.rawValue):
            return decode(base, bytes.count, y, (u.baseAddress, u.strideBytes), (v.baseAddress, v.strideBytes))
        case Int32(TJSAMP_422.rawValue):
            let second = scratch + scratchStride * size.height
            let outcome = decode(base, bytes.count, y, (scratch, scratchStride), (second, scratchStride))
            Self.halve(scratch, scratchStride, into: u)
            Self.halve(second, scratchStride, into: v)
            return outcome
        case Int32(TJSAMP_GRAY.rawValue):
            for plane in [u, v] {
                for row in 0..<plane.height { plane.row(row).update(repeating: 128) }
            }
            return decode(base, bytes.count, y, (u.baseAddress, u.strideBytes), (v.baseAddress, v.strideBytes))
        default: return .unknown("chroma is neither 4:2:0 nor 4:2:2")
        }
    }

    private typealias Chroma = (base: UnsafeMutablePointer<UInt8>, stride: Int)

    private func decode(
        _ base: UnsafePointer<UInt8>, _ count: Int, _ y: MutablePlane, _ u: Chroma, _ v: Chroma
    ) -> Outcome {
        withUnsafeTemporaryAllocation(of: UnsafeMutablePointer<UInt8>?.self, capacity: 3) { planes in
            withUnsafeTemporaryAllocation(of: Int32.self, capacity: 3) { strides in
                (planes[0], planes[1], planes[2]) = (y.baseAddress, u.base, v.base)
                (strides[0], strides[1], strides[2]) = (Int32(y.strideBytes), Int32(u.stride), Int32(v.stride))
                let result = tjDecompressToYUVPlanes(
                    handle, base, UInt(count), planes.baseAddress, Int32(size.width), strides.baseAddress,
                    Int32(size.height), 0)
                return result == 0 || isHarmless ? .decoded : .damaged(words)
            }
        }
    }

    /// Whether the last call only warned of extra bytes, which many cameras put before a marker: the picture is
    /// complete. The library returns -1 for any warning; a picture that is cut short has another one.
    private var isHarmless: Bool {
        tjGetErrorCode(handle) == Int32(TJERR_WARNING.rawValue) && words.contains("extraneous bytes before marker")
    }

    private var words: String { tjGetErrorStr2(handle).map { String(cString: $0) } ?? "" }

    /// Makes one row of chroma from two, rounded to nearest.
    private static func halve(_ rows: UnsafePointer<UInt8>, _ stride: Int, into plane: MutablePlane) {
        for y in 0..<plane.height {
            let upper = rows + 2 * y * stride
            let lower = upper + stride
            let target = plane.baseAddress + y * plane.strideBytes
            for x in 0..<plane.rowBytes {
                target[x] = UInt8(truncatingIfNeeded: (UInt16(upper[x]) + UInt16(lower[x]) + 1) >> 1)
            }
        }
    }
}
