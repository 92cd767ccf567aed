// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// A client of a running chain's control server (docs/control.md).
struct ControlClient {
    let base: String
    /// Whether ``base`` names a port; without one the scheme's is asked.
    private let hasPort: Bool
    private let fields: [String]
    private let library: FetchLibrary

    /// The most bytes of an answer that is not a stream.
    private static let mostBytes = 512 << 20
    /// How long an answer may take, seconds: longer than the server waits for the chain.
    private static let patience = 90
    /// How long an answer may take when the server does not wait for the chain, seconds.
    private static let readPatience = 10

    /// - Parameters:
    ///   - url: `http://127.0.0.1:8080`; the scheme may be left out.
    ///   - argument: The argument that the address was given with, which is the place of its faults.
    ///   - tokenFile: A file with the token in its first line; without it $FRAMEHOST_LOGIN (`name:password`), or else
    ///     $FRAMEHOST_TOKEN, if one of them is set.
    /// - Throws: ``FrameHostError``.
    init(_ url: String, argument: String = "url", tokenFile: String?) throws {
        let given = url
        var url = url
        if url.firstRange(of: "://") == nil { url = "http://\(url)" }
        while url.hasSuffix("/") { url.removeLast() }
        // A token or password in the address would appear in lists of processes and in logs.
        guard !url.contains(where: { "#?@".contains($0) }) else {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: argument),
                what: "the address must name only the server",
                remedy:
                    "Write http://HOST:PORT. Give the token with --token-file or $FRAMEHOST_TOKEN, or name:password in $FRAMEHOST_LOGIN."
            )
        }
        let scheme = url.prefix { $0 != ":" }.lowercased()
        guard scheme == "http" || scheme == "https", url.utf8.count > scheme.utf8.count + 3,
            url.utf8.allSatisfy({ $0 > 32 && $0 < 127 })
        else {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: argument),
                what: given.isEmpty ? "the address is empty" : "'\(given)' is not the address of a control server",
                remedy: "Write the address that the chain prints when it starts, such as http://127.0.0.1:8080.")
        }
        let authority = url.dropFirst(scheme.utf8.count + 3).prefix { $0 != "/" }
        if let fault = Self.fault(ofAuthority: authority, in: given, argument) { throw fault }
        base = url
        hasPort = authority.contains { $0 == ":" } && authority.last != "]"
        fields = try Self.authorization(tokenFile).map { ["Authorization: \($0)"] } ?? []
        library = try FetchLibrary()
    }

    /// Finds faults in `HOST:PORT` that libcurl would describe only in its own words.
    private static func fault(ofAuthority authority: Substring, in url: String, _ argument: String) -> FrameHostError? {
        func fault(_ what: String) -> FrameHostError {
            FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: argument), what: what,
                remedy: "Write the address that the chain prints when it starts, such as http://127.0.0.1:8080.")
        }
        let isLiteral = authority.hasPrefix("[")
        let host = isLiteral ? authority.prefix { $0 != "]" } : authority.prefix { $0 != ":" }
        let rest = authority.dropFirst(host.count + (isLiteral ? 1 : 0))
        if host.isEmpty || (isLiteral && (host.count < 3 || !authority.contains("]"))) {
            return fault("'\(url)' names no host")
        }
        if !isLiteral, host.allSatisfy(\.isNumber), rest.isEmpty {
            return fault("'\(host)' is only a number, and the address needs a host and a port")
        }
        guard !rest.isEmpty else { return nil }
        guard rest.hasPrefix(":"), let port = Int(rest.dropFirst()), (1...65_535).contains(port) else {
            return fault("the port in '\(url)' must be a whole number from 1 to 65535")
        }
        return nil
    }

    /// The value of the field. No fault shows what is in the file or the variable.
    private static func authorization(_ tokenFile: String?) throws -> String? {
        guard tokenFile == nil, let variable = getenv("FRAMEHOST_LOGIN"), variable.pointee != 0 else {
            return try token(tokenFile).map { "Bearer \($0)" }
        }
        let login = String(cString: variable)
        guard let colon = login.utf8.firstIndex(of: 58), colon != login.startIndex,
            login.utf8.allSatisfy({ $0 >= 32 && $0 != 127 })
        else {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: "FRAMEHOST_LOGIN"),
                what: "the login must be name:password, without control characters",
                remedy: "Set it to a name and a password of 'users' of the server's 'control'.")
        }
        return "Basic \(base64(Array(login.utf8)))"
    }

    /// RFC 4648, 4.
    private static func base64(_ bytes: [UInt8]) -> String {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for place in 0..<4 {
                text.append(place <= group.count ? digits[bits >> (18 - 6 * place) & 63] : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Reads the token. No fault shows what is in the file.
    private static func token(_ file: String?) throws -> String? {
        let text: String
        if let file {
            text = String(decoding: try beginning(of: file).prefix { $0 != 10 && $0 != 13 }, as: UTF8.self)
        } else {
            guard let variable = getenv("FRAMEHOST_TOKEN") else { return nil }
            text = String(cString: variable)
            if text.isEmpty { return nil }
        }
        guard text.utf8.allSatisfy({ (33...126).contains($0) }), !text.isEmpty else {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: file == nil ? "FRAMEHOST_TOKEN" : "--token-file"),
                what: text.isEmpty
                    ? "the first line of '\(file ?? "")' is empty"
                    : "the token must have only ASCII letters, digits and punctuation, and no spaces",
                remedy: text.isEmpty ? "Write the server's token into this line." : "Use exactly the server's token.")
        }
        return text
    }

    /// The first bytes of a token's file. It may also be a pipe, as a shell's `<(…)` is.
    private static func beginning(of file: String) throws -> ArraySlice<UInt8> {
        func fault(_ what: String, _ remedy: String = "Name a file with the token in its first line.")
            -> FrameHostError
        {
            FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: "--token-file"), what: what, remedy: remedy)
        }
        func unreadable(_ code: Int32) -> FrameHostError {
            fault(
                "'\(file)' cannot be read: \(String(cString: strerror(code)))",
                code == EACCES
                    ? "Let this user read it, or name another file." : "Name a file with the token in its first line.")
        }
        // Does not wait for the first writer of a named pipe, which may never come.
        let descriptor = open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw unreadable(errno) }
        guard status.st_mode & S_IFMT != S_IFDIR else { throw fault("'\(file)' is a folder", "Name a file in it.") }
        // A writer that is there may need a while.
        _ = fcntl(descriptor, F_SETFL, O_RDONLY)
        var bytes = [UInt8](repeating: 0, count: 1024)
        var count = 0
        while count < bytes.count {
            let more = bytes.withUnsafeMutableBytes { bytes in
                SystemCall.retrying { read(descriptor, bytes.baseAddress! + count, bytes.count - count) }
            }
            guard more >= 0 else { throw unreadable(errno) }
            if more == 0 { break }
            count += more
            // The writer of a pipe may keep it open for long after the line.
            if bytes[count - more..<count].contains(where: { $0 == 10 || $0 == 13 }) { break }
        }
        guard count > 0 || status.st_mode & S_IFMT != S_IFIFO else {
            throw fault("nothing was written to the pipe '\(file)'")
        }
        return bytes[..<count]
    }

    // MARK: Asking

    /// The body of a good answer.
    ///
    /// - Returns: nil for "there is none" (204).
    /// - Throws: ``FrameHostErrors``: what the server refuses, or why it cannot be asked.
    func bytes(
        _ method: String, _ path: String, body: JSONNode? = nil, seconds: Int = patience
    ) throws -> [UInt8]? {
        var bytes: [UInt8] = []
        let result = library.request(
            method, base + path, authorities: FetchLibrary.authorities,
            fields: fields + (body == nil ? [] : ["Content-Type: application/json"]),
            body: body.map { Array($0.text().utf8) }, seconds: seconds
        ) { _, piece in
            guard bytes.count + piece.count <= Self.mostBytes else { return false }
            bytes += piece
            return true
        }
        try check(result, bytes)
        return result.status == 204 ? nil : bytes
    }

    /// The body of a good answer, as JSON.
    func json(_ method: String, _ path: String, body: JSONNode? = nil) throws -> JSONNode {
        let seconds = method == "GET" ? Self.readPatience : Self.patience
        let bytes = try bytes(method, path, body: body, seconds: seconds) ?? []
        do { return try JSONReader.read(bytes, file: base + path) } catch {
            throw isNoServer("its answer to \(path) cannot be read as JSON", cause: "\(error)")
        }
    }

    /// The fault of an address where another program answers.
    func isNoServer(_ why: String, cause: String = "") -> FrameHostErrors {
        FrameHostErrors([
            FrameHostError(
                .unavailable, place: base, what: "is not a control server: \(why)",
                remedy: "Check the address and the port.", cause: cause, reason: .noServer)
        ])
    }

    /// Calls `line` with each line of a stream until the stream ends or `line` returns false.
    func lines(_ path: String, line: @escaping (String) -> Bool) throws {
        var rest: [UInt8] = []
        var isEnough = false
        let result = library.request(
            "GET", base + path, authorities: FetchLibrary.authorities, fields: fields, body: nil, seconds: nil
        ) { status, piece in
            rest += piece
            guard status == 200 else { return rest.count <= 1 << 20 }
            while let end = rest.firstIndex(of: 10) {
                let text = String(decoding: rest[..<end], as: UTF8.self)
                rest.removeFirst(end + 1)
                if !line(text) {
                    isEnough = true
                    return false
                }
            }
            return rest.count <= 16 << 20
        }
        if isEnough { return }
        // A server that ends while it sends also ends the stream: CURLE_PARTIAL_FILE, _RECV_ERROR.
        if result.status == 200, [0, 18, 56].contains(result.code) { return }
        try check(result, rest)
    }

    private func check(_ result: FetchLibrary.Result, _ bytes: [UInt8]) throws {
        guard result.code == 0 else {
            // CURLE_GOT_NOTHING, CURLE_RECV_ERROR.
            let hasHungUp = [52, 56].contains(result.code)
            // CURLE_PEER_FAILED_VERIFICATION.
            let isUnknown = result.code == 60
            // libcurl's words for CURLE_COULDNT_CONNECT repeat the address.
            let isDeaf = result.code == 7
            throw FrameHostErrors([
                FrameHostError(
                    .unavailable, place: base,
                    what: hasHungUp
                        ? "the server closed the connection before it answered"
                        : "cannot be reached: \(isDeaf ? "nothing answers there" : result.words)",
                    remedy: hasHungUp
                        ? "Check whether the chain still runs. If it has ended, start it again, and repeat the command."
                        : isUnknown
                            ? "Set SSL_CERT_FILE to a file with the server's certificate, or with that of its certificate authority."
                            : hasPort
                                ? "Check the address, and that a chain with \"control\" in its file runs there."
                                : "Write the address with its port, as the chain prints it when it starts, such as http://127.0.0.1:8080.",
                    reason: .noServer)
            ])
        }
        guard !(200..<300).contains(Int(result.status)) else { return }
        let answer = try? JSONReader.read(bytes, file: base)
        let faults = (answer?["faults"]?.asArray ?? answer?["error"].map { [$0] } ?? []).map(fault)
        if result.status == 401, faults.isEmpty == false {
            var first = faults[0]
            let logins = answer?["error"]?["logins"]?.asArray?.compactMap(\.asString) ?? ["token"]
            let ways = [
                ("user", "Set $FRAMEHOST_LOGIN to name:password."),
                ("token", "Give the server's token: in $FRAMEHOST_TOKEN, or in a file that --token-file names."),
            ]
            first.remedy = ways.filter { logins.contains($0.0) }.map(\.1).joined(separator: " Or: ")
            throw FrameHostErrors([first])
        }
        guard !faults.isEmpty else { throw isNoServer("it answers with HTTP status \(result.status)") }
        throw FrameHostErrors(faults)
    }

    private func fault(_ node: JSONNode) -> FrameHostError {
        FrameHostError(
            node["code"]?.asString.flatMap { FrameHostError.Code(rawValue: $0) } ?? .unavailable,
            place: FaultPlace(node["place"]?.asString ?? ""),
            what: node["what"]?.asString ?? "the server refused the request",
            remedy: node["remedy"]?.asString ?? "", cause: node["cause"]?.asString ?? "",
            reason: node["reason"]?.asString.flatMap { FrameHostError.Reason(rawValue: $0) },
            option: node["option"]?.asString)
    }

    /// A stage's name, percent-encoded for a path (RFC 3986 §2.3).
    static func encoded(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            let isPlain =
                (97...122).contains(byte) || (65...90).contains(byte) || (48...57).contains(byte)
                || [45, 46, 95, 126].contains(byte)
            if isPlain {
                result.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                result += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }
}
