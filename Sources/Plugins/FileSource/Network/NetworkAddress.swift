import FrameCore

/// Where a stream is, and how it may be shown: scheme, host and path, never a login nor what stands behind a question
/// mark. Pure.
struct NetworkAddress: Sendable {
    enum Scheme: String, CaseIterable, Sendable {
        case rtsp, rtsps, rtmp, rtmps, srt, http, https, udp, tcp

        /// Comes in bursts and says itself how fast it is to be shown.
        var isPacedByStream: Bool { self == .http || self == .https }
        /// Its end may be the end of all there is, not a loss.
        var mayEnd: Bool { isPacedByStream }
        /// Takes a login inside the address.
        var takesLogin: Bool { self != .srt && self != .udp && self != .tcp }
    }

    let scheme: Scheme
    /// For sentences.
    let shown: String
    /// As it was written, from behind `://` on.
    private let rest: String
    /// Behind the first question mark; empty without one.
    private let query: String

    /// - Throws: ``OptionFault``, which quotes neither a login nor a query.
    init(_ text: String) throws(OptionFault) {
        guard !text.isEmpty else {
            throw OptionFault(
                "'url' is missing", remedy: "Name the stream: \"url\": \"rtsp://192.168.1.7:554/stream\".")
        }
        let words = Scheme.allCases.map(\.rawValue).joined(separator: ", ")
        guard let mark = text.firstRange(of: "://"),
            let scheme = Scheme(rawValue: text[..<mark.lowerBound].lowercased())
        else {
            throw OptionFault(
                "'url' is no address of a stream that network-source reads",
                remedy: "Begin it with one of \(words), as in \"rtsp://192.168.1.7:554/stream\".")
        }
        let rest = String(text[mark.upperBound...])
        guard rest.utf8.allSatisfy({ $0 > 32 && $0 != 127 }) else {
            throw OptionFault(
                "'url' has a space or a control character in it", remedy: "Write it as %20, or leave it out.")
        }
        let host = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        if let at = host.lastIndex(of: "@"), at != host.startIndex {
            throw OptionFault(
                "'url' has a login in it, which would be seen by whoever reads the chain file",
                remedy: "Leave it out, and name a file with a line name:password in 'login', or env:NAME.")
        }
        guard Self.isHost(host.first == "@" ? host.dropFirst() : host) else {
            throw OptionFault(
                "'url' has no host and port behind ://", remedy: "Write it as in \"rtsp://192.168.1.7:554/stream\".")
        }
        self.scheme = scheme
        self.rest = rest
        let plain = rest.prefix { $0 != "?" && $0 != "#" }
        shown = "\(scheme.rawValue)://\(plain)"
        query = rest.firstIndex(of: "?").map { String(rest[rest.index(after: $0)...]) } ?? ""
    }

    /// Whether it is `host`, `host:port` or `:port`: what is neither may be a part of a login.
    private static func isHost(_ text: Substring) -> Bool {
        let isBracketed = text.first == "["
        let end = isBracketed ? text.firstIndex(of: "]").map { text.index(after: $0) } : text.firstIndex(of: ":")
        guard let end else { return !isBracketed && !text.isEmpty }
        let port = text[end...]
        if port.isEmpty { return true }
        return port.first == ":" && port.dropFirst().allSatisfy { $0.isASCII && $0.isNumber } && port.count > 1
            && port.count <= 6
    }

    /// For libavformat.
    func full(_ login: NetworkLogin?) -> String {
        guard let login, scheme.takesLogin else { return "\(scheme.rawValue)://\(rest)" }
        return "\(scheme.rawValue)://\(login.encoded)@\(rest)"
    }

    /// Takes out of somebody else's words whatever is not to be shown.
    func hide(_ login: NetworkLogin?, in text: String) -> String {
        var text = text
        // The longest first: a part of one may be another one.
        for word in ((login?.secrets ?? []) + [query]).filter({ !$0.isEmpty }).sorted(by: { $0.count > $1.count }) {
            text = text.split(separator: word, omittingEmptySubsequences: false).joined(separator: "***")
        }
        return text
    }
}
