// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The sound tracks of a recording, read as far as the pictures are written.
///
/// Used on the stage thread. Each packet is given once.
final class SoundFeed {
    private struct Track {
        var format: AudioTrackFormat
        var reader: any AudioReader
        var next: AudioPacket?
        var hasEnded = false
    }

    private var tracks: [Track]
    private let origin: any AudioOrigin
    /// Reports a track that cannot be read any further.
    let report: (String) -> Void

    /// [control thread] Opens all tracks.
    init(_ origin: any AudioOrigin, report: @escaping (String) -> Void) throws {
        self.report = report
        self.origin = origin
        tracks = try origin.tracks.enumerated().map { Track(format: $1, reader: try origin.open(track: $0)) }
    }

    /// [control thread] The sound that comes with the pictures; nil where there is none, which is reported.
    static func beside(_ context: StageContext) throws -> SoundFeed? {
        guard let origin = context.audio, !origin.tracks.isEmpty else {
            context.post(
                "sound-missing", level: .warning,
                text:
                    "There is no sound to copy: no stage before the recorder offers any. To record other sound, name its 'audio-encoder' in 'from' too."
            )
            return nil
        }
        return try SoundFeed(origin) { [context] in context.post("sound-ended", level: .warning, text: $0) }
    }

    /// The tracks that have packets left, by index.
    func remaining() -> [Int] {
        tracks.indices.filter { index in
            fill(index)
            return tracks[index].next != nil
        }
    }

    /// Whether what follows the last picture belongs to the recording.
    var goesOnAfterPictures: Bool { origin.hasGivenAllPictures }

    func format(of track: Int) -> AudioTrackFormat { tracks[track].format }

    /// Skips packets that end before `time`.
    func skip(before time: MediaTime) {
        for index in tracks.indices {
            while let packet = peek(index), self.time(packet.pts + packet.duration, index) <= time {
                tracks[index].next = nil
            }
        }
    }

    /// Gives the packets that are decoded, or shown, before `time`, in the order of decoding.
    func take(decodedBefore time: MediaTime, _ body: (Int, AudioPacket) throws -> Void) rethrows {
        try take(time, \.dts, body)
    }
    func take(shownBefore time: MediaTime, _ body: (Int, AudioPacket) throws -> Void) rethrows {
        try take(time, \.pts, body)
    }

    private func take(_ end: MediaTime, _ stamp: KeyPath<AudioPacket, Int64>, _ body: (Int, AudioPacket) throws -> Void)
        rethrows
    {
        while true {
            var earliest: (track: Int, packet: AudioPacket, time: MediaTime)?
            for index in tracks.indices {
                guard let packet = peek(index), time(packet[keyPath: stamp], index) < end else { continue }
                let decoded = time(packet.dts, index)
                if earliest == nil || decoded < earliest!.time { earliest = (index, packet, decoded) }
            }
            guard let earliest else { return }
            tracks[earliest.track].next = nil
            try body(earliest.track, earliest.packet)
        }
    }

    private func time(_ ticks: Int64, _ track: Int) -> MediaTime { tracks[track].format.timeBase.time(ofTicks: ticks) }

    private func peek(_ index: Int) -> AudioPacket? {
        fill(index)
        return tracks[index].next
    }

    private func fill(_ index: Int) {
        guard tracks[index].next == nil, !tracks[index].hasEnded else { return }
        do {
            tracks[index].next = try tracks[index].reader.next()
        } catch {
            report("Audio track \(index + 1) ends here: \(FrameHostError.wrap(error))")
        }
        tracks[index].hasEnded = tracks[index].next == nil
    }
}
