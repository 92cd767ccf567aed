// SPDX-License-Identifier: Apache-2.0

import COpenSSL
import FrameCore
import FrameSupport
import Glibc
import Publishing
import Shared

/// A connection to one server of a NATS cluster, with JetStream: what publishing needs of the protocol, and no more.
///
/// One thread uses it. ``close()`` may come from another, and ends a call that waits within 20 ms. `@unchecked
/// Sendable`: only that thread touches what is not a constant, ``isClosed`` aside.
///
/// - SeeAlso: docs.nats.io, "NATS Client Protocol", "JetStream wire API Reference"; ADR-1 (JetStream's answers), ADR-4
///   (headers), ADR-31 (asking a stream for a message).
final class NATSConnection: @unchecked Sendable {
    /// Answer to a message.
    enum Answer: Equatable {
        /// It is in the stream.
        case stored
        /// The server will never take it, for this reason.
        case refused(String)
        /// It may be in the stream or not.
        case unknown(String)
    }

    /// The longest wait for a connection with its handshakes, and for an answer of JetStream, in milliseconds.
    private static let connectPatience = 2000
    private static let answerPatience = 5000
    /// Time between two questions whether the server is there, and how many may be without an answer.
    private static let pingPause: Int64 = 5000
    private static let mostPings = 2
    /// A connection that has held for this long was one, in milliseconds.
    private static let steadyAfter: Int64 = 5000
    /// Bytes that wait for a server that reads nothing.
    private static let mostUnsent = 1 << 20

    private let name: String
    private let login: ServerLogin?
    private let credentials: String?
    private let trust: TLSTrust
    private let inbox: String
    private let isClosed = Locked(false)

    private var servers: NATSServers
    private var socket: ServerSocket?
    private var entry: NATSServers.Entry?
    private var parser = NATSParser()
    private var info: NATSServerInfo?
    private var unsent: [UInt8] = []
    private var requests: UInt64 = 0
    private var (nextPing, pings): (Int64, Int) = (0, 0)
    /// When the handshake was done, milliseconds of the monotonic clock.
    private var since: Int64 = 0
    private var unasked = UnaskedBound()
    /// Why no server is connected to, and until when.
    private var shunned: (fault: ServerFault, end: Int64)?
    /// What the server has said last that it does not like.
    private var complaint: String?
    /// What was sent to log in.
    private var secrets: [String] = []

    /// [control thread] Connects to nothing yet.
    ///
    /// - Throws: ``FrameHostError`` where a file cannot be used.
    init(
        servers: [ServerAddress], name: String, login: ServerLogin?, credentials: String?, caFile: String?, verify: Bool
    ) throws {
        // Not all chains at one server of a cluster.
        self.servers = NATSServers(servers.shuffled())
        self.name = name
        self.login = login
        self.credentials = credentials
        trust = try TLSTrust(caFile: caFile, verify: verify)
        if let credentials { _ = try NATSCredentials(path: credentials) }
        let letters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
        inbox = "_INBOX." + String(decoding: (0..<22).map { _ in letters.randomElement()! }, as: UTF8.self)
    }

    /// Whether the connection has held for a while: the next one may be made at once.
    var isSteady: Bool { socket != nil && MonotonicTime.milliseconds() - since >= Self.steadyAfter }

    /// The server that answers now.
    var server: String? { entry.map { "\($0.address)" } }

    /// For waits that end when something comes from the server.
    var waitable: ServerSocket? { socket }

    /// [any thread] Ends calls that wait. It cannot connect again.
    func close() { isClosed.withLock { $0 = true } }

    /// [sending thread] Gives the connection back.
    func release() { lose() }

    private func patience(_ milliseconds: Int) -> Patience {
        let isClosed = isClosed
        return Patience(milliseconds: milliseconds) { isClosed.withLock { $0 } }
    }

    private func lose() {
        (socket, entry, info, complaint) = (nil, nil, nil, nil)
        (parser, unsent, pings, nextPing) = (NATSParser(), [], 0, 0)
    }

    // MARK: Connecting

