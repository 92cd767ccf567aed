// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What all recordings of one recorder have in common.
struct RecordingSetup {
    /// Of the track that leads.
    var format: EncodedFormat
    /// The format of the pictures that were encoded; nil where a sound leads.
    var pictures: VideoFormat?
    /// Tracks that come on inputs of their own, beside the one that leads.
    var sounds: [AudioTrackFormat]
    /// What each file says about itself.
    var tags: RecordedTags
    /// Whether each file has a track of motion.
    var hasMotionTrack: Bool
    var container: Container
    var policy: SegmentPolicy
    var finalize: FinalizeWhen
    /// Whether the input is live. Times are then those of the clock, so files begin at 0 and say when they were
    /// recorded, and data is synced to the disk every second.
    var isLive: Bool
    /// Shared by all files of a recorder.
    var room: RoomReport

    init(
        _ inputs: RecorderInputs, _ options: RecorderOptions, _ container: Container, tags: RecordedTags,
        hasMotion: Bool, isLive: Bool, _ room: RoomReport
    ) {
        (format, pictures, sounds) = (inputs.format, inputs.pictures, inputs.sounds)
        self.tags = tags
        hasMotionTrack = hasMotion && container != .mkv
        self.container = container
        policy = SegmentPolicy(seconds: options.segmentSeconds, megabytes: options.segmentMegabytes)
        finalize = options.finalize
        self.isLive = isLive
        self.room = room
    }
}

// MARK: - What decoders need before sound is heard

extension RecordingSetup {
    /// By how much a time can be wrong that a container counts in milliseconds.
    static let rounding = MediaTime(nanoseconds: 1_000_000)

    func padding(_ format: AudioTrackFormat) -> MediaTime {
        MediaTime(seconds: Double(format.initialPadding) / Double(max(format.sampleRate, 1)))
    }

    /// What is added to the times of a track's packets. Readers of Matroska subtract Opus' delay, which libavformat
    /// writes, from its times; those of MP4 do not.
    func delay(of format: AudioTrackFormat) -> MediaTime {
        container == .mkv && format.codec == .opus ? padding(format) : .zero
    }

    /// Whether a packet belongs into the file although it may begin before its first picture.
    ///
    /// MP4 hides such sound with an edit list. Matroska has none, and its times before 0 are those of the first
    /// cluster: it gets what a decoder needs for the first sound that is heard, which is one packet with most codecs.
    func isKept(_ pts: MediaTime, _ duration: MediaTime, _ format: AudioTrackFormat, from origin: MediaTime) -> Bool {
        container != .mkv || pts + duration + padding(format) + Self.rounding >= origin
    }

    var leadDelay: MediaTime { format.audio.map(delay) ?? .zero }

    /// Whether a sound that leads lies before 0, where nobody hears it and no decoder needs it. A packet overlaps with the one
    /// before it, which its decoder needs.
    func isBeforeStart(_ unit: RecordedUnit) -> Bool {
        guard let sound = format.audio else { return false }
        let overlap = [.aac, .opus, .mp3].contains(sound.codec) ? unit.duration : .zero
        return unit.pts + max(padding(sound), overlap) + unit.duration <= .zero
    }

    func isLeadIn(_ packet: RecordedUnit, to unit: RecordedUnit) -> Bool {
        guard let sound = format.audio, packet.pts < unit.pts else { return false }
        return packet.pts + packet.duration + padding(sound) > unit.pts
    }
}
