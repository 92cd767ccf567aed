// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// Where a file of a list lies: in its own time, and on the chain's timeline.
///
/// Pictures and sound of a list have readers of their own that do not wait for each other. Both find out the same, before the
/// first plays: from the index of an MP4 or MOV file, else from the last packets, since a header may be written before the
/// recording, and a file may still grow.
struct FileSpan: Equatable {
    /// What of the file's own time is played.
    var begin: MediaTime
    var end: MediaTime
    /// Where it begins on the chain's timeline.
    var joint = MediaTime.zero
    /// The length of the file when its end was found in its packets; nil where that is from an index.
    private(set) var byteCount: Int?

    /// Sound that begins this much before the pictures, or ends as much after them, is what its codec adds, and is left out.
    static let most = MediaTime(nanoseconds: 100_000_000)

    /// [control thread] The span of a track, and of the sound where that begins earlier or ends later; nil where it has no
    /// packets.
    init?(_ file: MediaFile, track: Int) {
        let measured = file.indexedPictures(track) == nil ? file.lastTimes(track) : [:]
        byteCount = measured[track] == nil ? nil : file.byteCount
        guard let end = measured[track] ?? file.end(track) else { return nil }
        (begin, self.end) = (file.begin(track), end)
        let sounds = (0..<file.trackCount).filter {
            file.parameters($0).codec_type == AVMEDIA_TYPE_AUDIO && file.parameters($0).codec_id != AV_CODEC_ID_NONE
        }
        for sound in sounds {
            // A track without a packet among the last ones ends earlier.
            guard let soundEnd = byteCount != nil ? measured[sound] : file.end(sound) else { continue }
            let soundBegin = file.begin(sound)
            if soundBegin + Self.most < begin { begin = soundBegin }
            if soundEnd > self.end + Self.most { self.end = soundEnd }
        }
        guard begin < self.end else { return nil }
    }

    /// Puts spans one behind the other. The first begins where its file does.
    static func joined(_ spans: [FileSpan]) -> [FileSpan] {
        var spans = spans
        for index in spans.indices {
            if index == 0 {
                spans[0].begin = .zero
            } else {
                spans[index].joint = spans[index - 1].joint + (spans[index - 1].end - spans[index - 1].begin)
            }
        }
        return spans
    }
}

extension MediaFile {
    fileprivate func begin(_ index: Int) -> MediaTime { timeBase(index).time(ofTicks: origin(index)) }

    /// Where a track ends by the header; nil where that does not say.
    fileprivate func end(_ index: Int) -> MediaTime? {
        // In Matroska the tag is the time of the track's end.
        if let tag = tag("DURATION", of: index).flatMap(FilePromise.duration) { return tag }
        return duration(index).map { begin(index) + $0 }
    }

    /// Where each track ends by its packets. Reads the last ones, or all where the file cannot be entered near its end.
    fileprivate func lastTimes(_ track: Int) -> [Int: MediaTime] {
        guard let other = try? MediaFile(path: path), track < other.trackCount else { return [:] }
        if let end = end(track) {
            let tick = timeBase(track).ticks(of: max(end - MediaTime(seconds: 2), .zero))
            if other.seek(to: tick, track: track) {
                let found = other.restOfTimes()
                if found[track] != nil { return found }
            }
            guard (try? other.reopen()) != nil else { return [:] }
        }
        return other.restOfTimes()
    }

    private func restOfTimes() -> [Int: MediaTime] {
        var ends: [Int: MediaTime] = [:]
        var packet = av_packet_alloc()
        defer { av_packet_free(&packet) }
        while true {
            let result = read(into: packet)
            if result == fh_averror_again { continue }
            guard result >= 0, let found = packet?.pointee else { return ends }
            let index = Int(found.stream_index)
            let tick = found.pts != fh_av_no_pts ? found.pts : found.dts
            if tick != fh_av_no_pts {
                var end = timeBase(index).time(ofTicks: tick.plus(max(found.duration, 0)))
                let rate = stream(index).pointee.avg_frame_rate
                if found.duration <= 0, rate.num > 0, rate.den > 0 { end = end + MediaTime(seconds: 1 / av_q2d(rate)) }
                ends[index] = max(ends[index] ?? end, end)
            }
            av_packet_unref(packet)
        }
    }
}
