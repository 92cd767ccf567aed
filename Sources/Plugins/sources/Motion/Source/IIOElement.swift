// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// How one value of an IIO device lies in a scan: what `scan_elements/*_type` says, such as `le:s16/16>>0` or
/// `le:s32/32X4>>0`. Pure.
struct IIOElement: Equatable {
    var isBigEndian = false
    var isSigned = true
    /// Significant bits.
    var bits = 16
    /// Bytes of one number.
    var bytes = 2
    /// Numbers side by side; four of a quaternion.
    var count = 1
    /// Unused bits to the right of the significant ones.
    var shift = 0

    /// Bytes of all numbers, by which the kernel aligns the element.
    var byteCount: Int { bytes * count }

    init() {}

    /// Nil for a format that no driver has.
    init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0] == "le" || parts[0] == "be" else { return nil }
        isBigEndian = parts[0] == "be"
        guard let sign = parts[1].first, sign == "s" || sign == "u" else { return nil }
        isSigned = sign == "s"
        let rest = parts[1].dropFirst()
        let halves = rest.split(separator: "/", omittingEmptySubsequences: false)
        guard halves.count == 2, let bits = Self.number(halves[0]) else { return nil }
        let tail = halves[1].split(separator: ">", omittingEmptySubsequences: true)
        guard tail.count == 2, let shift = Self.number(tail[1]) else { return nil }
        let storage = tail[0].split(separator: "X", omittingEmptySubsequences: false)
        guard (1...2).contains(storage.count), let stored = Self.number(storage[0]),
            let count = storage.count == 2 ? Self.number(storage[1]) : 1
        else { return nil }
        guard [8, 16, 32, 64].contains(stored), 1...stored ~= bits, 0..<stored ~= shift, bits + shift <= stored,
            1...16 ~= count
        else { return nil }
        (self.bits, bytes, self.count, self.shift) = (bits, stored / 8, count, shift)
    }

    private static func number(_ text: Substring) -> Int? {
        text.utf8.allSatisfy { (48...57).contains($0) } && text.utf8.count <= 3 ? Int(text) : nil
    }

    /// Number `index` of the element that begins at `offset`. The scan must have its bytes.
    func value(_ scan: ArraySlice<UInt8>, _ offset: Int, _ index: Int = 0) -> Int64 {
        let begin = scan.startIndex + offset + index * bytes
        var raw: UInt64 = 0
        for place in 0..<bytes {
            let byte = UInt64(scan[begin + (isBigEndian ? place : bytes - 1 - place)])
            raw = raw << 8 | byte
        }
        let unused = UInt64(64 - bits)
        let moved = (raw >> UInt64(shift)) << unused
        return isSigned ? Int64(bitPattern: moved) >> Int64(unused) : Int64(truncatingIfNeeded: moved >> unused)
    }
}

/// How the values of all channels lie in a scan: what one `read` of an IIO device gives. Pure.
struct IIOLayout: Equatable {
    /// What the channels of one kind mean.
    struct Sensor: Equatable {
        var scale: Float = 1
        var offset: Float = 0
        /// The rows of `mount_matrix`: from the sensor's axes to those of the machine.
        var mount: [Float] = [1, 0, 0, 0, 1, 0, 0, 0, 1]
    }

    struct Channel: Equatable {
        /// `in_accel_x`, `in_timestamp`.
        var name: String
        /// `scan_elements/*_index`.
        var index: Int
        var element: IIOElement
        /// Where it begins in a scan.
        var offset = 0
    }

    private(set) var channels: [Channel]
    /// Bytes of a scan.
    private(set) var scanBytes = 0
    var rotation = Sensor()
    var acceleration = Sensor()

    /// The most bytes of a scan.
    static let mostScanBytes = 4096

    /// The layout of the enabled channels, given in any order; nil where there is none, or where they make no valid
    /// scan.
    ///
    /// The kernel puts them in the order of their indices, aligns each to its own size and the whole to the largest.
    init?(_ channels: [Channel]) {
        self.channels = channels.sorted { $0.index < $1.index }
        var largest = 1
        for place in self.channels.indices {
            let size = self.channels[place].element.byteCount
            let isTime = self.channels[place].name == "in_timestamp"
            scanBytes = (scanBytes + size - 1) / size * size
            if !isTime { self.channels[place].offset = scanBytes }
            scanBytes += size
            largest = max(largest, size)
            guard scanBytes <= Self.mostScanBytes else { return nil }
        }
        scanBytes = (scanBytes + largest - 1) / largest * largest
        // The kernel writes the time into the last eight bytes, whatever lies before them.
        for place in self.channels.indices where self.channels[place].name == "in_timestamp" {
            guard self.channels[place].element.byteCount == 8 else { return nil }
            self.channels[place].offset = scanBytes - 8
        }
        guard scanBytes > 0 else { return nil }
    }

    private func channel(_ name: String) -> Channel? { channels.first { $0.name == name } }

    /// What the channels measure: only sensors with all of their axes.
    var contents: MotionSample.Contents {
        var contents: MotionSample.Contents = []
        if has("in_anglvel") { contents.insert(.rotationRate) }
        if has("in_accel") { contents.insert(.acceleration) }
        if channel("in_rot_quaternion")?.element.count == 4 { contents.insert(.attitude) }
        return contents
    }

    private func has(_ sensor: String) -> Bool {
        ["x", "y", "z"].allSatisfy { channel("\(sensor)_\($0)")?.element.count == 1 }
    }

    /// The sample of a scan of ``scanBytes`` bytes, and its time stamp; nil where the device has none.
    func sample(_ scan: ArraySlice<UInt8>) -> (sample: MotionSample, stamp: Int64?) {
        precondition(scan.count == scanBytes)
        let stamp = channel("in_timestamp").map { $0.element.value(scan, $0.offset) }
        var sample = MotionSample(time: MediaTime(nanoseconds: stamp ?? 0))
        sample.contents = contents
        if sample.contents.contains(.rotationRate) { sample.rotationRate = vector(scan, "in_anglvel", rotation) }
        if sample.contents.contains(.acceleration) { sample.acceleration = vector(scan, "in_accel", acceleration) }
        if sample.contents.contains(.attitude), let channel = channel("in_rot_quaternion") {
            // Only its direction counts, not its scale.
            let raw = (0..<4).map { Float(channel.element.value(scan, channel.offset, $0)) }
            let largest = raw.reduce(0) { max($0, abs($1)) }
            let parts = raw.map { largest > 0 ? $0 / largest : 0 }
            sample.attitude = Quaternion(x: parts[0], y: parts[1], z: parts[2], w: parts[3])
        }
        return (sample, stamp)
    }

    private func vector(_ scan: ArraySlice<UInt8>, _ name: String, _ sensor: Sensor) -> SIMD3<Float> {
        var raw = SIMD3<Float>.zero
        for (axis, letter) in ["x", "y", "z"].enumerated() {
            guard let channel = channel("\(name)_\(letter)") else { continue }
            raw[axis] = (Float(channel.element.value(scan, channel.offset)) + sensor.offset) * sensor.scale
        }
        var turned = SIMD3<Float>.zero
        for row in 0..<3 {
            turned[row] =
                sensor.mount[3 * row] * raw.x + sensor.mount[3 * row + 1] * raw.y + sensor.mount[3 * row + 2] * raw.z
        }
        return turned
    }
}
