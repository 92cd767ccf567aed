// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// One stage thread as the control thread sees it, and its mailbox of commands.
final class ThreadState: @unchecked Sendable {
    /// Values of ``inside`` for a thread that is not in a stage's code.
    enum Place {
        /// In a wait that only another stage thread of the chain ends.
        static let chainWait: Int32 = -1
        /// In a wait that something other than the chain's threads ends: the clock, or a network thread that holds
        /// access units.
        static let outsideWait: Int32 = -2
        /// Before its first item.
        static let notBegun: Int32 = -3
    }

    let name: String
    /// The number of the stage whose code the thread is in, or a ``Place``. The queue or pool knows why the thread
    /// waits.
    let inside = Atomic<Int32>(Place.notBegun)
    /// Which of its calls the stage at `inside` is in.
    private let callCode = Atomic<UInt8>(StageCall.item.rawValue)
    /// `pthread_self()` of the thread once it runs. A signal handler finds the thread that it interrupts by this
    /// value.
    let identity = Atomic<UInt>(0)
    /// The kernel's number of the thread once it runs, as ``KernelThread`` has it.
    let kernelNumber = Atomic<Int32>(0)
    let finished = Atomic<Bool>(false)
    /// Whether its stages have ended, and it runs none of their code any more. Other threads may do what is left.
    let hasLetGo = Atomic<Bool>(false)
    private let mailFlag = Atomic<Bool>(false)
    private let mail = Condition()
    private var messages: [Message] = []
    /// Read before all messages, however long these have waited.
    private var errands: [(errand: Errand, message: Message)] = []
    private var isMailClosed = false
    /// [stage thread] When the thread had last read messages.
    @exclusivity(unchecked) private var lastRead: Int64 = 0
    // Under the lock of ``RunningThreads``.
    var isCounted = false
    var isAbandoned = false
    /// The stages of its chain, for the crash handler. Set before it runs.
    @exclusivity(unchecked) var crashStages: CrashReport.Stages?
    /// Wakes the thread when it waits for input, and with `isUrgent` keeps it from its next item; set before it runs.
    var interrupt: ((_ isUrgent: Bool) -> Void)?
    /// Ends the reading of messages too; set before it runs.
    var stop: StopSignal?

    /// The clock that times its stages; nil where they are not timed. Set before it runs.
    @exclusivity(unchecked) var clock: ChainClock?
    /// [stage thread] Nanoseconds that do not count as the timed stage's own time, since it began with its item:
    /// waits, and stages behind it on this thread. Counted only where stages are timed.
    @exclusivity(unchecked) var elsewhere: Int64 = 0
    @exclusivity(unchecked) private var waitsSince: Int64 = 0
    /// The trace of the thread; nil without a trace. Set before it runs. `traceRing` keeps its memory.
    @exclusivity(unchecked) var trace: TracePen?
    var traceRing: TraceRing?

    /// The queue from which this thread takes; nil for the thread of a source or a join. Set before it runs.
    var input: ItemQueue?

    static let mostMessages = 256
    /// How long messages may hold up the items, nanoseconds: a message that would begin later waits for the next item.
    static let longestReadNs: Int64 = 50_000_000
    /// How long a thread that has no further item goes on reading what was posted before, nanoseconds.
    static let longestRestNs: Int64 = 1_000_000_000

    /// Something to do between two items. It is refused instead when the thread has ended before.
    struct Message {
        var open: () -> Void
        var refuse: () -> Void = {}
    }

    init(name: String) { self.name = name }

    /// [stage thread] Notes that the thread is in a wait of Core, which `stop` ends. Returns where the thread was.
    ///
    /// - Parameters:
    ///   - place: ``Place/outsideWait`` where something other than the chain's threads may end the wait.
    ///   - reason: The reason for the wait, for a trace.
    @inline(__always)
    func enterWait(_ place: Int32 = Place.chainWait, for reason: TraceRecord.Wait) -> Int32 {
        input?.settleWake()
        if let trace { trace.beginWait(reason) }
        let before = inside.load(ordering: .relaxed)
        inside.store(place, ordering: .relaxed)
        if let clock { waitsSince = clock.now() }
        return before
    }

    /// [stage thread] Notes that the thread is back in the stage's own code.
    @inline(__always)
    func leaveWait(_ before: Int32) {
        inside.store(before, ordering: .relaxed)
        if let clock { elsewhere &+= clock.now() &- waitsSince }
        if let trace { trace.endWait(stage: before) }
    }

