// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc
import Publishing
import Shared

/// A connection to an MQTT broker: what publishing with QoS 1 needs of MQTT 3.1.1, and no more.
///
/// One thread connects, sends and receives; one other hands messages over with
/// ``publish(_:to:retained:number:isFarewell:)``. A message is sent until it is acknowledged, over new connections too.
final class MQTTConnection: Sendable {
    /// A message that the broker has not acknowledged.
    private struct Message {
        var id: UInt16
        /// The spool's number; 0 for a message that is not from the spool.
        var number: UInt64
        var packet: [UInt8]
        var isFarewell: Bool
        /// Whether it went out on the connection that is there now.
        var isSent = false
    }

    private struct State {
        var isConnected = false
        /// Rises with each connection.
        var connections = 0
        var reason = "it has not answered yet"
        /// How many acknowledgements have come, and how often Home Assistant has said that it is there.
        var acknowledgements = 0
        var births = 0
        /// In the order in which they are sent.
        var messages: [Message] = []
        var lastID: UInt16 = 0
        /// Whether the farewell was handed over, and is acknowledged.
        var hasFarewell = false
        /// Numbers of the spool that are acknowledged and not taken yet.
        var done: [UInt64] = []
    }

    /// Messages that are on their way at once: brokers take 20 by default (mosquitto's `max_inflight_messages`).
    private static let mostOnTheirWay = 20
    /// Messages that wait.
    private static let mostMessages = 10_000
    /// The longest wait for a connection with its handshakes, in milliseconds.
    private static let connectPatience = 5000
    /// Bytes that wait for a broker that reads nothing.
    private static let mostUnsent = 1 << 20

    private let state = Locked(State())
    private let doorbell: Doorbell
    private let address: ServerAddress
    private let keepAlive: Int
    private let subscription: String?
    private let greeting: [UInt8]
    private let trust: TLSTrust?
    private let (isStopping, hasEnded) = (WaitableFlag(), WaitableFlag())
    /// Rings for the connection's own thread.
    private let wake = Doorbell()

    /// [control thread] Connects to nothing yet.
    ///
    /// - Parameters:
    ///   - subscription: A topic whose message `online` is counted in ``occasions``.
    ///   - doorbell: Rings when something has happened.
    /// - Throws: ``FrameHostError`` where something cannot be used.
    init(
        _ address: ServerAddress, client: String, keepAlive: Int, login: ServerLogin?, caFile: String?, verify: Bool,
        will: MQTTPacket.Will, subscription: String?, doorbell: Doorbell
    ) throws {
        self.doorbell = doorbell
        self.subscription = subscription
        self.address = address
        self.keepAlive = keepAlive
        trust = address.scheme == "mqtts" ? try TLSTrust(caFile: caFile, verify: verify) : nil
        greeting = MQTTPacket.connect(
            client: client, keepAliveSeconds: keepAlive, will: will, name: login?.name, password: login?.password)
    }

