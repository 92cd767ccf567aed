// SPDX-License-Identifier: Apache-2.0

import FrameCore
import LiveInput

struct V4L2SourceOptions: StageOptions {
    @Option(
        help:
            "The camera: a path, a stable id or a serial number as `framehost devices` lists them, or its name or a part of it. Default: the first one."
    )
    var device: String? = nil
    @Option(
        help: "Requested size; the nearest one is used. Default: 1280x720, or 640x480 on a machine with one processor.",
        unit: "px")
    var size: PictureSize? = nil
    @Option(
        help:
            "Requested frames per second; the nearest rate is used. Default: 30, or 15 on a machine with one processor.",
        range: FrameRate(1, 1000)...FrameRate(1000)) var rate: FrameRate? = nil
    @Option(
        help:
            "The camera's format. Default: of the formats that come nearest to 'size' and 'rate', the one that takes the least processor time. \"h264\" passes on the camera's own H.264."
    )
    var format: CameraPixels? = nil
    @Option(help: "Number of buffers in the driver's queue.", range: 2...16) var buffers = 4
    @Option(
        help:
            "Values of the camera's controls, by the names that `framehost devices` lists: { \"brightness\": 140 }. They are set in the order in which you write them.",
        live: true)
    var controls = ControlValues()
    @Option(
        help:
            "Where the camera points: at the person who watches (front; previews are mirrored) or away (back). Streams and files are never mirrored.",
        live: true)
    var facing: CameraFacing? = nil
    @Option(help: "Whether previews mirror the picture. Overrides 'facing'.", live: true) var mirror: Bool? = nil
    @Option(help: "What happens when the camera is not there at the start.") var ifMissing = IfMissing.fail
    @Option(help: "What is shown while the camera is lost.") var whileLost = WhileLost.hold
    @Option(help: "Colour of the slate, which \"whileLost\": \"hold\" also shows before the first picture.")
    var slateColor = RGBColor(red: 32, green: 32, blue: 40)
    @Option(
        help:
            "PNG or JPEG to show on the slate, as large as possible. A relative path starts at the chain file's folder."
    )
    var slatePicture: String? = nil
    @Option(help: "Text in the middle of the slate; \\n starts a new line.") var slateText: String? = nil

    var isMirroredInPreviews: Bool { mirror ?? (facing == .front) }

    func validate() throws(OptionFault) {
        guard format == .h264 else { return }
        if whileLost == .slate {
            throw OptionFault(
                "'whileLost' cannot be \"slate\" with \"format\": \"h264\", because there is no encoder for the slate",
                remedy: "Use \"hold\", which waits and gives nothing, or \"stop\".", options: ["whileLost"])
        }
        if ifMissing == .wait {
            throw OptionFault(
                "'ifMissing' cannot be \"wait\" with \"format\": \"h264\", which needs the camera's parameter sets at the start",
                remedy: "Leave 'ifMissing' out, or use another 'format' with an encoder after this stage.",
                options: ["ifMissing"])
        }
    }
}

/// Where a camera looks.
enum CameraFacing: String, OptionChoice { case front, back }
