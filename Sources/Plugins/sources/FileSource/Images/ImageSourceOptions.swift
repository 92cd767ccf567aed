// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The order of the pictures.
enum ImageOrder: String, OptionChoice {
    /// By name, with numbers compared by value: `img2` before `img10`.
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
            "How long each picture is shown. Default: one frame each; a single picture for ever.",
        range: 0.001...1_000_000, unit: "s")
    var seconds: Double? = nil

    @Option(help: "Starts over after the last picture, endlessly. The folder is read again each time.")
    var loop = false

    @Option(
        help:
            "Order of the pictures: natural compares numbers in names by value (img2 before img10), name compares names byte by byte."
    )
    var order = ImageOrder.natural

    @Option(help: "Gives each frame when it is due, like a camera. false gives frames as fast as the chain takes them.")
    var live = false

    @Option(help: "Size of the frames. Default: the first picture's size.", unit: "px")
    var size: PictureSize? = nil

    @Option(help: "Pixel format. bgra keeps transparency.") var format = PixelFormat.i420

    @Option(help: "Colour behind transparent parts, in every format except bgra.")
    var color = RGBColor(red: 0, green: 0, blue: 0)

    func validate() throws(OptionFault) {
        if path.isEmpty {
            throw OptionFault(
                "'path' is missing or empty",
                remedy: "Name a picture, a folder or a pattern: \"path\": \"shots/*.png\".", options: ["path"])
        }
        if path.utf8.contains(0) {
            throw OptionFault(
                "'path' must not contain the character U+0000", remedy: "Remove its \\u0000.", options: ["path"])
        }
        if path == "-" {
            throw OptionFault(
                "'path' must be a file, a folder or a pattern, but is - (standard input)",
                remedy: "Name a picture. 'y4m-source' reads raw video from standard input.", options: ["path"])
        }
        if let fault = FileFault.ofAddress(
            path, kind: "a file, a folder or a pattern",
            remedy: "Fetch the picture to a file first. 'network-source' plays streams, such as a camera's MJPEG.")
        {
            throw fault
        }
    }
}
