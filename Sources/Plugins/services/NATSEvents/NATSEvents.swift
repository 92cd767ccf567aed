// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc
import Publishing
import Shared

/// Sends the events of a chain to a JetStream stream of NATS, each once.
///
/// docs/events.md describes it, and docs/design/029-event-publishers.md gives the reasons.
final class NATSEvents: Service {
    static let info = ServiceInfo(
        id: "nats-events", summary: "Sends the chain's events to NATS JetStream, with a spool on disk while it is away."
    )

    private struct Running {
        var intake: EventIntake
        var sender: NATSSender
        var hasEnded: WaitableFlag
    }

    private let options: NATSEventsOptions
    private let running = Locked<Running?>(nil)

    /// [control thread] Opens nothing: options arrive checked.
    init(options: NATSEventsOptions) { self.options = options }

    /// [control thread] Reads the files once, so that their faults are known before the run.
    func check(folder: String) throws {
        if let login = options.login { _ = try ServerLogin.read(login) { ServerPath.resolve($0, folder: folder) } }
        if let file = options.caFile {
            _ = try TLSTrust(
                caFile: ServerPath.readable(file, option: "caFile", folder: folder), verify: options.verify)
        }
        if let file = options.credentials {
            _ = try NATSCredentials(path: ServerPath.readable(file, option: "credentials", folder: folder))
        }
        if let spool = options.spool { try SpoolFolder.check(ServerPath.resolve(spool, folder: folder)) }
    }

    func readsFiles(folder: String) -> [String] {
        ServerPath.files(options.login, options.credentials, options.caFile, folder: folder)
    }

    /// [control thread] Opens the spool; the server need not be there.
    func start(_ control: any RunControl) throws {
        let folder = control.folder
        let login = try options.login.map { try ServerLogin.read($0) { ServerPath.resolve($0, folder: folder) } }
        let credentials = try options.credentials.map {
            try ServerPath.readable($0, option: "credentials", folder: folder)
        }
        let caFile = try options.caFile.map { try ServerPath.readable($0, option: "caFile", folder: folder) }
        let spool = try Spool(
            SpoolFolder(
                options.spool.map { ServerPath.resolve($0, folder: folder) }
                    ?? SpoolFolder.usual(chain: control.chainName, key: "nats")),
            mostBytes: options.spoolMegabytes << 20)
        let identity = EventIdentity(host: options.host ?? EventIdentity.hostName())
        let addresses = try options.addresses
        let connection = try NATSConnection(
            servers: addresses, name: "framehost \(identity.host) \(control.chainName)", login: login,
            credentials: credentials, caFile: caFile, verify: options.verify)
        let news = Locked(
            OutwardNews(kind: "NATS", servers: addresses.map { "\($0)" }, spool: spool.folderPath))
        let intake = EventIntake(
            control, key: "nats", filter: EventFilter(level: options.level, events: options.events),
            identity: identity, spool: spool, news: news)
        let sender = NATSSender(
            control, options: options, host: identity.host, spool: spool, connection: connection, news: news)
        try intake.start()
        do {
            let hasEnded = WaitableFlag()
            try ServiceThread.start(name: "nats/send") {
                sender.run()
                hasEnded.raise()
            }
            running.withLock { $0 = Running(intake: intake, sender: sender, hasEnded: hasEnded) }
        } catch {
            intake.stop(within: 100)
            throw error
        }
    }

    /// [thread of the end] Sends what it can in time; the rest stays in the spool.
    func stop(within milliseconds: Int) {
        let end = MonotonicTime.milliseconds() + Int64(milliseconds)
        let running = running.withLock { running in
            defer { running = nil }
            return running
        }
        guard let running else { return }
        running.intake.stop(within: milliseconds / 2)
        // What is left then is for the connection's end, and for the spool's.
        running.sender.stop(at: end - 100)
        if !running.hasEnded.wait(milliseconds: Int(end - MonotonicTime.milliseconds()) - 80) {
            running.sender.connection.close()
            // The thread may be looking up a name.
            running.hasEnded.wait(milliseconds: 50)
        }
        running.intake.finish()
    }
}

/// The thread that sends what the spool has.
final class NATSSender: Sendable {
    let connection: NATSConnection
    private let control: any RunControl
    private let options: NATSEventsOptions
    private let beginning: String
    private let spool: Spool
    private let news: Locked<OutwardNews>
    /// When the thread is to end, milliseconds of the monotonic clock.
    private let deadline = Locked<Int64?>(nil)

    /// Time without an acknowledgement after which the server counts as away, in milliseconds.
    private static let patience: Int64 = 5_000

