// SPDX-License-Identifier: Apache-2.0

import FrameCore
import ServerAccess

/// Decides which requests are answered. It checks each one first, and refuses pages of other origins, DNS names
/// that were made to point here, and clients that do not show who they are.
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
    /// Whether the server speaks TLS itself.
    let isSecure: Bool
    let desk: LoginDesk

    /// - Parameter port: The port in use, where `address` may have port 0.
    init(address: ListenAddress, port: Int, hosts: [String], isSecure: Bool = false, desk: LoginDesk) {
        (self.port, self.isSecure, self.desk) = (port, isSecure, desk)
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
        /// Where a page shows a name and a password in the body.
        case login
    }

    /// Who sends a request, or why it is refused.
    ///
    /// - Parameters:
    ///   - address: Where it comes from.
    ///   - counts: Whether a wrong secret counts as a try. It does not if the same request is judged again.
    func judge(
        _ head: RequestHead, room: Room = .api, from address: PeerAddress = .local, counts: Bool = true
    ) -> Result<Caller, Refusal> {
        if let refusal = origin(of: head, room: room) { return .failure(refusal) }
        var caller = Caller.nobody
        if room == .api || room == .socket {
            // By the fields that browsers add to what pages ask for.
            let isPage = head["sec-fetch-mode"].map { $0 != "navigate" } ?? false || head["origin"] != nil
            switch desk.judge(Self.shown(in: head, room), from: address, counts: counts, mayAsk: !isPage) {
            case .failure(let refusal): return .failure(refusal)
            case .success(let known): caller = known
            }
        }
        if head.hasBody, !head.isJSON {
            return .failure(
                Refusal(
                    415, "unsupported-media-type", place: "Content-Type", "the body must be application/json",
                    "Send the field Content-Type: application/json."))
        }
        return .success(caller)
    }

    /// What is wrong with where a request comes from and goes to; nil where it is allowed.
    private func origin(of head: RequestHead, room: Room) -> Refusal? {
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
                "Send Origin: \(scheme)://\(text), as browsers do.")
        }
        if let site = head["sec-fetch-site"], site != "same-origin", site != "none", room != .page {
            return Refusal(
                403, "forbidden", place: "Sec-Fetch-Site", "pages of other origins must not use this server",
                Self.ownAddress)
        }
        return nil
    }

    private static let ownAddress = "Open the server's own address."

    private var scheme: String { isSecure ? "https" : "http" }
    /// The port that addresses leave out.
    private var usualPort: Int { isSecure ? 443 : 80 }

    private func isOurs(_ host: HostName) -> Bool {
        if hasName(host) || configured.contains(host.name) { return true }
        return takesLiterals && host.isLiteral && (host.port ?? usualPort) == port
    }

    /// The origin must be the very host of the request. A proxy that speaks TLS shows pages of `https://` under a
    /// configured name. A port that was configured is the one that browsers show; they leave out 80 of `http` and 443 of
    /// `https`.
    private func isOwn(_ origin: String, host: String) -> Bool {
        let origin = origin.lowercased()
        let host = host.lowercased()
        guard let name = HostName(host) else { return false }
        if origin == "\(scheme)://\(host)" {
            return name.port != nil || configured.contains(name.name) || names.contains(name.at(usualPort))
                || takesLiterals && name.isLiteral
        }
        guard origin == "https://\(host)" else { return false }
        return configured.contains(name.name) || configuredPorts.contains(name.at(name.port ?? 443)) || name.port == 443
    }

    /// Browsers leave out the port that belongs to the scheme; behind a proxy that is 443.
    private func hasName(_ host: HostName) -> Bool {
        guard host.port == nil else { return names.contains(host) }
        return names.contains(host.at(usualPort)) || names.contains(host.at(443))
    }

    private static func shown(in head: RequestHead, _ room: Room) -> LoginDesk.Shown {
        if let field = head["authorization"] {
            if let token = credentials("bearer", field) { return .bearer(token) }
            return credentials("basic", field).flatMap(basic) ?? .unreadable
        }
        guard room == .socket, let offered = LiveProtocol.token(offeredIn: head) else { return .nothing }
        return offered.map { .bearer($0) } ?? .unreadable
    }

    /// RFC 6750 §2.1, RFC 7617 §2; nil for another scheme.
    private static func credentials(_ scheme: String, _ field: String) -> String? {
        guard field.utf8.count > scheme.utf8.count + 1, field.prefix(scheme.count + 1).lowercased() == "\(scheme) "
        else { return nil }
        return String(field.dropFirst(scheme.count + 1).drop { $0 == " " })
    }

    private static func basic(_ code: String) -> LoginDesk.Shown? {
        var decoder = Base64Stream()
        var bytes: [UInt8] = []
        guard Array(code.utf8).withUnsafeBytes({ decoder.decode($0, into: &bytes) }), decoder.isIdle,
            let text = String(validating: bytes, as: UTF8.self), let (name, password) = UserLines.split(text[...])
        else { return nil }
        return .basic(name: String(name), password: String(password))
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
    /// How a client may show who it is: `user`, `token`. Empty except where it must.
    var logins: [String] = []

    init(
        _ status: Int, _ code: String, place: String, _ what: String, _ remedy: String,
        reason: FrameHostError.Reason? = nil
    ) {
        (self.status, self.code, self.place, self.what, self.remedy) = (status, code, place, what, remedy)
        self.reason = reason
    }
}
