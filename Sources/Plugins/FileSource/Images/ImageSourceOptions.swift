import FrameCore

/// Which picture comes after which.
enum ImageOrder: String, OptionChoice {
    /// By name with numbers by their value: `img2` before `img10`.
    case natural
    /// By name, byte by byte.
    case name
}

/// Options of ``ImageSource``.
struct ImageSourceOptions: StageOptions {
    @Option(help: "A picture, a folder of pictures, or a pattern such as \"shots/*.png\".")
    var path = ""

    @Option(help: "Frames per second.", range: FrameRate(1, 1000)...FrameRate(1000)) var rate = FrameRate(25)

    @Option(
        help:
            "How long each picture is shown; without it each for one frame, and a picture that is named alone for ever.",
        range: 0.001...1_000_000, unit: "s")
    var seconds: Double? = nil

    @Option(help: "Begin again after the last picture, for ever; the folder is read anew each time.")
    var loop = false

    @Option(help: "By name with numbers by their value (img2 before img10), or byte by byte.")
    var order = ImageOrder.natural

    @Option(help: "Gives each frame when it is due, as a camera does, instead of as fast as it is taken.")
    var live = false

    @Option(help: "Size of the frames; without it that of the first picture.", unit: "px")
    var size: PictureSize? = nil

    @Option(help: "How the samples lie in memory; bgra keeps transparency.") var format = PixelFormat.i420

    @Option(help: "What is seen through transparent parts, in every format but bgra.")
    var color = RGBColor(red: 0, green: 0, blue: 0)

    func validate() throws(OptionFault) {
        if path.isEmpty {
            throw OptionFault(
                "'path' is missing", remedy: "Name a picture, a folder or a pattern: \"path\": \"shots/*.png\".")
        }
        if path.utf8.contains(0) { throw OptionFault("'path' has a zero character in it", remedy: "Leave it out.") }
        if path == "-" {
            throw OptionFault(
                "'path' is -, and image-source reads files",
                remedy: "Name a picture; raw video from standard input is read by 'y4m-source'.")
        }
    }
}
