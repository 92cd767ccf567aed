// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// A track of a file that is not played.
struct OtherTrack: Equatable {
    /// `audio`, `subtitle`, `video`, `data`.
    var kind: String
    /// Counted from 1 among its kind.
    var number: Int
    var codec: String
    /// ``codec`` for messages.
    var codecText: String { codec == "none" ? "unknown codec" : codec }
    /// Its number from 0 among all kinds.
    var index: Int
}

extension MediaFile {
    /// Video tracks that are not cover pictures.
    private var videoTracks: [Int] { (0..<trackCount).filter { isVideo($0) } }

    /// Whether it has a video track, other than cover pictures.
    var hasPictures: Bool { !videoTracks.isEmpty }

    /// Those of them that can be decoded.
    var playableTracks: [Int] { videoTracks.filter { avcodec_find_decoder(parameters($0).codec_id) != nil } }

    private func isVideo(_ index: Int) -> Bool {
        parameters(index).codec_type == AVMEDIA_TYPE_VIDEO
            && stream(index).pointee.disposition & AV_DISPOSITION_ATTACHED_PIC == 0
    }

    func codecName(_ index: Int) -> String { String(cString: avcodec_get_name(parameters(index).codec_id)) }

    /// The video track that is named, or else the first usable one: it can be decoded, and its pictures have a known
    /// size.
    ///
    /// - Parameter number: From 1 among the video tracks.
    func chooseVideoTrack(number: Int?) throws -> Int {
        let all = videoTracks
        guard !all.isEmpty else {
            throw FileFault.noVideo(path, tracks: otherTracks(than: nil).map { "\($0.kind) (\($0.codecText))" })
        }
        if let number {
            guard number <= all.count else { throw FileFault.noTrack(path, number, of: all.map { describe($0) }) }
            return try decodable(all[number - 1])
        }
        let known = playableTracks
        let usable = known.filter { parameters($0).width > 0 && parameters($0).format >= 0 }
        // A picture before the film, as a thumbnail, is no film; and a file may say which of its tracks is meant.
        let stills = usable.count > 1 ? usable.filter { isOnePicture($0) ?? hasOnePacket($0) } : []
        let films = usable.filter { !stills.contains($0) }
        let meant = films.first { stream($0).pointee.disposition & AV_DISPOSITION_DEFAULT != 0 }
        return try decodable(meant ?? films.first ?? usable.first ?? known.first ?? all[0])
    }

    /// Whether a track has a single picture, by its index or by its length; nil where neither says it.
    private func isOnePicture(_ index: Int) -> Bool? {
        let about = stream(index).pointee
        if about.nb_frames > 0 { return about.nb_frames == 1 }
        // In Matroska the length of a track is a tag, and may be missing.
        guard let length = tag("DURATION", of: index), let whole = duration else {
            return nil
        }
        let parts = length.split(separator: ":").compactMap { Double($0) }
        guard parts.count == 3 else { return false }
        return parts[0] * 3600 + parts[1] * 60 + parts[2] < min(whole.seconds / 10, 0.2)
    }

    /// A sentence where the track that is chosen is not the first one, since that has a single picture.
    func choiceOfFilm(_ chosen: Int) -> String? {
        guard let first = playableTracks.first, first < chosen,
            let number = videoTracks.firstIndex(of: chosen).map({ $0 + 1 }),
            let numberOfFirst = videoTracks.firstIndex(of: first).map({ $0 + 1 }),
            isOnePicture(first) ?? hasOnePacket(first)
        else { return nil }
        return
            "the video track \(number) of '\(path)' is played, not track \(numberOfFirst), which has a single picture; \"track\": \(numberOfFirst) gives that one"
    }

    private func decodable(_ index: Int) throws -> Int {
        guard avcodec_find_decoder(parameters(index).codec_id) != nil else {
            throw FileFault.noDecoder(path, codec: codecName(index))
        }
        return index
    }

    /// `h264 1280x720`.
    private func describe(_ index: Int) -> String {
        let (codec, parameters) = (codecName(index), parameters(index))
        let size = parameters.width > 0 ? "\(parameters.width)x\(parameters.height)" : "of unknown size"
        return "\(codec == "none" ? "unknown codec" : codec) \(size)"
    }

