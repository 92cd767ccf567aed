// SPDX-License-Identifier: Apache-2.0

import CMosquitto
import FrameCore
import Glibc
import Publishing
import Shared

/// A connection to an MQTT broker. The only file that calls libmosquitto.
///
/// One thread waits for the broker, and the library's callbacks run on it. They note what happened and ring. One
/// other thread publishes. `@unchecked Sendable`: the handle is made once, libmosquitto's functions may be called
/// from any thread, and only the first thread uses `lastConnections`.
final class MQTTConnection: @unchecked Sendable {
    /// The last will. It is retained, and sent with QoS 1.
    struct Will {
        var topic: String
        var payload: String
    }

    private struct State {
        var isConnected = false
        /// Rises with each connection.
        var connections = 0
        var reason = "it has not answered yet"
        /// Whether the broker has said why it takes no connection.
        var isRefused = false
        /// Messages that the broker has acknowledged. ``births`` counts how often Home Assistant has said that it
        /// is there.
        var acknowledgements = 0
        var births = 0
        /// Messages on their way: the spool's number, by the library's. It is 0 for a message that is not from the
        /// spool.
        var inFlight: [Int32: UInt64] = [:]
        /// The library's number of the farewell; nil until it is published.
        var farewell: Int32?
        /// Acknowledged before ``publish(_:to:retained:number:isFarewell:)`` knew their number.
        var early: Set<Int32> = []
        /// Numbers of the spool that are acknowledged and not taken yet.
        var done: [UInt64] = []
    }

    private let mosquitto: OpaquePointer
    private let state = Locked(State())
    private let doorbell: Doorbell
    private let subscription: String?
    private let isStopping = Locked(false)
    private let thread = Locked<PublisherThread?>(nil)
    /// Only for the connection's own thread.
    private var lastConnections = 0
    /// Once in the process, and never cleaned up: another chain's connection may use the library.
    private static let isReady: Bool = mosquitto_lib_init() == MOSQ_ERR_SUCCESS.code

    /// [control thread] Connects to nothing yet.
    ///
    /// - Parameters:
    ///   - subscription: A topic whose message `online` is counted in ``births``.
    ///   - doorbell: Rings when something has happened.
    /// - Throws: ``FrameHostError`` where something cannot be used.
    init(
        _ address: ServerAddress, client: String, keepAlive: Int, login: ServerLogin?, caFile: String?, verify: Bool,
        will: Will, subscription: String?, doorbell: Doorbell
    ) throws {
        guard Self.isReady, let made = mosquitto_new(client, false, nil) else {
            throw FrameHostError(
                .callFailed, what: "libmosquitto cannot be used: \(String(cString: strerror(errno)))",
                remedy: "End other programs to free memory, then start the chain again.")
        }
        mosquitto = made
        self.doorbell = doorbell
        self.subscription = subscription
        self.address = address
        self.keepAlive = Int32(keepAlive)
        self.verify = verify
        mosquitto_user_data_set(made, Unmanaged.passUnretained(self).toOpaque())
        try check(mosquitto_will_set(made, will.topic, Int32(will.payload.utf8.count), will.payload, 1, true), "topic")
        if let login { try check(mosquitto_username_pw_set(made, login.name, login.password), "login") }
        if address.scheme == "mqtts" {
            if let caFile {
                try check(mosquitto_tls_set(made, caFile, nil, nil, nil, nil), "caFile")
            } else {
                try check(mosquitto_int_option(made, MOSQ_OPT_TLS_USE_OS_CERTS, 1), "verify")
            }
            // Set in either case: without it the library refuses to use the system's certificates.
            try check(mosquitto_tls_opts_set(made, verify ? 1 : 0, nil, nil), "verify")
            if !verify { try check(mosquitto_tls_insecure_set(made, true), "verify") }
        }
        // Messages are handed over by another thread than that of the loop.
        mosquitto_threaded_set(made, true)
        mosquitto_max_inflight_messages_set(made, 20)
        mosquitto_connect_callback_set(made) { MQTTConnection.of($1)?.connected($2) }
        mosquitto_disconnect_callback_set(made) { MQTTConnection.of($1)?.disconnected($2) }
        mosquitto_publish_callback_set(made) { MQTTConnection.of($1)?.acknowledged($2) }
        mosquitto_message_callback_set(made) { MQTTConnection.of($1)?.received($2) }
    }

