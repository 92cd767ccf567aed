import FrameCore
import LiveInput

/// How RTSP packets travel.
enum NetworkTransport: String, OptionChoice {
    /// On the connection itself: nothing is lost.
    case tcp
    /// As datagrams: no wait for what is lost.
    case udp
}

/// Options of ``NetworkSource``.
struct NetworkSourceOptions: StageOptions {
    @Option(help: "Where the stream is: rtsp, rtsps, rtmp, rtmps, srt, http, https, udp or tcp, without a login.")
    var url = ""
    @Option(
        help:
            "Who to log in as: a file with a line name:password, or env:NAME for an environment variable with such a line; for srt the password is the passphrase."
    )
    var login: String? = nil
    @Option(
        help:
            "Verify the certificates of servers (https, rtmps); false accepts any, and is what rtsps needs: this libavformat cannot verify there."
    )
    var verify = true
    @Option(help: "A file with the certificates (PEM) that are trusted, in place of the system's.") var caFile:
        String? = nil
    @Option(help: "Decode to pictures; without that, H.264 goes on as it is, for a recorder or rtsp-sink.")
    var decode = true
    @Option(
        help:
            "Size of the pictures, to which others are scaled; without it the stream's own, or 1280x720 with \"wait\".",
        unit: "px")
    var size: PictureSize? = nil
    @Option(
        help:
            "Frames per second that the chain is planned for, and of the pictures while it is away; without it the stream's own, else 25.",
        range: FrameRate(1, 1000)...FrameRate(1000))
    var rate: FrameRate? = nil
    @Option(help: "How RTSP packets travel: on the connection, or as datagrams (rtsp_transport).")
    var transport = NetworkTransport.tcp
    @Option(help: "A server that does not answer for so long counts as away.", range: 0.5...60, unit: "s")
    var connectSeconds = 5.0
    @Option(
        help: "A stream without video for so long counts as lost; without it 3, and 20 over HTTP.", range: 0.2...3600,
        unit: "s")
    var stallSeconds: Double? = nil
    @Option(
        help: "Longest wait for packets that come late or again: RTSP over UDP (max_delay), SRT (latency).",
        range: 0...10_000, unit: "ms")
    var latencyMs = 100
    @Option(help: "Receive buffer of UDP sockets (buffer_size).", range: 4096...134_217_728, unit: "bytes")
    var bufferBytes = 1_048_576
    @Option(
        help: "Most bytes that are read to find out what is in the stream (probesize).", range: 2048...100_000_000,
        unit: "bytes")
    var probeBytes = 1_000_000
    @Option(
        help: "Longest time that is read to find out what is in the stream (analyzeduration).", range: 0...30, unit: "s"
    )
    var analyzeSeconds = 2.0
    @Option(help: "Throw away what was read to find out what is in the stream, instead of showing it (nobuffer).")
    var noBuffer = false
    @Option(help: "What happens when the stream is not there at the start.") var ifMissing = IfMissing.fail
    @Option(help: "What is shown while the stream is away.") var whileLost = WhileLost.hold
    @Option(help: "Colour of the slate; also shown by hold before the first picture.") var slateColor = RGBColor(
        red: 32, green: 32, blue: 40)
    @Option(
        help:
            "PNG or JPEG on that colour, as large as it fits; absolute or from the chain file's folder.")
    var slatePicture: String? = nil
    @Option(help: "Words in the middle of the slate; \\n begins a line.") var slateText: String? = nil

    func validate() throws(OptionFault) {
        let address = try NetworkAddress(url)
        if login == "" {
            throw OptionFault("'login' is empty", remedy: "Name a file, or env:NAME; leave it out where none is asked.")
        }
        if login != nil, address.scheme == .udp || address.scheme == .tcp {
            throw OptionFault(
                "'login' is given, and \(address.scheme.rawValue) has none", remedy: "Leave it out.")
        }
        if address.scheme == .rtsps, verify {
            throw OptionFault(
                "'url' is rtsps, and libavformat cannot verify the certificate of an RTSP server",
                remedy:
                    "Reach it over a network that you trust, and write \"verify\": false, which accepts any certificate."
            )
        }
        if let caFile {
            if caFile.isEmpty || caFile.utf8.contains(0) {
                throw OptionFault("'caFile' must be the name of a file", remedy: "Correct it, or leave it out.")
            }
            guard verify else {
                throw OptionFault(
                    "'caFile' says which certificates are trusted, and \"verify\": false trusts all",
                    remedy: "Leave one of the two out.")
            }
            guard address.scheme.isSecured || address.scheme == .http else {
                throw OptionFault(
                    "'caFile' is given, and \(address.scheme.rawValue) has no certificates", remedy: "Leave it out.")
            }
        }
        if let size, size.width % 2 != 0 || size.height % 2 != 0 {
            throw OptionFault("'size' \(size) has an odd side", remedy: "Use even ones, such as 1280x720.")
        }
        guard !decode else { return }
        if ifMissing == .wait {
            throw OptionFault(
                "'ifMissing' is \"wait\", and with \"decode\": false the parameter sets of the stream must be known at the start",
                remedy: "Leave one of the two out.")
        }
        if whileLost == .slate {
            throw OptionFault(
                "'whileLost' is \"slate\", and with \"decode\": false there is no encoder to make one",
                remedy: "Use \"hold\", which waits without giving anything, or \"stop\".")
        }
        if size != nil {
            throw OptionFault(
                "'size' scales pictures, and with \"decode\": false there are none", remedy: "Leave one of the two out."
            )
        }
    }
}
