// SPDX-License-Identifier: Apache-2.0

import CTurboJPEG
import FrameCore
import FrameSupport
import Glibc

/// A JPEG file as red, green, blue and an opaque alpha, eight bits each.
struct JPEGFile {
    /// The most bytes of the file.
    private static let mostBytes = 64 << 20

    let width: Int
    let height: Int
    let pixels: [UInt8]

    /// Whether a file begins as JPEG does (ITU-T T.81, B.1.1.3: SOI, and the marker that follows).
    static func isOne(_ path: String) -> Bool {
        (try? bytes(of: path, most: 3)).map { $0 == [0xFF, 0xD8, 0xFF] } ?? false
    }

    /// [control thread] Reads the file (`tjDecompress2`).
    ///
    /// - Throws: ``FrameHostError`` `.unavailable` with libjpeg-turbo's words; damage is a fault.
    init(_ path: String, option: String) throws {
        let place = FaultPlace(option)
        let bytes: [UInt8]
        do throws(ReadFault) { bytes = try Self.bytes(of: path, most: Self.mostBytes) } catch {
            throw FrameHostError(
                .unavailable, place: place, what: "\(path) cannot be read: \(String(cString: strerror(error.errno)))",
                remedy: "Name a PNG or JPEG file of less than \(Self.mostBytes >> 20) MB.")
        }
        guard let handle = tjInitDecompress() else {
            throw FrameHostError(
                .exhausted, place: place, what: "not enough memory for a JPEG decoder",
                remedy: "Free some memory on this machine, and try again.")
        }
        defer { tjDestroy(handle) }
        func fault() -> FrameHostError {
            FrameHostError(
                .unavailable, place: place,
                what: "\(path) cannot be read as JPEG: \(tjGetErrorStr2(handle).map { String(cString: $0) } ?? "")",
                remedy: "Save the picture as PNG or JPEG again, or name another file.")
        }
        var (wide, high, sampling, space): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
        guard tjDecompressHeader3(handle, bytes, UInt(bytes.count), &wide, &high, &sampling, &space) == 0 else {
            throw fault()
        }
        let sides = 1...PNGFile.mostPixels
        guard sides.contains(Int(wide)), sides.contains(Int(high)) else {
            throw FrameHostError(
                .unavailable, place: place,
                what: "\(path) must have at most \(PNGFile.mostPixels) pixels on each side, but has \(wide)x\(high)",
                remedy: "Make the picture smaller, or use another one.")
        }
        (width, height) = (Int(wide), Int(high))
        var pixels = [UInt8](repeating: 0, count: width * height * 4)
        guard
            tjDecompress2(handle, bytes, UInt(bytes.count), &pixels, wide, wide * 4, high, Int32(TJPF_RGBA.rawValue), 0)
                == 0
        else { throw fault() }
        self.pixels = pixels
    }

    private struct ReadFault: Error { var errno: Int32 }

    /// The first bytes of a file.
    ///
    /// - Throws: EFBIG for one with more bytes than `most`, where that is ``mostBytes``.
    private static func bytes(of path: String, most: Int) throws(ReadFault) -> [UInt8] {
        // Opening a pipe without a writer would wait.
        let file = SystemCall.retrying { open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
        guard file >= 0 else { throw ReadFault(errno: errno) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw ReadFault(errno: errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw ReadFault(errno: EINVAL) }
        if most == mostBytes, status.st_size > most { throw ReadFault(errno: EFBIG) }
        var bytes = [UInt8](repeating: 0, count: min(Int(status.st_size), most))
        let (count, code) = bytes.withUnsafeMutableBytes { Transfer.read(into: $0, from: file) }
        guard code == 0 else { throw ReadFault(errno: code) }
        return Array(bytes.prefix(count))
    }
}
