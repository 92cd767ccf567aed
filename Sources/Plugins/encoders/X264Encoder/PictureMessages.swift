// SPDX-License-Identifier: Apache-2.0

import CX264
import FrameCore
import PictureStamp

/// The messages (SEI) of the pictures inside x264, which reads a message only when it encodes the message's picture.
///
/// Only the stage's thread uses it; x264's own threads read the messages that were handed over. There are more
/// places than pictures inside x264, so that no message is overwritten too early. x264 frees none of them
/// (`sei_free` is not set).
final class PictureMessages {
    /// The messages of one picture, one after the other.
    struct Messages {
        var first: UnsafeMutablePointer<x264_sei_payload_t>
        var count: Int
    }

    /// A stamp, and captions.
    private static let mostPerPicture = 2
    /// What comes before captions: ITU-T T.35's country and provider, how ATSC A/53 marks them (`GA94`, 3), how many there
    /// are, and a byte that is reserved.
    private static let captionStart: [UInt8] = [0xB5, 0x00, 0x31, 0x47, 0x41, 0x39, 0x34, 3, 0x40, 0xFF]
    private static let captionHead = captionStart.count
    private static let captionBytes = captionHead + ClosedCaptions.mostBytes + 1

    private let payloads: UnsafeMutablePointer<x264_sei_payload_t>
    private let bytes: UnsafeMutableRawPointer
    private let capacity: Int
    private let placeBytes: Int
    private var next = 0
    /// How many messages the next picture has so far, and their bytes.
    private var count = 0
    private var used = 0

    private static func placeBytes(hasStamps: Bool) -> Int { captionBytes + (hasStamps ? PictureStamp.mostBytes : 0) }

    /// What `init` takes, in bytes.
    static func byteCount(mostDelay: Int, hasStamps: Bool) -> Int {
        (mostDelay + 4)
            * (placeBytes(hasStamps: hasStamps) + mostPerPicture * MemoryLayout<x264_sei_payload_t>.stride)
    }

    /// - Parameters:
    ///   - mostDelay: The most pictures inside x264.
    ///   - hasStamps: Whether there are messages beside captions.
    init(mostDelay: Int, hasStamps: Bool) {
        capacity = mostDelay + 4
        placeBytes = Self.placeBytes(hasStamps: hasStamps)
        bytes = .allocate(byteCount: capacity * placeBytes, alignment: 8)
        payloads = .allocate(capacity: capacity * Self.mostPerPicture)
        payloads.initialize(repeating: x264_sei_payload_t(), count: capacity * Self.mostPerPicture)
    }

    deinit {
        payloads.deallocate()
        bytes.deallocate()
    }

    /// Adds a message with the time, the number and the faces of the next picture: user_data_unregistered, H.264 D.1.7.
    func addStamp(capturedAt: Int64, sequenceNumber: UInt64, faces: Faces?) {
        add(type: 5) {
            PictureStamp.write(capturedAt: capturedAt, sequenceNumber: sequenceNumber, faces: faces, to: $0)
        }
    }

    /// Adds the captions of the next picture: user_data_registered_itu_t_t35 (H.264 D.1.6), as ATSC A/53 part 4, 6.2.3 has
    /// it.
    func add(_ captions: ClosedCaptions) {
        add(type: 4) { target in
            target.copyBytes(from: Self.captionStart)
            target[8] = 0x40 | UInt8(captions.count / 3)
            for index in 0..<captions.count { target[Self.captionHead + index] = captions[index] }
            target[Self.captionHead + captions.count] = 0xFF
            return Self.captionHead + captions.count + 1
        }
    }

    private func add(type: Int32, _ write: (UnsafeMutableRawBufferPointer) -> Int) {
        let place = bytes + next * placeBytes + used
        let payload = payloads + next * Self.mostPerPicture + count
        let written = write(UnsafeMutableRawBufferPointer(start: place, count: placeBytes - used))
        payload.pointee.payload_size = Int32(written)
        payload.pointee.payload_type = type
        payload.pointee.payload = place.assumingMemoryBound(to: UInt8.self)
        count += 1
        used += written
    }

    /// The messages of the picture that is handed over now; nil where it has none.
    func take() -> Messages? {
        guard count > 0 else { return nil }
        defer {
            next = (next + 1) % capacity
            (count, used) = (0, 0)
        }
        return Messages(first: payloads + next * Self.mostPerPicture, count: count)
    }
}
