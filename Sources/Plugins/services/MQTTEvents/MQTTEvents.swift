// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc
import Publishing
import Shared

/// Sends the events of a chain to an MQTT broker, and keeps its state there, where Home Assistant finds it.
///
/// docs/events.md describes it, and docs/design/029-event-publishers.md gives the reasons.
final class MQTTEvents: Service {
    static let info = ServiceInfo(
        id: "mqtt-events",
        summary:
            "Sends the chain's events and state to an MQTT broker, where Home Assistant finds them, with a spool on disk."
    )

    private struct Running {
        var intake: EventIntake
        var sender: MQTTSender
        var connection: MQTTConnection
        var hasEnded: WaitableFlag
    }

    private let options: MQTTEventsOptions
    private let running = Locked<Running?>(nil)

    /// [control thread] Opens nothing: options arrive checked.
    init(options: MQTTEventsOptions) { self.options = options }

    /// [control thread] Reads the files once, so that their faults are known before the run.
    func check(folder: String) throws {
        if let login = options.login { _ = try ServerLogin.read(login) { ServerPath.resolve($0, folder: folder) } }
        if let file = options.caFile {
            _ = try TLSTrust(
                caFile: ServerPath.readable(file, option: "caFile", folder: folder), verify: options.verify)
        }
        if let spool = options.spool { try SpoolFolder.check(ServerPath.resolve(spool, folder: folder)) }
    }

    func readsFiles(folder: String) -> [String] {
        ServerPath.files(options.login, options.caFile, folder: folder)
    }

    /// [control thread] Opens the spool; the broker need not be there.
    func start(_ control: any RunControl) throws {
        let folder = control.folder
        let login = try options.login.map { try ServerLogin.read($0) { ServerPath.resolve($0, folder: folder) } }
        let caFile = try options.caFile.map { try ServerPath.readable($0, option: "caFile", folder: folder) }
        let spool = try Spool(
            SpoolFolder(
                options.spool.map { ServerPath.resolve($0, folder: folder) }
                    ?? SpoolFolder.usual(chain: control.chainName, key: "mqtt")),
            mostBytes: options.spoolMegabytes << 20)
        let (host, chain) = (options.host ?? EventIdentity.hostName(), control.chainName)
        let identity = EventIdentity(host: host)
        let topics = MQTTTopics(topic: options.topic, host: host, chain: chain)
        let home =
            options.homeAssistant
            ? HomeAssistant(prefix: options.discoveryTopic, host: host, chain: chain, topics: topics) : nil
        let address = try options.address
        let connection = try MQTTConnection(
            address, client: "framehost-\(identity.host)-\(EventName.word(chain))",
            keepAlive: options.keepAliveSeconds, login: login, caFile: caFile, verify: options.verify,
            will: MQTTPacket.Will(topic: topics.status, payload: "offline"), subscription: home?.birthTopic,
            doorbell: spool.doorbell)
        let news = Locked(OutwardNews(kind: "MQTT", servers: ["\(address)"], spool: spool.folderPath))
        let intake = EventIntake(
            control, key: "mqtt", filter: EventFilter(level: options.level, events: options.events),
            identity: identity, spool: spool, news: news)
        let sender = MQTTSender(
            control, server: "\(address)", topics: topics, home: home, spool: spool, connection: connection,
            news: news)
        try intake.start()
        do {
            try connection.start()
            let hasEnded = WaitableFlag()
            try ServiceThread.start(name: "mqtt/send") {
                sender.run()
                hasEnded.raise()
            }
            running.withLock {
                $0 = Running(intake: intake, sender: sender, connection: connection, hasEnded: hasEnded)
            }
        } catch {
            connection.stop(within: 100)
            intake.stop(within: 100)
            throw error
        }
    }