    private let address: ServerAddress
    private let keepAlive: Int32
    private let verify: Bool

    // The thread holds this object while it uses it, and may be the one that ends it.
    deinit {
        mosquitto_destroy(mosquitto)
    }

    private static func of(_ pointer: UnsafeMutableRawPointer?) -> MQTTConnection? {
        pointer.map { Unmanaged<MQTTConnection>.fromOpaque($0).takeUnretainedValue() }
    }

    private func check(_ code: Int32, _ option: String) throws {
        guard code != MOSQ_ERR_SUCCESS.code else { return }
        let remedy =
            switch code {
            case MOSQ_ERR_NOT_SUPPORTED.code:
                "Install a libmosquitto that was built with TLS, or use mqtt:// in 'broker'."
            case MOSQ_ERR_NOMEM.code: "End other programs to free memory, then start the chain again."
            case _ where option == "caFile": "Name a PEM file with the trusted certificates."
            default: "Correct '\(option)'."
            }
        throw FrameHostError(
            .invalidConfiguration, place: FaultPlace(option),
            what: "libmosquitto refuses '\(option)': \(Self.text(code))", remedy: remedy)
    }

    private static func text(_ code: Int32) -> String {
        if code == MOSQ_ERR_ERRNO.code { return String(cString: strerror(errno)) }
        let text = mosquitto_strerror(code).map { String(cString: $0) } ?? "fault \(code)"
        // The library's sentences end in full stops, but here they stand within others.
        return text.hasSuffix(".") ? String(text.dropLast()) : text
    }

