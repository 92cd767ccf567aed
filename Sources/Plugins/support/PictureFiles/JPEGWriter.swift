// SPDX-License-Identifier: Apache-2.0

import CTurboJPEG
import FrameCore
import Shared

/// Writes JPEG files; the only file of this module that imports libjpeg-turbo.
///
/// From quality 90 on each pixel has its own chroma (4:4:4); below, two by two share theirs (4:2:0).
final class JPEGWriter {
    static let fullChromaQuality = 90

    private let handle: tjhandle
    /// As large as a file can become. The unused part only takes addresses.
    private let file = GrowingMemory()
    private let planes = GrowingMemory()

    /// - Throws: ``FrameHostError`` `.exhausted`.
    init() throws {
        guard let handle = tjInitCompress() else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a JPEG encoder",
                remedy: "Free some memory on this machine, and ask for the picture again.")
        }
        self.handle = handle
    }

    deinit { tjDestroy(handle) }

    var byteCount: Int { file.byteCount + planes.byteCount }
    func trim() {
        file.trim()
        planes.trim()
    }

    /// - Parameter exif: For the segment APP1 (Exif 2.32, 4.5.4).
    /// - Throws: ``FrameHostError`` `.callFailed` with libjpeg-turbo's words, `.exhausted`.
    func write(_ picture: Picture, quality: Int, exif: [UInt8]) throws -> [UInt8] {
        let (width, height) = (Int32(picture.width), Int32(picture.height))
        let sampling = Int32((quality >= Self.fullChromaQuality ? TJSAMP_444 : TJSAMP_420).rawValue)
        let most = Int(clamping: tjBufSize(width, height, sampling))
        var target: UnsafeMutablePointer<UInt8>? = try file.bytes(most)
        var count = UInt(most)
        let flags = Int32(TJFLAG_NOREALLOC)
        let status: Int32
        if quality >= Self.fullChromaQuality {
            status = tjCompress2(
                handle, picture[0].base.assumingMemoryBound(to: UInt8.self), width, Int32(picture[0].strideBytes),
                height, Int32(TJPF_BGRX.rawValue), &target, &count, sampling, Int32(quality), flags)
        } else {
            let halves = try jpegPlanes(picture)
            PixelCalls.toJPEGPlanes(picture, halves)
            var bases = halves.map { UnsafePointer<UInt8>?($0.base) }
            let strides = halves.map { Int32($0.strideBytes) }
            status = tjCompressFromYUVPlanes(
                handle, &bases, width, strides, height, sampling, &target, &count, Int32(quality), flags)
        }
        guard status == 0, let target, count <= UInt(most) else {
            throw FrameHostError(
                .callFailed, what: "a picture of \(width)x\(height) cannot be written as JPEG",
                remedy: "Ask for a smaller picture, or for PNG.",
                cause: String(cString: tjGetErrorStr2(handle)))
        }
        return Self.file(UnsafeBufferPointer(start: target, count: Int(count)), exif)
    }

    private func jpegPlanes(_ picture: Picture) throws -> [PixelPlane] {
        let sizes = [
            (picture.width, picture.height), ((picture.width + 1) / 2, (picture.height + 1) / 2),
            ((picture.width + 1) / 2, (picture.height + 1) / 2),
        ]
        func stride(_ width: Int) -> Int { (width + 63) / 64 * 64 }
        var next = try planes.bytes(sizes.reduce(0) { $0 + stride($1.0) * $1.1 })
        return sizes.map { width, height in
            defer { next += stride(width) * height }
            return PixelPlane(base: next, strideBytes: stride(width), width: width, height: height)
        }
    }

    /// Puts the Exif segment behind JFIF's, which has to be the first.
    private static func file(_ bytes: UnsafeBufferPointer<UInt8>, _ exif: [UInt8]) -> [UInt8] {
        let hasJFIF = bytes.count > 6 && bytes[2] == 0xff && bytes[3] == 0xe0
        let head = hasJFIF ? min(4 + (Int(bytes[4]) << 8 | Int(bytes[5])), bytes.count) : 2
        let segment = 2 + 6 + exif.count
        var file: [UInt8] = []
        file.reserveCapacity(bytes.count + 2 + segment)
        file += bytes[..<head]
        file += [0xff, 0xe1, UInt8(segment >> 8), UInt8(segment & 255)] + Array("Exif\0\0".utf8)
        file += exif
        file += bytes[head...]
        return file
    }
}
