// SPDX-License-Identifier: Apache-2.0

/// Finds where an AudioSpecificConfig ends (ISO/IEC 14496-3, 1.6.2.1). Encoders append the marker of an extension,
/// which belongs only in containers.
enum AudioSpecificConfig {
    /// The most bytes that are accepted: a config with a program config element has tens.
    static let mostBytes = 256

    /// The config at the beginning of `extradata`; nil where it is not one.
    ///
    /// Exact for the object types whose config is that of general audio without extension (main, LC, SSR, LTP) and with
    /// the channels named by number. Others are taken whole: clients read what they know of them.
    static func bytes(in extradata: [UInt8]) -> [UInt8]? {
        guard (2...mostBytes).contains(extradata.count) else { return nil }
        var bits = Bits(bytes: extradata)
        let objectType = bits.take(5)
        let frequencyIndex = bits.take(4)
        if frequencyIndex == 15 { _ = bits.take(24) }
        let channels = bits.take(4)
        guard objectType != 0, frequencyIndex < 13 || frequencyIndex == 15, bits.isInside else { return nil }
        guard (1...4).contains(objectType), channels != 0 else { return extradata }
        // GASpecificConfig, 4.4.1: frameLengthFlag, dependsOnCoreCoder with its delay, extensionFlag.
        _ = bits.take(1)
        if bits.take(1) == 1 { _ = bits.take(14) }
        _ = bits.take(1)
        guard bits.isInside else { return nil }
        return Array(extradata.prefix((bits.position + 7) / 8))
    }

    /// Reads bits from the highest to the lowest; 0 beyond the end.
    private struct Bits {
        let bytes: [UInt8]
        var position = 0
        var isInside: Bool { position <= 8 * bytes.count }

        init(bytes: [UInt8]) { self.bytes = bytes }

        mutating func take(_ count: Int) -> Int {
            var value = 0
            for _ in 0..<count {
                let byte = position / 8 < bytes.count ? bytes[position / 8] : 0
                value = value << 1 | Int(byte >> (7 - position % 8) & 1)
                position += 1
            }
            return value
        }
    }
}
