// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Shared

/// One way in which a server asks who it talks to (RFC 7617, RFC 7616). Pure.
struct LoginChallenge: Equatable, Sendable {
    /// `basic`, `digest`, or one that cannot be answered, in small letters.
    let scheme: String
    /// By names in small letters.
    let values: [String: String]

    /// The challenges of all `WWW-Authenticate` fields of an answer, in their order.
    static func all(_ fields: [String]) -> [LoginChallenge] { fields.flatMap(parse) }

    /// `Digest realm="a, b", nonce=c, Basic realm="d"`: a word that no `=` follows begins another challenge.
    private static func parse(_ field: String) -> [LoginChallenge] {
        var (found, rest): ([(scheme: String, values: [String: String])], Substring) = ([], field[...])
        func isToken(_ character: Character) -> Bool { !" \t,=\"".contains(character) }
        while true {
            rest = rest.drop { " \t,=\"".contains($0) }
            guard !rest.isEmpty, found.count <= 16 else { break }
            let word = rest.prefix(while: isToken).lowercased()
            rest = rest.drop(while: isToken)
            let value = rest.drop { $0 == " " || $0 == "\t" }
            guard value.first == "=" else {
                found.append((word, [:]))
                continue
            }
            rest = value.dropFirst().drop { $0 == " " || $0 == "\t" }
            var text = ""
            if rest.first == "\"" {
                rest.removeFirst()
                while let next = rest.popFirst(), next != "\"" {
                    text.append(next == "\\" ? rest.popFirst() ?? " " : next)
                }
            } else {
                text = String(rest.prefix { $0 != "," && $0 != " " })
                rest = rest.dropFirst(text.count)
            }
            if !found.isEmpty { found[found.count - 1].values[word] = text }
        }
        return found.map { LoginChallenge(scheme: $0.scheme, values: $0.values) }
    }

    /// The name of libavutil's hash for a digest's algorithm; nil for what cannot be answered.
    private var hash: String? {
        guard scheme == "digest" else { return nil }
        switch algorithm {
        case "md5", "md5-sess": return "MD5"
        case "sha-256", "sha-256-sess": return "SHA256"
        case "sha-512-256", "sha-512-256-sess": return "SHA512/256"
        default: return nil
        }
    }

    /// `qop`: nil where there is none.
    private var qualities: [Substring]? {
        values["qop"].flatMap { $0.isEmpty ? nil : $0.lowercased().split { ", ".contains($0) } }
    }

    private var algorithm: String { values["algorithm"].flatMap { $0.isEmpty ? nil : $0.lowercased() } ?? "md5" }

    /// Whether libavformat's own client answers when it is asked by these: it takes the last digest, and of those only MD5.
    static func isAnsweredByLibav(_ challenges: [LoginChallenge]) -> Bool {
        guard let last = challenges.last(where: { $0.scheme == "digest" }) else {
            return challenges.contains { $0.scheme == "basic" }
        }
        // Of "auth-int" alone it makes the answer of an older standard.
        return last.hash == "MD5" && last.qualities.map { $0.contains("auth") } ?? true
    }

    /// The one to be answered: the strongest hash, then Basic. Nil where there is none that can be.
    static func best(_ challenges: [LoginChallenge]) -> LoginChallenge? {
        let order = ["SHA512/256", "SHA256", "MD5"]
        for wanted in order { if let found = challenges.first(where: { $0.hash == wanted }) { return found } }
        return challenges.first { $0.scheme == "basic" }
    }

    /// How it is named in a message: `Digest SHA-999`, `Bearer`.
    var shown: String {
        let words = (scheme == "digest" ? [scheme, values["algorithm"] ?? ""] : [scheme]).filter { !$0.isEmpty }
        return String(words.joined(separator: " ").prefix(60)).printable()
    }

    /// `Authorization` for a request without a body.
    ///
    /// - Parameters:
    ///   - count: How many requests were signed with this challenge, this one included.
    ///   - clientNonce: A word that nobody can guess.
    func answer(_ login: ServerLogin, method: String, uri: String, count: Int, clientNonce: String) -> String {
        guard let hash else { return "Basic \(Self.base64("\(login.name):\(login.password)"))" }
        func H(_ text: String) -> String { Self.digest(text, hash) }
        let (realm, nonce) = (values["realm"] ?? "", values["nonce"] ?? "")
        let offered = qualities ?? []
        let qop = offered.contains("auth") ? "auth" : offered.contains("auth-int") ? "auth-int" : nil
        var secret = H("\(login.name):\(realm):\(login.password)")
        if algorithm.hasSuffix("-sess") { secret = H("\(secret):\(nonce):\(clientNonce)") }
        let target = H(qop == "auth-int" ? "\(method):\(uri):\(H(""))" : "\(method):\(uri)")
        let eight = String(count, radix: 16)
        let number = String(repeating: "0", count: max(8 - eight.count, 0)) + eight
        let isNameHashed = values["userhash"]?.lowercased() == "true"
        func quoted(_ text: String) -> String {
            "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
        }
        var parts = [
            "username=\(quoted(isNameHashed ? H("\(login.name):\(realm)") : login.name))", "realm=\(quoted(realm))",
            "nonce=\(quoted(nonce))", "uri=\(quoted(uri))",
            "response=\"\(H(qop.map { "\(secret):\(nonce):\(number):\(clientNonce):\($0):\(target)" } ?? "\(secret):\(nonce):\(target)"))\"",
        ]
        if let given = values["algorithm"], !given.isEmpty { parts.append("algorithm=\(given)") }
        if let opaque = values["opaque"] { parts.append("opaque=\(quoted(opaque))") }
        if let qop { parts += ["qop=\(qop)", "nc=\(number)"] }
        if qop != nil || algorithm.hasSuffix("-sess") { parts.append("cnonce=\"\(clientNonce)\"") }
        if isNameHashed { parts.append("userhash=true") }
        return "Digest " + parts.joined(separator: ", ")
    }

    private static func digest(_ text: String, _ name: String) -> String {
        var context: OpaquePointer?
        guard av_hash_alloc(&context, name) >= 0 else { return "" }
        defer { av_hash_freep(&context) }
        av_hash_init(context)
        let bytes = Array(text.utf8)
        av_hash_update(context, bytes, bytes.count)
        var result = [UInt8](repeating: 0, count: 2 * Int(AV_HASH_MAX_SIZE) + 4)
        av_hash_final_hex(context, &result, Int32(result.count))
        return String(decoding: result.prefix { $0 != 0 }, as: UTF8.self)
    }

    static func base64(_ text: String) -> String {
        let bytes = Array(text.utf8)
        var result = [CChar](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
        av_base64_encode(&result, Int32(result.count), bytes, Int32(bytes.count))
        return String(decoding: result.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
