// SPDX-License-Identifier: Apache-2.0

/// What an input says about itself beside its pictures and its sound: when and where it was recorded, its title, its
/// chapters, and what each track is.
///
/// A source offers it with ``StageContext/offerTags(_:withheld:)``; stages behind find it as
/// ``StageContext/inputTags``. docs/design/040-tags.md.
public struct MediaTags: Sendable, Equatable {
    /// A name and a text: `title`, `Anna`.
    public struct Tag: Sendable, Hashable {
        /// The name as libavformat gives it, such as `creation_time`, `location`, `com.apple.quicktime.model`. Upper
        /// and lower case mean the same.
        public var key: String
        /// The text.
        public var value: String

        /// Makes a tag.
        public init(_ key: String, _ value: String) { (self.key, self.value) = (key, value) }
    }

    /// A part of the input that has a name.
    public struct Chapter: Sendable, Hashable {
        /// Where it begins, on the chain's timeline.
        public var begin: MediaTime
        /// Where it ends, on the chain's timeline.
        public var end: MediaTime
        /// Its title, and what else it says.
        public var tags: [Tag]

        /// Makes a chapter.
        public init(begin: MediaTime, end: MediaTime, tags: [Tag]) {
            (self.begin, self.end, self.tags) = (begin, end, tags)
        }
    }

    /// What one track says about itself.
    public struct Track: Sendable, Hashable {
        /// Its name (`title`), its `language` and others.
        public var tags: [Tag]
        /// What it is for, in libavformat's words for dispositions: `default`, `comment`, `hearing_impaired`. Nil where
        /// nobody says.
        public var roles: [String]?
        /// What it says of its brightness; nil where it is not HDR10.
        public var hdr: HDRMetadata?

        /// Describes a track; what is left out is unknown.
        public init(tags: [Tag] = [], roles: [String]? = nil, hdr: HDRMetadata? = nil) {
            (self.tags, self.roles, self.hdr) = (tags, roles, hdr)
        }
    }

    /// What is described, for messages: `clip.mp4`.
    public var name: String
    /// The tags of the whole input.
    public var tags: [Tag]
    /// In the order of time.
    public var chapters: [Chapter]
    /// The track that the source gives.
    public var track: Track
    /// The tracks of ``AudioOrigin/tracks``, where the source offers sound too.
    public var sounds: [Track]

    /// Describes an input; what is left out is unknown.
    public init(
        _ name: String, tags: [Tag] = [], chapters: [Chapter] = [], track: Track = Track(), sounds: [Track] = []
    ) {
        self.name = name
        self.tags = tags
        self.chapters = chapters
        self.track = track
        self.sounds = sounds
    }
}

extension [MediaTags.Tag] {
    /// The text of a tag; upper and lower case mean the same.
    public subscript(key: String) -> String? {
        first { $0.key.lowercased() == key.lowercased() }?.value
    }
}

/// What is known of the input's ``MediaTags`` at a place of the chain.
public struct PassedTags: Sendable, Equatable {
    /// Why nobody should take them over unasked.
    public enum Withheld: Sendable, Equatable {
        /// The stage of this id hides something (``StageDemand/mustNotBePassed``), which tags may tell.
        case guarded(by: String)
        /// The stage of this id makes one picture of several inputs.
        case joined(in: String)
    }

    /// Those of the source that the pictures come from, or the sound; nil where it offers none.
    public var tags: MediaTags?
    /// Nil where they hold for what comes in.
    public var withheld: Withheld?

    /// Says what is known.
    public init(_ tags: MediaTags? = nil, withheld: Withheld? = nil) { (self.tags, self.withheld) = (tags, withheld) }
}

extension PassedTags {
    /// With the times of the chapters moved.
    func moved(by offset: MediaTime) -> PassedTags {
        guard offset != .zero, tags?.chapters.isEmpty == false else { return self }
        var moved = self
        moved.tags!.chapters = tags!.chapters.map {
            MediaTags.Chapter(begin: $0.begin + offset, end: $0.end + offset, tags: $0.tags)
        }
        return moved
    }
}
