// SPDX-License-Identifier: Apache-2.0

import CX264
import FrameCore
import PictureStamp

/// The messages of the pictures inside x264, which reads a message only when it encodes the message's picture.
///
/// Only the stage's thread uses it; x264's own threads read the messages that were handed over. There are more
/// places than pictures inside x264, so that no message is overwritten too early. x264 frees none of them
/// (`sei_free` is not set).
final class StampRing {
    private let payloads: UnsafeMutablePointer<x264_sei_payload_t>
    private let bytes: UnsafeMutableRawPointer
    private let capacity: Int
    private var next = 0

    /// What `init` takes, in bytes.
    static func byteCount(mostDelay: Int) -> Int {
        (mostDelay + 4) * (PictureStamp.mostBytes + MemoryLayout<x264_sei_payload_t>.stride)
    }

    /// - Parameter mostDelay: The most pictures inside x264.
    init(mostDelay: Int) {
        capacity = mostDelay + 4
        bytes = .allocate(byteCount: capacity * PictureStamp.mostBytes, alignment: 8)
        payloads = .allocate(capacity: capacity)
        payloads.initialize(repeating: x264_sei_payload_t(), count: capacity)
    }

    deinit {
        payloads.deallocate()
        bytes.deallocate()
    }

    /// Writes a picture's message into the next place.
    func add(capturedAt: Int64, sequenceNumber: UInt64, faces: Faces?) -> UnsafeMutablePointer<x264_sei_payload_t> {
        let place = bytes + next * PictureStamp.mostBytes
        let payload = payloads + next
        next = (next + 1) % capacity
        let count = PictureStamp.write(
            capturedAt: capturedAt, sequenceNumber: sequenceNumber, faces: faces,
            to: UnsafeMutableRawBufferPointer(start: place, count: PictureStamp.mostBytes))
        payload.pointee.payload_size = Int32(count)
        // user_data_unregistered, H.264 D.1.7.
        payload.pointee.payload_type = 5
        payload.pointee.payload = place.assumingMemoryBound(to: UInt8.self)
        return payload
    }
}
