// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// The address of a stream, and the part of it that may be shown. Pure.
struct NetworkAddress: Sendable {
    enum Scheme: String, CaseIterable, Sendable {
        case rtsp, rtsps, rtmp, rtmps, srt, http, https, udp, tcp

        /// Whether the stream comes in bursts, and its own times say when each item is shown.
        var isPacedByStream: Bool { self == .http || self == .https }
        /// Whether its end may be a real end, not a loss.
        var mayEnd: Bool { isPacedByStream }
        /// Whether its server shows a certificate.
        var isSecured: Bool { self == .https || self == .rtmps || self == .rtsps }
        /// How many bytes of a login libavformat takes as an address has it, and would cut a longer one; nil where it takes
        /// any (libavformat 59, `rtsp.c`, `rtmpproto.c`, `http.c`). Of rtsp ``RTSPClient`` takes more.
        var mostLoginBytes: Int? {
            switch self {
            case .rtsp, .rtsps: 127
            case .http, .https: 1023
            case .rtmp, .rtmps, .srt, .udp, .tcp: nil
            }
        }
        /// Whether the address may contain a login.
        var takesLogin: Bool { self != .srt && self != .udp && self != .tcp }
    }

    let scheme: Scheme
    /// The text after `://`, as it was written.
    private let rest: String
    private let address: Address

    /// The address in messages.
    var shown: String { address.description }

    /// - Throws: ``OptionFault``, which quotes neither a login nor a query.
    init(_ text: String) throws(OptionFault) {
        guard !text.isEmpty else {
            throw OptionFault(
                "'url' is missing or empty", remedy: "Name the stream: \"url\": \"rtsp://192.168.1.7:554/stream\".",
                options: ["url"])
        }
        let words = Scheme.allCases.dropLast().map(\.rawValue).joined(separator: ", ") + " or \(Scheme.tcp.rawValue)"
        guard let mark = text.firstRange(of: "://"),
            let scheme = Scheme(rawValue: text[..<mark.lowerBound].lowercased())
        else {
            throw OptionFault(
                "\(Self.subject(text)) must start with \(words), followed by ://",
                remedy: "Write it like \"rtsp://192.168.1.7:554/stream\".", options: ["url"])
        }
        let rest = String(text[mark.upperBound...])
        guard rest.utf8.allSatisfy({ $0 > 32 && $0 != 127 }) else {
            throw OptionFault(
                "'url' must not contain a space or a control character",
                remedy: "Remove that character, or write a space as %20.", options: ["url"])
        }
        guard !rest.contains("…") else {
            throw OptionFault(
                "'url' contains …, which stands for what is hidden where an address is shown",
                remedy: "Write the whole address, as it stands in the chain file.", options: ["url"])
        }
        let host = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        if let at = host.lastIndex(of: "@"), at != host.startIndex {
            throw OptionFault(
                "'url' contains a login, which everyone who can read the chain file would see",
                remedy: scheme == .udp || scheme == .tcp
                    ? "Remove the login from 'url': \(scheme.rawValue) has no logins."
                    : "Remove the login from 'url', and set 'login' to a file with a line name:password, or to env:NAME for an environment variable with that line.",
                options: ["url"])
        }
        guard Self.isHost(host.first == "@" ? host.dropFirst() : host) else {
            throw OptionFault(
                "the part of 'url' between :// and the next / (or the end) must be a host, or a host, a colon and a port number",
                remedy: "Write it like \"rtsp://192.168.1.7:554/stream\".", options: ["url"])
        }
        guard Self.hasPossiblePort(host) else {
            // Not quoted, since it may be a part of a login.
            throw OptionFault(
                "the port in 'url' must be from 1 to 65535",
                remedy:
                    "Write it like \"rtsp://192.168.1.7:554/stream\". With rtsp, rtmp or http, the port can be left out.",
                options: ["url"])
        }
        self.scheme = scheme
        self.rest = rest
        address = Address(text)
    }

    /// The text in quotes; the option's name for a text that may have a secret.
    private static func subject(_ text: String) -> String {
        let address = Address(text)
        return address.scheme.isEmpty && address.isShownWhole ? "'\(text)'" : "'url'"
    }

    /// Whether it is `host`, `host:port` or `:port`: anything else may be a part of a login.
    private static func isHost(_ text: Substring) -> Bool {
        guard let port = port(of: text) else { return text.first != "[" && !text.isEmpty }
        return port.isEmpty || (port.first == ":" && port.count > 1 && port.dropFirst().utf8.allSatisfy(isDigit))
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

    /// Whether a host has no port, or a possible one.
    private static func hasPossiblePort(_ text: Substring) -> Bool {
        guard let port = port(of: text), !port.isEmpty else { return true }
        return UInt16(port.dropFirst()).map { $0 > 0 } ?? false
    }

    /// The text after the host: `:554`, or empty after a host in brackets. Nil otherwise.
    private static func port(of text: Substring) -> Substring? {
        let isBracketed = text.first == "["
        let end = isBracketed ? text.firstIndex(of: "]").map { text.index(after: $0) } : text.firstIndex(of: ":")
        return end.map { text[$0...] }
    }

    /// The whole address for libavformat.
    func full(_ login: ServerLogin?) -> String {
        guard let login, scheme.takesLogin else { return "\(scheme.rawValue)://\(rest)" }
        return "\(scheme.rawValue)://\(login.encoded)@\(rest)"
    }

    /// Whether another address is of the same server: its host and port.
    func isServer(of text: String) -> Bool {
        guard let mark = text.firstRange(of: "://") else { return false }
        var rest = text[mark.upperBound...]
        let host = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        if let at = host.lastIndex(of: "@") { rest = rest[host.index(after: at)...] }
        guard let other = try? NetworkAddress(String(text[..<mark.upperBound] + rest)) else { return false }
        return other.scheme == scheme && other.socket.lowercased() == socket.lowercased()
    }

    /// The TCP connection of an RTSP address, as libavformat has it.
    var socket: String {
        let host = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let bare = host.first == "@" ? host.dropFirst() : host
        return "tcp://\(bare)" + ((Self.port(of: bare) ?? "").isEmpty ? ":554" : "")
    }

    /// Removes from another program's text everything that must not be shown.
    func hide(_ login: ServerLogin?, in text: String) -> String { address.hiding(login?.secrets ?? [], in: text) }
}
