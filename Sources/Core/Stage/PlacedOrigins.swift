// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A source's sound, shifted by what is added to its pictures' times; see ``SourceTimes``.
final class PlacedAudio: AudioOrigin {
    private let origin: any AudioOrigin
    /// Nanoseconds; written by the source's thread before its first picture goes on.
    private let offset: TimeOffset

    init(_ origin: any AudioOrigin, by offset: TimeOffset) {
        self.origin = origin
        self.offset = offset
    }

    var tracks: [AudioTrackFormat] { origin.tracks }
    var hasGivenAllPictures: Bool { origin.hasGivenAllPictures }

    func open(track: Int) throws -> any AudioReader {
        Reader(try origin.open(track: track), tracks[track].timeBase, offset)
    }

    private final class Reader: AudioReader {
        private let reader: any AudioReader
        private let timeBase: TimeBase
        private let offset: TimeOffset

        init(_ reader: any AudioReader, _ timeBase: TimeBase, _ offset: TimeOffset) {
            self.reader = reader
            self.timeBase = timeBase
            self.offset = offset
        }

        func next() throws -> AudioPacket? {
            let packet = try reader.next()
            let nanoseconds = offset.value.load(ordering: .acquiring)
            guard let packet, nanoseconds != 0 else { return packet }
            // Both lie within ±2^61, so their sum fits in Int64. The result must lie within ±2^61 again.
            let ticks = timeBase.ticks(of: MediaTime(nanoseconds: nanoseconds))
            let most: Int64 = 1 << 61
            return AudioPacket(
                bytes: packet.bytes, pts: min(packet.pts + ticks, most), dts: min(packet.dts + ticks, most),
                duration: packet.duration)
        }
    }
}

/// Tags of a source, whose chapters have its times.
struct PlacedTags: Sendable {
    private var tags: PassedTags
    private let offset: TimeOffset?

    init(_ tags: PassedTags, by offset: TimeOffset? = nil) { (self.tags, self.offset) = (tags, offset) }

    /// [any thread] As they are on the chain's timeline.
    var value: PassedTags {
        tags.moved(by: MediaTime(nanoseconds: offset?.value.load(ordering: .acquiring) ?? 0))
    }

    /// Says why nobody should take them over unasked.
    mutating func withhold(_ reason: PassedTags.Withheld) { tags.withheld = reason }

    /// Behind a stage that is no source.
    init(behind id: String, _ demand: StageDemand, _ inputs: [PlacedTags]) {
        tags = PassedTags(behind: id, demand, inputs.map(\.tags))
        offset = inputs.first?.offset
    }
}

/// What the runner adds to the times of one instance of a source, nanoseconds.
final class TimeOffset: Sendable {
    let value = Atomic<Int64>(0)
}

extension PassedTags {
    /// What is known of the output of a stage that is no source.
    ///
    /// - Parameter inputs: What is known of each input, that of the pictures first.
    init(behind id: String, _ demand: StageDemand, _ inputs: [PassedTags]) {
        tags = inputs.first?.tags
        let reasons = inputs.compactMap(\.withheld)
        if demand.mustNotBePassed {
            withheld = .guarded(by: id)
        } else {
            withheld = reasons.first { if case .guarded = $0 { true } else { false } } ?? reasons.first
            // Such a stage shows several inputs, each at its own time.
            if demand.outputRate != nil { withheld = withheld ?? .joined(in: id) }
        }
    }
}
