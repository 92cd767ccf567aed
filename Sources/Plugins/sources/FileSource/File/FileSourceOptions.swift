// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// How fast a file is played.
enum FilePace: String, OptionChoice {
    /// As fast as the chain takes pictures.
    case fast
    /// Each picture at its time.
    case realtime
}

/// Options of ``FileSource``.
struct FileSourceOptions: StageOptions {
    @Option(
        help:
            "The file to play, or a list of files to play one after the other. A relative path starts at the chain file's folder."
    )
    var path: FilePaths = ""

    @Option(help: "Number of the video track. Default: the first track that can be played.", range: 1...1000)
    var track: Int? = nil

    @Option(help: "fast gives pictures as fast as the chain takes them, realtime gives each picture at its time.")
    var pace = FilePace.fast

    @Option(help: "Where in the file to start. The chain's timeline starts there too.", range: 0...1_000_000, unit: "s")
    var start = 0.0

    @Option(help: "How much of the file to play. Default: up to its end.", range: 0.001...1_000_000, unit: "s")
    var duration: Double? = nil
    /// Whether the chain file names a part of the file.
    var isPart: Bool { start > 0 || duration != nil }

    @Option(help: "Starts over at the end, endlessly; the time continues.")
    var loop = false

    @Option(help: "Deinterlaces interlaced pictures.")
    var deinterlace = false

    @Option(
        help:
            "Decodes to pictures. false passes H.264, H.265, MJPEG or AV1 on unchanged, for recorder; H.264 and H.265 also for rtsp-sink."
    )
    var decode = true

    func validate() throws(OptionFault) {
        for path in path.all { try validate(path) }
        if path.isList, isPart {
            throw OptionFault(
                "'path' is a list, and 'start' and 'duration' are for a single file",
                remedy: "Leave them out, or name one file.", options: ["path", "start", "duration"])
        }
        if deinterlace, !decode {
            throw OptionFault(
                "'deinterlace' needs decoded pictures, but \"decode\": false gives none",
                remedy: "Leave one of the two out.", options: ["deinterlace"])
        }
    }

    private func validate(_ path: String) throws(OptionFault) {
        if path.isEmpty {
            throw OptionFault(
                "'path' is missing or empty", remedy: "Name the file to play: \"path\": \"clip.mp4\".",
                options: ["path"])
        }
        if path == "-" {
            throw OptionFault(
                "'path' must be a file, but is - (standard input)",
                remedy: "Name a file. 'y4m-source' reads raw video (y4m) from standard input.", options: ["path"])
        }
        if let fault = FileFault.ofAddress(
            path, kind: "a file", remedy: "Use 'network-source', with the address as its 'url'.")
        {
            throw fault
        }
        if path.utf8.contains(0) {
            throw OptionFault(
                "'path' must not contain the character U+0000", remedy: "Remove its \\u0000.", options: ["path"])
        }
    }
}