    /// [thread of the end] Sends what it can in time; the rest stays in the spool.
    func stop(within milliseconds: Int) {
        let end = MonotonicTime.milliseconds() + Int64(milliseconds)
        func left(before milliseconds: Int64) -> Int { Int(end - milliseconds - MonotonicTime.milliseconds()) }
        let running = running.withLock { running in
            defer { running = nil }
            return running
        }
        guard let running else { return }
        running.intake.stop(within: milliseconds / 2)
        // What is left then is for the farewell, for the connection's end, and for the spool's.
        running.sender.stop(at: end - 200)
        running.hasEnded.wait(milliseconds: left(before: 80))
        running.connection.stop(within: left(before: 20))
        running.intake.finish()
    }
}

/// The thread that sends what the spool has, and keeps the chain's state at the broker.
final class MQTTSender: Sendable {
    /// Events that are with the library and not acknowledged: this many may arrive twice after the end of a
    /// process.
    private static let mostInFlight = 16
    /// A broker that is there and acknowledges nothing for this long counts as away, in milliseconds.
    private static let patience: Int64 = 5000
    /// Time between two looks at the chain's state, in milliseconds.
    private static let lookPause: Int64 = 500

    private let control: any RunControl
    private let server: String
    private let topics: MQTTTopics
    private let home: HomeAssistant?
    private let spool: Spool
    private let connection: MQTTConnection
    private let news: Locked<OutwardNews>
    /// When the thread is to end, milliseconds of the monotonic clock.
    private let deadline = Locked<Int64?>(nil)

    init(
        _ control: any RunControl, server: String, topics: MQTTTopics, home: HomeAssistant?, spool: Spool,
        connection: MQTTConnection, news: Locked<OutwardNews>
    ) {
        self.control = control
        self.server = server
        self.topics = topics
        self.home = home
        self.spool = spool
        self.connection = connection
        self.news = news
    }

    /// [thread of the end]
    ///
    /// - Parameter end: Milliseconds of the monotonic clock. The farewell comes after it.
    func stop(at end: Int64) {
        deadline.withLock { $0 = end }
        spool.doorbell.ring()
    }

    /// The state of the thread.
    private struct Sending {
        /// Numbers that are with the library, rising, and those of them that are acknowledged.
        var inFlight: [UInt64] = []
        var done: Set<UInt64> = []
        /// What the retained topics hold.
        var retained: [String: String] = [:]
        var stages: [String] = []
        var shared = SharedTopics()
        var occasions = 0
        var nextLook: Int64 = 0
        /// How many acknowledgements are known.
        var acknowledgements = 0
        /// Since when the broker is away.
        var awaySince: Int64?
    }

    /// [sending thread]
    func run() {
        var state = Sending()
        while true {
            let end = deadline.withLock { $0 }
            let now = MonotonicTime.milliseconds()
            acknowledge(&state)
            if connection.isConnected {
                keepState(&state, now: now)
                sendEvents(&state)
            }
            tell(&state, now: now)
            if let end, now >= end || !connection.isConnected || (state.inFlight.isEmpty && spool.waitingCount == 0) {
                break
            }
            spool.doorbell.wait(milliseconds: end == nil ? 250 : 10)
        }
        sayGoodbye(&state)
    }

    /// Reports whether the broker is there. A broker that takes connections and ends each at the first message is
    /// not.
    private func tell(_ state: inout Sending, now: Int64) {
        let (isConnected, count) = (connection.isConnected, connection.acknowledgementCount)
        if isConnected, count != state.acknowledgements || connection.inFlightCount == 0 {
            (state.acknowledgements, state.awaySince) = (count, nil)
            say { $0.connected(to: server, waiting: spool.waitingCount) }
            return
        }
        // The first attempt takes a moment; a broker that restarts takes a second.
        if state.awaySince == nil { state.awaySince = now }
        guard now - (state.awaySince ?? now) > (isConnected ? Self.patience : 2000) else { return }
        let reason =
            isConnected ? "it has acknowledged nothing for \(Self.patience / 1000) s" : connection.reason
        say { $0.disconnected(reason, waiting: spool.waitingCount, now: control.clock.now()) }
    }