    /// [sending thread] Connects where there is no connection: tries each server once. Otherwise answers what the server
    /// has asked.
    ///
    /// - Returns: Why there is no connection; nil when there is one.
    func connect() -> String? {
        if socket != nil {
            let wasSteady = isSteady
            do {
                try serve()
                return nil
            } catch {
                lose()
                // Another server may be there at once. One that ends each connection does not get them without a pause.
                guard wasSteady else { return error.reason }
            }
        }
        if let shunned {
            guard MonotonicTime.milliseconds() >= shunned.end else { return shunned.fault.reason }
            self.shunned = nil
        }
        var reason = "closed"
        for _ in 0..<servers.count where !isClosed.withLock({ $0 }) {
            let entry = servers.take()
            do {
                try connect(to: entry)
                return nil
            } catch {
                reason = servers.count == 1 ? error.reason : "\(entry.address): \(error.reason)"
                lose()
            }
        }
        return reason
    }

    private func connect(to entry: NATSServers.Entry) throws(ServerFault) {
        let patience = patience(Self.connectPatience)
        let made = try ServerSocket.connect(entry.address, patience)
        (socket, self.entry) = (made, entry)
        while info == nil { try exchange(patience) }
        guard let info else { return }
        let wantsTLS = entry.address.scheme == "tls"
        guard !wantsTLS || info.needsTLS || info.offersTLS else {
            throw ServerFault("the server offers no TLS: use nats:// for it, or set up TLS there")
        }
        if wantsTLS || info.needsTLS {
            // What came before TLS began was not protected.
            parser = NATSParser()
            try made.secure(trust, host: entry.certificateName, patience)
        }
        guard info.hasHeaders else { throw ServerFault("the server takes no headers: NATS 2.2 or newer is needed") }
        try send("CONNECT \(try options(info, isSecure: wantsTLS || info.needsTLS).text())\r\nSUB \(inbox).* 1\r\n")
        try send("PING\r\n")
        pings = 1
        while pings > 0 {
            try exchange(patience)
            if let complaint { throw ServerFault("the server says '\(complaint)'") }
        }
        since = MonotonicTime.milliseconds()
        nextPing = since + Self.pingPause
        servers.learn(self.info?.cluster ?? [], from: entry)
    }

    /// What CONNECT says.
    private func options(_ info: NATSServerInfo, isSecure: Bool) throws(ServerFault) -> JSONNode {
        var members: [JSONNode.Member] = [
            JSONNode.Member(key: "verbose", value: .bool(false)),
            JSONNode.Member(key: "pedantic", value: .bool(false)),
            JSONNode.Member(key: "tls_required", value: .bool(isSecure)),
            JSONNode.Member(key: "name", value: .string(name)), JSONNode.Member(key: "lang", value: "swift"),
            JSONNode.Member(key: "version", value: "1"), JSONNode.Member(key: "protocol", value: .number(1)),
            JSONNode.Member(key: "echo", value: .bool(false)), JSONNode.Member(key: "headers", value: .bool(true)),
            JSONNode.Member(key: "no_responders", value: .bool(true)),
        ]
        secrets = [login?.password].compactMap(\.self).filter { !$0.isEmpty }
        if let login {
            members.append(JSONNode.Member(key: "user", value: .string(login.name)))
            members.append(JSONNode.Member(key: "pass", value: .string(login.password)))
        }
        guard let credentials else { return JSONNode(.object(members)) }
        let read: NATSCredentials
        do {
            read = try NATSCredentials(path: credentials)
        } catch {
            throw ServerFault(error.what)
        }
        members.append(JSONNode.Member(key: "jwt", value: .string(read.token)))
        secrets.append(read.token)
        if !info.nonce.isEmpty {
            guard let signature = read.signature(of: info.nonce) else {
                throw ServerFault("OpenSSL cannot sign with the key of 'credentials'")
            }
            members.append(JSONNode.Member(key: "sig", value: .string(signature)))
        }
        return JSONNode(.object(members))
    }

    // MARK: The conversation

    private func send(_ text: String) throws(ServerFault) { try send(Array(text.utf8)) }

    private func send(_ bytes: [UInt8]) throws(ServerFault) {
        try orLose { () throws(ServerFault) in
            guard unsent.count <= Self.mostUnsent else { throw ServerFault("the server reads nothing") }
            unsent += bytes
            try flush()
        }
    }

    /// A connection that is broken, or whose other end breaks the protocol, is given up.
    private func orLose<Result>(_ work: () throws(ServerFault) -> Result) throws(ServerFault) -> Result {
        do {
            return try work()
        } catch {
            if error.isFlood { shunned = (error, MonotonicTime.milliseconds() + UnaskedBound.leftAlone) }
            lose()
            throw error
        }
    }

