// SPDX-License-Identifier: Apache-2.0

/// A network address as people may read it: ``description`` shows where it leads, and nothing that may be a secret.
///
/// Cameras take their password before the host, in the query or in the path (`rtsp://ip/user=admin&password=…`);
/// the stream key of RTMP is the end of its path. Shown are the scheme, the host and the port, and of the path:
///
/// - RTSP: all of it, since the streams of a recorder differ by it, but for a part with a colon. From the first part with `=`, `&` or `;` on only names
///   such as `channel=`, none of the values.
/// - RTMP: the application, which is its first part.
/// - `file`: all of it.
/// - HTTP, SRT, UDP and TCP: a path that is only a word, such as `/live` or `/video.cgi`. Others may have tokens.
/// - Everything else: nothing of the path.
///
/// A login, a query and a fragment are never shown, and in doubt nothing but the scheme is: a text that is no host, or an
/// `@` where none belongs, may be a part of a login whose password contains `/`, `#`, `?` or `@`. `…` stands for what
/// was left out, except for a login and a query.
///
/// - SeeAlso: RFC 3986, section 3.
public struct Address: Sendable, Hashable {
    /// The text before `://` in lower case; empty without one.
    public let scheme: String
    /// What may be shown.
    public let description: String
    /// Whether the address is shown as it was written.
    public let isShownWhole: Bool
    /// The parts that are not shown, as they may stand in another program's words; the longest first.
    private let secrets: [String]

    /// Takes any text apart, also one that is no address.
    public init(_ text: String) {
        var parts = AddressParts(Array(text.utf8)[...])
        parts.take()
        scheme = parts.scheme
        description = parts.shown.printable()
        isShownWhole = description == text
        secrets = parts.secrets.sorted { $0.utf8.count > $1.utf8.count }
    }

    /// Another program's words about this address, such as an error text of a library, without its secrets and without
    /// those of other addresses in them. `***` stands for each.
    ///
    /// - Parameters:
    ///   - others: Further secrets, such as a password that was put into the address.
    ///   - text: What is to be shown.
    public func hiding(_ others: [String] = [], in text: String) -> String {
        var text = text
        for word in (others.filter { !$0.isEmpty } + secrets).sorted(by: { $0.utf8.count > $1.utf8.count }) {
            text = text.replacingBytes(of: word, with: "***")
        }
        return text.hidingAddresses()
    }
}

extension Address: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

extension String {
    /// This text with each address in it as ``Address/description`` has it, and without the secrets of values that were
    /// written into a chain.
    ///
    /// An address begins with letters before `://` and ends before white space, or before the mark that closes the
    /// quotation in which it stands. A word that looks like a login or an address without its scheme is hidden too.
    ///
    /// - Complexity: O(bytes); a text without any mark of an address is returned as it is.
    public func hidingAddresses() -> String {
        guard mayHaveSecret else { return self }
        return WrittenValues.hiding(in: self).hidingMarkedAddresses().hidingBareSecrets()
    }

    /// This text with each address that has a scheme as ``Address/description`` has it.
    func hidingMarkedAddresses() -> String {
        guard hasMark else { return self }
        let bytes = Array(utf8)
        var result: [UInt8] = []
        var (copied, index) = (0, 0)
        while let mark = bytes[index...].firstMark {
            index = mark + 3
            let begin = bytes[copied..<mark].reversed().prefix { $0.isOfScheme }.count
            // A drive letter is no scheme.
            guard begin > 1, index < bytes.count else { continue }
            let start = mark - begin
            let end = AddressParts.end(of: bytes, from: start)
            guard end > index else { continue }
            result += bytes[copied..<start]
            result += Address(String(decoding: bytes[start..<end], as: UTF8.self)).description.utf8
            (copied, index) = (end, end)
        }
        guard copied > 0 else { return self }
        return String(decoding: result + bytes[copied...], as: UTF8.self)
    }

    /// Whether it has a `://`.
    fileprivate var hasMark: Bool {
        var slashes: Int?
        for byte in utf8 {
            switch byte {
            case .colon: slashes = 0
            case .slash where slashes == 1: return true
            case .slash: slashes = slashes.map { $0 + 1 }
            default: slashes = nil
            }
        }
        return false
    }

