// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The pattern that is painted.
enum TestPattern: String, OptionChoice {
    /// Colour bars after SMPTE ECR 1, with a white box that crosses the lowest row.
    case bars
    /// Black to white, left to right.
    case gradient
    /// Coloured balls that bounce.
    case balls
    /// Dark and light squares.
    case checker
    /// One colour.
    case solid
    /// Black, and white for three pictures from each whole second on.
    case flash
    /// Nothing: pixels stay as they are in the buffer.
    case none
}

struct TestSourceOptions: StageOptions {
    @Option(help: "Size of the picture.", unit: "px") var size = PictureSize(1280, 720)
    @Option(help: "Frames per second.", range: FrameRate(1, 1000)...FrameRate(100_000)) var rate = FrameRate(30)
    @Option(help: "Pixel format.") var format = PixelFormat.i420
    @Option(help: "Ends after this many frames. Default: runs until stopped.", range: 1...1_000_000_000_000)
    var frames: Int? = nil
    @Option(help: "Gives each frame when it is due, like a camera. false gives frames as fast as the chain takes them.")
    var live =
        false
    @Option(
        help:
            "What is painted. \"flash\" is black, but white for the first 3 frames of each second. \"none\" leaves the buffers unpainted."
    )
    var pattern = TestPattern.bars
    @Option(help: "Colour of the solid pattern.") var color = RGBColor(red: 0, green: 0, blue: 0)
    @Option(
        help: "Paints the sequence number into the picture, unless 'pattern' is \"none\" or the number does not fit.")
    var number = true
    @Option(
        help:
            "Paints the capture time into the top rows, as 64 cells that a program can read back. Needs a 4:2:0 format and at least 320x240."
    )
    var stamp = false

    func validate() throws(OptionFault) {
        guard stamp else { return }
        guard TimestampStrip.formats.contains(format) else {
            throw OptionFault(
                "'stamp' needs a 4:2:0 format, but 'format' is \(format.rawValue)",
                remedy: "Set 'format' to i420, nv12, i010 or p010, or leave 'stamp' out.", options: ["stamp", "format"])
        }
        guard size.width >= TimestampStrip.leastWidth, size.height >= TimestampStrip.leastHeight else {
            throw OptionFault(
                "'stamp' needs pictures of at least 320x240, but 'size' is \(size)",
                remedy: "Use a larger 'size', or leave 'stamp' out.", options: ["stamp", "size"])
        }
    }
}
