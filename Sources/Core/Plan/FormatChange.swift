// SPDX-License-Identifier: Apache-2.0

/// How formats change, for people.
enum FormatChange {
    /// `gray8 32x64 30 fps instead of gray8 64x64 30 fps`. Two formats that are called the same are told apart by what
    /// their names leave out: `H.264 160x96 30 fps with B-frames over 2 pictures instead of none`.
    static func words(from before: [MediaFormat], to after: [MediaFormat]) -> String {
        func listed(_ formats: [MediaFormat]) -> String { formats.map(\.description).joined(separator: " and ") }
        guard listed(before) == listed(after) else { return "\(listed(after)) instead of \(listed(before))" }
        let changed = zip(before, after).filter { $0 != $1 }.compactMap { old, new -> String? in
            let differences = differences(from: old, to: new)
            return differences.isEmpty ? nil : "\(new) with \(differences.joined(separator: ", "))"
        }
        return changed.isEmpty ? "another kind of \(listed(before))" : changed.joined(separator: " and ")
    }

    /// `the framing annexB instead of lengthPrefixed`, one for each property; without those that a change may have
    /// (``MediaFormat/isAsGood(as:)``).
    static func differences(from before: MediaFormat, to after: MediaFormat) -> [String] {
        var found: [String] = []
        func compare<Value: Equatable>(_ name: String, _ old: Value, _ new: Value) {
            if old != new { found.append("\(name) \(new) instead of \(old)") }
        }
        func compare(_ old: VideoFormat, _ new: VideoFormat) {
            compare("the pixel format", old.pixelFormat.rawValue, new.pixelFormat.rawValue)
            compare("the size", "\(old.width)x\(old.height)", "\(new.width)x\(new.height)")
            compare("the frame rate", "\(old.frameRate)", "\(new.frameRate)")
            compare("the orientation", old.orientation, new.orientation)
            compare("the pixel aspect ratio", "\(old.sampleAspectRatio)", "\(new.sampleAspectRatio)")
            compare("the time base", "\(old.timeBase)", "\(new.timeBase)")
            compare("the colour range", old.color.range, new.color.range)
            compare("the colour matrix", old.color.matrix, new.color.matrix)
            compare("the colour primaries", old.color.primaries, new.color.primaries)
            compare("the colour transfer", old.color.transfer, new.color.transfer)
            compare("the chroma siting", old.color.chromaSiting, new.color.chromaSiting)
        }
        switch (before, after) {
        case (.video(let old), .video(let new)): compare(old, new)
        case (.encoded(let old), .encoded(let new)):
            compare("the codec", "\(old.codec)", "\(new.codec)")
            compare("the framing", old.framing, new.framing)
            if new.reorderDepth > old.reorderDepth {
                let depth = new.reorderDepth
                found.append(
                    "B-frames over \(depth) picture\(depth == 1 ? "" : "s") instead of \(old.reorderDepth == 0 ? "none" : "\(old.reorderDepth)")"
                )
            }
            if let old = old.video, let new = new.video { compare(old, new) }
            if let old = old.audio, let new = new.audio {
                compare("the sample rate", old.sampleRate, new.sampleRate)
                compare("the channels", old.channelCount, new.channelCount)
                compare("the channel layout", old.channelMask, new.channelMask)
                compare("the packet length", old.samplesPerPacket, new.samplesPerPacket)
                compare("the padding", old.initialPadding, new.initialPadding)
                compare("the language", old.language, new.language)
                if found.isEmpty, old.withoutBitRate != new.withoutBitRate { found.append("another configuration") }
            }
        case (.audio(let old), .audio(let new)):
            compare("the sample rate", old.sampleRate, new.sampleRate)
            compare("the channels", old.channelCount, new.channelCount)
            if old.layout != new.layout { found.append("another channel layout") }
        case (.motion(let old), .motion(let new)): compare("the sample rate", old.sampleRate, new.sampleRate)
        default: break
        }
        return found
    }
}