    /// [the thread itself] Calls a stage for something other than an item, so that reports can name the call.
    func call<Result>(_ kind: StageCall, stage index: Int, _ body: () throws -> Result) rethrows -> Result {
        let before = inside.load(ordering: .relaxed)
        callCode.store(kind.rawValue, ordering: .relaxed)
        inside.store(Int32(index), ordering: .relaxed)
        if let trace { trace.begin(kind, stage: index) }
        defer {
            if let trace { trace.end() }
            inside.store(before, ordering: .relaxed)
            callCode.store(StageCall.item.rawValue, ordering: .relaxed)
        }
        return try body()
    }

    /// [any thread] The call the stage at `inside` is in.
    var currentCall: StageCall { StageCall(rawValue: callCode.load(ordering: .relaxed)) ?? .item }

    /// [any thread] Lets the thread open `message` between two items. False when the thread has ended, or when the
    /// mailbox is full and the message is not required.
    ///
    /// - Parameter errand: The errand that the message is, if it is one. The thread takes no further item before it has
    ///   done its errands.
    func post(_ message: Message, as errand: Errand? = nil, isRequired: Bool = false) -> Bool {
        let isPosted = mail.locked {
            let hasRoom = messages.count + errands.count < Self.mostMessages
            guard !isMailClosed, isRequired || hasRoom else { return false }
            if let errand { errands.append((errand, message)) } else { messages.append(message) }
            mailFlag.store(true, ordering: .releasing)
            return true
        }
        if isPosted { interrupt?(errand != nil) }
        return isPosted
    }

    /// [any thread] Takes an errand that was withdrawn out of the mailbox, which has room for so many messages only.
    func remove(_ errand: Errand) {
        mail.locked {
            errands.removeAll { $0.errand === errand }
            noteWhatIsLeft()
        }
    }

    /// [any thread] Whether the thread has ended and reads nothing more.
    var isClosed: Bool { mail.locked { isMailClosed } }

    /// [any thread] Whether something was posted that the thread has not read yet.
    var hasMail: Bool { @inline(__always) get { mailFlag.load(ordering: .relaxed) } }

    /// [stage thread, between two items] Does what has been posted: all errands, then at least one message, and others for
    /// a quarter of the time for which the thread has been at its items since it last read messages. So a sender that is
    /// faster than the thread leaves its items most of the time, or what one message leaves of it. Where messages are left
    /// the thread is interrupted, so that it does not sleep on them.
    @inline(__always)
    func readMail() {
        if hasMail { readMessages() }
    }

    private func readMessages() {
        let begin = ChainClock.system.now()
        let allowed = min((begin &- lastRead) / 4, Self.longestReadNs)
        repeat {
            while !isStopped, let errand = take(\.errands) { errand.message.open() }
            guard !isStopped, let message = take(\.messages) else { break }
            message.open()
        } while ChainClock.system.now() &- begin < allowed
        // What is posted from here on interrupts by itself.
        if hasMail { interrupt?(false) }
        lastRead = ChainClock.system.now()
    }

    /// [stage thread, after its last item] Opens the messages that were posted up to now, as far as ``longestRestNs`` go.
    /// Leaves errands: who posts one knows what to do where a thread has ended.
    func readRest() {
        let end = ChainClock.system.now() &+ Self.longestRestNs
        for _ in 0..<mail.locked({ messages.count }) {
            guard !isStopped, ChainClock.system.now() < end, let message = take(\.messages) else { return }
            message.open()
        }
    }

    private var isStopped: Bool { stop?.isRaised ?? false }

    /// The oldest one; nil where there is none.
    private func take<Mail>(_ list: ReferenceWritableKeyPath<ThreadState, [Mail]>) -> Mail? {
        mail.locked {
            guard !self[keyPath: list].isEmpty else { return nil }
            defer { noteWhatIsLeft() }
            return self[keyPath: list].removeFirst()
        }
    }

    /// With the lock held.
    private func noteWhatIsLeft() { mailFlag.store(!messages.isEmpty || !errands.isEmpty, ordering: .relaxed) }

    /// [stage thread at its end, control thread at the end of the run] Refuses what has not been read, and all that
    /// follows.
    func closeMail() {
        let unread = mail.locked {
            defer { (messages, errands) = ([], []) }
            isMailClosed = true
            mailFlag.store(false, ordering: .relaxed)
            return errands.map(\.message) + messages
        }
        for message in unread { message.refuse() }
    }
}
