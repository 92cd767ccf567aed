// SPDX-License-Identifier: Apache-2.0

/// The values of chain files, command lines and commands that may hold a secret: logins, and addresses with a password, a
/// token or a key. No text that quotes one of them shows more than ``Swift/String/hidingSecrets``.
///
/// Faults, events, notes and figures go through ``Swift/String/hidingAddresses()``, which asks here. So it does not matter
/// where a value stands (an address in the place of a word, in a list, without its scheme), nor which characters it has: in
/// a sentence alone, nobody could say where a password with spaces or quotation marks ends.
enum WrittenValues {
    private struct Known {
        var values: [(written: String, shown: String)] = []
        var all: Set<String> = []
    }

    private static let known = Locked(Known())
    /// The oldest go, so that a chain that is changed for years keeps a bounded number.
    private static let most = 1000

    /// [any thread] Notes each string of a value that somebody wrote.
    static func note(_ node: JSONNode) {
        switch node.value {
        case .string(let text): note(text)
        case .array(let elements): for element in elements { note(element) }
        case .object(let members): for member in members { note(member.value) }
        default: break
        }
    }

    /// [any thread] Notes a text that somebody wrote.
    static func note(_ text: String) {
        let shown = text.hidingSecrets
        guard shown != text else { return }
        // As JSON has it, and as a terminal does.
        let quoted = JSONNode.string(text).text().dropFirst().dropLast()
        let forms: Set = [text, String(quoted), text.printable()]
        known.withLock { known in
            for form in forms where known.all.insert(form).inserted { known.values.append((form, shown)) }
            while known.values.count > most { known.all.remove(known.values.removeFirst().written) }
        }
    }

    /// [any thread] The text without the secrets of the values that are known.
    static func hiding(in text: String) -> String {
        let found = known.withLock { known in
            known.values.filter { text.utf8.count >= $0.written.utf8.count && text.containsBytes(of: $0.written) }
        }
        return found.sorted { $0.written.utf8.count > $1.written.utf8.count }
            .reduce(text) { $0.replacingBytes(of: $1.written, with: $1.shown) }
    }
}

extension Address {
    /// [any thread] Keeps secrets in a value that somebody wrote into a chain out of every later fault, event and note,
    /// whatever they quote of it. Options of stages are noted by themselves.
    ///
    /// - Parameter node: The value, with all that is in it.
    public static func hideSecrets(of node: JSONNode) { WrittenValues.note(node) }
}

extension String {
    /// This text, the value of an option for example, as others may read it: an address as ``Address`` shows it, and what
    /// looks like a login or an address without its scheme with `…` for what may be secret.
    var hidingSecrets: String { hidingSecrets(encodings: 3) }

    /// - Parameter encodings: How often a text may be percent-encoded.
    fileprivate func hidingSecrets(encodings: Int) -> String {
        // A key or a credential in the place of its file's name (RFC 7468).
        if containsBytes(of: "-----BEGIN") { return "…" }
        guard mayHaveSecret else { return self }
        let address = Address(self)
        guard address.scheme.isEmpty else { return address.description }
        let bytes = Array(utf8)[...]
        if bytes.firstMark != nil, bytes.contains(where: { $0 <= 32 }) || !bytes.hasLogin {
            return hidingMarkedAddresses().hidingBareSecrets()
        }
        return bytes.shownBare(encodings: encodings) ?? self
    }

    /// Whether it has one of the marks without which nothing is hidden.
    var mayHaveSecret: Bool {
        utf8.contains { byte in
            switch byte {
            case UInt8(ascii: ":"), UInt8(ascii: "@"), UInt8(ascii: "="), UInt8(ascii: "?"), UInt8(ascii: ";"),
                UInt8(ascii: "&"), UInt8(ascii: "%"):
                true
            default: false
            }
        }
    }

    /// Each word of a sentence that looks like a login or an address without its scheme, hidden.
    func hidingBareSecrets() -> String {
        guard
            utf8.contains(where: {
                $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "=") || $0 == UInt8(ascii: "%") || $0 == UInt8(ascii: "?")
                    || $0 == UInt8(ascii: ";")
            })
        else { return self }
        let bytes = Array(utf8)
        var result: [UInt8] = []
        var copied = 0
        for word in bytes.split(whereSeparator: { $0 <= 32 }) {
            let start = word.firstIndex { !$0.opens } ?? word.endIndex
            let end = word[start...].lastIndex { !$0.closes }.map { $0 + 1 } ?? start
            let inner = word[start..<end]
            guard !inner.hasSchemeBeforeMark, let shown = inner.shownBare(encodings: 3) else { continue }
            result += bytes[copied..<start]
            result += shown.utf8
            copied = end
        }
        return copied == 0 ? self : String(decoding: result + bytes[copied...], as: UTF8.self)
    }

    func containsBytes(of word: String) -> Bool {
        let word = Array(word.utf8)
        guard let first = word.first else { return false }
        var rest = Array(utf8)[...]
        while let index = rest.firstIndex(of: first) {
            if rest[index...].starts(with: word) { return true }
            rest = rest[(index + 1)...]
        }
        return false
    }
}