    /// Acknowledges to the spool all events before the first one that is still on its way.
    private func acknowledge(_ state: inout Sending) {
        state.done.formUnion(connection.takeDone())
        var last: UInt64?
        while let first = state.inFlight.first, state.done.remove(first) != nil {
            last = first
            state.inFlight.removeFirst()
        }
        if let last { spool.acknowledge(through: last) }
    }

    private func sendEvents(_ state: inout Sending) {
        let room = Self.mostInFlight - state.inFlight.count
        guard room > 0 else { return }
        for record in spool.take(most: room) {
            state.inFlight.append(record.number)
            guard
                !connection.publish(
                    record.text, to: topics.event(record.event), retained: false, number: record.number)
            else { continue }
            spool.count(.refused)
            state.done.insert(record.number)
        }
    }

    /// Publishes what has changed. After a new connection, and when Home Assistant has started, publishes
    /// everything.
    private func keepState(_ state: inout Sending, now: Int64) {
        // There are more messages than events: states that were published before are not acknowledged, and the
        // library sends them again by itself.
        guard connection.inFlightCount <= Self.mostInFlight else { return }
        let occasions = connection.occasions
        if occasions != state.occasions {
            state.occasions = occasions
            let forgotten = state.retained
            state.retained = [:]
            look(&state)
            _ = connection.publish("online", to: topics.status, retained: true)
            for topic in forgotten.keys where state.retained[topic] == nil {
                _ = connection.publish("", to: topic, retained: true)
            }
            state.nextLook = now + Self.lookPause
        } else if now >= state.nextLook {
            look(&state)
            state.nextLook = now + Self.lookPause
        }
    }

    /// - Parameter isLast: Whether the run ends: nothing more is reported then.
    private func look(_ state: inout Sending, isLast: Bool = false) {
        let status = control.status
        let stages = status.stages.map(\.id)
        if stages != state.stages, !isLast {
            state.shared.take(topics.shared(by: stages)).forEach { reportShared($0.topic, $0.stages) }
        }
        if let home, stages != state.stages || state.retained.isEmpty {
            let removed = state.stages.filter { !stages.contains($0) }
            _ = connection.publish(
                home.configuration(stages: stages, removed: removed).text(), to: home.topic, retained: true)
        }
        state.stages = stages
        let wanted = topics.retained(status)
        for (topic, text) in wanted.sorted(by: { $0.key < $1.key }) where state.retained[topic] != text {
            _ = connection.publish(text, to: topic, retained: true)
        }
        // An empty message deletes what is retained.
        for topic in state.retained.keys where wanted[topic] == nil {
            _ = connection.publish("", to: topic, retained: true)
        }
        state.retained = wanted
    }

    /// Reports that several stages have one topic.
    private func reportShared(_ topic: String, _ stages: [String]) {
        let quoted = stages.map { "'\($0)'" }
        let names = quoted.dropLast().joined(separator: ", ") + " and " + (quoted.last ?? "")
        control.post(
            "topic-shared", level: .warning,
            text:
                "The stages \(names) share the MQTT topic '\(topic)', which only shows the state of '\(stages.last ?? "")': a topic has _ for '.' and at most 64 characters of an id. Rename one of these stages, or the stage whose output it is.",
            details: [
                "publisher": "mqtt", "topic": .string(topic), "stages": .array(stages.map { .string($0) }),
            ])
    }

    /// Publishes the last state, and what the last will would say.
    private func sayGoodbye(_ state: inout Sending) {
        guard connection.isConnected else { return }
        look(&state, isLast: true)
        _ = connection.publish("offline", to: topics.status, retained: true, isFarewell: true)
        for _ in 0..<100 where connection.inFlightCount > 0 && connection.isConnected { usleep(1000) }
        acknowledge(&state)
    }

    private func say(_ make: (inout OutwardNews) -> OutwardNews.Said?) { news.withLock(make)?.post(control) }
}
