// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// What a reader lost of its sound.
struct SoundFigures: Sendable, Equatable {
    /// Units that were dropped because it, or its loop, was too slow.
    var droppedUnits = 0
    /// From its last receiver report.
    var packetsLost: Int32 = 0
    var fractionLost: UInt8 = 0
}

/// The figures of a reader, for the event `readers` and for `client-left`.
struct ReaderFigures: Sendable {
    var sessionID: String
    var peer: IPAddress
    var transport: String
    var user: String?
    /// How long the oldest unit waits in its queue, milliseconds.
    var queueMs = 0
    /// Pictures that were dropped because it, or its loop, was too slow.
    var droppedUnits = 0
    /// Packets for which the socket had no room or no route.
    var refusedPackets = 0
    /// From its last receiver report of the pictures.
    var packetsLost: Int32 = 0
    var fractionLost: UInt8 = 0
    /// Nil where it has set up no sound.
    var sound: SoundFigures?

    /// Takes over the packets lost that were noted elsewhere, where there are more.
    mutating func raiseLosses(to other: ReaderFigures) {
        packetsLost = max(packetsLost, other.packetsLost)
        let soundLost = max(sound?.packetsLost ?? 0, other.sound?.packetsLost ?? 0)
        sound?.packetsLost = soundLost
    }

    /// Adds what was dropped before.
    mutating func addDrops(of other: ReaderFigures) {
        droppedUnits += other.droppedUnits
        refusedPackets += other.refusedPackets
        sound?.droppedUnits += other.sound?.droppedUnits ?? 0
    }
}

extension ReaderFigures {
    /// The figures of a reader that has lost nothing yet.
    init(_ order: PlayOrder) {
        self.init(
            sessionID: order.sessionID, peer: order.peer, transport: order.transport.name, user: order.user,
            sound: order.transports[.sound] == nil ? nil : SoundFigures())
    }
}

/// The sessions of a port and the readers that belong to them. They are one value, and each change is one step under
/// the server's lock.
///
/// The rule: **no reader without a session.** A reader is added only while its session still plays by the PLAY that
/// asks for it, and is removed in the step in which its session ends or pauses. Two connections of one client may ask
/// for opposite things at once, and decisions are carried out after the lock is free again. So a connection that acts
/// on an earlier decision comes back here, and is refused where the decision no longer holds.
///
/// - Parameter Fan: Where readers are fed: one for each stream and event loop.
struct Readership<Fan: Sendable>: Sendable {
    struct Reader: Sendable {
        var order: PlayOrder
        var fan: Fan
        var since: Int64
        var figures: ReaderFigures
        /// False between PAUSE and PLAY.
        var isPlaying: Bool
    }

    /// A reader whose packets must stop. The holder of the lock stops them once the lock is free.
    struct StoppedReader: Sendable {
        var reader: Reader
        /// Nil for a pause.
        var departure: Departure?
    }

    /// What to do outside the lock.
    struct Outcome: Sendable {
        var actions: [SignallingAction]
        var stoppedReaders: [StoppedReader] = []
    }

    enum Beginning: Sendable, Equatable {
        /// The session had no reader.
        case joined
        /// The session plays again after a pause.
        case resumed
        /// Too late: another connection has paused the session in the meantime, or set it up anew.
        case overtaken
        /// Its session has ended in the meantime.
        case ended
    }

    var signalling: Signalling
    private(set) var readers: [String: Reader] = [:]
    /// How many readers each path has, and how many of them over UDP.
    private(set) var counts: [String: (all: Int, udp: Int)] = [:]

    init(_ signalling: Signalling) { self.signalling = signalling }

    /// Changes the sessions, and removes the readers that have lost theirs.
    mutating func change(_ body: (inout Signalling) -> [SignallingAction]) -> Outcome {
        var outcome = Outcome(actions: body(&signalling))
        for action in outcome.actions {
            switch action {
            case .end(let sessionID, let departure, let number):
                guard let reader = readers[sessionID], reader.order.number <= number else { continue }
                readers[sessionID] = nil
                count(reader.order, by: -1)
                outcome.stoppedReaders.append(StoppedReader(reader: reader, departure: departure))
            case .pause(let sessionID, _):
                guard let reader = readers[sessionID], reader.isPlaying else { continue }
                readers[sessionID]?.isPlaying = false
                outcome.stoppedReaders.append(StoppedReader(reader: reader))
            default: continue
            }
        }
        return outcome
    }

    /// Adds the reader of a session that was told to play. Must be called before its first packet.
    mutating func begin(_ order: PlayOrder, on fan: Fan, now: Int64) -> Beginning {
        guard let session = signalling.sessions[order.sessionID] else { return .ended }
        guard session.reader == order.number else { return .overtaken }
        let old = readers[order.sessionID]
        readers[order.sessionID] = Reader(
            order: order, fan: fan, since: old?.since ?? now, figures: old?.figures ?? ReaderFigures(order),
            isPlaying: true)
        // Path and transport are still the same: a session that is set up anew has lost its reader.
        if old == nil { count(order, by: 1) }
        return old == nil ? .joined : .resumed
    }

    private mutating func count(_ order: PlayOrder, by change: Int) {
        var count = counts[order.path] ?? (0, 0)
        count.all += change
        if case .udp = order.transport { count.udp += change }
        counts[order.path] = count.all == 0 ? nil : count
    }

    /// Changes a reader's figures: by its last report, or by what was counted before its pause.
    mutating func note(_ sessionID: String, _ body: (inout ReaderFigures) -> Void) {
        guard var figures = readers[sessionID]?.figures else { return }
        body(&figures)
        readers[sessionID]?.figures = figures
    }

    /// The session of a reader that breaks the rule: there is no such session, or it does not play while its reader
    /// does. Nil where the rule holds, which is always.
    var orphan: String? {
        readers.first { id, reader in
            guard let session = signalling.sessions[id] else { return true }
            return reader.isPlaying && session.reader != reader.order.number
        }?.key
    }
}
