// SPDX-License-Identifier: Apache-2.0

import FrameCore
import LiveInput

/// How RTSP packets travel.
enum NetworkTransport: String, OptionChoice {
    /// On the connection itself, without loss.
    case tcp
    /// As datagrams, without waiting for lost ones.
    case udp
}

/// What a stream that is passed on is expected to be.
enum PassedCodec: String, OptionChoice {
    case h264, h265, mjpeg, av1

    var codec: Codec { Codec(rawValue: rawValue) }
}

/// Options of ``NetworkSource``.
struct NetworkSourceOptions: StageOptions {
    @Option(help: "Address of the stream: rtsp, rtsps, rtmp, rtmps, srt, http, https, udp or tcp, without a login.")
    var url = ""
    @Option(
        help:
            "Login: a file with a line name:password, or env:NAME for an environment variable with such a line. For srt the password is the passphrase."
    )
    var login: String? = nil
    @Option(
        help:
            "Verifies the certificates of servers (https, rtmps). false accepts any certificate. rtsps needs false, because libavformat cannot verify the certificates of RTSP servers."
    )
    var verify = true
    @Option(help: "A PEM file with the trusted certificates, in place of the system's.") var caFile: String? = nil
    @Option(
        help:
            "Decodes to pictures. false passes H.264, H.265, MJPEG or AV1 on unchanged, for recorder; H.264 and H.265 also for rtsp-sink."
    )
    var decode = true
    @Option(
        help:
            "Size of the pictures; other sizes are scaled to it. Default: the stream's own size, or 1280x720 with \"ifMissing\": \"wait\". With 'codec': the size that the stream has.",
        unit: "px")
    var size: PictureSize? = nil
    @Option(
        help:
            "Frame rate that the chain is planned for, and frame rate of the pictures shown while the stream is lost. Default: the stream's own rate; 25 if the stream has none, or with \"ifMissing\": \"wait\".",
        range: FrameRate(1, 1000)...FrameRate(1000))
    var rate: FrameRate? = nil
    @Option(
        help:
            "With \"ifMissing\": \"wait\", and \"decode\": false or a stage that takes the output 'units': what the stream is, with 'size' and 'rate', so that the chain begins without it. Default: what it was in an earlier run, else the chain begins with the stream."
    )
    var codec: PassedCodec? = nil
    @Option(help: "How RTSP packets travel: over the TCP connection, or as UDP datagrams (rtsp_transport).")
    var transport = NetworkTransport.tcp
    @Option(help: "A server that does not answer for this long counts as unreachable.", range: 0.5...60, unit: "s")
    var connectSeconds = 5.0
    @Option(
        help: "A stream without video for this long counts as lost. Default: 3, or 20 over HTTP.", range: 0.2...3600,
        unit: "s")
    var stallSeconds: Double? = nil
    @Option(
        help: "Longest wait for packets that are late or sent again: RTSP over UDP (max_delay), SRT (latency).",
        range: 0...10_000, unit: "ms")
    var latencyMs = 100
    @Option(help: "Receive buffer of UDP sockets (buffer_size).", range: 4096...134_217_728, unit: "bytes")
    var bufferBytes = 1_048_576
    @Option(
        help: "Most bytes to read to find out what is in the stream (probesize).", range: 2048...100_000_000,
        unit: "bytes")
    var probeBytes = 1_000_000
    @Option(
        help: "Longest time to read to find out what is in the stream (analyzeduration).", range: 0...30, unit: "s"
    )
    var analyzeSeconds = 2.0
    @Option(help: "Discards what was read to find out what is in the stream, instead of showing it (nobuffer).")
    var noBuffer = false
    @Option(help: "What happens when the stream is not there at the start.") var ifMissing = IfMissing.fail
    @Option(help: "What is shown while the stream is lost.") var whileLost = WhileLost.hold
    @Option(help: "Colour of the slate, which \"whileLost\": \"hold\" also shows before the first picture.")
    var slateColor = RGBColor(red: 32, green: 32, blue: 40)
    @Option(
        help:
            "PNG or JPEG to show on the slate, as large as possible. A relative path starts at the chain file's folder."
    )
    var slatePicture: String? = nil
    @Option(help: "Text in the middle of the slate; \\n starts a new line.") var slateText: String? = nil

    func validate() throws(OptionFault) {
        let address = try NetworkAddress(url)
        if login == "" {
            throw OptionFault(
                "'login' is empty",
                remedy: "Name a file or env:NAME, or leave 'login' out if the server needs no login.",
                options: ["login"])
        }
        if login != nil, address.scheme == .udp || address.scheme == .tcp {
            throw OptionFault(
                "'login' is set, but \(address.scheme.rawValue) has no logins", remedy: "Leave it out.",
                options: ["login"])
        }
        if address.scheme == .rtsps, verify {
            throw OptionFault(
                "'url' is rtsps, but libavformat cannot verify the certificate of an RTSP server",
                remedy:
                    "Set \"verify\": false, which accepts any certificate, and use it only in a network that you trust.",
                options: ["url"])
        }
        if let caFile {
            if caFile.isEmpty {
                throw OptionFault(
                    "'caFile' is empty", remedy: "Name a file of certificates (PEM), or leave it out.",
                    options: ["caFile"])
            }
            if caFile.utf8.contains(0) {
                throw OptionFault(
                    "'caFile' must not contain the character U+0000", remedy: "Remove its \\u0000.", options: ["caFile"]
                )
            }
            guard address.scheme.isSecured || address.scheme == .http else {
                throw OptionFault(
                    "'caFile' is set, but \(address.scheme.rawValue) has no certificates", remedy: "Leave it out.",
                    options: ["caFile"])
            }
            guard verify else {
                // rtsps needs "verify": false.
                throw OptionFault(
                    "'caFile' names trusted certificates, but \"verify\": false trusts all",
                    remedy: address.scheme == .rtsps ? "Leave 'caFile' out." : "Leave one of the two out.",
                    options: ["caFile"])
            }
        }
        if let size, size.width % 2 != 0 || size.height % 2 != 0 {
            throw OptionFault(
                "'size' \(size) must have even sides", remedy: "Use even numbers, such as 1280x720.", options: ["size"])
        }
        // With decoded pictures it is for the output 'units': the stage knows whether that is taken.
        if codec != nil, ifMissing != .wait || size == nil {
            throw OptionFault(
                "'codec' says what a stream is that may be missing at the start, and needs \"ifMissing\": \"wait\" and 'size'",
                remedy: "Leave it out, or set these.", options: ["codec", "size"])
        }
        guard !decode else { return }
        if whileLost == .slate {
            throw OptionFault(
                "'whileLost' cannot be \"slate\" with \"decode\": false, because there is no encoder for the slate",
                remedy: "Use \"hold\", which waits and gives nothing, or \"stop\".", options: ["whileLost"])
        }
        if size != nil, codec == nil {
            throw OptionFault(
                "'size' needs decoded pictures, but \"decode\": false gives none",
                remedy:
                    "Leave one of the two out. Where the stream may be missing at the start (\"ifMissing\": \"wait\"), set 'codec' too.",
                options: ["size"])
        }
    }
}
