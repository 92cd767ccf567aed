// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// What a file says beforehand of the pictures of a track, beside the index of an MP4 or MOV file, which
/// ``MediaFile/indexed(_:after:)`` reads.
///
/// Transport streams, FLV and raw streams promise nothing: their headers, where there are any, are written before the
/// recording and not corrected.
struct FilePromise {
    /// When the track's last picture ends, in the file's own time; nil where the file does not say.
    private(set) var length: MediaTime?
    /// Matroska: times of pictures in the index, in ticks of the track, rising.
    private(set) var cues: [Int64] = []
    /// Matroska: how many bytes of its segment the file lacks.
    private(set) var missingBytes: Int64 = 0

    /// A promise of nothing.
    init() {}

    /// [control thread] Reads the file's head, and the index of a Matroska file.
    init(_ file: MediaFile, track: Int) {
        switch file.formatName.split(separator: ",").first {
        case "mov": if file.indexedPictures(track) == nil { length = file.declaredLength(track) }
        case "avi":
            // Of a file that was cut off libavformat gives the length of what is left.
            length = file.countedLength(track)
        case "flac", "mp3", "aiff": length = file.declaredLength(track)
        case "wav": missingBytes = file.bytes?.missingOfWAV ?? 0
        case "ogg": missingBytes = file.bytes?.missingOfOgg ?? 0
        case "matroska":
            length = Self.matroskaLength(file, track)
            cues = Self.matroskaCues(file, track)
            if let end = file.segment?.end, file.byteCount > 0 { missingBytes = max(end - Int64(file.byteCount), 0) }
        default: break
        }
    }

    /// A notebook for a reader of the track.
    func notes(_ timeBase: TimeBase) -> PacketNotes {
        PacketNotes(cues: cues, reach: max(timeBase.ticks(of: MediaTime(seconds: 0.25)), 1))
    }

    /// The track's own length, which muxers write as a tag, or else that of the segment where the track is alone in it.
    private static func matroskaLength(_ file: MediaFile, _ track: Int) -> MediaTime? {
        guard file.isDurationDeclared, let whole = file.duration else { return nil }
        // Tags may be copied from another file, of which this one is a part.
        if let tag = file.tag("DURATION", of: track), let length = duration(tag),
            length <= whole + MediaTime(seconds: 0.25)
        {
            return length
        }
        // The last line of subtitles may be shown after the last picture.
        let isAlone = !file.otherTracks(than: track).contains { $0.kind != "cover picture" }
        return isAlone ? file.declaredLength(track) : nil
    }

    /// Reads `00:01:02.345000000`.
    static func duration(_ text: String) -> MediaTime? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 3, let hours = Int(parts[0]), let minutes = Int(parts[1]), let seconds = Double(parts[2]),
            (0..<100_000).contains(hours), (0..<60).contains(minutes), seconds >= 0, seconds < 60
        else { return nil }
        let length = MediaTime(seconds: Double(hours * 3600 + minutes * 60) + seconds)
        return length > .zero ? length : nil
    }

    /// libavformat reads the index only when it first seeks. The reader of the file must not seek, since that would
    /// forget what was read ahead.
    private static func matroskaCues(_ file: MediaFile, _ track: Int) -> [Int64] {
        guard let other = try? MediaFile(still: file.path), track < other.trackCount, other.seek(to: 0, track: track)
        else { return [] }
        let stream = other.stream(track)
        let timeBase = other.timeBase(track)
        var (shown, after): (Int32, Int32) = (0, 0)
        let count = min(fh_av_index(stream, -1, &shown, &after), mostCues)
        return (0..<count).map { fh_av_index_tick(stream, $0) }.filter { TrackTimes.isPossible($0, timeBase) }.sorted()
    }

    private static let mostCues: Int32 = 1_000_000
}

extension MediaFile {
    /// The segment of a Matroska file.
    fileprivate var segment: MatroskaSegment? {
        bytes.flatMap { MatroskaSegment(head: $0.read(at: 0, most: 4096)) }
    }

    /// [stage thread] Looks where the container has lost something, by the headers of its parts; nil where they do not say.
    func containerWalk(_ track: Int) -> (any ContainerWalk)? {
        guard let bytes else { return nil }
        switch formatName.split(separator: ",").first {
        case "matroska": return segment.map { $0.walk(in: bytes) }
        // One with an index may have fragments behind it: recorders begin so.
        case "mov":
            let number = UInt32(truncatingIfNeeded: stream(track).pointee.id)
            return MovieFragments(bytes, track: number, timeBase: timeBase(track))
        default: return nil
        }
    }

    /// What the index of an MP4 or MOV file says of a track.
    struct Index {
        /// Packets in it.
        var packets: Int
        /// How many of them an edit list does not hide.
        var shown: Int
        /// How many packets come after the last one that was read; nil where that one is not in the index.
        var after: Int?
    }

    /// The index of an MP4 or MOV file; nil for other files, and for fragmented ones, whose index has only what was read.
    ///
    /// - Parameter position: The file offset of the last packet that was read.
    func indexed(_ track: Int, after position: Int64) -> Index? {
        guard indexedPictures(track) != nil else { return nil }
        var (shown, after): (Int32, Int32) = (0, -1)
        let count = fh_av_index(stream(track), position, &shown, &after)
        return count > 0 ? Index(packets: Int(count), shown: Int(shown), after: after >= 0 ? Int(after) : nil) : nil
    }

    /// A tag of a track, if necessary one with a language behind its name: `DURATION-eng`.
    func tag(_ name: String, of track: Int) -> String? {
        let tags = stream(track).pointee.metadata
        let entry = av_dict_get(tags, name, nil, 0) ?? av_dict_get(tags, name + "-", nil, AV_DICT_IGNORE_SUFFIX)
        return entry.flatMap { $0.pointee.value }.map { String(cString: $0) }
    }

    /// Whether a packet of the track is a picture, and each one is shown: so that pictures can be counted against packets.
    ///
    /// Other codecs have packets that are not shown, or that repeat the last picture.
    func hasPicturePerPacket(_ track: Int) -> Bool {
        [
            AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_AV1, AV_CODEC_ID_MJPEG, AV_CODEC_ID_PRORES,
            AV_CODEC_ID_DNXHD,
        ].contains(parameters(track).codec_id)
    }
}
