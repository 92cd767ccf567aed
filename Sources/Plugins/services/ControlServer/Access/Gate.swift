// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Decides which requests are answered. It checks each one first, and refuses pages of other origins, DNS names
/// that were made to point here, and clients without the token.
///
/// docs/design/021-live-operation.md gives the reason of each rule.
struct Gate: Sendable {
    private let names: Set<HostName>
    /// Names that were configured without a port: they count with this server's port, and with any port that a proxy
    /// shows.
    private let configured: Set<String>
    /// Names that were configured with a port, which a proxy may show to browsers over TLS.
    private let configuredPorts: Set<HostName>
    /// Whether any IP address counts as a name of the server: where it listens on all addresses. DNS rebinding does
    /// not work with an address.
    private let takesLiterals: Bool
    private let port: Int
    let token: AccessToken?

    /// - Parameter port: The port in use, where `address` may have port 0.
    init(address: ListenAddress, port: Int, hosts: [String], token: AccessToken?) {
        self.port = port
        self.token = token
        takesLiterals = address.isWildcard
        var names: Set<HostName> = []
        var texts = [address.isIPv6 ? "[\(address.address)]:\(port)" : "\(address.address):\(port)"]
        if address.isLoopback || address.isWildcard {
            texts += ["127.0.0.1:\(port)", "localhost:\(port)", "[::1]:\(port)"]
        }
        var (configured, configuredPorts): (Set<String>, Set<HostName>) = ([], [])
        for host in hosts {
            guard let name = HostName(host) else { continue }
            if name.port == nil { configured.insert(name.name) } else { configuredPorts.insert(name) }
        }
        for text in texts { if let name = HostName(text) { names.insert(name) } }
        self.names = names.union(configuredPorts)
        (self.configured, self.configuredPorts) = (configured, configuredPorts)
    }

    /// The kinds of requests.
    enum Room {
        /// Everything that shows or changes the run.
        case api
        /// A file without secrets. The login form is one of them.
        case pageFile
        /// The same, but links of other sites may lead to it. Its content security policy allows no frame.
        case page
        /// The WebSocket. Browsers send only `Origin` to tell where it comes from, and let no page set header fields,
        /// so the token comes as a subprotocol (``LiveProtocol``).
        case socket
    }

