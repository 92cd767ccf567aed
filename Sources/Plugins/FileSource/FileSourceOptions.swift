import FrameCore

/// How fast a file is played.
enum FilePace: String, OptionChoice {
    /// As fast as the chain takes it.
    case fast
    /// Each picture when its time has come.
    case realtime
}

/// Options of ``FileSource``.
struct FileSourceOptions: StageOptions {
    @Option(help: "The file to play, absolute or from the chain file's folder.")
    var path = ""

    @Option(help: "Which of the video tracks; without it the first good one.", range: 1...1000)
    var track: Int? = nil

    @Option(help: "As fast as the chain takes it, or each picture at its time.")
    var pace = FilePace.fast

    @Option(help: "Begin this far into the file; the time line begins there too.", range: 0...1_000_000, unit: "s")
    var start = 0.0

    @Option(help: "End after this much of the file; without it at its end.", range: 0.001...1_000_000, unit: "s")
    var duration: Double? = nil

    @Option(help: "Begin again at the end, for ever; time goes on.")
    var loop = false

    @Option(help: "Make whole pictures of interlaced ones.")
    var deinterlace = false

    @Option(help: "Decode to pictures; without that, H.264 goes on as it is, for a recorder or rtsp-sink.")
    var decode = true

    func validate() throws(OptionFault) {
        if path.isEmpty {
            throw OptionFault("'path' is missing", remedy: "Name the file to play: \"path\": \"clip.mp4\".")
        }
        if path == "-" {
            throw OptionFault(
                "'path' is -, and file-source plays files that it can go back in",
                remedy: "Name a file; raw video (y4m) from standard input is read by 'y4m-source'.")
        }
        if let mark = path.firstRange(of: "://"), mark.lowerBound != path.startIndex,
            path[..<mark.lowerBound].allSatisfy(\.isLetter)
        {
            // What may be a login is not quoted, nor is what stands behind a question mark.
            let rest = path[mark.upperBound...].prefix { $0 != "?" }
            throw OptionFault(
                "'path' is the address \(path[..<mark.upperBound])\(rest.contains("@") ? "…" : rest), and file-source plays files",
                remedy: path.hasPrefix("file://")
                    ? "Write the path alone, without file://." : "Use network-source, with the address as its 'url'.")
        }
        if deinterlace, !decode {
            throw OptionFault(
                "'deinterlace' makes pictures whole, and with \"decode\": false there are none",
                remedy: "Leave one of the two out.")
        }
        if path.utf8.contains(0) { throw OptionFault("'path' has a zero character in it", remedy: "Leave it out.") }
    }
}
