// SPDX-License-Identifier: Apache-2.0

import CodedVideo
import CAVFormat
import FrameCore

/// Why a stream cannot be played, as sentences. `shown` is an ``Address`` without its secrets.
enum NetworkFault {
    /// - Parameters:
    ///   - count: Bytes of the login as an address has it.
    ///   - isOverUDP: Whether it is RTSP with datagrams.
    static func loginTooLong(_ count: Int, most: Int, isOverUDP: Bool) -> FrameHostError {
        FrameHostError(
            .invalidConfiguration, place: "login",
            what:
                "the login is too long: name and password together have \(count) bytes as an address has them, where each sign other than a letter or a digit counts three, and libavformat takes \(most)",
            remedy: isOverUDP
                ? "Set \"transport\": \"tcp\", which takes a login of any length, or give the camera a user with a shorter password."
                : "Give the camera a user with a shorter password for this.")
    }

    /// The fault for libavformat's answer.
    ///
    /// - Parameters:
    ///   - cause: libavformat's own text, without secrets.
    ///   - seconds: How long the source waited.
    ///   - mayWait: Whether `"ifMissing": "wait"` would help.
    static func opening(
        _ shown: String, _ code: Int32, cause: String, seconds: Double, hasLogin: Bool, mayWait: Bool
    ) -> FrameHostError {
        if code != fh_averror_exit, let fault = untrusted(shown, cause: cause) { return fault }
        switch code {
        case fh_averror_exit, -ETIMEDOUT:
            return noAnswer(shown, seconds: seconds, mayWait: mayWait)
        case fh_averror_forbidden:
            return FrameHostError(
                .unavailable, what: "the server refuses access to '\(shown)' (403 Forbidden)",
                remedy: hasLogin
                    ? "Use a login that may play this stream, or correct the path in 'url'."
                    : "Set 'login' if the server needs one, or correct the path in 'url'.", option: "url")
        case fh_averror_unauthorized:
            return FrameHostError(
                .unavailable, what: hasLogin ? "'\(shown)' refuses the login" : "'\(shown)' asks for a login",
                remedy: hasLogin
                    ? "Correct the line name:password in the file or variable that 'login' names."
                    : "Set 'login' to a file with a line name:password, or to env:NAME for an environment variable with that line.",
                option: "url"
            )
        case fh_averror_not_found:
            return FrameHostError(
                .unavailable, what: "the server has no '\(shown)'", remedy: "Correct the path in 'url'.", option: "url")
        case fh_averror_invalid_data:
            return FrameHostError(
                .unavailable, what: "'\(shown)' sends no stream that libavformat can read",
                remedy: "Check it with 'ffprobe'.", cause: cause, option: "url")
        case fh_averror_no_protocol:
            return FrameHostError(
                .unavailable, what: "this libavformat does not support the protocol of '\(shown)'",
                remedy:
                    "Use another protocol in 'url', or install a libavformat that supports this protocol (see `ffmpeg -protocols`).",
                cause: cause, option: "url")
        case -EADDRINUSE:
            return FrameHostError(
                .unavailable, what: "'\(shown)' cannot be opened: its port is in use",
                remedy: "Use another port in 'url', or end the program that uses this one.", cause: cause, option: "url"
            )
        // `Failed to resolve hostname nowhere.example: Name or service not known`, with EIO as the code.
        case _ where cause.contains("Failed to resolve"):
            let name = cause.firstRange(of: "hostname ").map { cause[$0.upperBound...].prefix { $0 != ":" } } ?? ""
            guard name.isEmpty || shown.contains(name) || shown.hasSuffix("://…") else {
                return FrameHostError(
                    .unavailable, what: "'\(shown)' cannot be opened: the host name '\(name)' cannot be resolved",
                    remedy:
                        "The name is not in 'url': it comes from a proxy setting (http_proxy), a redirect or a playlist. Correct it there, or check the network.\(wait(mayWait))",
                    cause: cause, option: "url")
            }
            return FrameHostError(
                .unavailable, what: "'\(shown)' cannot be opened: its host name cannot be resolved",
                remedy: "Correct the host in 'url', or check the network.\(wait(mayWait))", cause: cause, option: "url")
        default:
            let reason = LibavText.of(code)
            return FrameHostError(
                .unavailable, what: "'\(shown)' cannot be opened: \(reason)",
                remedy: "Check 'url', and that its server runs.\(wait(mayWait))",
                // `Connection to tcp://… failed: Connection refused` says nothing more.
                cause: cause.hasSuffix(reason) ? "" : cause, option: "url")
        }
    }

    /// The fault for an answer of an RTSP server.
    static func answered(
        _ shown: String, _ method: String, _ status: Int, _ reason: String, hasLogin: Bool
    ) -> FrameHostError {
        let known = [401: fh_averror_unauthorized, 403: fh_averror_forbidden, 404: fh_averror_not_found][status]
        if let known, method == "DESCRIBE" || known != fh_averror_not_found {
            return opening(shown, known, cause: "", seconds: 0, hasLogin: hasLogin, mayWait: false)
        }
        return FrameHostError(
            .unavailable, what: "'\(shown)' answers \(method) with \(status)\(reason.isEmpty ? "" : " \(reason)")",
            remedy:
                "Check 'url' and 'transport', and how many clients the camera serves at once. If 'ffprobe' can play it, please report this.",
            option: "url"
        )
    }

    static func ledAway(_ shown: String, to other: String) -> FrameHostError {
        FrameHostError(
            .unavailable,
            what: "'\(shown)' leads to another server ('\(other)'), and the login is not sent there",
            remedy: "If that server is yours too, write its address as 'url'.", option: "url")
    }

