// SPDX-License-Identifier: Apache-2.0

/// Bits of a NAL unit, most significant first, without its emulation prevention bytes (H.264 7.4.1, H.265 7.4.2).
///
/// After the end it reads zeros, and ``isExhausted`` says so.
public struct BitReader: Sendable {
    private let bytes: [UInt8]
    private var position = 0

    /// - Parameter payload: The unit behind its header.
    public init(_ payload: some Sequence<UInt8>) {
        var bytes: [UInt8] = []
        var zeros = 0
        for byte in payload {
            if zeros >= 2, byte == 3 {
                zeros = 0
                continue
            }
            zeros = byte == 0 ? zeros + 1 : 0
            bytes.append(byte)
        }
        self.bytes = bytes
    }

    /// Whether more was read than there is.
    public var isExhausted: Bool { position > bytes.count * 8 }

    public mutating func read(_ count: Int) -> Int {
        var value = 0
        for _ in 0..<count {
            let bit = position < bytes.count * 8 ? Int(bytes[position / 8]) >> (7 - position % 8) & 1 : 0
            value = value << 1 | bit
            position += 1
        }
        return value
    }

    public mutating func readFlag() -> Bool { read(1) == 1 }
    public mutating func skip(_ count: Int) { position += count }

    /// ue(v), Exp-Golomb (H.264 9.1, H.265 9.2), at most 32 bits; 0 after the end.
    public mutating func readCount() -> Int {
        var zeros = 0
        while zeros < 32, position < bytes.count * 8, read(1) == 0 { zeros += 1 }
        return (1 << zeros) - 1 + read(zeros)
    }
}
