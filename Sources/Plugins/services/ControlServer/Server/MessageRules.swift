// SPDX-License-Identifier: Apache-2.0

import FrameHTTP

/// What HTTP demands of a server and neither NIO's decoder nor hummingbird does. The handler is between NIO's decoder
/// and the codec. [network loop]
///
/// - *One `Host`* (RFC 9112 §3.2), *and a target of no other authority* (§3.2.2): a wrong request goes on with
///   ``malformed``, and is answered with 400. A target in absolute form with the same authority becomes a path.
/// - *The end of a connection* (§9.3): a request that asks for it is marked in the one way that hummingbird knows. A
///   request of HTTP/1.0 is always marked, and its answer is not sent in chunks (§7.1).
/// - *A client that has closed its side* is answered before the connection ends. Since it may have gone, the code that
///   answers can ask to be told.
final class MessageRules: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// The field that says what is wrong with a request. Clients cannot set it.
    static let malformed = "framehost-malformed"

    private struct Asked {
        var isOld: Bool
        var isLast: Bool
    }

    /// Requests that are not completely answered yet, in order.
    private var asked: [Asked] = []
    private var isHalfClosed = false
    private var watchers: [@Sendable () -> Void] = []

    private let isSecure: Bool

    /// - Parameter isSecure: Whether the connection is one over TLS.
    init(isSecure: Bool = false) { self.isSecure = isSecure }

    /// [network loop] Adds the rules to a pipeline that has NIO's decoder.
    static func add(to channel: any Channel, isSecure: Bool) throws {
        let pipeline = channel.pipeline.syncOperations
        let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        try pipeline.addHandler(MessageRules(isSecure: isSecure), position: .after(decoder))
    }

    /// [any thread] Calls `action` once, when the client has closed its side; at once where it has.
    static func whenHalfClosed(_ channel: any Channel, _ action: @escaping @Sendable () -> Void) {
        channel.eventLoop.execute {
            guard let rules = try? channel.pipeline.syncOperations.handler(type: MessageRules.self) else { return }
            if rules.isHalfClosed { action() } else { rules.watchers.append(action) }
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(var head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
        head.headers.remove(name: Self.malformed)
        if let fault = Self.fault(of: &head, isSecure: isSecure) {
            head.headers.replaceOrAdd(name: Self.malformed, value: fault)
            head.headers.replaceOrAdd(name: "connection", value: "close")
        }
        let isOld = Self.isOld(head)
        let isLast = isOld || head.headers[canonicalForm: "connection"].contains { $0.lowercased() == "close" }
        if isLast { head.headers.replaceOrAdd(name: "connection", value: "close") }
        asked.append(Asked(isOld: isOld, isLast: isLast))
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        var part = unwrapOutboundIn(data)
        switch part {
        case .head(var head):
            if let asked = asked.first, head.status.code >= 200 {
                if asked.isOld { head.version = .http1_0 }
                if asked.isLast { head.headers.replaceOrAdd(name: "connection", value: "close") }
                part = .head(head)
            }
        case .body: break
        case .end: if !asked.isEmpty { asked.removeFirst() }
        }
        context.write(wrapOutboundOut(part), promise: promise)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event, !isHalfClosed {
            isHalfClosed = true
            for watcher in watchers { watcher() }
            watchers = []
        }
        context.fireUserInboundEventTriggered(event)
    }

    /// What is wrong with a request. A target in absolute form becomes a path.
    static func fault(of head: inout HTTPRequestHead, isSecure: Bool = false) -> String? {
        let hosts = head.headers["host"]
        if hosts.count > 1 { return "the request must have one Host field, but has \(hosts.count)" }
        if hosts.isEmpty, !isOld(head) { return "the request must have a Host field" }
        guard let (scheme, authority, path) = absolute(head.uri) else { return nil }
        let own = isSecure ? "https" : "http"
        guard scheme == own else { return "the target must be an \(own) address, but its scheme is '\(scheme)'" }
        let port = isSecure ? ":443" : ":80"
        if let host = hosts.first, without(port, host) != without(port, authority) {
            return "the target and the Host field must name the same host"
        }
        if hosts.isEmpty { head.headers.add(name: "host", value: authority) }
        head.uri = path
        return nil
    }

    private static func isOld(_ head: HTTPRequestHead) -> Bool {
        (head.version.major, head.version.minor) < (1, 1)
    }

    /// RFC 9112 §3.2.2; nil for another form.
    private static func absolute(_ target: String) -> (scheme: String, authority: String, path: String)? {
        guard let colon = target.firstIndex(of: ":"), target[colon...].hasPrefix("://") else { return nil }
        let scheme = target[..<colon]
        guard !scheme.isEmpty, scheme.allSatisfy({ $0.isLetter || $0.isNumber || "+-.".contains($0) }) else {
            return nil
        }
        let rest = target[target.index(colon, offsetBy: 3)...]
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        let path = rest[authority.endIndex...]
        return (scheme.lowercased(), String(authority), path.hasPrefix("/") ? String(path) : "/\(path)")
    }

    private static func without(_ port: String, _ authority: String) -> String {
        let name = authority.lowercased()
        return name.hasSuffix(port) ? String(name.dropLast(port.count)) : name
    }
}
