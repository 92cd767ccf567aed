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
    /// Of a track whose samples all have as many bytes (PCM, G.711), how many and the track's ticks for each; 0 for any other.
    /// A reader of such a track cuts packets anew, so that only the samples count, and the times where these do not follow
    /// each other.
    private let sampleBytes: Int
    private var next: Int64?

    init(_ stream: UnsafeMutablePointer<AVStream>) {
        let isSound = stream.pointee.codecpar.pointee.codec_type == AVMEDIA_TYPE_AUDIO
        keptFlags = isSound ? AV_PKT_FLAG_KEY : AV_PKT_FLAG_KEY | AV_PKT_FLAG_DISCARD
        sampleBytes = SampleTrack.bytesOfSample(stream)
        av_murmur3_init(hash)
    }

    deinit { av_free(UnsafeMutableRawPointer(hash)) }

    func add(_ packet: UnsafeMutablePointer<AVPacket>) {
        if sampleBytes > 0 { return add(samples: packet) }
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

    private func add(samples packet: UnsafeMutablePointer<AVPacket>) {
        if packet.pointee.pts != next {
            withUnsafeBytes(of: packet.pointee.pts) {
                av_murmur3_update(hash, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), $0.count)
            }
        }
        av_murmur3_update(hash, packet.pointee.data, Int(packet.pointee.size))
        // Times of files are within ±2^61.
        next = packet.pointee.pts &+ Int64(Int(packet.pointee.size) / sampleBytes)
        count += Int(packet.pointee.size)
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
        digests = (0..<file.streamCount).map { PacketDigest(file.stream($0)) }
    }

    func add(_ packet: UnsafeMutablePointer<AVPacket>) { digests[Int(packet.pointee.stream_index)].add(packet) }

    /// The result of a track. Must be read only once for each.
    subscript(index: Int) -> PacketDigest.Value { digests[index].finish() }
}
