// SPDX-License-Identifier: Apache-2.0

import CAVFormat

/// A running sum over the packets of one track: times, sizes, key flags, bytes, in their order. Durations are left out:
/// they follow from the times, and the reader guesses them where a file has fragments.
final class PacketDigest {
    struct Value: Equatable {
        var count: Int
        var sum: [UInt8]
    }

    private var hash = av_murmur3_alloc()
    private var count = 0
    /// The flags that count: key flags, and for pictures whether they are shown, since an edit list could leave one
    /// out. For sound, and for pictures before 0, the latter does not count: packets before the first that is heard or
    /// shown are marked in a whole file, but not in a fragmented one.
    private let keptFlags: Int32

    init(isSound: Bool) {
        keptFlags = isSound ? AV_PKT_FLAG_KEY : AV_PKT_FLAG_KEY | AV_PKT_FLAG_DISCARD
        av_murmur3_init(hash)
    }

    deinit { av_free(UnsafeMutableRawPointer(hash)) }

    func add(_ packet: UnsafeMutablePointer<AVPacket>) {
        let kept = packet.pointee.pts < 0 ? keptFlags & ~AV_PKT_FLAG_DISCARD : keptFlags
        let about = (
            packet.pointee.pts, packet.pointee.dts, Int64(packet.pointee.size), Int64(packet.pointee.flags & kept)
        )
        withUnsafeBytes(of: about) {
            av_murmur3_update(hash, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count)
        }
        av_murmur3_update(hash, packet.pointee.data, Int(packet.pointee.size))
        count += 1
    }

    /// The result. Must be called only once.
    func finish() -> Value {
        var sum = [UInt8](repeating: 0, count: 16)
        av_murmur3_final(hash, &sum)
        return Value(count: count, sum: sum)
    }
}

/// One digest for each track of a file.
struct PacketDigests {
    private let digests: [PacketDigest]

    init(of file: RecordingReader) {
        digests = (0..<file.streamCount).map { index in
            PacketDigest(isSound: file.stream(index).pointee.codecpar.pointee.codec_type == AVMEDIA_TYPE_AUDIO)
        }
    }

    func add(_ packet: UnsafeMutablePointer<AVPacket>) { digests[Int(packet.pointee.stream_index)].add(packet) }

    /// The result of a track. Must be read only once for each.
    subscript(index: Int) -> PacketDigest.Value { digests[index].finish() }
}
