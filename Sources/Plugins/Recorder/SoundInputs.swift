// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The sound that comes on inputs of its own, in the order of its time beside the pictures'.
///
/// Used on the stage thread. Keeps the last seconds of each track: those of the pre-event memory, and at least what comes
/// shortly before the first picture, such as the samples that a decoder needs before the first that is heard.
final class SoundInputs {
    let formats: [AudioTrackFormat]
    private let rings: [PreEventRing]

    /// Bytes of a track's pre-event memory: its bitrate with room for half as much again, or 320 kbit/s where it is
    /// unknown.
    private static func ringBytes(_ format: AudioTrackFormat, seconds: Double) -> Int {
        let rate = min(max(format.bitRate, 320_000), 10_000_000)
        return max(Int(Double(rate) / 8 * seconds * 1.5), 10_000)
    }

    private static let leastSeconds = 0.5

    /// The memory that `init` takes, in bytes.
    static func memory(_ formats: [AudioTrackFormat], seconds: Double) -> Int {
        formats.reduce(0) { $0 + ringBytes($1, seconds: max(seconds, leastSeconds)) }
    }

    /// [control thread]
    ///
    /// - Parameters:
    ///   - formats: In the order of the inputs.
    ///   - seconds: How far back the sound is kept.
    init(_ formats: [AudioTrackFormat], seconds: Double) {
        self.formats = formats
        let seconds = max(seconds, Self.leastSeconds)
        rings = formats.map { format in
            let packets = Double(format.sampleRate) / Double(max(format.samplesPerPacket, 64))
            return PreEventRing(
                seconds: seconds, byteCapacity: Self.ringBytes(format, seconds: seconds),
                unitCapacity: 64 + Int(packets * seconds * 1.5))
        }
    }

    /// Keeps a unit for a recording that begins later.
    func keep(_ unit: RecordedUnit, _ bytes: UnsafeRawBufferPointer, track: Int) {
        if rings.indices.contains(track) { rings[track].add(unit, bytes) }
    }

    /// Goes once through what was kept when it was made, beside the pictures.
    struct Past {
        private let rings: [PreEventRing]
        private var next: [Int]

        init(_ inputs: SoundInputs) {
            rings = inputs.rings
            next = [Int](repeating: 0, count: rings.count)
        }

        /// Gives the units that are decoded before `time` and were not given yet, track by track.
        mutating func take(
            before time: MediaTime, _ body: (Int, RecordedUnit, UnsafeRawBufferPointer) throws -> Void
        ) rethrows {
            for track in rings.indices {
                while next[track] < rings[track].count {
                    let (unit, bytes) = rings[track].unit(at: next[track])
                    guard unit.dts < time else { break }
                    next[track] += 1
                    try body(track, unit, bytes)
                }
            }
        }
    }
}
