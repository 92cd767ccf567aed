// SPDX-License-Identifier: Apache-2.0

/// Finds the NAL units of a byte stream with start codes (H.264, annex B).
enum NALUnits {
    /// H.264, table 7-1.
    enum Kind {
        static let idr: UInt8 = 5
        static let sequenceParameterSet: UInt8 = 7
        static let pictureParameterSet: UInt8 = 8
    }

    /// Calls `body` with the range of each NAL unit, without start code and trailing zero bytes; empty units are left
    /// out.
    ///
    /// - Complexity: O(bytes), a look at every third byte where there is no zero; no allocation.
    static func forEach(in bytes: UnsafeRawBufferPointer, _ body: (Range<Int>) -> Void) {
        var begin = startCode(in: bytes, from: 0)?.upperBound
        while let unitBegin = begin {
            let next = startCode(in: bytes, from: unitBegin)
            var end = next?.lowerBound ?? bytes.count
            while end > unitBegin, bytes[end - 1] == 0 { end -= 1 }
            if end > unitBegin { body(unitBegin..<end) }
            begin = next?.upperBound
        }
    }

    /// The next `00 00 01`.
    private static func startCode(in bytes: UnsafeRawBufferPointer, from start: Int) -> Range<Int>? {
        var index = start + 2
        while index < bytes.count {
            let byte = bytes[index]
            if byte > 1 {
                index += 3
            } else if byte == 1, bytes[index - 1] == 0, bytes[index - 2] == 0 {
                return index - 2..<index + 1
            } else {
                index += 1
            }
        }
        return nil
    }

    /// The first SPS and the first PPS of a format's parameter sets, without start codes; nil without one of them.
    static func parameterSets(in bytes: [UInt8]) -> (sps: [UInt8], pps: [UInt8])? {
        var sps: [UInt8] = []
        var pps: [UInt8] = []
        bytes.withUnsafeBytes { buffer in
            forEach(in: buffer) { range in
                switch buffer[range.lowerBound] & 31 {
                case Kind.sequenceParameterSet where sps.isEmpty: sps = Array(buffer[range])
                case Kind.pictureParameterSet where pps.isEmpty: pps = Array(buffer[range])
                default: break
                }
            }
        }
        return sps.count < 4 || pps.isEmpty ? nil : (sps, pps)
    }
}
