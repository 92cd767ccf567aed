// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// Where a file of a list lies: in its own time, and on the chain's timeline.
///
/// Pictures and sound of a list have readers of their own that do not wait for each other. Both find out the same from the
/// headers.
struct FileSpan: Equatable {
    /// What of the file's own time is played.
    var begin: MediaTime
    var end: MediaTime
    /// Where it begins on the chain's timeline.
    var joint = MediaTime.zero

    /// Sound that begins this much before the pictures, or ends as much after them, is what its codec adds, and is left out.
    static let most = MediaTime(nanoseconds: 100_000_000)

    /// [control thread] The span of the pictures, and of the sound where that begins earlier or ends later; nil where the file
    /// does not say how long it is.
    init?(_ file: MediaFile, track: Int) {
        guard let pictures = file.span(track) else { return nil }
        (begin, end) = pictures
        let sounds = (0..<file.trackCount).filter {
            file.parameters($0).codec_type == AVMEDIA_TYPE_AUDIO && file.parameters($0).codec_id != AV_CODEC_ID_NONE
        }
        for sound in sounds.compactMap({ file.span($0) }) {
            if sound.begin + Self.most < begin { begin = sound.begin }
            if sound.end > end + Self.most { end = sound.end }
        }
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
    /// Where a track begins and ends; nil where the file does not say.
    fileprivate func span(_ index: Int) -> (begin: MediaTime, end: MediaTime)? {
        let begin = timeBase(index).time(ofTicks: origin(index))
        if let length = tag("DURATION", of: index).flatMap(Self.seconds) {
            // In Matroska the tag is the time of the track's end.
            return length > begin.seconds ? (begin, MediaTime(seconds: length)) : nil
        }
        return duration(index).map { (begin, begin + $0) }
    }

    /// Of `00:01:02.5`.
    private static func seconds(_ text: String) -> Double? {
        let parts = text.split(separator: ":").compactMap { Double($0) }
        return parts.count == 3 ? parts[0] * 3600 + parts[1] * 60 + parts[2] : nil
    }
}
