// SPDX-License-Identifier: Apache-2.0

import FrameCore
import ServerAccess

/// How packets may travel.
enum TransportChoice: String, OptionChoice {
    case any, tcp, udp
}

/// Where readers begin when the source makes no keyframes on request.
enum JoinChoice: String, OptionChoice {
    case lastKeyframe, nextKeyframe
}

/// Options of ``RTSPSink``.
struct RTSPSinkOptions: StageOptions {
    @Option(help: "The TCP port. Stages with the same port share one server.", range: 1...65_535)
    var port = 8554

    @Option(help: "Path of the stream: rtsp://host:port/path.")
    var path = "/live"

    @Option(help: "The address to listen on. Default: all addresses of this machine, IPv4 and IPv6.")
    var address = ""

    @Option(help: "The transports that clients can choose from.")
    var transport = TransportChoice.any

    @Option(
        help:
            "Users that may play: a file with a line name:password for each, or env:NAME for an environment variable with such lines. Default: everybody may play."
    )
    var users: String? = nil

    @Option(
        help:
            "How passwords are checked. Default: \"digest\", which is MD5 and which every player supports. FFmpeg and VLC do not support \"sha256\"."
    )
    var authentication: AuthenticationScheme? = nil

    @Option(help: "Addresses and ranges that may play, such as \"192.168.1.0/24\". Default: all.")
    var allow: [String] = []

    @Option(help: "A PEM file with the certificate chain. With it the port accepts only RTSPS.")
    var certificate: String? = nil

    @Option(help: "A PEM file with the certificate's private key.")
    var key: String? = nil

    @Option(help: "Maximum number of readers of this stream at once.", range: 1...100_000)
    var maxReaders = 1000

    @Option(
        help:
            "Maximum number of connections from one address. Connections over loopback are not limited.",
        range: 1...100_000)
    var maxConnectionsPerAddress = 256

    @Option(
        help:
            "Where a new reader starts if the source cannot make keyframes on request (a file, a camera's own H.264): lastKeyframe sends everything since the last keyframe, so the reader plays with a delay of up to one keyframe interval; nextKeyframe makes the reader wait for the next keyframe."
    )
    var joinAt = JoinChoice.lastKeyframe

    @Option(
        help:
            "Longest time for which everything since the last keyframe is kept for new readers. If keyframes are further apart, a new reader may have to wait for the next keyframe.",
        range: 0.1...600, unit: "s")
    var keptSeconds = 12.0

    @Option(help: "Memory for what is kept since the last keyframe.", range: 0.1...2048, unit: "MB")
    var keptMegabytes = 32.0

    @Option(
        help:
            "Longest wait of a picture in a slow reader's queue. After that, pictures up to the next keyframe are dropped for that reader.",
        range: 0.1...30,
        unit: "s")
    var queueSeconds = 1.0

    @Option(help: "A reader that takes nothing for this long is disconnected.", range: 1...300, unit: "s")
    var stuckSeconds = 10.0

    @Option(
        help: "Session timeout that clients are told. The server waits a quarter longer.", range: 5...3600, unit: "s")
    var sessionSeconds = 60

    @Option(help: "Largest RTP packet, without UDP and IP headers.", range: 256...1440, unit: "bytes")
    var packetBytes = 1400

    func validate() throws(OptionFaults) {
        var faults: [OptionFault] = []
        func add(_ option: String, _ what: String, _ remedy: String) {
            faults.append(OptionFault(what, remedy: remedy, options: [option]))
        }
        if !Self.isStreamPath(path) { faults.append(Self.faultOfPath(path)) }
        if !address.isEmpty, IPAddress(address) == nil {
            add(
                "address",
                "'address' \"\(address)\" must be an IP address",
                "Use an address of this machine, such as \"127.0.0.1\", or leave it out.")
        }
        for range in allow where AddressRange(range) == nil {
            add(
                "allow",
                "'allow' has \"\(range)\", which must be an IP address or a range of them",
                "Write it as \"192.168.1.7\" or \"192.168.1.0/24\".")
        }
        if users == "" {
            add(
                "users",
                "'users' is empty", "Name a file or env:NAME, or leave 'users' out to let every client play.")
        }
        if authentication != nil, users == nil {
            add(
                "authentication",
                "'authentication' needs 'users': without them every client may play, and no password is checked",
                "Set 'users', or leave 'authentication' out.")
        }
        if (certificate == nil) != (key == nil) {
            add(
                certificate != nil ? "certificate" : "key", "'certificate' and 'key' must be set together",
                "Set both for RTSPS, or neither.")
        }
        if certificate != nil, transport == .udp {
            add(
                "transport",
                "'transport' \"udp\" cannot be used with 'certificate': with TLS, packets only travel on the TCP connection",
                "Leave 'transport' out, or set it to \"tcp\".")
        }
        guard faults.isEmpty else { throw OptionFaults(faults) }
    }

    private static func isStreamPath(_ path: String) -> Bool { path != "/" && RTSPURL(path)?.path == path }

    /// The first rule that a path breaks.
    private static func faultOfPath(_ path: String) -> OptionFault {
        let shown = "'path' \"\(path)\""
        if !path.hasPrefix("/") {
            let better = "/" + path
            return OptionFault(
                "\(shown) must begin with a slash",
                remedy: isStreamPath(better) ? "Write \"\(better)\"." : "Write it like \"/live\".", options: ["path"])
        }
        if path == "/" {
            return OptionFault("\(shown) must have a name", remedy: "Write it like \"/live\".", options: ["path"])
        }
        if path.contains("?") || path.contains("%") {
            return OptionFault("\(shown) must not contain ? or %", remedy: "Leave them out.", options: ["path"])
        }
        if path.hasSuffix("/") {
            return OptionFault("\(shown) must not end with a slash", remedy: "Leave that slash out.", options: ["path"])
        }
        if path.firstRange(of: "//") != nil {
            return OptionFault(
                "\(shown) must not have two slashes in a row", remedy: "Write one slash there.", options: ["path"])
        }
        return OptionFault(
            "\(shown) cannot be the path of a stream",
            remedy:
                "Use letters and digits, and do not end it with a name such as trackID=1, which stands for a track.",
            options: ["path"])
    }
}
