import FrameCore
import LiveInput

struct V4L2SourceOptions: StageOptions {
    @Option(
        help:
            "Which camera: a path, a stable id or serial number as `framehost devices` lists them, its name or a part of it; without it the first."
    )
    var device: String? = nil
    @Option(
        help: "Size to come near; without it 1280x720, or 640x480 where there is one processor alone.", unit: "px")
    var size: PictureSize? = nil
    @Option(
        help: "Frames per second to come near; without it 30, or 15 where there is one processor alone.",
        range: FrameRate(1, 1000)...FrameRate(1000)) var rate: FrameRate? = nil
    @Option(
        help:
            "How the camera gives its pictures; without it what comes nearest and costs least. \"h264\" passes on what the camera encodes, as access units."
    )
    var format: CameraPixels? = nil
    @Option(help: "Buffers that the driver has in hand.", range: 2...16) var buffers = 4
    @Option(
        help:
            "Values of the camera's controls by the names that `framehost devices` lists: { \"brightness\": 140 }; set in this order.",
        live: true)
    var controls = ControlValues()
    @Option(
        help:
            "Where the camera looks: at the person who watches (front), whom previews show mirrored, or not (back). Streams and files are never mirrored.",
        live: true)
    var facing: CameraFacing? = nil
    @Option(help: "Whether previews mirror the picture, whatever 'facing' says.", live: true) var mirror: Bool? = nil
    @Option(help: "What happens when the camera is not there at the start.") var ifMissing = IfMissing.fail
    @Option(help: "What is shown while the camera is away.") var whileLost = WhileLost.hold
    @Option(help: "Colour of the slate; also shown by hold before the first picture.") var slateColor = RGBColor(
        red: 32, green: 32, blue: 40)
    @Option(
        help:
            "PNG or JPEG on that colour, as large as it fits; absolute or from the chain file's folder.")
    var slatePicture: String? = nil
    @Option(help: "Words in the middle of the slate; \\n begins a line.") var slateText: String? = nil

    var isMirroredInPreviews: Bool { mirror ?? (facing == .front) }

    func validate() throws(OptionFault) {
        guard format == .h264 else { return }
        if whileLost == .slate {
            throw OptionFault(
                "'whileLost' is \"slate\", and with \"format\": \"h264\" nobody here encodes one",
                remedy: "Use \"hold\", which gives nothing until the camera is back, or \"stop\".")
        }
        if ifMissing == .wait {
            throw OptionFault(
                "'ifMissing' is \"wait\", and with \"format\": \"h264\" the chain needs the camera's parameter sets at its start",
                remedy: "Leave 'ifMissing' out, or let the camera give pictures and put an encoder behind this stage.")
        }
    }
}

/// Where a camera looks.
enum CameraFacing: String, OptionChoice { case front, back }