    private func flush() throws(ServerFault) {
        guard let socket else { throw ServerFault("the connection is lost") }
        var done = 0
        while done < unsent.count {
            let count = try socket.write(unsent[done...])
            if count == 0 { break }
            done += count
        }
        unsent.removeFirst(done)
    }

    /// Waits for something from the server, and takes it apart. A message that nobody waits for is left out.
    ///
    /// - Parameter reply: The subject of the message that is waited for.
    /// - Throws: ``ServerFault`` where the time is over, or the connection.
    @discardableResult
    private func exchange(_ patience: Patience, reply: String? = nil) throws(ServerFault) -> NATSMessage? {
        guard let socket else { throw ServerFault("the connection is lost") }
        let left = patience.left
        guard left > 0 else { throw ServerFault(complaint.map { "the server says '\($0)'" } ?? "it does not answer") }
        socket.wait(writes: !unsent.isEmpty, milliseconds: min(left, Patience.look))
        return try orLose { () throws(ServerFault) in try takeWhatCame(reply) }
    }

    /// Rests where nothing that was asked for has come.
    private func takeWhatCame(_ reply: String? = nil) throws(ServerFault) -> NATSMessage? {
        guard let socket else { throw ServerFault("the connection is lost") }
        try flush()
        let bytes: [UInt8]
        do {
            bytes = try socket.read()
        } catch {
            // Its own words tell more than that it has closed the connection.
            throw complaint.map { ServerFault("the server says '\($0)'") } ?? error
        }
        guard !bytes.isEmpty else { return nil }
        parser.append(bytes)
        var found: NATSMessage?
        let now = MonotonicTime.milliseconds()
        while let piece = try parser.next() {
            switch piece {
            case .message(let message) where message.subject == reply && found == nil:
                found = message
                continue
            case .tooLarge(let subject) where subject == reply && found == nil:
                found = NATSMessage(subject: subject)
                continue
            case .pong where pings > 0:
                pings -= 1
                continue
            case .info(let json):
                info = try NATSServerInfo(json)
                if let entry, let info { servers.learn(info.cluster, from: entry) }
            case .ping: try send("PONG\r\n")
            case .fault(let words):
                // A server may say what it was told.
                complaint = secrets.reduce(words) { $0.replacing($1, with: "…") }
            case .pong, .ok, .message, .tooLarge: break
            }
            try unasked.count(now: now)
        }
        if found == nil { UnaskedBound.rest() }
        return found
    }

    /// Takes what has come without a question, and asks now and then whether the server is there.
    private func serve() throws(ServerFault) {
        _ = try orLose { () throws(ServerFault) in try takeWhatCame() }
        let now = MonotonicTime.milliseconds()
        guard now >= nextPing else { return }
        guard pings < Self.mostPings else { throw ServerFault("it does not answer") }
        (pings, nextPing) = (pings + 1, now + Self.pingPause)
        try send("PING\r\n")
    }

    /// Sends a message and waits for the answer to it.
    private func ask(
        _ subject: String, headers: String = "", _ body: [UInt8], milliseconds: Int
    ) throws(ServerFault) -> NATSMessage {
        let patience = patience(milliseconds)
        requests += 1
        let reply = "\(inbox).\(requests)"
        complaint = nil
        let sizes = headers.isEmpty ? "\(body.count)" : "\(headers.utf8.count) \(headers.utf8.count + body.count)"
        let line = "\(headers.isEmpty ? "PUB" : "HPUB") \(subject) \(reply) \(sizes)\r\n\(headers)"
        try send(Array(line.utf8) + body + [13, 10])
        while true {
            if let answer = try exchange(patience, reply: reply) { return answer }
        }
    }

    // MARK: JetStream

    /// A fault in an answer of JetStream.
    private struct Refusal {
        /// 0 where the server gives none.
        var code: Int
        var words: String

        /// Nil where the answer names no fault.
        init?(_ answer: JSONNode) {
            guard let fault = answer["error"], fault.asObject != nil else { return nil }
            code = fault["err_code"]?.asInt ?? 0
            words = ServerFault.words((fault["description"]?.asString ?? "no reason").utf8)
        }

        static let noStream = 10_059
        static let nameInUse = 10_058
        static let messageTooLarge = 10_054
    }

    private static func json(_ answer: NATSMessage) throws(ServerFault) -> JSONNode {
        var limits = JSONReader.Limits()
        (limits.bytes, limits.depth, limits.nodes) = (NATSParser.mostMessageBytes, 16, 10_000)
        guard let node = try? JSONReader.read(answer.body, file: "answer", limits: limits) else {
            throw ServerFault("JetStream's answer holds no JSON that can be read")
        }
        return node
    }

