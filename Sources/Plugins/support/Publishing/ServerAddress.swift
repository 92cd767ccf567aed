// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Where a server is: `scheme://host:port`. It holds no login, so it may be shown. Pure.
package struct ServerAddress: Sendable, Equatable, CustomStringConvertible {
    package let scheme: String
    /// A name or an address; one of IPv6 without its brackets.
    package let host: String
    package let port: Int

    package var description: String { "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)" }

    /// - Parameters:
    ///   - text: The address; without a port it has the scheme's.
    ///   - option: The option's key, for sentences.
    ///   - isInList: Whether the option is a list of addresses.
    ///   - schemes: The schemes there are, with their ports; the first is the example's.
    /// - Throws: ``OptionFault``, which quotes no login.
    package init(
        _ text: String, option: String, isInList: Bool = false, schemes: [(name: String, port: Int)]
    ) throws(OptionFault) {
        let example = "Write it like \"\(schemes[0].name)://192.168.1.7:\(schemes[0].port)\""
        // An address that may have a secret is not quoted, not even what is left of it: that would look like the value.
        let shown = Address(text).isShownWhole ? JSONNode(.string(text)).text() : nil
        let subject =
            shown.map { isInList ? "'\(option)' has \($0), which" : "'\(option)' \($0)" }
            ?? (isInList ? "each address in '\(option)'" : "'\(option)'")
        let misshapen = OptionFault(
            "\(subject) must have only HOST or HOST:PORT after ://",
            remedy:
                "\(example), and an IPv6 address in brackets: \"\(schemes[0].name)://[fd00::7]:\(schemes[0].port)\".",
            options: [option])
        let separator = text.firstRange(of: "://")
        guard let mark = separator,
            let known = schemes.first(where: { $0.name == text[..<mark.lowerBound].lowercased() })
        else {
            throw OptionFault(
                "\(subject) must start with \(schemes.map { "\($0.name)://" }.joined(separator: " or "))",
                remedy: "\(example).", options: [option])
        }
        let rest = text[mark.upperBound...]
        guard !rest.contains("@") else {
            throw OptionFault(
                "'\(option)' contains a login, which everyone who can read the chain file would see",
                remedy: "Leave it out, and set 'login' to a file with a line name:password, or to env:NAME.",
                options: [option])
        }
        let bare = rest.hasSuffix("/") ? rest.dropLast() : rest
        var (host, tail) = (bare, Substring(""))
        if bare.first == "[" {
            guard let end = bare.firstIndex(of: "]") else { throw misshapen }
            host = bare[bare.index(after: bare.startIndex)..<end]
            tail = bare[bare.index(after: end)...]
        } else if let colon = bare.firstIndex(of: ":") {
            guard colon == bare.lastIndex(of: ":") else { throw misshapen }
            (host, tail) = (bare[..<colon], bare[colon...])
        }
        let isHost = host.utf8.allSatisfy { byte in
            switch byte {
            case 48...57, 65...90, 97...122, 45, 46, 95: true
            case 58, 37: bare.first == "["
            default: byte >= 128
            }
        }
        guard isHost, !host.isEmpty, host.utf8.count <= 255 else { throw misshapen }
        if tail.isEmpty {
            port = known.port
        } else {
            guard tail.first == ":" else { throw misshapen }
            guard let number = UInt16(tail.dropFirst()), number > 0 else {
                throw OptionFault(
                    "the port in \(isInList ? "each address of '\(option)'" : "'\(option)'") must be from 1 to 65535",
                    remedy: "Correct the port, or leave it out for \(known.port).", options: [option])
            }
            port = Int(number)
        }
        (scheme, self.host) = (known.name, String(host))
    }
}