    /// [control thread] Connects, again and again, on a thread of its own.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    func start() throws {
        try ServiceThread.start(name: "mqtt/net") { [self] in
            defer { hasEnded.raise() }
            // The pause before the next attempt. It is short at first, so that a restarted broker soon has the
            // chain's state.
            var pause = 0
            while !isStopping.wait(milliseconds: pause) {
                pause = pause > 5000 ? 1000 : min(pause + 1000, 5000)
                let before = state.withLock { $0.connections }
                let fault = converse()
                // The broker was there, so the next attempt comes soon.
                if state.withLock({ $0.connections }) != before { pause = 1000 }
                if fault?.isFlood == true { pause = Int(UnaskedBound.leftAlone) }
            }
        }
    }

    /// [thread of the end] Disconnects, and ends the thread.
    ///
    /// - Parameter milliseconds: How long to wait for that. The thread may be looking up a name.
    ///
    /// DISCONNECT deletes the last will (MQTT 3.1.1, 3.14.4). So it is sent only where the broker has acknowledged the
    /// farewell. Otherwise the socket is closed without it, at the latest with the process, and the broker publishes the
    /// will.
    func stop(within milliseconds: Int) {
        isStopping.raise()
        wake.ring()
        hasEnded.wait(milliseconds: milliseconds)
    }

    // MARK: One connection [its thread]

    /// What the thread knows of a connection.
    private struct Talk {
        var parser = MQTTParser()
        var unasked = UnaskedBound()
        var unsent: [UInt8] = []
        var isConnected = false
        /// Milliseconds of the monotonic clock: when something went out and came in last, and since when an answer to
        /// PINGREQ is due.
        var lastOut = MonotonicTime.milliseconds()
        var lastIn = MonotonicTime.milliseconds()
        var pingSince: Int64?
    }

    /// Connects, and talks until the connection or the run ends.
    ///
    /// - Returns: Why the connection has ended; nil where the run has.
    private func converse() -> ServerFault? {
        var fault: ServerFault?
        do throws(ServerFault) {
            let isStopping = isStopping
            let patience = Patience(milliseconds: Self.connectPatience) { isStopping.isRaised }
            let socket = try ServerSocket.connect(address, patience)
            if let trust { try socket.secure(trust, host: address.host, patience) }
            var talk = Talk()
            talk.unsent = greeting
            while !isStopping.isRaised {
                if try !turn(socket, &talk) { UnaskedBound.rest() }
                guard talk.isConnected || patience.left > 0 || isStopping.isRaised else {
                    throw ServerFault("it does not answer")
                }
                wake.wait(milliseconds: 500, beside: socket, writes: !talk.unsent.isEmpty)
            }
            if state.withLock({ $0.hasFarewell }), talk.unsent.isEmpty {
                _ = try socket.write(MQTTPacket.disconnect[...])
            }
        } catch {
            state.withLock { $0.reason = error.reason }
            fault = error
        }
        state.withLock { state in
            state.isConnected = false
            for index in state.messages.indices where state.messages[index].isSent {
                state.messages[index].isSent = false
                state.messages[index].packet[0] |= MQTTPacket.again
            }
        }
        doorbell.ring()
        return fault
    }

    /// Reads what has come, and sends what waits.
    ///
    /// - Returns: Whether anything has come that was asked for.
    private func turn(_ socket: ServerSocket, _ talk: inout Talk) throws(ServerFault) -> Bool {
        var isAsked = false
        let bytes = try socket.read()
        let now = MonotonicTime.milliseconds()
        if !bytes.isEmpty {
            talk.lastIn = now
            talk.parser.append(bytes)
            while let piece = try talk.parser.next() {
                if try take(piece, &talk) { isAsked = true } else { try talk.unasked.count(now: now) }
            }
        }
        if talk.isConnected {
            fill(&talk)
            try keepAlive(&talk, now: now)
        }
        var done = 0
        while done < talk.unsent.count {
            let count = try socket.write(talk.unsent[done...])
            if count == 0 { break }
            done += count
        }
        guard done > 0 else { return isAsked }
        talk.unsent.removeFirst(done)
        talk.lastOut = now
        return isAsked
    }

    /// Asks whether the broker is there when nothing has gone or come for the keep-alive time.
    ///
    /// - SeeAlso: MQTT 3.1.1, 3.1.2.10.
    private func keepAlive(_ talk: inout Talk, now: Int64) throws(ServerFault) {
        let time = Int64(keepAlive) * 1000
        if let since = talk.pingSince {
            guard now - since < time else { throw ServerFault("it has answered nothing for \(keepAlive) s") }
        } else if now - min(talk.lastOut, talk.lastIn) >= time - 500 {
            talk.unsent += MQTTPacket.ping
            talk.pingSince = now
        }
    }

    /// Takes messages for sending, as many as may be on their way.
    private func fill(_ talk: inout Talk) {
        state.withLock { state in
            for index in state.messages.indices.prefix(Self.mostOnTheirWay)
            where !state.messages[index].isSent && talk.unsent.count < Self.mostUnsent {
                state.messages[index].isSent = true
                talk.unsent += state.messages[index].packet
            }
        }
    }

    /// - Returns: Whether something asked for it.
    private func take(_ piece: MQTTParser.Piece, _ talk: inout Talk) throws(ServerFault) -> Bool {
        let isAnswer = if case .connected = piece { true } else { false }
        guard talk.isConnected != isAnswer else { throw ServerFault("the broker answers what was not asked") }
        switch piece {
        case .connected(0):
            talk.isConnected = true
            if let subscription { talk.unsent += MQTTPacket.subscribe(subscription, id: Self.subscriptionID) }
            state.withLock { state in
                state.isConnected = true
                state.connections += 1
            }
            doorbell.ring()
            return true
        case .connected(let code): throw ServerFault(Self.refusal(code))
        case .acknowledged(let id):
            let isFound = state.withLock { state in
                guard let index = state.messages.firstIndex(where: { $0.id == id && $0.isSent }) else { return false }
                state.acknowledgements &+= 1
                let message = state.messages.remove(at: index)
                if message.number > 0 { state.done.append(message.number) }
                if message.isFarewell { state.hasFarewell = true }
                return true
            }
            if isFound { doorbell.ring() }
            return isFound
        case .pong:
            defer { talk.pingSince = nil }
            return talk.pingSince != nil
        case .subscribed: return false
        case .message(let topic, let payload, let id):
            if let id {
                guard talk.unsent.count <= Self.mostUnsent else { throw ServerFault("the broker reads nothing") }
                talk.unsent += MQTTPacket.acknowledge(id)
            }
            guard let subscription, topic.elementsEqual(subscription.utf8), let payload,
                payload.elementsEqual("online".utf8)
            else { return false }
            state.withLock { $0.births += 1 }
            doorbell.ring()
            return false
        }
    }

    /// The id of SUBSCRIBE; no message has it.
    private static let subscriptionID: UInt16 = 65_535

    /// - SeeAlso: MQTT 3.1.1, table 3.1.
    private static func refusal(_ code: UInt8) -> String {
        switch code {
        case 1: "Connection Refused: unacceptable protocol version"
        case 2: "Connection Refused: identifier rejected"
        case 3: "Connection Refused: broker unavailable"
        case 4: "Connection Refused: bad user name or password"
        case 5: "Connection Refused: not authorised"
        default: "Connection Refused: code \(code)"
        }
    }

    // MARK: For the thread that publishes

    var isConnected: Bool { state.withLock { $0.isConnected } }
    /// Why there is no connection.
    var reason: String { state.withLock { $0.reason } }
    /// How often it has connected, and how often Home Assistant has started.
    var occasions: Int { state.withLock { $0.connections + $0.births } }
    /// Messages that are not acknowledged.
    var inFlightCount: Int { state.withLock { $0.messages.count } }
    /// Messages that the broker has acknowledged since the start.
    var acknowledgementCount: Int { state.withLock { $0.acknowledgements } }

    /// Numbers that were acknowledged since the last call, in the order in which that happened.
    func takeDone() -> [UInt64] {
        state.withLock { state in
            defer { state.done = [] }
            return state.done
        }
    }

    /// Hands a message over.
    ///
    /// - Parameters:
    ///   - number: The spool's number, or 0.
    ///   - isFarewell: Whether it says what the last will would say.
    /// - Returns: False where it cannot be sent: a topic is too long, or too many messages wait.
    func publish(_ text: String, to topic: String, retained: Bool, number: UInt64 = 0, isFarewell: Bool = false)
        -> Bool
    {
        guard topic.utf8.count <= 65_535, text.utf8.count <= 1 << 24 else { return false }
        let isTaken = state.withLock { state in
            guard state.messages.count < Self.mostMessages else { return false }
            // Fewer messages than ids: one is free.
            repeat {
                state.lastID = state.lastID >= Self.subscriptionID - 1 ? 1 : state.lastID + 1
            } while state.messages.contains { $0.id == state.lastID }
            let packet = MQTTPacket.publish(text, to: topic, retained: retained, id: state.lastID)
            state.messages.append(
                Message(id: state.lastID, number: number, packet: packet, isFarewell: isFarewell))
            return true
        }
        if isTaken { wake.ring() }
        return isTaken
    }
}
