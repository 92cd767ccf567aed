// SPDX-License-Identifier: Apache-2.0

/// Lays a unit of a plane over others: `paint × a + sample × (1 − a)`, rounded to the nearest.
struct Blend {
    private let value: UInt32
    private let alpha: UInt32
    private let bytes: Int
    /// 0 for samples of eight bits; else by how many bits those of ten are shifted in their sixteen, plus one.
    private let wide: UInt32

    @inline(__always)
    init(_ value: UInt32, _ alpha: UInt8, bytes: Int, _ format: PixelFormat) {
        (self.value, self.alpha, self.bytes) = (value, UInt32(alpha), bytes)
        wide = format == .i010 ? 1 : format == .p010 ? 7 : 0
    }

    /// Over `count` units that lie side by side.
    @inline(__always)
    func mix(into line: UnsafeMutableRawPointer, count: Int) {
        guard wide == 0 else { return mixWide(into: line, count: count) }
        let samples = line.assumingMemoryBound(to: UInt8.self)
        for byte in 0..<bytes {
            let paint = (value >> UInt32(8 * byte) & 255) &* alpha
            for index in 0..<count { samples[index &* bytes &+ byte] = mixed(paint, samples[index &* bytes &+ byte]) }
        }
    }

    /// Over three of the four bytes of a group of yuyv.
    @inline(__always)
    func mixBytes(into group: UnsafeMutablePointer<UInt8>, _ a: Int, _ b: Int, _ c: Int) {
        mixByte(into: group, a)
        mixByte(into: group, b)
        mixByte(into: group, c)
    }

    @inline(__always)
    private func mixByte(into group: UnsafeMutablePointer<UInt8>, _ byte: Int) {
        group[byte] = mixed((value >> UInt32(8 * byte) & 255) &* alpha, group[byte])
    }

    @inline(__always)
    private func mixed(_ paint: UInt32, _ sample: UInt8) -> UInt8 {
        UInt8(truncatingIfNeeded: (paint &+ UInt32(sample) &* (255 &- alpha) &+ 127) / 255)
    }

    private func mixWide(into line: UnsafeMutableRawPointer, count: Int) {
        let samples = line.assumingMemoryBound(to: UInt16.self)
        let (shift, perUnit) = (wide &- 1, bytes / 2)
        for part in 0..<perUnit {
            let paint = ((value >> UInt32(16 * part) & 0xFFFF) >> shift) &* alpha
            for index in 0..<count {
                let sample = UInt32(samples[index &* perUnit &+ part]) >> shift
                let sum = (paint &+ sample &* (255 &- alpha) &+ 127) / 255
                samples[index &* perUnit &+ part] = UInt16(truncatingIfNeeded: sum << shift)
            }
        }
    }
}
