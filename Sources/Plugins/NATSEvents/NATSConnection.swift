// SPDX-License-Identifier: Apache-2.0

import CNATS
import FrameCore
import Glibc
import Publishing
import Shared

/// A connection to a cluster of NATS servers, with JetStream. The only file that calls libnats.
///
/// One thread uses it. ``close()`` may come from another, and ends a call that waits. `@unchecked Sendable`: the
/// options are made once, the other handles are behind a lock, and libnats's functions lock all of them.
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

    private let options: OpaquePointer
    private let handles = Locked<(connection: OpaquePointer?, jetStream: OpaquePointer?)>((nil, nil))
    private let isClosed = Locked(false)

    /// [control thread] Connects to nothing yet.
    ///
    /// - Throws: ``FrameHostError`` where a file cannot be used.
    init(
        servers: [ServerAddress], name: String, login: ServerLogin?, credentials: String?, caFile: String?, verify: Bool
    ) throws {
        var made: OpaquePointer?
        let status = natsOptions_Create(&made)
        guard status == NATS_OK, let made else {
            throw FrameHostError(
                .exhausted, what: "libnats cannot be used: \(Self.text(status))",
                remedy: "End other programs to free memory, then start the chain again.")
        }
        options = made
        let texts = servers.map { "\($0)" }
        var pointers = texts.map { UnsafePointer<CChar>(strdup($0)) }
        defer { for pointer in pointers { free(UnsafeMutablePointer(mutating: pointer)) } }
        try Self.check(natsOptions_SetServers(options, &pointers, Int32(pointers.count)), "servers")
        natsOptions_SetName(options, name)
        natsOptions_SetMaxReconnect(options, -1)
        natsOptions_SetReconnectWait(options, 1000)
        natsOptions_SetTimeout(options, 2000)
        natsOptions_SetPingInterval(options, 5000)
        natsOptions_SetMaxPingsOut(options, 2)
        // Nothing is kept for later: the spool does that.
        natsOptions_SetReconnectBufSize(options, 1)
        natsOptions_SetNoEcho(options, true)
        if let login { try Self.check(natsOptions_SetUserInfo(options, login.name, login.password), "login") }
        if let credentials {
            try Self.check(natsOptions_SetUserCredentialsFromFiles(options, credentials, nil), "credentials")
        }
        guard servers.contains(where: { $0.scheme == "tls" }) else { return }
        let withoutTLS = "Install a libnats that was built with TLS, or use nats:// for all of 'servers'."
        try Self.check(natsOptions_SetSecure(options, true), "servers", remedy: withoutTLS)
        if let caFile {
            try Self.check(
                natsOptions_LoadCATrustedCertificates(options, caFile), "caFile",
                remedy: "Name a PEM file with the trusted certificates.")
        }
        if !verify {
            try Self.check(natsOptions_SkipServerVerification(options, true), "verify", remedy: withoutTLS)
        }
    }

    deinit {
        close()
        release()
        natsOptions_Destroy(options)
    }

    private static func check(_ status: natsStatus, _ option: String, remedy: String? = nil) throws {
        guard status != NATS_OK else { return }
        throw FrameHostError(
            .invalidConfiguration, place: FaultPlace(option), what: "libnats refuses '\(option)': \(text(status))",
            remedy: remedy ?? "Correct '\(option)'.")
    }

    /// The library's words, with what it noted on this thread.
    private static func text(_ status: natsStatus) -> String {
        let word = natsStatus_GetText(status).map { String(cString: $0) } ?? "unknown fault"
        var noted = status
        guard let more = nats_GetLastError(&noted).map({ String(cString: $0) }), noted == status, !more.isEmpty else {
            return word
        }
        return more == word ? word : "\(word) (\(more))"
    }

    /// Whether a server is there now.
    var isConnected: Bool {
        handles.withLock { $0.connection.map { natsConnection_Status($0) == NATS_CONN_STATUS_CONNECTED } ?? false }
    }

    /// Why no server is there.
    var reason: String {
        let text = handles.withLock { handles -> String? in
            guard let connection = handles.connection else { return nil }
            var words: UnsafePointer<CChar>?
            natsConnection_GetLastError(connection, &words)
            return words.map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
        }
        return text ?? "the connection is lost"
    }

    /// The server that answers now, without a login.
    var server: String? {
        handles.withLock { handles in
            guard let connection = handles.connection else { return nil }
            var text = [CChar](repeating: 0, count: 512)
            guard natsConnection_GetConnectedUrl(connection, &text, text.count) == NATS_OK else { return nil }
            let url = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            return url.isEmpty || url.contains("@") ? nil : url
        }
    }

    /// [sending thread] Connects where there is no connection. The library restores a lost connection by itself.
    ///
    /// - Returns: Why there is no connection; nil when there is one.
    func connect() -> String? {
        let existing = handles.withLock(\.connection)
        if let existing {
            guard natsConnection_Status(existing) == NATS_CONN_STATUS_CLOSED else {
                return isConnected ? nil : reason
            }
            // The library has given it up, as after a refused login.
            disconnect()
        }
        guard !isClosed.withLock({ $0 }) else { return "closed" }
        var made: OpaquePointer?
        let status = natsConnection_Connect(&made, options)
        guard status == NATS_OK, let made else { return Self.text(status) }
        var stream: OpaquePointer?
        let second = natsConnection_JetStream(&stream, made, nil)
        guard second == NATS_OK else {
            natsConnection_Destroy(made)
            return Self.text(second)
        }
        handles.withLock { $0 = (made, stream) }
        if isClosed.withLock({ $0 }) { natsConnection_Close(made) }
        return nil
    }

    private func disconnect() {
        // Under the lock: ``close()`` must not have the handle then.
        handles.withLock { handles in
            if let stream = handles.jetStream { jsCtx_Destroy(stream) }
            if let connection = handles.connection { natsConnection_Destroy(connection) }
            handles = (nil, nil)
        }
    }

    /// [any thread] Ends calls that wait. It cannot connect again.
    func close() {
        isClosed.withLock { $0 = true }
        handles.withLock { if let connection = $0.connection { natsConnection_Close(connection) } }
    }

    /// [sending thread, or any thread after it has ended] Frees the connection.
    func release() { disconnect() }

    /// Makes the stream where there is none.
    ///
    /// - Returns: Why it is not there; nil when it is.
    func findStream(_ name: String, creates: Bool, subjects: String, replicas: Int) -> String? {
        guard let jetStream = handles.withLock(\.jetStream) else { return "no connection" }
        var (info, code): (UnsafeMutablePointer<jsStreamInfo>?, jsErrCode) = (nil, jsErrCode(rawValue: 0))
        let status = js_GetStreamInfo(&info, jetStream, name, nil, &code)
        jsStreamInfo_Destroy(info)
        if status == NATS_OK { return nil }
        guard status == NATS_NOT_FOUND else {
            return status == NATS_NO_RESPONDERS
                ? "JetStream does not answer: it is not enabled on the server (nats-server -js), or has no leader"
                : Self.text(status)
        }
        guard creates else {
            return "there is no stream '\(name)' (create it, or set \"createStream\": true and start the chain again)"
        }
        let (nameCopy, subject) = (strdup(name), strdup(subjects))
        defer {
            free(nameCopy)
            free(subject)
        }
        var config = jsStreamConfig()
        jsStreamConfig_Init(&config)
        config.Name = UnsafePointer(nameCopy)
        config.Storage = js_FileStorage
        config.Replicas = Int64(replicas)
        config.AllowDirect = true
        var list: [UnsafePointer<CChar>?] = [UnsafePointer(subject)]
        return list.withUnsafeMutableBufferPointer { list in
            config.Subjects = list.baseAddress
            config.SubjectsLen = 1
            var made: UnsafeMutablePointer<jsStreamInfo>?
            let status = js_AddStream(&made, jetStream, &config, nil, &code)
            jsStreamInfo_Destroy(made)
            // Another publisher was faster: 10058.
            return status == NATS_OK || code.rawValue == 10_058
                ? nil : "the stream '\(name)' cannot be created: \(Self.text(status))"
        }
    }

    /// The id of the last message of a subject; nil where there is none, or nobody answers.
    func lastID(_ subject: String, stream: String) -> String? {
        guard let jetStream = handles.withLock(\.jetStream) else { return nil }
        var (message, code): (OpaquePointer?, jsErrCode) = (nil, jsErrCode(rawValue: 0))
        guard js_GetLastMsg(&message, jetStream, stream, subject, nil, &code) == NATS_OK, let message else {
            return nil
        }
        defer { natsMsg_Destroy(message) }
        var value: UnsafePointer<CChar>?
        guard natsMsgHeader_Get(message, "Nats-Msg-Id", &value) == NATS_OK else { return nil }
        return value.map { String(cString: $0) }
    }

    /// Sends one message and waits for the answer.
    ///
    /// - Parameter milliseconds: The longest wait.
    func publish(_ text: String, to subject: String, id: String, stream: String, milliseconds: Int) -> Answer {
        guard let jetStream = handles.withLock(\.jetStream) else { return .unknown("no connection") }
        var text = text
        return id.withCString { id in
            stream.withCString { stream in
                var options = jsPubOptions()
                jsPubOptions_Init(&options)
                options.MaxWait = Int64(max(milliseconds, 1))
                options.MsgId = id
                options.ExpectStream = stream
                var (answer, code): (UnsafeMutablePointer<jsPubAck>?, jsErrCode) = (nil, jsErrCode(rawValue: 0))
                let status = text.withUTF8 {
                    js_Publish(&answer, jetStream, subject, $0.baseAddress, Int32(clamping: $0.count), &options, &code)
                }
                jsPubAck_Destroy(answer)
                switch status {
                case NATS_OK: return .stored
                case NATS_MAX_PAYLOAD: return .refused("larger than the server's max_payload")
                // 10054: larger than the stream takes.
                case _ where code.rawValue == 10_054: return .refused("larger than the stream's maximum message size")
                case NATS_NO_RESPONDERS:
                    return .unknown("the subject '\(subject)' belongs to no stream, or to a stream without a leader")
                default: return .unknown(Self.text(status))
                }
            }
        }
    }
}
