// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Which tags of its inputs a recorder takes over, and what it says of the others.
struct TagChoice {
    private(set) var tags = RecordedTags()
    /// Sentences without the full stop.
    private(set) var notes: [(text: String, isWarning: Bool)] = []

    /// What the recorder is asked for, and what it can do.
    struct Wish {
        /// Nil: as the input allows.
        var handling: TagHandling?
        /// Which input leads, and which are further sounds.
        var lead: Int
        var sounds: [Int]
        /// Whether sound is copied from the source of the pictures.
        var copiesSound: Bool
        /// Whether each recording is one file with the times of the chain, so that chapters fit.
        var hasChapters: Bool
        var container: Container
        /// Describes the track that leads.
        var track: TrackDescriptions
    }

    init(_ inputs: [PassedTags], _ wish: Wish) {
        guard inputs.indices.contains(wish.lead) else { return }
        let passed = inputs[wish.lead]
        let isJoined = if case .joined? = passed.withheld { true } else { false }
        // How bright the pictures are is part of them, not about them.
        tags.pictures.hdr = isJoined ? nil : passed.tags?.track.hdr
        tags.keepsLanguages = wish.handling.map { $0 != .none } ?? (passed.withheld == nil)
        guard wish.handling != TagHandling.none else { return }
        let sounds = wish.sounds.map { inputs.indices.contains($0) ? inputs[$0].tags?.track : nil }
        var found = RecordedTags(sounds: sounds.map { $0 ?? MediaTags.Track() })
        if let given = passed.tags {
            found.tags = given.tags
            found.chapters = given.chapters
            found.pictures = given.track
            if isJoined { found.pictures.hdr = nil }
            if wish.copiesSound { found.carried = given.sounds }
        }
        let name = passed.tags?.name ?? inputs.lazy.compactMap(\.tags?.name).first ?? ""
        if let reason = passed.withheld, wish.handling == nil {
            withhold(found, of: name, reason)
            return
        }
        if !wish.hasChapters, !found.chapters.isEmpty {
            notes.append(
                (
                    "the chapters of '\(name)' are not kept: a recording has chapters only where it is one file that begins with the run",
                    true
                ))
            found.chapters = []
        }
        take(found, of: name, wish)
    }

    private mutating func withhold(_ found: RecordedTags, of name: String, _ reason: PassedTags.Withheld) {
        guard !found.isEmpty else { return }
        let what = TagTrial.list(found.tags.map { "'\($0.key)'" })
        let tags =
            found.tags.isEmpty
            ? "what '\(name)' says about its tracks"
            : "the \(found.tags.count == 1 ? "tag" : "tags") \(what) of '\(name)'"
        let rest = found.chapters.isEmpty ? "" : " and its chapters"
        switch reason {
        case .guarded(let id):
            notes.append(
                (
                    "'\(id)' hides what is in the pictures, so \(tags)\(rest) are left out, as they may tell it. Set \"tags\": \"keep\" to keep them",
                    false
                ))
        case .joined(let id):
            notes.append(
                (
                    "'\(id)' shows several inputs, so \(tags)\(rest) are left out. Set \"tags\": \"keep\" to keep them",
                    true
                ))
        }
    }

    /// Takes over what the container can carry, in the form that carries most.
    private mutating func take(_ found: RecordedTags, of name: String, _ wish: Wish) {
        tags = found
        guard found != RecordedTags(sounds: found.sounds.map { _ in MediaTags.Track() }) else { return }
        let count = found.carried.count + found.sounds.count
        func trial(_ tags: RecordedTags, in container: Container) -> TagTrial {
            var track = wish.track
            (track.pictureTags, track.soundTags) = (tags.pictures, tags.carried + tags.sounds)
            return TagTrial(tags, pictures: track, sounds: count, in: container)
        }
        var best = trial(found, in: wish.container)
        if wish.container != .mkv, best.lostTagCount > 0 {
            var named = found
            named.form = .names
            let other = trial(named, in: wish.container)
            if other.lostTagCount < best.lostTagCount { (best, tags) = (other, named) }
        }
        guard best.isWritten else {
            let hdr = found.pictures.hdr
            tags = RecordedTags(pictures: MediaTags.Track(hdr: hdr))
            notes.append(
                ("\(wish.container.name) cannot store what '\(name)' says about itself, so all of it is left out", true)
            )
            return
        }
        guard !best.losses.isEmpty else { return }
        let isKeptElsewhere = wish.container != .mkv && trial(found, in: .mkv).losses.isEmpty
        notes.append(
            (
                "\(wish.container.name) cannot store \(TagTrial.list(best.losses)) of '\(name)'\(isKeptElsewhere ? ". Record to .mkv to keep them" : "")",
                true
            ))
    }
}