    /// Why a request is refused; nil where it is allowed.
    func refusal(of head: RequestHead, room: Room = .api) -> Refusal? {
        guard let text = head.host, let host = HostName(text) else {
            return Refusal(
                421, "misdirected", place: "Host", "the field Host must have a name or an address of this server",
                "Send Host with the name or address, and the port, of the server's URL.")
        }
        guard isOurs(host) else {
            let name = host.name.contains(":") ? "[\(host.name)]" : host.name
            return Refusal(
                421, "misdirected", place: "Host", "'\(text)' is not a name of this server",
                "Use the server's address, or add '\(name)' to 'hosts' of 'control'.")
        }
        if let origin = head["origin"] {
            guard isOwn(origin, host: text) else {
                return Refusal(
                    403, "forbidden", place: "Origin",
                    "the page comes from '\(origin.prefix(100))', but the server was asked for as '\(text)'; pages of other origins must not use it",
                    "\(Self.ownAddress) A proxy with TLS must pass on the field Host with the port that browsers use, and 'hosts' of 'control' must have that name, with that port or without one."
                )
            }
        } else if room == .socket {
            return Refusal(
                403, "forbidden", place: "Origin", "a WebSocket request must have the field Origin",
                "Send Origin: http://\(text), as browsers do.")
        }
        if let site = head["sec-fetch-site"], site != "same-origin", site != "none", room != .page {
            return Refusal(
                403, "forbidden", place: "Sec-Fetch-Site", "pages of other origins must not use this server",
                Self.ownAddress)
        }
        if let token, room == .api || room == .socket {
            let field = head["authorization"].map(Self.bearer)
            let given = field ?? (room == .socket ? LiveProtocol.token(offeredIn: head) : nil)
            guard let given else {
                return .unauthorized("the request has no token", challenge: #"Bearer realm="framehost""#)
            }
            guard let given, token.matches(given) else {
                return .unauthorized(
                    "the token is wrong", challenge: #"Bearer realm="framehost", error="invalid_token""#)
            }
        }
        if head.hasBody, !head.isJSON {
            return Refusal(
                415, "unsupported-media-type", place: "Content-Type", "the body must be application/json",
                "Send the field Content-Type: application/json.")
        }
        return nil
    }

    private static let ownAddress = "Open the server's own address."

    private func isOurs(_ host: HostName) -> Bool {
        if hasName(host) || configured.contains(host.name) { return true }
        return takesLiterals && host.isLiteral && (host.port ?? 80) == port
    }

    /// The origin must be the very host of the request. A proxy that speaks TLS shows pages of `https://` under a
    /// configured name. A port that was configured is the one that browsers show; they leave out 80 of `http` and 443 of
    /// `https`.
    private func isOwn(_ origin: String, host: String) -> Bool {
        let origin = origin.lowercased()
        let host = host.lowercased()
        guard let name = HostName(host) else { return false }
        if origin == "http://\(host)" {
            return name.port != nil || configured.contains(name.name) || names.contains(name.at(80))
                || takesLiterals && name.isLiteral
        }
        guard origin == "https://\(host)" else { return false }
        return configured.contains(name.name) || configuredPorts.contains(name.at(name.port ?? 443)) || name.port == 443
    }

    /// Browsers leave out the port that belongs to the scheme; behind a proxy that is 443.
    private func hasName(_ host: HostName) -> Bool {
        guard host.port == nil else { return names.contains(host) }
        return names.contains(host.at(80)) || names.contains(host.at(443))
    }

    /// RFC 6750 §2.1; nil for another scheme.
    private static func bearer(_ field: String) -> String? {
        guard field.utf8.count > 7, field.prefix(7).lowercased() == "bearer " else { return nil }
        return String(field.dropFirst(7).drop { $0 == " " })
    }
}

/// A request without its body, with field names in lower case.
struct RequestHead: Sendable {
    var method: String
    /// Path and query as they were sent.
    var target: String
    var host: String?
    var fields: [(name: String, value: String)] = []

    /// The value of the first field with this name in lower case.
    subscript(name: String) -> String? { fields.first { $0.name == name }?.value }

    /// RFC 9112 §6.
    var hasBody: Bool {
        if self["transfer-encoding"] != nil { return true }
        guard let length = self["content-length"] else { return false }
        return Int(length) != 0
    }

    var isJSON: Bool {
        let type = self["content-type"]?.prefix { $0 != ";" }.lowercased()
        return type.map { $0.split(separator: " ").joined() } == "application/json"
    }
}

/// The error with which a request is answered.
struct Refusal: Error, Sendable, Equatable {
    var status: Int
    /// Kebab-case, for programs.
    var code: String
    var place: String
    /// One sentence without its full stop.
    var what: String
    var remedy: String
    /// What exactly is wrong, as of faults of the chain.
    var reason: FrameHostError.Reason?
    /// Further fields of the answer.
    var fields: [String: String] = [:]

    init(
        _ status: Int, _ code: String, place: String, _ what: String, _ remedy: String,
        reason: FrameHostError.Reason? = nil
    ) {
        (self.status, self.code, self.place, self.what, self.remedy) = (status, code, place, what, remedy)
        self.reason = reason
    }

    static func unauthorized(_ what: String, challenge: String) -> Refusal {
        var refusal = Refusal(
            401, "unauthorized", place: "Authorization", what,
            "Send the field Authorization: Bearer TOKEN with the token of 'control'.")
        refusal.fields = ["WWW-Authenticate": challenge]
        return refusal
    }
}