    func replacingBytes(of word: String, with other: String) -> String {
        let (bytes, word) = (Array(utf8), Array(word.utf8))
        guard !word.isEmpty, bytes.count >= word.count else { return self }
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == word[0], bytes[index...].starts(with: word) {
                result += other.utf8
                index += word.count
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}

// MARK: - Parts

/// The parts of an address, as bytes: a mark with a combining character behind it is still that mark.
struct AddressParts {
    private let bytes: ArraySlice<UInt8>
    var scheme = ""
    var shown = ""
    private(set) var secrets: Set<String> = []

    private static let hidden = "…"

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    /// Where the address that begins at `start` ends.
    static func end(of bytes: [UInt8], from start: Int) -> Int {
        var end = bytes[start...].firstIndex { $0.isSpace } ?? bytes.count
        // In a quotation the address goes on up to the mark that closes it.
        if start > 0, bytes[start - 1] == .quote || bytes[start - 1] == .apostrophe, end < bytes.count,
            !bytes[start..<end].contains(bytes[start - 1]),
            let close = bytes[end...].firstIndex(of: bytes[start - 1])
        {
            end = close
        }
        let isBracketed = bytes[start..<end].contains(UInt8(ascii: "["))
        while end > start, bytes[end - 1].isPunctuation || (bytes[end - 1] == UInt8(ascii: "]") && !isBracketed) {
            end -= 1
        }
        return end
    }

    mutating func take() {
        guard let mark = bytes.firstMark, mark > bytes.startIndex, bytes[..<mark].allSatisfy(\.isOfScheme) else {
            return takeWithoutScheme()
        }
        scheme = text(bytes[..<mark]).lowercased()
        shown = "\(scheme)://"
        var rest = bytes[(mark + 3)...]
        var isCut = false
        if let space = rest.firstIndex(where: \.isSpace) {
            add(rest[space...])
            // A login may contain the space.
            guard !rest[space...].contains(.at) else {
                add(rest)
                return shown += Self.hidden
            }
            rest = rest[..<space]
            isCut = true
        }
        takeRest(rest)
        if isCut, !shown.hasSuffix(Self.hidden) { shown += " " + Self.hidden }
    }

    /// A host, or a word such as a file's name, may be shown.
    private mutating func takeWithoutScheme() {
        let host = bytes.prefix { $0 != .slash }
        let isPlain = bytes.count <= 100 && Self.isHost(host) && !host.isEmpty
        guard isPlain else { return (shown, secrets) = (bytes.isEmpty ? "" : Self.hidden, []) }
        shown = text(host)
        if host.endIndex < bytes.endIndex { shown += bytes[host.endIndex...].count > 1 ? "/" + Self.hidden : "/" }
        add(bytes[host.endIndex...].dropFirst())
    }

    private mutating func takeRest(_ rest: ArraySlice<UInt8>) {
        let authority = rest.prefix { $0 != .slash && $0 != .question && $0 != .hash && $0 != UInt8(ascii: "\\") }
        let path = rest[authority.endIndex...].prefix { $0 != .question && $0 != .hash }
        let query = rest[path.endIndex...].dropFirst()
        add(query)
        addValues(of: query)
        var host = authority
        if let at = authority.lastIndex(of: .at) {
            let login = authority[..<at]
            host = authority[at...].dropFirst()
            add(login)
            if let colon = login.firstIndex(of: .colon) { add(login[colon...].dropFirst()) }
            if login.isEmpty { shown += "@" }
        }
        // The end of a login whose name or password contains a slash, a question mark or a number sign.
        let mayBeLogin =
            path.contains(.at) || path.contains(encoded: [.at]) || (query.contains(.at) && authority.contains(.colon))
        guard Self.isHost(host), !(mayBeLogin && !(scheme == "file" && authority.isEmpty)) else {
            add(rest)
            add(authority)
            add(host.prefix { $0 != .colon })
            addValues(of: path)
            shown = "\(scheme)://\(Self.hidden)"
            return
        }
        shown += text(host)
        takePath(path)
    }

    private mutating func takePath(_ path: ArraySlice<UInt8>) {
        guard path.count > 1, path.first == .slash else {
            if path.count == 1 { shown += "/" }
            return
        }
        switch scheme {
        case "file": shown += text(path)
        case _ where scheme.hasPrefix("rtsp"): takeRTSP(path)
        case _ where scheme.hasPrefix("rtmp"): takeRTMP(path)
        case _ where Self.wordSchemes.contains(scheme) && Self.isWord(path.dropFirst()): shown += text(path)
        default:
            shown += "/" + Self.hidden
            if path.count > 4 { add(path.dropFirst()) }
            addValues(of: path)
        }
    }

    private mutating func takeRTMP(_ path: ArraySlice<UInt8>) {
        let application = path.dropFirst().prefix { $0 != .slash }
        let rest = path[application.endIndex...].dropFirst()
        let isPlain = !application.isEmpty && !Self.mayHaveValues(application)
        add(isPlain ? rest : path.dropFirst())
        if !isPlain { addValues(of: path) }
        shown += isPlain ? "/\(text(application))\(rest.isEmpty ? "" : "/" + Self.hidden)" : "/" + Self.hidden
    }

    private mutating func takeRTSP(_ path: ArraySlice<UInt8>) {
        var isInValues = false
        for part in path.dropFirst().split(separator: .slash, omittingEmptySubsequences: false) {
            shown += "/"
            // `admin:password` as a part of the path.
            if !isInValues, part.contains(.colon), !Self.mayHaveValues(part) {
                add(part)
                if let colon = part.firstIndex(of: .colon) { add(part[colon...].dropFirst()) }
                shown += Self.hidden
                continue
            }
            guard isInValues || Self.mayHaveValues(part) else {
                shown += text(part)
                continue
            }
            var part = part
            if !isInValues {
                add(path[part.startIndex...])
                // A parameter behind a plain name.
                let name = part.prefix { $0 != UInt8(ascii: ";") }
                if name.endIndex < part.endIndex, !Self.mayHaveValues(name), !name.contains(.colon) {
                    shown += text(name) + ";"
                    part = part[name.endIndex...].dropFirst()
                }
            }
            isInValues = true
            shown += part.split(omittingEmptySubsequences: false, whereSeparator: \.isBetweenValues)
                .map(Self.shownName).joined(separator: "&")
        }
        if isInValues { addValues(of: path) }
    }

    /// `channel=…`; of an unknown name nothing, since it may be a part of a password.
    private static func shownName(_ piece: ArraySlice<UInt8>) -> String {
        guard !piece.isEmpty else { return "" }
        guard let equals = piece.firstIndex(of: .equals) else { return hidden }
        let name = String(decoding: piece[..<equals], as: UTF8.self)
        return (plainNames.union(secretNames).contains(name.lowercased()) ? name + "=" : "") + hidden
    }

    /// Names in addresses of cameras whose values say nothing that is secret.
    private static let plainNames: Set<String> = [
        "channel", "chn", "ch", "chid", "stream", "streamtype", "subtype", "type", "id", "camera", "cam", "profile",
        "mode",
        "resolution", "size", "fps", "codec", "proto", "transport", "latency", "timeout", "streaming", "unicast",
        "real_stream",
        "audio", "video", "tcp", "udp", "pkt_size", "localaddr", "localport", "listen",
    ]
    /// Names whose values are hidden in other programs' words from three bytes on; others from four.
    private static let secretNames: Set<String> = [
        "user", "username", "usr", "login", "loginuse", "password", "passwd", "pass", "pwd", "psw", "loginpas",
        "passphrase",
        "key", "token", "auth", "secret", "streamid", "sig", "signature", "session",
    ]

    private static let wordSchemes: Set<String> = ["http", "https", "srt", "udp", "tcp"]

    /// Whether it is what servers call a stream: small letters, up to two digits behind them, and an ending.
    private static func isWord(_ part: ArraySlice<UInt8>) -> Bool {
        let letters = part.prefix(while: \.isSmallLetter)
        let digits = part[letters.endIndex...].prefix(while: \.isDigit)
        let ending = part[digits.endIndex...]
        return (1...12).contains(letters.count) && digits.count <= 2
            && (ending.isEmpty
                || ending.first == UInt8(ascii: ".") && (2...6).contains(ending.count)
                    && ending.dropFirst().allSatisfy { $0.isSmallLetter || $0.isDigit })
    }

    private static func mayHaveValues(_ part: ArraySlice<UInt8>) -> Bool {
        part.contains { $0 == .equals || $0.isBetweenValues }
            || part.contains(encoded: [.equals, .ampersand, .at, .percent, UInt8(ascii: ";"), .question, .hash])
    }

    /// `host`, `host:port`, `:port` or `[address]:port`, where the host has nothing that a password might have.
    static func isHost(_ text: ArraySlice<UInt8>) -> Bool {
        var tail = text[text.endIndex...]
        if text.first == UInt8(ascii: "[") {
            guard let end = text.firstIndex(of: UInt8(ascii: "]")) else { return false }
            let inside = text[text.startIndex..<end].dropFirst()
            guard !inside.isEmpty, inside.allSatisfy({ $0.isOfName || $0 == .colon || $0 == .percent }) else {
                return false
            }
            tail = text[end...].dropFirst()
        } else {
            let name = text.prefix { $0 != .colon }
            guard name.count <= 255, name.allSatisfy({ $0.isOfName || $0 >= 128 }) else { return false }
            tail = text[name.endIndex...]
        }
        guard !tail.isEmpty else { return true }
        let port = tail.dropFirst()
        // The placeholder of our own sentences.
        if tail.first == .colon, port.elementsEqual("PORT".utf8) || port.elementsEqual("port".utf8) { return true }
        guard tail.first == .colon, port.count <= 5, port.allSatisfy(\.isDigit),
            let number = Int(String(decoding: port, as: UTF8.self))
        else { return false }
        return (1...65535).contains(number)
    }

    // MARK: Secrets

    private mutating func add(_ part: ArraySlice<UInt8>) {
        // Shorter ones would be found in every sentence.
        guard part.count >= 3 else { return }
        secrets.insert(text(part))
        let decoded = part.percentDecoded
        if decoded.count < part.count { secrets.insert(String(decoding: decoded, as: UTF8.self)) }
    }

    private mutating func addValues(of text: ArraySlice<UInt8>) {
        for piece in text.split(whereSeparator: { $0.isBetweenValues || $0 == .slash || $0 == .question }) {
            let name = piece.prefix { $0 != .equals }
            let word = String(decoding: name, as: UTF8.self).lowercased()
            if name.endIndex == piece.endIndex {
                if piece.count >= 8 { add(piece) }
            } else if !Self.plainNames.contains(word) {
                let value = piece[name.endIndex...].dropFirst()
                if value.count >= 4 || Self.secretNames.contains(word) { add(value) }
            }
        }
    }

    private func text(_ part: ArraySlice<UInt8>) -> String { String(decoding: part, as: UTF8.self) }
}

extension UInt8 {
    fileprivate static let slash = UInt8(ascii: "/")
    fileprivate static let question = UInt8(ascii: "?")
    fileprivate static let hash = UInt8(ascii: "#")
    fileprivate static let at = UInt8(ascii: "@")
    fileprivate static let colon = UInt8(ascii: ":")
    fileprivate static let equals = UInt8(ascii: "=")
    fileprivate static let ampersand = UInt8(ascii: "&")
    fileprivate static let percent = UInt8(ascii: "%")
    fileprivate static let quote = UInt8(ascii: "\"")
    fileprivate static let apostrophe = UInt8(ascii: "'")

    fileprivate var isSpace: Bool { self <= 32 || self == 127 }
    fileprivate var isBetweenValues: Bool { self == .ampersand || self == UInt8(ascii: ";") }
    fileprivate var isSmallLetter: Bool { (97...122).contains(self) }
    fileprivate var isLetterOrDigit: Bool { isDigit || (self | 0x20).isSmallLetter }
    /// RFC 3986, 3.1.
    fileprivate var isOfScheme: Bool {
        isLetterOrDigit || self == UInt8(ascii: "+") || self == UInt8(ascii: "-") || self == UInt8(ascii: ".")
    }
    fileprivate var isOfName: Bool {
        isLetterOrDigit || self == UInt8(ascii: ".") || self == UInt8(ascii: "-") || self == UInt8(ascii: "_")
    }
    /// What may follow an address in a sentence.
    fileprivate var isPunctuation: Bool {
        switch self {
        case .quote, .apostrophe, .colon, UInt8(ascii: ")"), UInt8(ascii: ","), UInt8(ascii: "."), UInt8(ascii: ";"),
            UInt8(ascii: "!"), UInt8(ascii: ">"), UInt8(ascii: "}"), UInt8(ascii: "`"):
            true
        default: false
        }
    }
    fileprivate var hexDigit: UInt8? {
        switch self {
        case 48...57: self - 48
        case 65...70: self - 55
        case 97...102: self - 87
        default: nil
        }
    }
}

extension ArraySlice<UInt8> {
    /// The first `://`.
    var firstMark: Int? {
        var index = startIndex
        while let colon = self[index...].firstIndex(of: .colon) {
            if self[colon...].starts(with: [.colon, .slash, .slash]) { return colon }
            index = colon + 1
        }
        return nil
    }

    /// Whether one of `marks` stands here percent-encoded (RFC 3986, 2.1).
    fileprivate func contains(encoded marks: [UInt8]) -> Bool {
        indices.contains { index in
            guard self[index] == .percent, index + 2 < endIndex, let high = self[index + 1].hexDigit,
                let low = self[index + 2].hexDigit
            else { return false }
            return marks.contains(high << 4 | low)
        }
    }

    var percentDecoded: [UInt8] {
        var result: [UInt8] = []
        var index = startIndex
        while index < endIndex {
            if self[index] == .percent, index + 2 < endIndex, let high = self[index + 1].hexDigit,
                let low = self[index + 2].hexDigit
            {
                result.append(high << 4 | low)
                index += 3
            } else {
                result.append(self[index])
                index += 1
            }
        }
        return result
    }
}
