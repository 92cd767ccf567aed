// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import ServerAccess

/// A request without its socket.
struct DeviceRequest: Sendable {
    var method: String
    /// Path and query as they were sent.
    var target: String
    /// Of the field `Host`.
    var host: String?
    var authorization: String?
    /// Whether a page of a browser sends it, of another site or of this one under another name.
    var isFromPage = false
    var body: [UInt8] = []
    var client = Client.local
    /// The connection's own end, as a URL has it: `192.0.2.7`, `[2001:db8::7]`.
    var localHost = "127.0.0.1"
}

/// An answer without its socket.
struct DeviceAnswer: Sendable, Equatable {
    var status: Int
    var type = ""
    var body: [UInt8] = []
    /// `WWW-Authenticate`, `Retry-After`, `Allow`.
    var fields: [String: String] = [:]
    /// Whether it is for somebody who has shown that he may use the device.
    var isKnown = false
}

/// Everything that the device answers over HTTP: from a request to an answer, without a socket. [network loop]
struct DeviceEndpoint: Sendable {
    typealias Give = @Sendable (DeviceAnswer) -> Void

    enum Reply: Sendable {
        case now(DeviceAnswer)
        /// It calls what it is handed at most once, on any thread, and returns what tells it that the client has gone.
        case later(@Sendable (@escaping Give) -> @Sendable () -> Void)
    }

    let facts: Locked<DeviceFacts>
    let login: Locked<LoginCheck>
    let media: MediaService
    let events: EventService
    let snapshots: Snapshots
    /// The port where it listens.
    var port: Int
    /// More names by which clients reach it.
    var hosts: Set<String> = []
    /// The chain's clock: seconds since 1970.
    let wall: @Sendable () -> Int64

    func answer(_ request: DeviceRequest) -> Reply {
        let moment = LoginCheck.Moment(wall: wall(), now: MonotonicTime.now())
        let path = String(request.target.prefix { $0 != "?" })
        let isOpen = login.withLock(\.isOpen)
        let audience = facts.withLock { $0.audience }
        guard audience.takes(request.client.address) else {
            return .now(Self.plain(403, "'allow' of rtsp-sink does not list this address."))
        }
        // Without users only the place of a client protects: a page that somebody opens must not become one.
        guard !request.isFromPage, !isOpen || isOwn(request.host) else {
            return .now(
                Self.plain(
                    403,
                    isOpen
                        ? "Use the device's IP address, or name this host in 'hosts' of 'onvif'."
                        : "Pages of browsers must not use this device."))
        }
        if path.hasPrefix(ServicePath.snapshot) { return snapshot(request, path, moment) }
        guard path == "/" || path.hasPrefix("/onvif/") else { return .now(Self.plain(404, "There is nothing here.")) }
        guard request.method == "POST" else {
            var answer = Self.plain(405, "Send SOAP requests by POST.")
            answer.fields["Allow"] = "POST"
            return .now(answer)
        }
        do { return try soap(request, path, moment) } catch {
            return .now(refused(error, moment))
        }
    }

    private func isOwn(_ host: String?) -> Bool {
        guard let host else { return true }
        guard let name = HostName(host) else { return false }
        return name.isLiteral || name.name == "localhost" || hosts.contains(name.name)
    }

    private static func plain(_ status: Int, _ text: String) -> DeviceAnswer {
        DeviceAnswer(status: status, type: "text/plain; charset=utf-8", body: Array("\(text)\n".utf8))
    }

    /// How this client reaches the device.
    private func reach(_ request: DeviceRequest) -> (base: String, host: String) {
        if let text = request.host, let name = HostName(text) {
            let host = name.isLiteral && name.name.contains(":") ? "[\(name.name)]" : name.name
            // Some clients leave out a port that is not 80, too: then the address is that of the connection.
            let port = name.port ?? (host == request.localHost ? port : 80)
            return ("http://\(host):\(port)", host)
        }
        return ("http://\(request.localHost):\(port)", request.localHost)
    }

    // MARK: SOAP

    private func soap(_ request: DeviceRequest, _ path: String, _ moment: LoginCheck.Moment) throws(SOAPFault) -> Reply
    {
        let soap = try SOAPRequest(request.body)
        let space = soap.body.space
        var isKnown = false
        // What a service can do says each before a login (ONVIF's core specification, 5.9.1).
        if soap.body.name != "GetServiceCapabilities",
            !(space == Namespaces.device && DeviceService.open.contains(soap.body.name))
        {
            let verdict = login.withLock {
                $0.judge(
                    soap.token, for: soap.body.hashValue, request.authorization, method: request.method,
                    target: request.target,
                    from: request.client, at: moment)
            }
            if let refusal = refusal(verdict, moment) { return .now(refusal) }
            // Without users everybody is a stranger, and no address may have all connections.
            isKnown = verdict != .granted("")
        }
        let reach = reach(request)
        let call = Call(
            request: soap, facts: facts.withLock { $0 }, base: reach.base, host: reach.host,
            client: "\(request.client.address)", localHost: request.localHost, wall: moment.wall, isKnown: isKnown)
        switch space {
        case Namespaces.device:
            guard let operation = DeviceService.operations[soap.body.name] else { throw .unsupported(soap.body.name) }
            return .now(Self.answer(try operation(call), call))
        case Namespaces.media:
            guard let node = try media.answer(call) else { throw .unsupported(soap.body.name) }
            return .now(Self.answer(node, call))
        case Namespaces.media2:
            guard let node = try Media2Service.answer(call, media) else { throw .unsupported(soap.body.name) }
            return .now(Self.answer(node, call))
        case Namespaces.events, Namespaces.notification: return try event(call, path, moment)
        default: throw .unsupported(soap.body.name)
        }
    }

