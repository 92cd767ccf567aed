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
    ///   - schemes: The schemes there are, with their ports; the first is the example's.
    /// - Throws: ``OptionFault``, which quotes no login.
    package init(_ text: String, option: String, schemes: [(name: String, port: Int)]) throws(OptionFault) {
        let example = "Write it like \"\(schemes[0].name)://192.168.1.7:\(schemes[0].port)\"."
        guard let mark = text.firstRange(of: "://"),
            let known = schemes.first(where: { $0.name == text[..<mark.lowerBound].lowercased() })
        else {
            throw OptionFault(
                "'\(option)' must start with \(schemes.map { "\($0.name)://" }.joined(separator: " or "))",
                remedy: example)
        }
        let rest = text[mark.upperBound...]
        guard !rest.contains("@") else {
            throw OptionFault(
                "'\(option)' contains a login, which everyone who can read the chain file would see",
                remedy: "Leave it out, and set 'login' to a file with a line name:password, or to env:NAME.")
        }
        let bare = rest.hasSuffix("/") ? rest.dropLast() : rest
        var (host, tail) = (bare, Substring(""))
        if bare.first == "[" {
            guard let end = bare.firstIndex(of: "]") else {
                throw OptionFault("'\(option)' must have a host after ://", remedy: example)
            }
            host = bare[bare.index(after: bare.startIndex)..<end]
            tail = bare[bare.index(after: end)...]
        } else if let colon = bare.firstIndex(of: ":") {
            (host, tail) = (bare[..<colon], bare[colon...])
        }
        let isHost = host.utf8.allSatisfy { byte in
            switch byte {
            case 48...57, 65...90, 97...122, 45, 46, 95: true
            case 58, 37: bare.first == "["
            default: byte >= 128
            }
        }
        guard isHost, !host.isEmpty, host.utf8.count <= 255 else {
            throw OptionFault("'\(option)' must have only a host and a port after ://", remedy: example)
        }
        if tail.isEmpty {
            port = known.port
        } else {
            guard tail.first == ":", let number = UInt16(tail.dropFirst()), number > 0 else {
                throw OptionFault(
                    "'\(option)' must have a port from 1 to 65535",
                    remedy: "Correct it, or leave it out for \(known.port).")
            }
            port = Int(number)
        }
        (scheme, self.host) = (known.name, String(host))
    }
}