    static func unknownChallenge(_ shown: String, _ challenges: [String]) -> FrameHostError {
        FrameHostError(
            .unavailable,
            what:
                "'\(shown)' asks for a login in a way that is not known here\(challenges.isEmpty ? "" : ": \(challenges.joined(separator: ", "))")",
            remedy: "Set the camera to Digest (MD5, SHA-256 or SHA-512-256) or Basic.", option: "url"
        )
    }

    /// The fault of a certificate that cannot be trusted; nil for any other cause.
    ///
    /// - Parameter cause: libavformat's own text. All its TLS libraries say "certificate".
    static func untrusted(_ shown: String, cause: String) -> FrameHostError? {
        guard cause.contains("ertificate") else { return nil }
        return FrameHostError(
            .unavailable, what: "the certificate of '\(shown)', or of a server it redirects to, cannot be trusted",
            remedy:
                "Set 'caFile' to a PEM file with the certificate of the authority that signed it. A certificate that has expired, or is for another host name, must be replaced at the server. Set \"verify\": false only in a network that you trust: any certificate is then accepted, even an attacker's.",
            cause: cause, option: "url")
    }

    static func noAnswer(_ shown: String, seconds: Double, mayWait: Bool) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "'\(shown)' gave no stream within \(seconds) s",
            remedy:
                "Check that its server or sender runs\(seconds < 60 ? ", or raise 'connectSeconds'" : "").\(wait(mayWait))",
            option: "url"
        )
    }

    private static func wait(_ mayWait: Bool) -> String {
        mayWait ? " To start the chain without the stream, set \"ifMissing\": \"wait\"." : ""
    }

    /// What lengthens the look at a stream, which ends at the first of these three.
    private static let lookLonger =
        "Raise 'analyzeSeconds' above the time from one keyframe to the next, 'connectSeconds' above 'analyzeSeconds', and 'probeBytes' for a high bitrate."

    static func noVideo(_ shown: String) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "'\(shown)' has no video that can be decoded",
            remedy: "Check it with 'ffprobe'. If its video comes late, raise 'analyzeSeconds' and 'connectSeconds'.",
            option: "url")
    }

    static func noSize(_ shown: String) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "the size or pixel format of the pictures of '\(shown)' could not be determined",
            remedy: lookLonger, option: "url")
    }

    static func impossibleSize(_ shown: String, width: Int, height: Int) -> FrameHostError {
        FrameHostError(
            .unavailable,
            what:
                "the pictures of '\(shown)' are \(width)x\(height), but a side must be at most 16384 pixels, and a picture at most 67108864 pixels (as many as 8192x8192)",
            remedy: "Set the sender to a smaller size.", option: "url")
    }

    static func unconvertible(_ shown: String, pixels: String) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "libswscale cannot convert the pictures of '\(shown)', which are \(pixels)",
            remedy: "Set the sender to another pixel format, such as yuv420p.", option: "url")
    }

    private static func asking(_ isDecoded: Bool) -> String {
        isDecoded ? "the output 'units'" : "'decode' is false, which"
    }

    static func isNotPassedOn(_ shown: String, codec: String, isDecoded: Bool) -> FrameHostError {
        FrameHostError(
            .unavailable,
            what:
                "\(asking(isDecoded)) needs H.264, H.265, MJPEG or AV1, but the video of '\(shown)' is \(codec)",
            remedy: isDecoded
                ? "Take the pictures, and put an encoder behind them."
                : "Leave 'decode' out and put an encoder after this stage.", option: "url")
    }

    static func noParameterSets(_ shown: String, _ coding: UnitCoding, isDecoded: Bool) -> FrameHostError {
        FrameHostError(
            .unavailable,
            what:
                "\(asking(isDecoded)) needs \(coding.nameOfSets), but '\(shown)' did not send \(coding == .av1 ? "one" : "them") within 'analyzeSeconds' and 'probeBytes'",
            remedy: lookLonger, option: "analyzeSeconds")
    }

    static func codecWithoutUnits(_ stage: String) -> FrameHostError {
        FrameHostError(
            .invalidConfiguration, place: "codec",
            what:
                "'codec' says what the access units of a stream are that may be missing at the start, but no stage takes them: decoded pictures need no 'codec'",
            remedy:
                "Leave it out; or let a stage take the units (\"from\": \"\(stage).units\"), or set \"decode\": false.")
    }

    /// Where a plan has its format from.
    enum Plan { case found, remembered, written }

    private static func replan(_ plan: Plan) -> String {
        switch plan {
        case .found: "restart the chain"
        case .remembered: "restart the chain, which is then planned for what it gives now"
        case .written: "correct 'codec' and 'size'"
        }
    }

    static func anotherCodec(
        _ shown: String, _ text: String, planned: Codec, _ plan: Plan
    ) -> FrameHostError {
        FrameHostError(
            .unavailable, what: "'\(shown)' now gives \(text), but the chain was planned for \(planned)",
            remedy:
                "Set the sender to \(planned) again, \(replan(plan)), or leave 'decode' out and put an encoder after this stage.",
            option: "url"
        )
    }

    static func anotherSize(
        _ shown: String, width: Int, height: Int, planned: PictureSize, _ plan: Plan
    ) -> FrameHostError {
        FrameHostError(
            .unavailable,
            what: "'\(shown)' now has pictures of \(width)x\(height), but the chain was planned for \(planned)",
            remedy:
                "Set the sender to \(planned) again, \(replan(plan)), or leave 'decode' out and put an encoder after this stage: decoded pictures are scaled.",
            option: "url"
        )
    }
}
