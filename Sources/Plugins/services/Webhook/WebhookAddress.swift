// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Publishing

/// Where events are posted: an address whose path and query may be secret, as those of chat services are. Pure.
struct WebhookAddress: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    /// The most bytes of an address. Servers take 8,000 (RFC 9112, section 3).
    static let mostBytes = 4096

    /// Scheme, host and port, which may be shown.
    let server: ServerAddress
    /// The whole address, for the library alone.
    let secretText: String

    /// Neither the path nor the query.
    var description: String { server.description }
    var customMirror: Mirror { Mirror(self, children: ["server": description]) }

    /// - Throws: ``OptionFault``, which quotes nothing behind the host.
    init(_ text: String) throws(OptionFault) {
        let example = "Write it like \"https://192.168.1.7/events\""
        guard let mark = text.firstRange(of: "://"), ["http", "https"].contains(text[..<mark.lowerBound].lowercased())
        else {
            throw OptionFault(
                "'url' must be an address that begins with https:// or http://", remedy: "\(example).", options: ["url"]
            )
        }
        guard text.utf8.count <= Self.mostBytes, text.utf8.allSatisfy({ (33...126).contains($0) && $0 != 92 }) else {
            throw OptionFault(
                "'url' must have at most \(Self.mostBytes) bytes, all of them printable ASCII without blanks and \\",
                remedy: "\(example), and any other character as %20 or xn--….", options: ["url"])
        }
        // Also behind a slash: it may belong to a password.
        guard !text.utf8.contains(UInt8(ascii: "@")) else {
            throw OptionFault(
                "'url' contains an @, as an address with a login does, which everyone who can read the chain file would see",
                remedy:
                    "Leave a login out, and set 'login' to a file with a line name:password, or to env:NAME. Write an @ that belongs to the path as %40.",
                options: ["url"])
        }
        guard !text.utf8.contains(UInt8(ascii: "#")) else {
            throw OptionFault(
                "'url' has a fragment (#…), which is never sent to a server",
                remedy: "Leave it out, and write a # that belongs to the path as %23.", options: ["url"])
        }
        let end = text[mark.upperBound...].firstIndex { $0 == "/" || $0 == "?" } ?? text.endIndex
        server = try ServerAddress(
            String(text[..<end]), option: "url", schemes: [("https", 443), ("http", 80)])
        secretText = text
    }

    /// Whether the connection is secured.
    var isSecured: Bool { server.scheme == "https" }
}