extension UInt8 {
    fileprivate var opens: Bool {
        switch self {
        case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "("), UInt8(ascii: "{"), UInt8(ascii: "<"),
            UInt8(ascii: "`"):
            true
        default: false
        }
    }
    fileprivate var closes: Bool {
        switch self {
        case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: ")"), UInt8(ascii: "}"), UInt8(ascii: ">"),
            UInt8(ascii: "`"), UInt8(ascii: ","), UInt8(ascii: "."), UInt8(ascii: ":"), UInt8(ascii: "!"),
            UInt8(ascii: ";"):
            true
        default: false
        }
    }
}

extension ArraySlice<UInt8> {
    /// How a text without a scheme is shown where it looks like a login or an address with secrets; nil where it does not.
    fileprivate func shownBare(encodings: Int) -> String? {
        let hidden = "…"
        if hasLogin { return hidden }
        if let host = hostBeforeValues { return String(decoding: host, as: UTF8.self) + "/" + hidden }
        if let end = endOfSecretName { return String(decoding: self[..<end], as: UTF8.self) + hidden }
        guard encodings > 0 else { return nil }
        let decoded = percentDecoded
        guard decoded.count < count else { return nil }
        let text = String(decoding: decoded, as: UTF8.self)
        return text.hidingSecrets(encodings: encodings - 1) == text ? nil : hidden
    }

    /// Whether it has `user:password@host`. The user's name is no part of a path: `/clips/12:30@door.mp4` is none.
    fileprivate var hasLogin: Bool {
        let colon = indices.first { colon in
            guard self[colon] == UInt8(ascii: ":"), colon + 1 < endIndex, self[colon + 1] > 32 else { return false }
            let user = self[..<colon].suffix(while: { $0 > 32 && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: ":") })
            let before = self[..<user.startIndex]
            return !user.isEmpty
                && (before.last != UInt8(ascii: "/") || before.dropLast().last == UInt8(ascii: "/"))
        }
        guard let colon else { return false }
        return indices.dropLast().contains { at in
            at > colon + 1 && self[at] == UInt8(ascii: "@")
                && (self[at + 1].isOfHost || self[at + 1] == UInt8(ascii: "[")) && !isTimeOfDay(colon, at)
        }
    }

    /// Whether digits alone stand on both sides of the colon, two at most, as in `8:00@Berlin`.
    private func isTimeOfDay(_ colon: Int, _ at: Int) -> Bool {
        let (hour, minute) = (self[..<colon].suffix(while: \.isDigit), self[colon..<at].dropFirst())
        let before = self[..<hour.startIndex].last
        return (1...2).contains(hour.count) && minute.count == 2 && minute.allSatisfy(\.isDigit)
            && before.map { $0 <= 32 } ?? true
    }

    /// Whether it has an address with a scheme, which is shown as one already.
    fileprivate var hasSchemeBeforeMark: Bool {
        firstMark.map { mark in self[..<mark].suffix(while: { (97...122).contains($0 | 0x20) || $0.isDigit }).count > 1
        } ?? false
    }

    /// What looks like a host, where a path or query with values follows it.
    private var hostBeforeValues: ArraySlice<UInt8>? {
        let host = prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: ";") }
        let rest = self[host.endIndex...]
        let mayHaveValues =
            rest.contains { [UInt8(ascii: "?"), UInt8(ascii: "&"), UInt8(ascii: "="), UInt8(ascii: ";")].contains($0) }
            || rest.contains(UInt8(ascii: "@")) || rest.percentDecoded.count < rest.count
        guard mayHaveValues, AddressParts.isHost(host) else { return nil }
        if host.contains(UInt8(ascii: ":")) || host.elementsEqual("localhost".utf8) { return host }
        let labels = host.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard labels.count > 1, let last = labels.last, !labels.contains(where: \.isEmpty) else { return nil }
        let isNumeric = labels.count == 4 && labels.allSatisfy { $0.allSatisfy(\.isDigit) }
        // A folder may have a dot in its name, but hardly a query behind it.
        guard isNumeric || rest.contains(UInt8(ascii: "?")) else { return nil }
        return isNumeric || (last.count >= 2 && last.allSatisfy { (97...122).contains($0 | 0x20) }) ? host : nil
    }

    /// Where the value begins that follows `password=` or the like; nil without one.
    private var endOfSecretName: Int? {
        for equals in indices where self[equals] == UInt8(ascii: "=") && equals + 1 < endIndex {
            let name = self[..<equals].suffix(while: { (97...122).contains($0 | 0x20) })
            let word = String(decoding: name, as: UTF8.self).lowercased()
            let isHidden = self[(equals + 1)...].elementsEqual("…".utf8)
            if Self.secretNames.contains(word), !isHidden { return equals + 1 }
        }
        return nil
    }

    private static var secretNames: Set<String> {
        ["password", "passwd", "passphrase", "pass", "pwd", "psw", "secret", "token", "streamkey"]
    }
}

extension ArraySlice<UInt8> {
    /// The longest end whose bytes all fulfil a condition.
    fileprivate func suffix(while isRight: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        var start = endIndex
        while start > startIndex, isRight(self[start - 1]) { start -= 1 }
        return self[start...]
    }
}

extension UInt8 {
    fileprivate var isOfHost: Bool { isDigit || (97...122).contains(self | 0x20) || self >= 128 }
}
