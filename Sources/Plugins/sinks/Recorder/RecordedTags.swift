// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// What a recording says about itself: what its input says, as far as that is to be kept. docs/design/040-tags.md.
struct RecordedTags: Equatable {
    /// How an MP4 or MOV file keeps the tags of the whole.
    enum Form: Equatable {
        /// As iTunes and QuickTime players read them, which is a fixed list of names.
        case usual
        /// By names of any kind (`mdta`), as phones write them.
        case names
    }

    var tags: [MediaTags.Tag] = []
    var chapters: [MediaTags.Chapter] = []
    var pictures = MediaTags.Track()
    /// The tracks that are carried along beside the pictures, by their index in the input.
    var carried: [MediaTags.Track] = []
    /// The tracks that come on inputs of their own.
    var sounds: [MediaTags.Track] = []
    var form = Form.usual
    /// Whether tracks say which language is spoken.
    var keepsLanguages = true

    var isEmpty: Bool {
        tags.isEmpty && chapters.isEmpty && ([pictures] + carried + sounds).allSatisfy(\.tags.isEmpty)
    }

    var creationTime: String? { tags["creation_time"] }

    /// Bytes that they take in an index, at most: each is written twice, in boxes with a head.
    var indexBytes: Int {
        func bytes(_ tags: [MediaTags.Tag]) -> Int {
            tags.reduce(0) { $0 + 2 * ($1.key.utf8.count + $1.value.utf8.count + 64) }
        }
        let tracks = [pictures] + carried + sounds
        return bytes(tags) + tracks.reduce(0) { $0 + bytes($1.tags) }
            + chapters.reduce(0) { $0 + bytes($1.tags) + 128 }
    }

    // MARK: Writing

    /// Hands the tags of the whole to a writer, before its header.
    func set(in context: UnsafeMutablePointer<AVFormatContext>) {
        for tag in tags { av_dict_set(&context.pointee.metadata, tag.key, tag.value, 0) }
    }

    /// Adds the chapters to what is written. A time before the file's start counts as its start.
    ///
    /// - Parameter origin: The time that is 0 in the file.
    func addChapters(to context: UnsafeMutablePointer<AVFormatContext>, origin: MediaTime) {
        let base = TimeBase(1, 1_000_000)
        for chapter in chapters {
            let (begin, end) = (base.ticks(of: chapter.begin - origin), base.ticks(of: chapter.end - origin))
            guard end > 0,
                let added = fh_av_add_chapter(context, AVRational(num: 1, den: 1_000_000), max(begin, 0), end)
            else { continue }
            for tag in chapter.tags { av_dict_set(&added.pointee.metadata, tag.key, tag.value, 0) }
        }
    }

    /// Options of the writer.
    func set(_ settings: inout OpaquePointer?, _ container: Container) {
        if container == .mkv {
            // Otherwise the first track of each kind counts as the default one, whatever its input says.
            if pictures.roles != nil { av_dict_set(&settings, "default_mode", "passthrough", 0) }
            return
        }
        // A tag 'timecode' would become a track of its own.
        av_dict_set(&settings, "write_tmcd", "0", 0)
        if form == .names { av_dict_set(&settings, "movflags", "+use_metadata_tags", AV_DICT_APPEND) }
    }
}

extension MediaTags.Track {
    /// Describes a track that is written.
    func set(on stream: UnsafeMutablePointer<AVStream>, in container: Container) {
        for tag in tags {
            let value = tag.isLanguage && container == .mov ? Language.bibliographic(tag.value) : tag.value
            av_dict_set(&stream.pointee.metadata, tag.key, value, 0)
        }
        // Most readers of MP4 show no other name of a track than its handler's, which Matroska does not have.
        if container == .mkv {
            av_dict_set(&stream.pointee.metadata, "handler_name", nil, 0)
            if let name = tags["title"] ?? tags["handler_name"] {
                av_dict_set(&stream.pointee.metadata, "title", name, 0)
            }
        } else if let title = tags["title"] {
            av_dict_set(&stream.pointee.metadata, "handler_name", title, 0)
        }
        if let roles {
            stream.pointee.disposition = roles.reduce(0) { $0 | max(av_disposition_from_string($1), 0) }
        }
    }
}

extension MediaTags.Tag {
    var isLanguage: Bool { key.lowercased() == "language" }
}

/// Languages that ISO 639-2 has two codes for.
enum Language {
    /// The code of MP4 and Matroska, then the one that QuickTime's list of languages has in libavformat (it has `fra`, `ces`,
    /// `ron` and `slk` as they are).
    private static let codes = [
        "bod": "tib", "cym": "wel", "deu": "ger", "ell": "gre", "eus": "baq", "fas": "per", "hye": "arm", "isl": "ice",
        "kat": "geo", "mkd": "mac", "msa": "may", "mya": "bur", "nld": "dut", "sqi": "alb", "zho": "chi",
    ]

    /// The bibliographic code: `ger` of `deu`.
    static func bibliographic(_ code: String) -> String { codes[code] ?? code }
}
