// SPDX-License-Identifier: Apache-2.0

import CTurboJPEG
import FrameCore

/// Writes small pictures as JPEG; the only file of this plugin that imports libjpeg-turbo.
final class SmallJPEG {
    private static let quality: Int32 = 80
    private static let sampling = Int32(TJSAMP_420.rawValue)

    private let handle: tjhandle
    private let width: Int32
    private let height: Int32
    private let room: UnsafeMutablePointer<UInt8>
    private let capacity: Int

    /// - Throws: ``FrameHostError`` `.exhausted`.
    init(width: Int, height: Int) throws {
        guard let handle = tjInitCompress() else {
            throw FrameHostError(
                .exhausted, what: "there is not enough memory for the JPEG encoder of the review page",
                remedy: "Free some memory, and start the chain again.")
        }
        self.handle = handle
        (self.width, self.height) = (Int32(width), Int32(height))
        capacity = Int(clamping: tjBufSize(self.width, self.height, Self.sampling))
        room = .allocate(capacity: capacity)
    }

    deinit {
        tjDestroy(handle)
        room.deallocate()
    }

    /// - Parameter pixels: BGR, rows without padding.
    /// - Throws: ``FrameHostError`` `.callFailed` with libjpeg-turbo's message.
    func write(_ pixels: UnsafePointer<UInt8>) throws -> [UInt8] {
        var target: UnsafeMutablePointer<UInt8>? = room
        var count = UInt(capacity)
        let status = tjCompress2(
            handle, pixels, width, width * 3, height, Int32(TJPF_BGR.rawValue), &target, &count, Self.sampling,
            Self.quality, Int32(TJFLAG_NOREALLOC))
        guard status == 0, count <= UInt(capacity) else {
            throw FrameHostError(
                .callFailed,
                what: "a picture of \(width)x\(height) for the review page ('reviewFile') cannot be encoded as JPEG",
                remedy: "Leave 'reviewFile' out to run without the review page.",
                cause: String(cString: tjGetErrorStr2(handle)), option: "reviewFile")
        }
        return Array(UnsafeBufferPointer(start: room, count: Int(count)))
    }
}