    /// [control thread] Connects, again and again, on a thread of its own.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    func start() throws {
        let made = try PublisherThread("mqtt/net") { [weak self] in
            // The pause before the next attempt. It is short at first, so that a restarted broker soon has the
            // chain's state.
            var pause = 0
            while let self, !isStopping.withLock({ $0 }) { loop(&pause) }
        }
        thread.withLock { $0 = made }
    }

    /// [its thread] Waits for the broker, and connects where there is no connection.
    ///
    /// This is not the library's own loop: that never begins where the first attempt fails at once, and ends for
    /// good when a certificate was wrong once (libmosquitto 2.0).
    private func loop(_ pause: inout Int) {
        let code = mosquitto_loop(mosquitto, 100, 1)
        guard code != MOSQ_ERR_SUCCESS.code else { return }
        if code != MOSQ_ERR_NO_CONN.code { note(reason(code)) }
        let end = SystemMilliseconds.now() + Int64(pause)
        while SystemMilliseconds.now() < end, !isStopping.withLock({ $0 }) { usleep(20_000) }
        guard !isStopping.withLock({ $0 }) else { return }
        pause = min(pause + 1000, 5000)
        state.withLock { $0.isRefused = false }
        let next = mosquitto_connect_async(mosquitto, address.host, Int32(address.port), keepAlive)
        if next != MOSQ_ERR_SUCCESS.code { note(reason(next)) }
        if state.withLock({ $0.connections }) != lastConnections {
            // The broker was there, so the next attempt comes soon.
            (pause, lastConnections) = (1000, state.withLock { $0.connections })
        }
    }

    /// The library's words, or better ones: it calls an untrusted certificate invalid arguments.
    private func reason(_ code: Int32) -> String {
        guard address.scheme == "mqtts", code == MOSQ_ERR_TLS.code || code == MOSQ_ERR_INVAL.code else {
            return Self.text(code)
        }
        return Self.tlsFault(host: address.host, verify: verify)
    }

    static func tlsFault(host: String, verify: Bool) -> String {
        let certificate =
            verify
            ? ", and the certificate must name '\(host)' and be trusted ('caFile', or the system's certificates)" : ""
        return "the TLS connection failed. The port must be one for TLS\(certificate)"
    }

    /// Notes why there is no connection. A reason that the broker itself has given stays.
    private func note(_ reason: String) { state.withLock { if !$0.isRefused { $0.reason = reason } } }

    /// [control thread] Disconnects, and ends the thread.
    ///
    /// DISCONNECT deletes the last will (MQTT 3.1.1, 3.14.4). So it is sent only where the broker has acknowledged the
    /// farewell. Otherwise the socket is closed without it, at the latest with the process, and the broker publishes the
    /// will.
    func stop() {
        isStopping.withLock { $0 = true }
        if hasFarewell { mosquitto_disconnect(mosquitto) }
        thread.withLock { $0 }?.wait(milliseconds: 200)
    }

    // MARK: What the library says [its thread]

    private func connected(_ code: Int32) {
        if code == 0, let subscription { mosquitto_subscribe(mosquitto, nil, subscription, 1) }
        state.withLock { state in
            state.isConnected = code == 0
            if code == 0 { state.connections += 1 }
            if code != 0 {
                let text = mosquitto_connack_string(code).map { String(cString: $0) } ?? "refused with \(code)"
                state.reason = text.hasSuffix(".") ? String(text.dropLast()) : text
                state.isRefused = true
            }
        }
        doorbell.ring()
    }

    private func disconnected(_ code: Int32) {
        let reason = Self.text(code)
        state.withLock { state in
            if state.isConnected { (state.reason, state.isRefused) = (reason, false) }
            state.isConnected = false
        }
        doorbell.ring()
    }

    private func acknowledged(_ message: Int32) {
        state.withLock { state in
            state.acknowledgements &+= 1
            if let number = state.inFlight.removeValue(forKey: message) {
                if number > 0 { state.done.append(number) }
            } else {
                state.early.insert(message)
            }
        }
        doorbell.ring()
    }

    private func received(_ message: UnsafePointer<mosquitto_message>?) {
        guard let message, message.pointee.payloadlen == 6, let payload = message.pointee.payload,
            UnsafeRawBufferPointer(start: payload, count: 6).elementsEqual("online".utf8)
        else { return }
        state.withLock { $0.births += 1 }
        doorbell.ring()
    }

    // MARK: For the thread that publishes

    var isConnected: Bool { state.withLock { $0.isConnected } }
    var reason: String { state.withLock { $0.reason } }
    /// How often it has connected, and how often Home Assistant has started.
    var occasions: Int { state.withLock { $0.connections + $0.births } }
    var inFlightCount: Int { state.withLock { $0.inFlight.count } }
    /// Messages that the broker has acknowledged since the start.
    var acknowledgementCount: Int { state.withLock { $0.acknowledgements } }

    /// Numbers that were acknowledged since the last call, in the order in which that happened.
    func takeDone() -> [UInt64] {
        state.withLock { state in
            defer { state.done = [] }
            return state.done
        }
    }

    /// Whether the broker has acknowledged what was published as the farewell.
    private var hasFarewell: Bool {
        state.withLock { state in state.farewell.map { state.inFlight[$0] == nil } ?? false }
    }

    /// Hands a message over. The library sends it until it is acknowledged, over new connections too.
    ///
    /// - Parameters:
    ///   - number: The spool's number, or 0.
    ///   - isFarewell: Whether it says what the last will would say.
    /// - Returns: False where the library has refused it for good.
    func publish(_ text: String, to topic: String, retained: Bool, number: UInt64 = 0, isFarewell: Bool = false)
        -> Bool
    {
        var (text, message) = (text, Int32(0))
        let code = text.withUTF8 {
            mosquitto_publish(mosquitto, &message, topic, Int32(clamping: $0.count), $0.baseAddress, 1, retained)
        }
        // Without a connection the library says so, but has taken the message (libmosquitto 2.0): another call
        // would send it twice.
        guard code == MOSQ_ERR_SUCCESS.code || code == MOSQ_ERR_NO_CONN.code || code == MOSQ_ERR_CONN_LOST.code else {
            return false
        }
        state.withLock { state in
            if state.early.remove(message) != nil {
                if number > 0 { state.done.append(number) }
            } else {
                state.inFlight[message] = number
            }
            if isFarewell { state.farewell = message }
        }
        return true
    }
}

extension mosq_err_t {
    /// As the functions return it.
    fileprivate var code: Int32 { Int32(rawValue) }
}
