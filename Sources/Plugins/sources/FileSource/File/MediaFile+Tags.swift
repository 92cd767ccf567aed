// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// What a file says about itself.
extension MediaFile {
    /// Tags about the container or the coding of this very file, which do not hold for what is made of it.
    private static let ownTags: Set = [
        "major_brand", "minor_version", "compatible_brands", "encoder", "duration", "bps", "number_of_frames",
        "number_of_bytes", "source_id", "vendor_id", "rotate", "itunsmpb",
    ]

    /// [control thread] The tags of the file, and those of the tracks that are given.
    ///
    /// - Parameters:
    ///   - track: The track that the source gives.
    ///   - sounds: The tracks that it offers beside it.
    ///   - range: What is played; nil where chapters make no sense, as in a loop.
    func tags(track: Int, sounds: [Int] = [], range: FileTimeRange?) -> MediaTags {
        MediaTags(
            path, tags: Self.tags(metadata), chapters: range.map(chapters) ?? [], track: tags(of: track),
            sounds: sounds.map { tags(of: $0) })
    }

    private func tags(of track: Int) -> MediaTags.Track {
        let stream = stream(track).pointee
        // A file has the same date for all its tracks, which is the file's own.
        let tags = Self.tags(stream.metadata).filter { $0.key.lowercased() != "creation_time" && $0.value != "und" }
        return MediaTags.Track(tags: tags, roles: Self.roles(stream.disposition), hdr: hdr(track))
    }

    private static func roles(_ disposition: Int32) -> [String] {
        (0..<31).compactMap { bit in
            guard disposition & (1 << bit) != 0 else { return nil }
            return av_disposition_to_string(1 << bit).map { String(cString: $0) }
        }
    }

    private static func tags(_ metadata: OpaquePointer?) -> [MediaTags.Tag] {
        var tags: [MediaTags.Tag] = []
        var entry: UnsafeMutablePointer<AVDictionaryEntry>?
        while let next = av_dict_get(metadata, "", entry, AV_DICT_IGNORE_SUFFIX) {
            entry = next
            let tag = MediaTags.Tag(String(cString: next.pointee.key), String(cString: next.pointee.value))
            let name = withoutLanguage(tag.key).lowercased()
            if ownTags.contains(name) || name.hasPrefix("_statistics_") || tag.value.isEmpty { continue }
            // What libavformat writes where nobody names a track.
            if name == "handler_name", ["VideoHandler", "SoundHandler"].contains(tag.value) { continue }
            tags.append(tag)
        }
        // `location-eng` beside the same `location` is libavformat's, and says nothing more.
        return tags.filter { tag in
            let name = withoutLanguage(tag.key)
            return name == tag.key || tags[name] != tag.value
        }
    }

    /// `location` of `location-eng`.
    private static func withoutLanguage(_ key: String) -> String {
        let parts = key.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count > 1, let last = parts.last, last.utf8.count == 3 else { return key }
        return parts.dropLast().joined(separator: "-")
    }

    /// The chapters of a range, on the chain's timeline.
    private func chapters(in range: FileTimeRange) -> [MediaTags.Chapter] {
        let last = range.end.map { $0 - range.shift } ?? duration.map { $0 - range.shift }
        return chapterList.compactMap { chapter in
            guard chapter.time_base.num > 0, chapter.time_base.den > 0 else { return nil }
            let base = TimeBase(chapter.time_base.num, chapter.time_base.den)
            let begin = max(base.time(ofTicks: chapter.start) + baseShift - range.shift, .zero)
            let given = base.time(ofTicks: chapter.end) + baseShift - range.shift
            let end = last.map { min(given, $0) } ?? given
            guard begin < end else { return nil }
            return MediaTags.Chapter(begin: begin, end: end, tags: Self.tags(chapter.metadata))
        }
    }

    /// What the container says of a track's brightness.
    private func hdr(_ track: Int) -> HDRMetadata? {
        var found = fh_av_hdr()
        fh_av_take_stream_hdr(&found, stream(track))
        return HDRMetadata(found)
    }

    /// What a track has beside its packets that is not passed on, in libavcodec's words.
    func droppedSideData(_ track: Int) -> [String] {
        let kept = [
            AV_PKT_DATA_DISPLAYMATRIX, AV_PKT_DATA_MASTERING_DISPLAY_METADATA, AV_PKT_DATA_CONTENT_LIGHT_LEVEL,
            // About this file's coding: bit rates, how it was encoded.
            AV_PKT_DATA_CPB_PROPERTIES, AV_PKT_DATA_QUALITY_STATS,
        ]
        return (0..<fh_av_side_data_count(stream(track))).compactMap { index in
            let type = fh_av_side_data(stream(track), index).type
            guard !kept.contains(type) else { return nil }
            return av_packet_side_data_name(type).map { String(cString: $0) }
        }
    }
}

extension HDRMetadata {
    /// Nil where nothing is said.
    init?(_ found: fh_av_hdr) {
        guard found.has_display != 0 || found.has_light != 0 else { return nil }
        self.init()
        if found.has_display != 0 {
            masteringDisplay = MasteringDisplay(
                red: Chromaticity(x: found.red_x, y: found.red_y),
                green: Chromaticity(x: found.green_x, y: found.green_y),
                blue: Chromaticity(x: found.blue_x, y: found.blue_y),
                white: Chromaticity(x: found.white_x, y: found.white_y), maximum: found.maximum,
                minimum: found.minimum)
        }
        if found.has_light != 0 {
            contentLight = ContentLight(maximum: found.light_maximum, average: found.light_average)
        }
    }
}