    /// Makes the stream where there is none.
    ///
    /// - Returns: Why it is not there; nil when it is.
    func findStream(_ name: String, creates: Bool, subjects: String, replicas: Int) -> String? {
        do {
            let answer = try ask("$JS.API.STREAM.INFO.\(name)", [], milliseconds: Self.answerPatience)
            guard answer.status != 503 else {
                return "JetStream does not answer: it is not enabled on the server (nats-server -js), or has no leader"
            }
            guard let refusal = Refusal(try Self.json(answer)) else { return nil }
            guard refusal.code == Refusal.noStream else { return refusal.words }
            guard creates else {
                return
                    "there is no stream '\(name)' (create it, or set \"createStream\": true and start the chain again)"
            }
            let wanted: JSONNode = [
                "name": .string(name), "subjects": [.string(subjects)], "storage": "file", "retention": "limits",
                "num_replicas": .number(replicas), "allow_direct": .bool(true),
            ]
            let made = try Self.json(
                ask("$JS.API.STREAM.CREATE.\(name)", Array(wanted.text().utf8), milliseconds: Self.answerPatience))
            // Another publisher may have been faster.
            guard let refusal = Refusal(made), refusal.code != Refusal.nameInUse else { return nil }
            return "the stream '\(name)' cannot be created: \(refusal.words)"
        } catch {
            lose()
            return error.reason
        }
    }

    /// The id of the last message of a subject; nil where there is none, or nobody answers.
    func lastID(_ subject: String, stream: String) -> String? {
        let wanted: JSONNode = ["last_by_subj": .string(subject)]
        guard
            let answer = try? ask(
                "$JS.API.STREAM.MSG.GET.\(stream)", Array(wanted.text().utf8), milliseconds: Self.answerPatience),
            let headers = (try? Self.json(answer))?["message"]?["hdrs"]?.asString
        else { return nil }
        return Self.id(inHeaders: Self.base64(headers))
    }

    /// The field `Nats-Msg-Id`.
    static func id(inHeaders bytes: [UInt8]) -> String? {
        let field = Array("nats-msg-id:".utf8)
        for line in bytes.split(whereSeparator: { $0 == 10 || $0 == 13 }) {
            guard line.prefix(field.count).map({ (65...90).contains($0) ? $0 + 32 : $0 }) == field else { continue }
            return String(decoding: line.dropFirst(field.count).drop { $0 == 32 }, as: UTF8.self)
        }
        return nil
    }

    private static func base64(_ text: String) -> [UInt8] {
        let coded = Array(text.utf8)
        guard !coded.isEmpty, coded.count % 4 == 0, coded.count <= 65_536 else { return [] }
        var bytes = [UInt8](repeating: 0, count: coded.count / 4 * 3)
        let count = EVP_DecodeBlock(&bytes, coded, Int32(coded.count))
        return Array(bytes.prefix(max(Int(count) - coded.suffix(2).count { $0 == 61 }, 0)))
    }

    /// Sends one message and waits for the answer.
    ///
    /// - Parameter milliseconds: The longest wait.
    func publish(_ text: String, to subject: String, id: String, stream: String, milliseconds: Int) -> Answer {
        let headers = "NATS/1.0\r\nNats-Msg-Id: \(id)\r\nNats-Expected-Stream: \(stream)\r\n\r\n"
        let body = Array(text.utf8)
        if let info, headers.utf8.count + body.count > info.maxPayload {
            return .refused("larger than the server's max_payload")
        }
        do {
            let answer = try ask(subject, headers: headers, body, milliseconds: max(milliseconds, 1))
            guard answer.status != 503 else {
                return .unknown("the subject '\(subject)' belongs to no stream, or to a stream without a leader")
            }
            let node = try Self.json(answer)
            if let refusal = Refusal(node) {
                return refusal.code == Refusal.messageTooLarge
                    ? .refused("larger than the stream's maximum message size") : .unknown(refusal.words)
            }
            // Whoever else listens may answer too: only JetStream names the stream.
            guard node["stream"]?.asString == stream else {
                return .unknown("what answered on '\(subject)' is not the stream '\(stream)'")
            }
            return .stored
        } catch {
            return .unknown(error.reason)
        }
    }
}
