// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Recordings

/// Options of ``Recorder``.
struct RecorderOptions: StageOptions {
    @Option(
        help:
            "The file to write. A relative path starts at the chain file's folder. Its ending (.mp4, .mov, .mkv; for sound alone also .m4a, .mka) chooses the container. It can contain strftime times (%Y-%m-%d) and one number ({n}, {nnnn})."
    )
    var path = ""

    @Option(
        help:
            "Replaces a file that exists already. Where 'path' has a time or a number, it replaces only recordings of this recorder."
    )
    var overwrite = false

    @Option(help: "Whether recording starts with the first picture or with the command 'start'.")
    var record = RecordWhen.atStart

    @Option(help: "Continues in a new file after this long, at a keyframe.", range: 0.01...2_592_000, unit: "s")
    var segmentSeconds: Double? = nil

    @Option(
        help: "Continues in a new file before the file gets larger than this, at a keyframe.",
        range: 0.001...10_000_000, unit: "MB")
    var segmentMegabytes: Double? = nil

    @Option(
        help: "Removes files that this recorder has recorded and that are older than this.", range: 0.1...3_153_600_000,
        unit: "s")
    var keepSeconds: Double? = nil

    @Option(
        help:
            "Removes the oldest files that this recorder has recorded while they are together larger than this.",
        range: 0.001...1_000_000_000,
        unit: "MB")
    var keepMegabytes: Double? = nil

    @Option(
        help: "Keeps this much of the past in memory; the command 'start' puts it at the start of the recording.",
        range: 0...3600, unit: "s")
    var preEventSeconds = 0.0

    @Option(
        help: "Memory for the past. Default: 1.5 times what the bitrate needs, or 64 if there is no bitrate.",
        range: 0.01...65_536,
        unit: "MB")
    var preEventMegabytes: Double? = nil

    @Option(
        help:
            "The sound that comes with the pictures: none drops it, copy copies its packets unchanged. Default: none, which 'check' says where there is sound."
    )
    var audio: SoundHandling? = nil

    @Option(
        help:
            "What a file says about itself, such as its date, place, title, chapters and the names of its tracks: keep takes it over, none leaves it out. Default: keep; none behind a stage that hides something (privacy) or shows several inputs."
    )
    var tags: TagHandling? = nil

    @Option(
        help:
            "Whether a complete MP4 or MOV file is rewritten with its index in front. auto does so below 2 GB if there is space for a copy."
    )
    var finalize = FinalizeWhen.auto

    @Option(help: "Writes a Gyroflow file (.gcsv) with the motion beside each recording.")
    var gcsv = false

    @Option(
        help:
            "Writes a searchable WebVTT file (.vtt) beside each recording: which faces are visible, and the events of the chain's stages."
    )
    var vtt = false

    /// What is written beside each recording.
    var sidecars: [Sidecar] { (gcsv ? [.gyroflow] : []) + (vtt ? [.captions] : []) }

    func validate() throws(OptionFault) {
        try FileNamePattern.check(
            path, example: "out.mp4",
            insteadOfOutput:
                "Name a file. 'y4m-sink' writes raw video to standard output; 'null-sink' with \"dump\": \"-\" writes anything there.",
            insteadOfAddress: "Name a file. 'rtsp-sink' serves a stream; no stage can send to an address yet.")
        if Container(path: path) == nil {
            throw OptionFault(
                "'\(path)' must end in .mp4, .mov or .mkv, or of sound alone in .m4a or .mka",
                remedy: "Use one of these endings: the ending chooses the container.", options: ["path"])
        }
        let pattern = try FileNamePattern(path)
        if keepSeconds != nil || keepMegabytes != nil, !makesMoreFiles, pattern.isFixed {
            throw OptionFault(
                "'\(keepSeconds != nil ? "keepSeconds" : "keepMegabytes")' removes older files of a pattern, but '\(path)' is one file",
                remedy: "Put a time or a number into 'path', such as %Y-%m-%d or {nnnn}.",
                options: [keepSeconds != nil ? "keepSeconds" : "keepMegabytes"])
        }
    }

    /// Whether there may be more than one file, so that a path without time and number gets a number.
    var makesMoreFiles: Bool { record == .onCommand || segmentSeconds != nil || segmentMegabytes != nil }
}

/// When a recorder starts to record.
enum RecordWhen: String, OptionChoice { case atStart, onCommand }

/// What happens to sound.
enum SoundHandling: String, OptionChoice { case none, copy }

/// What happens to tags of the input.
enum TagHandling: String, OptionChoice { case keep, none }

/// Which files are rewritten with the index in front.
enum FinalizeWhen: String, OptionChoice { case auto, never, always }
