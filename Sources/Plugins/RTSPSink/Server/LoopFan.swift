import FrameNetwork

/// The readers of one stream on one event loop, and the mailbox through which blocks come to them.
///
/// `@unchecked Sendable`: the mailbox is reached under its lock, everything else on the loop alone.
final class LoopFan: @unchecked Sendable {
    /// A loop this far behind, in blocks, loses them; its readers go on with the next keyframe.
    static let mostPending = 256

    private struct Mailbox {
        var blocks: [MediaBlock] = []
        var isScheduled = false
        var hasLost = false
    }

    let hub: StreamHub
    let loop: any EventLoop
    private let sender: DatagramSender?
    private let mailbox = NIOLockedValueBox(Mailbox())
    // Below: on the loop.
    private let scratch = DatagramScratch()
    private var spare: [MediaBlock] = []
    private var tcpReaders: [TCPReader] = []
    private var udpReaders: [UDPReader] = []
    private var stuckCheck: RepeatedTask?
    private let reportStuck: @Sendable (String) -> Void
    /// Made once: handing it to the loop allocates nothing.
    private var deliverTask: @Sendable () -> Void = {}

    /// - Parameter reportStuck: Called with the session of a reader that takes nothing. [network loop]
    init(hub: StreamHub, loop: any EventLoop, sender: DatagramSender?, reportStuck: @escaping @Sendable (String) -> Void) {
        self.hub = hub
        self.loop = loop
        self.sender = sender
        self.reportStuck = reportStuck
        deliverTask = { [weak self] in self?.deliver() }
    }

    /// [any thread] Never waits.
    func post(_ block: MediaBlock) {
        let mustSchedule = mailbox.withLockedValue { mailbox -> Bool in
            if mailbox.blocks.count >= Self.mostPending {
                mailbox.blocks.removeAll(keepingCapacity: true)
                mailbox.hasLost = true
            }
            mailbox.blocks.append(block)
            defer { mailbox.isScheduled = true }
            return !mailbox.isScheduled
        }
        if mustSchedule { loop.execute(deliverTask) }
    }

    private func deliver() {
        swap()
        defer { spare.removeAll(keepingCapacity: true) }
        let now = StreamHub.monotonic()
        for reader in tcpReaders {
            for block in spare { reader.offer(block, now: now) }
            reader.pump(now: now)
        }
        guard !udpReaders.isEmpty, let sender else { return }
        for block in spare { sender.send(block, to: udpReaders, scratch) }
    }

    private func swap() {
        let hasLost = mailbox.withLockedValue { mailbox -> Bool in
            Swift.swap(&mailbox.blocks, &spare)
            mailbox.isScheduled = false
            defer { mailbox.hasLost = false }
            return mailbox.hasLost
        }
        guard hasLost else { return }
        for reader in tcpReaders { reader.missed() }
        for reader in udpReaders { reader.awaitsKeyframe = true }
    }

    // MARK: Readers

    /// [network loop] Begins to feed a reader: kept blocks at once, then what comes.
    func add(_ reader: TCPReader, _ entry: StreamHub.Entry) {
        tcpReaders.append(reader)
        reader.begin(entry, report: hub.senderReport(), now: StreamHub.monotonic())
        watch()
    }

    /// [network loop] As for TCP.
    func add(_ reader: UDPReader, _ entry: StreamHub.Entry) {
        reader.nextIndex = entry.kept.first?.index ?? entry.nextIndex
        udpReaders.append(reader)
        sender?.sendControl(hub.senderReport(), to: reader)
        for block in entry.kept { sender?.send(block, to: [reader], scratch) }
        reader.nextIndex = entry.nextIndex
    }

    /// [network loop] Feeds it no more.
    func remove(_ sessionID: String) {
        tcpReaders.removeAll { $0.order.sessionID == sessionID }
        udpReaders.removeAll { $0.order.sessionID == sessionID }
        if tcpReaders.isEmpty {
            stuckCheck?.cancel()
            stuckCheck = nil
        }
        if tcpReaders.isEmpty, udpReaders.isEmpty { hub.leave(self) }
    }

    /// [network loop] Says that the stream has ended.
    func sayFarewell() {
        let bytes = hub.farewell()
        for reader in tcpReaders { reader.sendControl(bytes) }
        for reader in udpReaders { sender?.sendControl(bytes, to: reader) }
    }

    /// [network loop] What a figure says of each reader.
    var figures: [ReaderFigures] {
        let now = StreamHub.monotonic()
        return tcpReaders.map { $0.figures(now: now) } + udpReaders.map(\.figures)
    }

    private func watch() {
        guard stuckCheck == nil else { return }
        stuckCheck = loop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { [weak self] _ in self?.findStuck() }
    }

    private func findStuck() {
        let now = StreamHub.monotonic()
        for reader in tcpReaders where reader.isStuck(now: now) { reportStuck(reader.order.sessionID) }
    }
}
