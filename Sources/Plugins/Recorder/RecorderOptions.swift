import FrameCore

/// Options of ``Recorder``.
struct RecorderOptions: StageOptions {
    @Option(
        help:
            "The file to write, absolute or from the chain file's folder; its ending (.mp4, .mov, .mkv) chooses the container."
            + " May have times as of strftime (%Y-%m-%d) and one number ({n}, {nnnn}).")
    var path = ""

    @Option(help: "Replace a file that exists already.")
    var overwrite = false

    @Option(help: "Record from the first picture on, or when the command 'start' comes.")
    var record = RecordWhen.atStart

    @Option(help: "Go on in a new file after so long, at a keyframe.", range: 0.01...2_592_000, unit: "s")
    var segmentSeconds: Double? = nil

    @Option(
        help: "Go on in a new file before this one gets larger, at a keyframe.", range: 0.001...10_000_000, unit: "MB")
    var segmentMegabytes: Double? = nil

    @Option(help: "Remove files of this path's pattern that are older.", range: 0.1...3_153_600_000, unit: "s")
    var keepSeconds: Double? = nil

    @Option(
        help: "Remove the oldest files of this path's pattern while all of them together are larger.",
        range: 0.001...1_000_000_000,
        unit: "MB")
    var keepMegabytes: Double? = nil

    @Option(
        help: "Keep so much of the past in memory, and begin with it when 'start' comes.", range: 0...3600, unit: "s")
    var preEventSeconds = 0.0

    @Option(
        help: "Memory for the past; without it 1.5 times what the bitrate asks for, or 64 without a bitrate.",
        range: 0.01...65_536,
        unit: "MB")
    var preEventMegabytes: Double? = nil

    @Option(help: "Sound that comes with the pictures: leave it out, or copy its packets untouched.")
    var audio = SoundHandling.none

    @Option(
        help:
            "Rewrite a complete MP4 or MOV file with its index in front: auto does so below 2 GB and with room for a copy."
    )
    var finalize = FinalizeWhen.auto

    func validate() throws(OptionFault) {
        if path.isEmpty {
            throw OptionFault("'path' is missing", remedy: "Name the file to write: \"path\": \"out.mp4\".")
        }
        if path == "-" {
            throw OptionFault(
                "'path' is -, and a recording needs a file to go back in",
                remedy:
                    "Name a file. 'y4m-sink' writes raw video to standard output, 'null-sink' with \"dump\": \"-\" anything."
            )
        }
        if let mark = path.firstRange(of: "://"), mark.lowerBound != path.startIndex,
            path[..<mark.lowerBound].allSatisfy(\.isLetter)
        {
            throw OptionFault(
                "'path' is the address \(path), and the recorder writes files",
                remedy: path.hasPrefix("file://")
                    ? "Write the path alone, without file://."
                    : "Name a file. 'rtsp-sink' serves a stream; no stage sends to an address yet.")
        }
        if path.utf8.contains(0) { throw OptionFault("'path' has a zero character in it", remedy: "Leave it out.") }
        if Container(path: path) == nil {
            throw OptionFault(
                "'\(path)' does not end in a container's name", remedy: "End it in \".mp4\", \".mov\" or \".mkv\".")
        }
        let pattern = try FileNamePattern(path)
        if keepSeconds != nil || keepMegabytes != nil, !makesMoreFiles, pattern.isFixed {
            throw OptionFault(
                "'\(keepSeconds != nil ? "keepSeconds" : "keepMegabytes")' removes older files of a pattern, and '\(path)' is one file",
                remedy: "Put a time or a number into 'path', such as %Y-%m-%d or {nnnn}.")
        }
    }

    /// Whether more than one file is to be expected, so that a path without time and number gets a number.
    var makesMoreFiles: Bool { record == .onCommand || segmentSeconds != nil || segmentMegabytes != nil }
}

/// When a recorder begins by itself.
enum RecordWhen: String, OptionChoice { case atStart, onCommand }

/// What becomes of sound.
enum SoundHandling: String, OptionChoice { case none, copy }

/// Which files are rewritten with the index in front.
enum FinalizeWhen: String, OptionChoice { case auto, never, always }