    init(
        _ control: any RunControl, options: NATSEventsOptions, host: String, spool: Spool, connection: NATSConnection,
        news: Locked<OutwardNews>
    ) {
        self.control = control
        self.options = options
        self.spool = spool
        self.connection = connection
        self.news = news
        beginning = "\(options.subject).\(host).\(EventName.word(control.chainName))"
    }

    /// [thread of the end]
    ///
    /// - Parameter end: Milliseconds of the monotonic clock.
    func stop(at end: Int64) {
        deadline.withLock { $0 = end }
        spool.doorbell.ring()
    }

    /// Milliseconds until the thread must end; nil while it need not.
    private var left: Int? { deadline.withLock { $0 }.map { Int(clamping: max($0 - MonotonicTime.milliseconds(), 0)) } }

    /// [sending thread]
    func run() {
        var state = Sending()
        while true {
            if let left, left == 0 || (state.waiting.isEmpty && spool.waitingCount == 0) { break }
            if let reason = connection.connect() {
                (state.hasStream, state.isInDoubt) = (false, true)
                isAway(reason, &state)
                if left != nil { break }
                rest(&state)
            } else if !state.hasStream {
                findStream(&state)
            } else {
                sendNext(&state)
            }
        }
        connection.close()
        connection.release()
    }

    /// The state of the thread.
    private struct Sending {
        /// Records that were taken from the spool and not answered; the next one is the last.
        var waiting: [SpoolRecord] = []
        var hasStream = false
        /// Whether the next message may have arrived: a run before this one may have sent it.
        var isInDoubt = true
        /// Nil until the first answer.
        var lastAnswer: Int64?
        /// Milliseconds until the next attempt.
        var pause = 100
    }

    private func findStream(_ state: inout Sending) {
        let reason = connection.findStream(
            options.stream, creates: options.createStream, subjects: "\(options.subject).>",
            replicas: options.replicas)
        if let reason {
            isAway(reason, &state)
            rest(&state)
        } else {
            state.hasStream = true
            if state.lastAnswer == nil { state.lastAnswer = MonotonicTime.milliseconds() }
        }
    }

    private func sendNext(_ state: inout Sending) {
        if state.waiting.isEmpty { state.waiting = spool.take(most: 64).reversed() }
        guard let record = state.waiting.last else {
            answered(&state)
            return spool.doorbell.wait(
                milliseconds: left.map { min($0, 20) } ?? 500, beside: connection.waitable)
        }
        switch send(record, isInDoubt: state.isInDoubt) {
        case .unknown(let reason):
            // Somebody may have removed the stream.
            (state.isInDoubt, state.hasStream) = (true, false)
            isAway(reason, &state)
            return rest(&state)
        case .refused(let reason):
            news.withLock { $0.refused(reason) }
            spool.count(.refused)
        case .stored: break
        }
        state.waiting.removeLast()
        spool.acknowledge(through: record.number)
        state.isInDoubt = false
        answered(&state)
    }

    /// Reports that the server is away, but not at once: servers of a cluster change places within seconds.
    private func isAway(_ reason: String, _ state: inout Sending) {
        if let last = state.lastAnswer, MonotonicTime.milliseconds() - last < Self.patience { return }
        say { $0.disconnected(reason, waiting: spool.waitingCount, now: control.clock.now()) }
    }

    private func answered(_ state: inout Sending) {
        state.lastAnswer = MonotonicTime.milliseconds()
        if connection.isSteady { state.pause = 100 }
        say { $0.connected(to: connection.server ?? options.servers[0], waiting: spool.waitingCount) }
    }

    private func send(_ record: SpoolRecord, isInDoubt: Bool) -> NATSConnection.Answer {
        let subject = "\(beginning).\(record.event)"
        if isInDoubt, connection.lastID(subject, stream: options.stream) == record.id { return .stored }
        return connection.publish(
            record.text, to: subject, id: record.id, stream: options.stream,
            milliseconds: left.map { max($0, 50) } ?? 2000)
    }

    /// Waits a tenth of a second, then twice as long each time, two seconds at most.
    private func rest(_ state: inout Sending) {
        let end = MonotonicTime.milliseconds() + Int64(left.map { min($0, 50) } ?? state.pause)
        state.pause = min(2 * state.pause, 2000)
        let isEnding = left != nil
        while MonotonicTime.milliseconds() < end, (left != nil) == isEnding { usleep(10_000) }
    }

    private func say(_ make: (inout OutwardNews) -> OutwardNews.Said?) { news.withLock(make)?.post(control) }
}
