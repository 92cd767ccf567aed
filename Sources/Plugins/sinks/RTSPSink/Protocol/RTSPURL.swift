// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// Where a request points (RFC 2326, 3.2).
///
/// `path` is the stream's path, without a slash at its end and without the track. FFmpeg puts the track after the query
/// (`/live?a=1/trackID=0`), GStreamer at the end of the path.
struct RTSPURL: Sendable, Equatable {
    var isSecure = false
    /// Without brackets; empty where the text was only a path.
    var host = ""
    var port: UInt16?
    var path: String
    /// Without the question mark.
    var query: String?
    /// The number of the track, for the URL of one.
    var track: Int?

    /// The name of a track within its stream's URL.
    static func trackName(_ track: Int) -> String { "trackID=\(track)" }

    init(
        isSecure: Bool = false, host: String = "", port: UInt16? = nil, path: String, query: String? = nil,
        track: Int? = nil
    ) {
        self.isSecure = isSecure
        self.host = host
        self.port = port
        self.path = path
        self.query = query
        self.track = track
    }

    /// Nil for a text that is not an RTSP URL: another scheme, no host, a port out of range, a broken percent escape, a
    /// zero byte.
    init?(_ text: String) {
        path = ""
        let text = Self.escapedBeyondASCII(text)
        var rest = text[...]
        if let scheme = text.firstRange(of: "://"), !text.hasPrefix("/") {
            let name = text[..<scheme.lowerBound]
            guard
                ASCII.equalsIgnoringCase(name, "rtsp") || ASCII.equalsIgnoringCase(name, "rtsps")
                    || ASCII.equalsIgnoringCase(name, "rtspu")
            else { return nil }
            isSecure = ASCII.equalsIgnoringCase(name, "rtsps")
            rest = text[scheme.upperBound...]
            let authority = rest.prefix { $0 != "/" && $0 != "?" }
            rest = rest[authority.endIndex...]
            guard readAuthority(authority) else { return nil }
        } else if !text.hasPrefix("/") {
            return nil
        }
        if let mark = rest.firstIndex(of: "?") {
            query = String(rest[rest.index(after: mark)...])
            rest = rest[..<mark]
        }
        // Of several tracks the last one counts, and all are removed.
        while let found = Self.splitTrack(query ?? "") {
            track = track ?? found.track
            query = found.rest.isEmpty ? nil : found.rest
        }
        guard var decoded = Self.unescaped(rest) else { return nil }
        while decoded.hasSuffix("/") { decoded.removeLast() }
        if track == nil, let found = Self.splitTrack(decoded) {
            track = found.track
            decoded = found.rest
        }
        // Players that join a base and a name write `//live`. No path of a stream has an empty part.
        path = "/" + decoded.split(separator: "/").joined(separator: "/")
    }

    private mutating func readAuthority(_ authority: Substring) -> Bool {
        // Credentials belong in a header. Where clients leave them in the URL, only the header counts.
        let hostAndPort = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
        var portText: Substring?
        if hostAndPort.hasPrefix("[") {
            guard let bracket = hostAndPort.firstIndex(of: "]") else { return false }
            host = String(hostAndPort[hostAndPort.index(after: hostAndPort.startIndex)..<bracket])
            // Only IPv6 addresses have brackets (RFC 2732, 2).
            guard host.contains(":"), !host.contains("[") else { return false }
            let after = hostAndPort[hostAndPort.index(after: bracket)...]
            guard after.isEmpty || after.hasPrefix(":") else { return false }
            portText = after.isEmpty ? nil : after.dropFirst()
        } else if let colon = hostAndPort.firstIndex(of: ":") {
            host = String(hostAndPort[..<colon])
            portText = hostAndPort[hostAndPort.index(after: colon)...]
        } else {
            host = String(hostAndPort)
        }
        guard !host.isEmpty else { return false }
        if let portText, !portText.isEmpty {
            guard let number = ASCII.number(portText, atMost: 65535), number > 0 else { return false }
            port = UInt16(number)
        }
        return true
    }

    /// `…/trackID=0` cut in two.
    private static func splitTrack(_ text: String) -> (rest: String, track: Int)? {
        var text = text[...]
        while text.hasSuffix("/") { text = text.dropLast() }
        guard let slash = text.lastIndex(of: "/") else { return nil }
        let last = text[text.index(after: slash)...]
        guard ASCII.hasPrefixIgnoringCase(last, "trackID="), let number = ASCII.number(last.dropFirst(8), atMost: 255)
        else { return nil }
        return (String(text[..<slash]), Int(number))
    }

    /// Escapes characters beyond ASCII. An accent would combine with the slash before it into one character that is not
    /// a slash.
    private static func escapedBeyondASCII(_ text: String) -> String {
        if text.utf8.allSatisfy({ $0 < 128 }) { return text }
        var result = ""
        for byte in text.utf8 {
            if byte < 128 {
                result.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                result += "%" + ASCII.hex(UInt32(byte), digits: 2, uppercase: true)
            }
        }
        return result
    }

    /// Percent escapes undone (RFC 3986, 2.1).
    private static func unescaped(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == 0x25 else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(ASCII.hexDigit), let low = rest.popFirst().flatMap(ASCII.hexDigit)
            else { return nil }
            bytes.append(high << 4 | low)
        }
        guard !bytes.contains(where: { $0 < 32 || $0 == 127 }) else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The URL as text, with brackets around an IPv6 address and with percent escapes in the path.
    var text: String {
        let shownHost = host.contains(":") ? "[\(host)]" : host
        var text = (isSecure ? "rtsps://" : "rtsp://") + shownHost + (port.map { ":\($0)" } ?? "")
        for byte in path.utf8 {
            if byte > 32, byte < 127, !"%?#\"<>\\^`{|}".utf8.contains(byte) {
                text.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                text += "%" + ASCII.hex(UInt32(byte), digits: 2, uppercase: true)
            }
        }
        if let track { text += (path == "/" ? "" : "/") + Self.trackName(track) }
        return text + (query.map { "?\($0)" } ?? "")
    }
}
