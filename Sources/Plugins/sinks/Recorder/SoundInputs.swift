// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The sound that comes on inputs of its own, kept until the pictures have reached its time.
///
/// Sound can come before pictures of its time: ``EarlyTaking`` of the runner. The recording gets it in the order of
/// its time beside the pictures', so that each file has the sound of its pictures. What was given is kept too: for
/// the pre-event memory, and for the next file, which starts with the samples that a decoder needs before the first
/// one that is heard. Used on the stage thread.
final class SoundInputs {
    let formats: [AudioTrackFormat]
    private let rings: [PreEventRing]
    /// For each track, how many of all its units were given to the file, or passed over.
    private var given: [Int]
    /// Whether the recording has missed units, because a ring had dropped them.
    private(set) var hasBeenTooSmall = false

    /// Sound that is further ahead than this is given without waiting for pictures, which may not come at all.
    static let mostAhead = MediaTime(nanoseconds: 30_000_000_000)
    /// How far back a decoder's first samples can lie.
    private static let leastSeconds = 0.5

    /// How many seconds a ring holds: how far back it reaches, and how far the sound may be ahead.
    private static func span(_ seconds: Double) -> Double { max(seconds, leastSeconds) + mostAhead.seconds }

    /// Bytes of a track's ring: half as much again as its bitrate needs, which counts as at least 320 kbit/s.
    private static func ringBytes(_ format: AudioTrackFormat, seconds: Double) -> Int {
        let rate = min(max(format.bitRate, 320_000), 10_000_000)
        return max(Int(Double(rate) / 8 * seconds * 1.5), 10_000)
    }

    /// The memory that `init` takes, in bytes.
    static func memory(_ formats: [AudioTrackFormat], seconds: Double) -> Int {
        formats.reduce(0) { $0 + ringBytes($1, seconds: span(seconds)) }
    }

    /// [control thread]
    ///
    /// - Parameters:
    ///   - formats: In the order of the inputs.
    ///   - seconds: How far back the sound is kept.
    init(_ formats: [AudioTrackFormat], seconds: Double) {
        self.formats = formats
        let seconds = Self.span(seconds)
        rings = formats.map { format in
            let packets = Double(format.sampleRate) / Double(max(format.samplesPerPacket, 64))
            return PreEventRing(
                seconds: seconds, byteCapacity: Self.ringBytes(format, seconds: seconds),
                unitCapacity: 64 + Int(packets * seconds * 1.5))
        }
        given = [Int](repeating: 0, count: formats.count)
    }

    /// Keeps a unit.
    func keep(_ unit: RecordedUnit, _ bytes: UnsafeRawBufferPointer, track: Int) {
        if rings.indices.contains(track) { rings[track].add(unit, bytes) }
    }

    /// A file begins: everything that is kept is given again.
    func rewind() { for track in rings.indices { given[track] = rings[track].removed } }

    /// Gives the units that are decoded before `time` and were not given yet, track by track.
    func take(
        before time: MediaTime, _ body: (Int, RecordedUnit, UnsafeRawBufferPointer) throws -> Void
    ) rethrows {
        for track in rings.indices { try take(track, before: time, body) }
    }

    /// The same for one track.
    func take(
        _ track: Int, before time: MediaTime, _ body: (Int, RecordedUnit, UnsafeRawBufferPointer) throws -> Void
    ) rethrows {
        let ring = rings[track]
        if given[track] < ring.removed {
            hasBeenTooSmall = true
            given[track] = ring.removed
        }
        while given[track] - ring.removed < ring.count {
            let (unit, bytes) = ring.unit(at: given[track] - ring.removed)
            guard unit.dts < time else { return }
            given[track] += 1
            try body(track, unit, bytes)
        }
    }
}
