// SPDX-License-Identifier: Apache-2.0

import CAVFormat

/// Puts the packets of a track whose samples all have as many bytes (PCM, G.711) one behind the other, for MP4 and MOV.
///
/// A file with its index in front has no times for such packets: each sample follows the one before (`movenc.c`,
/// `mov_write_stts_tag`). Times that jitter would be lost in it, and times that do not go on would move all sound after them.
struct SampleTrack {
    /// What is to become of a packet.
    struct Fit {
        var place: Int64 = 0
        var duration: Int64 = 0
        /// Bytes to put in front of its own, all with this value.
        var silence = (count: 0, value: UInt8(0))
        /// Bytes to leave out at its begin.
        var leftOut = 0
    }

    private let sampleBytes: Int
    private let silence: UInt8
    private let rate: Int64
    private var next: Int64?
    /// Samples of silence that were put in, and samples that were left out.
    private(set) var inserted: Int64 = 0
    private(set) var leftOut: Int64 = 0

    /// In thousandths of a second: by how much a packet may be early or late without being moved, as for decoded sound, and the
    /// longest pause that is filled.
    private static let most = (jitter: Int64(40), pause: Int64(10_000))

    /// Nil for a track of packets.
    init?(_ stream: UnsafeMutablePointer<AVStream>) {
        sampleBytes = Self.bytesOfSample(stream)
        guard sampleBytes > 0 else { return nil }
        rate = Int64(stream.pointee.codecpar.pointee.sample_rate)
        switch stream.pointee.codecpar.pointee.codec_id {
        case AV_CODEC_ID_PCM_ALAW: silence = 0xD5
        case AV_CODEC_ID_PCM_MULAW: silence = 0xFF
        case AV_CODEC_ID_PCM_U8: silence = 0x80
        default: silence = 0
        }
    }

    /// Bytes of a sample of all channels, where all have as many and each is one tick of the track; else 0.
    static func bytesOfSample(_ stream: UnsafeMutablePointer<AVStream>) -> Int {
        let about = stream.pointee.codecpar.pointee
        let base = stream.pointee.time_base
        guard about.codec_type == AVMEDIA_TYPE_AUDIO, base.num == 1, base.den == about.sample_rate else { return 0 }
        let bits = Int(av_get_exact_bits_per_sample(about.codec_id))
        return bits % 8 == 0 ? bits / 8 * Int(max(about.ch_layout.nb_channels, 0)) : 0
    }

    /// Where a packet goes whose time is `tick`.
    ///
    /// A pause is filled with silence, unless it is a long one; what lies over the sound before is left out.
    mutating func fit(_ byteCount: Int, at tick: Int64) -> Fit {
        let samples = Int64(byteCount / sampleBytes)
        let begin = next ?? tick
        let off = tick - begin
        var fit = Fit(place: begin, duration: samples)
        if off > rate * Self.most.pause / 1000 {
            fit.place = tick
        } else if off > rate * Self.most.jitter / 1000 {
            fit.silence = (Int(off) * sampleBytes, silence)
            fit.duration += off
            inserted += off
        } else if off < -rate * Self.most.jitter / 1000 {
            let over = min(-off, samples)
            fit.leftOut = Int(over) * sampleBytes
            fit.duration -= over
            leftOut += over
        }
        next = fit.place + fit.duration
        return fit
    }

    /// `0.041 s were left out`; nil where nothing was changed.
    var text: String? {
        func seconds(_ samples: Int64) -> String {
            let thousandths = (samples * 1000 + rate / 2) / rate
            let rest = String(thousandths % 1000)
            return "\(thousandths / 1000).\(String(repeating: "0", count: 3 - rest.count))\(rest) s"
        }
        let parts = [
            leftOut > 0 ? "\(seconds(leftOut)) of sound were left out, which lay over the sound before" : nil,
            inserted > 0 ? "\(seconds(inserted)) of silence were put into pauses" : nil,
        ].compactMap { $0 }
        return parts.isEmpty ? nil : parts.joined(separator: ", and ")
    }
}
