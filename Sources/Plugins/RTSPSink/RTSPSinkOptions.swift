import FrameCore

/// How packets may travel.
enum TransportChoice: String, OptionChoice {
    case any, tcp, udp
}

/// Where readers begin whose pictures nobody makes a keyframe of when asked.
enum JoinChoice: String, OptionChoice {
    case lastKeyframe, nextKeyframe
}

/// Options of ``RTSPSink``.
struct RTSPSinkOptions: StageOptions {
    @Option(help: "The TCP port; stages of one port share one server.", range: 1...65_535)
    var port = 8554

    @Option(help: "Where the stream stands: rtsp://host:port/path.")
    var path = "/live"

    @Option(help: "The address to listen on; without it all of this machine, IPv4 and IPv6.")
    var address = ""

    @Option(help: "How packets may travel; a client chooses among these.")
    var transport = TransportChoice.any

    @Option(
        help:
            "Who may play: a file with a line name:password for each, or env:NAME for an environment variable with such lines."
    )
    var users: String? = nil

    @Option(help: "How users are asked: \"digest\" is MD5, which every player has; FFmpeg and VLC know no \"sha256\".")
    var authentication = AuthenticationScheme.digest

    @Option(help: "Who may play: addresses and ranges such as \"192.168.1.0/24\"; without it everybody.")
    var allow: [String] = []

    @Option(help: "A PEM file with the certificate chain; with it the port speaks RTSPS only.")
    var certificate: String? = nil

    @Option(help: "A PEM file with the certificate's private key.")
    var key: String? = nil

    @Option(help: "Most readers of this stream at once.", range: 1...100_000)
    var maxReaders = 1000

    @Option(help: "Most connections from one address; this machine's own are not counted.", range: 1...100_000)
    var maxConnectionsPerAddress = 256

    @Option(
        help:
            "Where nobody makes keyframes when asked (a file, a camera's own H.264): readers get what came since the last keyframe at once and play that much behind, or wait for the next."
    )
    var joinAt = JoinChoice.lastKeyframe

    @Option(
        help: "Most that is kept since the last keyframe; behind a longer distance readers wait for the next.",
        range: 0.1...600, unit: "s")
    var keptSeconds = 12.0

    @Option(help: "Memory for it.", range: 0.1...2048, unit: "MB")
    var keptMegabytes = 32.0

    @Option(
        help: "Longest wait of a picture in a slow reader's queue; then pictures up to the next keyframe are left out.",
        range: 0.1...30,
        unit: "s")
    var queueSeconds = 1.0

    @Option(help: "A reader that takes nothing for so long is disconnected.", range: 1...300, unit: "s")
    var stuckSeconds = 10.0

    @Option(
        help: "Timeout of a session as clients are told it; a quarter more is enforced.", range: 5...3600, unit: "s")
    var sessionSeconds = 60

    @Option(help: "Largest RTP packet; UDP and IP headers are added to it.", range: 256...1440, unit: "bytes")
    var packetBytes = 1400

    func validate() throws(OptionFault) {
        guard RTSPURL(path)?.path == path, path != "/" else {
            throw OptionFault(
                "'path' \"\(path)\" is no path of a stream",
                remedy: "Begin it with a slash and end it without: \"path\": \"/live\".")
        }
        if !address.isEmpty, IPAddress(address) == nil {
            throw OptionFault(
                "'address' \"\(address)\" is no IP address",
                remedy: "Use one of this machine, such as \"127.0.0.1\", or leave it out.")
        }
        for range in allow where AddressRange(range) == nil {
            throw OptionFault(
                "'allow' has \"\(range)\", which is no address or range",
                remedy: "Write it as \"192.168.1.7\" or \"192.168.1.0/24\".")
        }
        if users == "" {
            throw OptionFault(
                "'users' is empty", remedy: "Name a file, or env:NAME; leave it out to let everybody play.")
        }
        if (certificate == nil) != (key == nil) {
            throw OptionFault("'certificate' and 'key' belong together", remedy: "Give both for RTSPS, or neither.")
        }
        if certificate != nil, transport == .udp {
            throw OptionFault(
                "over TLS packets travel on the connection only", remedy: "Leave 'transport' out, or set it to \"tcp\"."
            )
        }
    }
}

extension AuthenticationScheme: OptionChoice {}
