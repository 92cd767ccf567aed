import FrameCore

/// Options of ``Recorder``.
struct RecorderOptions: StageOptions {
    @Option(help: "The file to write, absolute or from the chain file's folder; its ending (.mp4, .mov, .mkv) chooses the container.")
    var path = ""

    @Option(help: "Replace a file that exists already.")
    var overwrite = false

    func validate() throws(OptionFault) {
        if path.isEmpty { throw OptionFault("'path' is missing", remedy: "Name the file to write: \"path\": \"out.mp4\".") }
        if path.utf8.contains(0) { throw OptionFault("'path' has a zero character in it", remedy: "Leave it out.") }
        if Container(path: path) == nil {
            throw OptionFault("'\(path)' does not end in a container's name", remedy: "End it in \".mp4\", \".mov\" or \".mkv\".")
        }
    }
}

/// What a recording is wrapped in, named as libavformat names its writers.
enum Container: String, CaseIterable {
    case mp4, mov
    case mkv = "matroska"

    /// By the ending of a file's name, whatever its case.
    init?(path: String) {
        let endings: [(String, Container)] = [(".mp4", .mp4), (".m4v", .mp4), (".mov", .mov), (".mkv", .mkv)]
        let name = path.lowercased()
        guard let found = endings.first(where: { name.hasSuffix($0.0) }) else { return nil }
        self = found.1
    }

    /// Whether a player turns the picture as the file says; libavformat writes no rotation to Matroska.
    var carriesOrientation: Bool { self != .mkv }

    /// Ticks per second of the track for time stamps in `timeBase`: the same, so that they come back exactly, but no finer than a
    /// microsecond, in which MP4 counts a gap of up to 71 minutes. Matroska has milliseconds.
    func ticksPerSecond(for timeBase: TimeBase) -> Int32 { self == .mkv ? 1000 : min(timeBase.denominator, 1_000_000) }
}