    private func event(_ call: Call, _ path: String, _ moment: LoginCheck.Moment) throws(SOAPFault) -> Reply {
        let id =
            path.hasPrefix(ServicePath.subscription) ? String(path.dropFirst(ServicePath.subscription.count)) : nil
        switch try events.answer(call, subscription: id, now: moment.now) {
        case .now(let node, let action): return .now(Self.answer(node, call, action: action))
        case .pull(let id, let most, let seconds):
            let (desk, wall) = (events.desk, wall)
            return .later { give in
                let number = desk.pull(id, most: most, seconds: seconds, now: moment.now) { pulled in
                    guard let pulled else {
                        return give(
                            Self.fault(.sender("ter:InvalidArgVal", "The subscription has ended. Subscribe again.")))
                    }
                    give(
                        Self.answer(EventService.pulled(pulled, wall: wall()), call, action: EventService.pullAction))
                }
                return { desk.withdraw(id, number) }
            }
        case nil: throw .unsupported(call.body.name)
        }
    }

    private static func answer(_ node: XMLNode, _ call: Call, action: String? = nil) -> DeviceAnswer {
        DeviceAnswer(
            status: 200, type: SOAPAnswer.contentType,
            body: SOAPAnswer.bytes(node, action: action, to: call.request.messageID), isKnown: call.isKnown)
    }

    private static func fault(_ fault: SOAPFault) -> DeviceAnswer {
        DeviceAnswer(
            status: fault.status, type: SOAPAnswer.contentType, body: SOAPAnswer.bytes(fault.node))
    }

    private func refused(_ fault: SOAPFault, _ moment: LoginCheck.Moment, isStale: Bool = false) -> DeviceAnswer {
        var answer = Self.fault(fault)
        if fault.status == 401 {
            answer.fields["WWW-Authenticate"] = login.withLock { $0.challenge(isStale: isStale, now: moment.now) }
        }
        return answer
    }

    /// Nil for a user. Each text says what to do; none says whether a name is known.
    private func refusal(_ verdict: LoginCheck.Verdict, _ moment: LoginCheck.Moment) -> DeviceAnswer? {
        func fault(_ reason: String, _ status: Int = 400) -> SOAPFault {
            .sender("ter:NotAuthorized", reason: reason, status: status)
        }
        switch verdict {
        case .granted: return nil
        case .missing: return refused(fault("Log in with a user of rtsp-sink.", 401), moment)
        case .stale: return refused(fault("Log in again with the new nonce.", 401), moment, isStale: true)
        case .plain:
            return refused(fault("Send a digest of the password, not the password itself.", 401), moment)
        case .wrong: return refused(fault("The name or the password is wrong.", 401), moment)
        case .wrongTime:
            return refused(
                fault(
                    "The time in the request differs by more than \(LoginCheck.tolerance) s from this device's: set the clock."
                ), moment)
        case .replayed: return refused(fault("The nonce was used before."), moment)
        case .crowded:
            return refused(
                fault("There were too many logins of this address within a minute: log in by HTTP digest.", 401), moment
            )
        case .pause(let seconds):
            var answer = Self.fault(fault("Too many wrong passwords. Wait \(seconds) s.", 403))
            answer.fields["Retry-After"] = "\(seconds)"
            return answer
        }
    }

    // MARK: Snapshots

    private func snapshot(_ request: DeviceRequest, _ path: String, _ moment: LoginCheck.Moment) -> Reply {
        guard request.method == "GET" || request.method == "HEAD" else {
            var answer = Self.plain(405, "Ask for a picture by GET.")
            answer.fields["Allow"] = "GET, HEAD"
            return .now(answer)
        }
        let verdict = login.withLock {
            $0.judge(
                request.authorization, method: request.method, target: request.target, from: request.client,
                at: moment)
        }
        if var refusal = refusal(verdict, moment) {
            refusal.body = []
            refusal.type = ""
            return .now(refusal)
        }
        guard let token = URLText.unescaped(path.dropFirst(ServicePath.snapshot.count)),
            let stage = facts.withLock({ $0.stream(token)?.pictureStage })
        else { return .now(Self.plain(404, "This stream has no snapshots.")) }
        let (snapshots, isKnown) = (snapshots, verdict != .granted(""))
        return .later { give in
            snapshots.ask(stage) { outcome in
                switch outcome {
                case .picture(let bytes):
                    give(DeviceAnswer(status: 200, type: "image/jpeg", body: bytes, isKnown: isKnown))
                case .none: give(Self.plain(503, "The stream has given no picture in time."))
                case .hidden: give(Self.plain(404, "This stream has no snapshots."))
                case .crowded: give(Self.plain(503, "Too many clients wait for pictures."))
                }
            }
            return {}
        }
    }
}
