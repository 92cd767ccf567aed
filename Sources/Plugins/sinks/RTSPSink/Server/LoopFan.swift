// SPDX-License-Identifier: Apache-2.0

import FrameNetwork
import FrameSupport

/// The readers of one stream on one event loop, and the mailbox through which blocks come to them.
///
/// `@unchecked Sendable`: the mailbox is used under its lock, everything else only on the loop.
final class LoopFan: @unchecked Sendable {
    /// A loop that is this many blocks behind loses them; its readers go on with the next keyframe.
    static let mostPending = 256
    /// The same for a stream with sound, which has several units for each picture.
    static let mostPendingWithSound = 1024
    /// How often UDP readers that catch up get units, and how many bytes all of them together get each time.
    static let step = TimeAmount.milliseconds(5)
    static let mostStepBytes = 1 << 20

    /// How long sound waits for the next picture, to be written with it, in nanoseconds: a write costs more than its
    /// bytes, and a client that plays both needs the picture anyway.
    static let longestWaitOfSound: Int64 = 40_000_000
    /// How often the loop looks whether sound has waited that long.
    static let soundCheckInterval = TimeAmount.milliseconds(20)

    private struct Mailbox {
        var blocks: [MediaBlock] = []
        var isScheduled = false
        /// Since when the first block waits for a picture, while all blocks are sound; nil where none waits.
        var waitsSince: Int64?
        /// Whether the loop checks how long sound has waited. Otherwise sound is delivered at once.
        var isSoundChecked = false
        var lost = PerMedium(0)
    }

    let hub: StreamHub
    let loop: any EventLoop
    private let mostPending: Int
    private let sender: DatagramSender?
    private let mailbox = NIOLockedValueBox(Mailbox())
    // Below: on the loop.
    private let scratch = DatagramScratch()
    private var spare: [MediaBlock] = []
    private var tcpReaders: [TCPReader] = []
    private var udpReaders: [UDPReader] = []
    private var stuckCheck: RepeatedTask?
    private var pacing: RepeatedTask?
    /// Looks whether sound has waited long enough; nil before sound has come, and while none comes.
    private var soundCheck: RepeatedTask?
    private var hasDelivered = false
    /// The place of the UDP reader that catches up first in the next step.
    private var turn = 0
    private let paced = MediaBlock()
    /// Reports readers that come and go; never blocks.
    let report: @Sendable (ReaderEvent) -> Void
    private let reportStuck: @Sendable (PlayOrder) -> Void
    /// Made once: handing it to the loop allocates nothing.
    private var deliverTask: @Sendable () -> Void = {}

    /// - Parameter reportStuck: Called with the order of a reader that takes nothing. [network loop]
    init(
        hub: StreamHub, loop: any EventLoop, sender: DatagramSender?, report: @escaping @Sendable (ReaderEvent) -> Void,
        reportStuck: @escaping @Sendable (PlayOrder) -> Void
    ) {
        self.hub = hub
        mostPending = hub.sound == nil ? Self.mostPending : Self.mostPendingWithSound
        self.report = report
        self.loop = loop
        self.sender = sender
        self.reportStuck = reportStuck
        deliverTask = { [weak self] in self?.deliver() }
    }

    /// [any thread] Never waits.
    func post(_ block: MediaBlock) {
        let mustSchedule = mailbox.withLockedValue { mailbox -> Bool in
            if mailbox.blocks.count >= mostPending {
                for block in mailbox.blocks { mailbox.lost[block.medium] += 1 }
                mailbox.blocks.removeAll(keepingCapacity: true)
            }
            mailbox.blocks.append(block)
            guard !mailbox.isScheduled else { return false }
            if block.medium == .sound, mailbox.isSoundChecked {
                mailbox.waitsSince = mailbox.waitsSince ?? MonotonicTime.now()
                return false
            }
            mailbox.isScheduled = true
            return true
        }
        if mustSchedule { loop.execute(deliverTask) }
    }

    private func deliver() {
        swap()
        defer { spare.removeAll(keepingCapacity: true) }
        hasDelivered = true
        if soundCheck == nil, spare.contains(where: { $0.medium == .sound }) { checkSound() }
        let now = MonotonicTime.now()
        for reader in tcpReaders {
            for block in spare { reader.offer(block, now: now) }
            reader.pump(now: now)
        }
        guard !udpReaders.isEmpty, let sender else { return }
        for block in spare { sender.send(block, to: udpReaders, scratch) }
    }

    private func swap() {
        let lost = mailbox.withLockedValue { mailbox -> PerMedium<Int> in
            Swift.swap(&mailbox.blocks, &spare)
            mailbox.isScheduled = false
            mailbox.waitsSince = nil
            defer { mailbox.lost = PerMedium(0) }
            return mailbox.lost
        }
        guard lost.pictures + lost.sound > 0 else { return }
        for reader in tcpReaders { reader.missed(lost) }
        for reader in udpReaders { reader.missed(lost) }
    }

    // MARK: Sound that waits for a picture

    private func checkSound() {
        mailbox.withLockedValue { $0.isSoundChecked = true }
        soundCheck = loop.scheduleRepeatedTask(initialDelay: Self.soundCheckInterval, delay: Self.soundCheckInterval) {
            [weak self] task in
            if self?.deliverLateSound() != true { task.cancel() }
        }
    }

    /// Delivers sound that has waited long enough. False where nothing came since the last look: the check ends, and
    /// the next sound is delivered at once.
    private func deliverLateSound() -> Bool {
        let latest = MonotonicTime.now() - Self.longestWaitOfSound
        let (isLate, isWaiting) = mailbox.withLockedValue { mailbox in
            if mailbox.waitsSince == nil, !hasDelivered { mailbox.isSoundChecked = false }
            return (mailbox.waitsSince.map { $0 <= latest } ?? false, mailbox.waitsSince != nil)
        }
        if isLate { deliver() }
        defer { hasDelivered = false }
        guard !isWaiting, !hasDelivered else { return true }
        soundCheck = nil
        return false
    }