    /// Whether it only has the titles of the chapters (QuickTime's `chap`), which ``MediaTags`` has.
    private func isOfChapters(_ index: Int) -> Bool {
        let parameters = parameters(index)
        // `text`
        return parameters.codec_type == AVMEDIA_TYPE_DATA && parameters.codec_tag == 0x7478_6574 && !chapterList.isEmpty
    }

    /// All tracks but one that are lost where nobody takes them, with attachments.
    func lostTracks(besides chosen: Int) -> [OtherTrack] {
        otherTracks(than: chosen, withAttachments: true).filter { !isOfChapters($0.index) }
    }

    /// All tracks but one, except attachments.
    func otherTracks(than chosen: Int?, withAttachments: Bool = false) -> [OtherTrack] {
        var counts: [String: Int] = [:]
        var tracks: [OtherTrack] = []
        for index in 0..<trackCount {
            let type = parameters(index).codec_type
            guard withAttachments || type != AVMEDIA_TYPE_ATTACHMENT else { continue }
            let isCover = type == AVMEDIA_TYPE_VIDEO && !isVideo(index)
            let kind =
                isCover ? "cover picture" : av_get_media_type_string(type).map { String(cString: $0) } ?? "unknown"
            counts[kind, default: 0] += 1
            guard index != chosen else { continue }
            tracks.append(OtherTrack(kind: kind, number: counts[kind]!, codec: codecName(index), index: index))
        }
        return tracks
    }

    func timeBase(_ index: Int) -> TimeBase {
        let base = stream(index).pointee.time_base
        return base.num > 0 && base.den > 0 ? TimeBase(base.num, base.den) : TimeBase(1, AV_TIME_BASE)
    }

    /// Where a track starts, in its ticks.
    func origin(_ index: Int) -> Int64 {
        let (start, base) = (stream(index).pointee.start_time, timeBase(index))
        return start != fh_av_no_pts && TrackTimes.isPossible(start, base) ? start.plus(base.ticks(of: baseShift)) : 0
    }

    /// The duration of the track, or else of the file; nil when unknown.
    func duration(_ index: Int) -> MediaTime? {
        let ticks = stream(index).pointee.duration
        return ticks != fh_av_no_pts && ticks > 0 ? timeBase(index).time(ofTicks: ticks) : duration
    }

    /// The length of the track in the file's own header; nil where the header does not have it, or only has it for
    /// several tracks together.
    func declaredLength(_ index: Int) -> MediaTime? {
        let isAlone = !otherTracks(than: index).contains { $0.kind == "audio" || $0.kind == "video" }
        return isDurationDeclared && isAlone && isCountWritten(index) ? duration(index) : nil
    }

    /// How many pictures the index of an MP4 or MOV file has; nil where there is none. The indexes of other formats
    /// also count items that are not pictures.
    func indexedPictures(_ index: Int) -> Int? {
        let count = stream(index).pointee.nb_frames
        // More than a trillion cannot be a number of pictures.
        return isIndexExact && count > 0 && count < 1 << 40 ? Int(count) : nil
    }

    /// Whether the header of an AVI has its number of items. If ffmpeg cannot go back to write it, as in a pipe, 2^30 stands
    /// in its place.
    private func isCountWritten(_ index: Int) -> Bool { stream(index).pointee.nb_frames < 1 << 30 }

    /// The length of as many pictures as the header of an AVI's video track counts (`strh`); nil where it counts none.
    func countedLength(_ index: Int) -> MediaTime? {
        let count = stream(index).pointee.nb_frames
        guard stream(index).pointee.codecpar.pointee.codec_type == AVMEDIA_TYPE_VIDEO, count > 0,
            isCountWritten(index)
        else { return nil }
        return timeBase(index).time(ofTicks: count)
    }

    /// Bytes of the largest packet in the file's index; nil where the index does not have every packet, as in a
    /// fragmented file.
    func largestPacket(_ index: Int) -> Int? {
        guard let pictures = indexedPictures(index) else { return nil }
        var count: Int32 = 0
        let largest = fh_av_largest_indexed(stream(index), &count)
        return Int(count) >= pictures ? Int(largest) : nil
    }

    private var isIndexExact: Bool { formatName.hasPrefix("mov") }
}
