// SPDX-License-Identifier: Apache-2.0

import CodedVideo

/// How many decoded pictures a decoder must keep for an H.264 stream, by its sequence parameter set.
///
/// A level allows many more than most encoders use, and each takes the memory of a picture. Reads no further than
/// necessary, and trusts nothing: anything that does not follow the standard gives nil.
///
/// - SeeAlso: ITU-T H.264, 7.3.2.1.1 (sequence parameter set), E.1.1 (VUI), `max_dec_frame_buffering`.
struct H264PictureCount {
    private var bits: BitReader

    /// - Parameter extradata: As in containers: `avcC` (ISO/IEC 14496-15, 5.3.3.1) or start codes.
    /// - Returns: nil where the stream does not say.
    static func ofStream(_ extradata: UnsafeRawBufferPointer) -> Int? {
        guard let set = parameterSet(in: extradata) else { return nil }
        var reader = H264PictureCount(bits: BitReader(set))
        let count = reader.read()
        return reader.bits.isExhausted ? nil : count
    }

    /// The first sequence parameter set, without its header byte.
    private static func parameterSet(in data: UnsafeRawBufferPointer) -> ArraySlice<UInt8>? {
        let bytes = Array(data.prefix(4096))
        if bytes.first == 1 {
            guard bytes.count > 8, bytes[5] & 31 > 0 else { return nil }
            let length = Int(bytes[6]) << 8 | Int(bytes[7])
            guard length > 4, 8 + length <= bytes.count, bytes[8] & 31 == 7 else { return nil }
            return bytes[9..<8 + length]
        }
        guard
            let start = bytes.indices.dropLast(4).first(where: {
                bytes[$0] == 0 && bytes[$0 + 1] == 0 && bytes[$0 + 2] == 1 && bytes[$0 + 3] & 31 == 7
            })
        else { return nil }
        return bytes[(start + 4)...]
    }

    private mutating func read() -> Int? {
        let profile = bits.read(8)
        bits.skip(16)
        _ = bits.readCount()
        if [100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135].contains(profile) {
            let chroma = bits.readCount()
            if chroma == 3 { bits.skip(1) }
            _ = bits.readCount()
            _ = bits.readCount()
            bits.skip(1)
            if bits.readFlag() { for index in 0..<(chroma == 3 ? 12 : 8) { skipScalingList(index < 6 ? 16 : 64) } }
        }
        _ = bits.readCount()
        switch bits.readCount() {
        case 0: _ = bits.readCount()
        case 1:
            bits.skip(1)
            _ = bits.readCount()
            _ = bits.readCount()
            let offsets = bits.readCount()
            guard offsets < 256 else { return nil }
            for _ in 0..<offsets { _ = bits.readCount() }
        default: break
        }
        let references = bits.readCount()
        bits.skip(1)
        _ = bits.readCount()
        _ = bits.readCount()
        if !bits.readFlag() { bits.skip(1) }
        bits.skip(1)
        if bits.readFlag() { for _ in 0..<4 { _ = bits.readCount() } }
        guard bits.readFlag(), let kept = readUsability(), kept <= 16, kept >= references else { return nil }
        return kept
    }

    private mutating func skipScalingList(_ count: Int) {
        guard bits.readFlag() else { return }
        var (last, next) = (8, 8)
        for _ in 0..<count where next != 0 {
            let code = bits.readCount()
            let delta = code % 2 == 1 ? code / 2 + 1 : -(code / 2)
            next = (last + delta % 256 + 256) % 256
            if next != 0 { last = next }
        }
    }

    /// The VUI's last member, `max_dec_frame_buffering`; nil where the VUI does not have it.
    private mutating func readUsability() -> Int? {
        if bits.readFlag(), bits.read(8) == 255 { bits.skip(32) }
        if bits.readFlag() { bits.skip(1) }
        if bits.readFlag() {
            bits.skip(4)
            if bits.readFlag() { bits.skip(24) }
        }
        if bits.readFlag() {
            _ = bits.readCount()
            _ = bits.readCount()
        }
        if bits.readFlag() { bits.skip(65) }
        let hasNAL = bits.readFlag()
        if hasNAL { guard skipBuffer() else { return nil } }
        let hasVCL = bits.readFlag()
        if hasVCL { guard skipBuffer() else { return nil } }
        if hasNAL || hasVCL { bits.skip(1) }
        bits.skip(1)
        guard bits.readFlag() else { return nil }
        bits.skip(1)
        for _ in 0..<5 { _ = bits.readCount() }
        return bits.readCount()
    }

    /// Skips HRD parameters (E.1.2); false where they are impossible.
    private mutating func skipBuffer() -> Bool {
        let last = bits.readCount()
        guard last < 32 else { return false }
        bits.skip(8)
        for _ in 0...last {
            _ = bits.readCount()
            _ = bits.readCount()
            bits.skip(1)
        }
        bits.skip(20)
        return true
    }
}