    // MARK: Readers

    /// [network loop] Starts to feed a reader: kept blocks at once, then new ones.
    func add(_ reader: TCPReader, _ entry: StreamHub.Entry) {
        tcpReaders.append(reader)
        reader.begin(entry, of: hub, now: MonotonicTime.now())
        watch()
    }

    /// [network loop] The same over UDP; the kept group follows in steps.
    func add(_ reader: UDPReader, _ entry: StreamHub.Entry) {
        reader.nextIndex = entry.kept.first?.index ?? entry.nextIndex
        udpReaders.append(reader)
        if let reports = hub.firstReports(of: entry) { sender?.sendControl(reports, to: reader) }
        for block in entry.kept { sender?.send(block, to: [reader], scratch) }
        reader.nextIndex = entry.nextIndex
        guard let backlog = entry.backlog else { return }
        let stepsPerSecond = Int(1_000_000_000 / Self.step.nanoseconds)
        reader.pace = UDPReader.Pace(
            index: backlog.keyframe.index + 1, sounds: backlog.keyframe.soundsBefore,
            bytesPerStep: max(
                UDPReader.Pace.leastBytes, UDPReader.Pace.hurry * backlog.bytesPerSecond / stepsPerSecond),
            allowance: -backlog.keyframe.byteCount)
        // Until it has caught up, it takes no published blocks.
        reader.nextIndex = .max
        pace()
    }

    // MARK: Catching up over UDP

    private func pace() {
        guard pacing == nil, udpReaders.contains(where: { $0.pace != nil }) else { return }
        pacing = loop.scheduleRepeatedTask(initialDelay: Self.step, delay: Self.step) { [weak self] _ in
            self?.feedThoseBehind()
        }
    }

    /// Feeds the readers that catch up, each in its turn, from where the last step ended.
    private func feedThoseBehind() {
        var left = Self.mostStepBytes
        let count = udpReaders.count
        for place in 0..<count where left > 0 {
            let reader = udpReaders[(turn + place) % count]
            guard reader.pace != nil else { continue }
            left -= catchUp(reader)
            if left <= 0 { turn = (turn + place + 1) % count }
        }
        guard !udpReaders.contains(where: { $0.pace != nil }) else { return }
        pacing?.cancel()
        pacing = nil
    }

    /// Feeds a reader in one step; returns how many bytes it got.
    private func catchUp(_ reader: UDPReader) -> Int {
        guard var pace = reader.pace, let sender else { return 0 }
        pace.allowance = min(pace.allowance + pace.bytesPerStep, pace.bytesPerStep)
        var sent = 0
        while pace.allowance > 0 {
            switch hub.catchUp(pace.index, sounds: pace.sounds, into: paced) {
            case .unit(let leftOut, let sounds):
                if leftOut + sounds > 0 { reader.leftOut(PerMedium(pictures: leftOut, sound: sounds)) }
                reader.nextIndex = paced.index
                sender.send(paced, to: [reader], scratch)
                reader.nextIndex = .max
                pace.index = paced.index + 1
                pace.sounds = paced.soundsBefore + (paced.medium == .sound ? 1 : 0)
                pace.allowance -= paced.byteCount
                sent += paced.byteCount
            case .done(let index):
                reader.pace = nil
                reader.nextIndex = index
                return sent
            case .lost(let leftOut, let sounds, let index):
                reader.pace = nil
                reader.leftOut(PerMedium(pictures: leftOut, sound: sounds))
                reader.nextIndex = index
                return sent
            }
        }
        reader.pace = pace
        return sent
    }

    // MARK: Leaving

    /// [network loop] Stops feeding a reader.
    ///
    /// - Parameter number: The number of its PLAY. A newer reader of the same session stays.
    /// - Returns: What was counted; nil where it was never added.
    @discardableResult
    func remove(_ number: UInt64) -> ReaderFigures? {
        let now = MonotonicTime.now()
        var figures: ReaderFigures?
        if let place = tcpReaders.firstIndex(where: { $0.order.number == number }) {
            figures = tcpReaders.remove(at: place).figures(now: now)
        } else if let place = udpReaders.firstIndex(where: { $0.order.number == number }) {
            figures = udpReaders.remove(at: place).figures
        }
        if tcpReaders.isEmpty {
            stuckCheck?.cancel()
            stuckCheck = nil
        }
        leaveWhereNobodyIs()
        return figures
    }

    /// [network loop] Leaves the hub when it has no reader, so that it gets no blocks.
    func leaveWhereNobodyIs() {
        if tcpReaders.isEmpty, udpReaders.isEmpty { hub.leave(self) }
    }

    /// [network loop] Tells all readers that the stream has ended.
    func sendBye() {
        // Sound may still wait for a picture.
        deliver()
        let bytes = hub.bye()
        for reader in tcpReaders { reader.sendControl(bytes) }
        for reader in udpReaders { sender?.sendControl(bytes, to: reader) }
    }

    /// [network loop] The figures of each reader.
    var figures: [ReaderFigures] {
        let now = MonotonicTime.now()
        return tcpReaders.map { $0.figures(now: now) } + udpReaders.map(\.figures)
    }

    private func watch() {
        guard stuckCheck == nil else { return }
        stuckCheck = loop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { [weak self] _ in
            self?.findStuck()
        }
    }

    private func findStuck() {
        let now = MonotonicTime.now()
        for reader in tcpReaders where reader.isStuck(now: now) { reportStuck(reader.order) }
    }
}
