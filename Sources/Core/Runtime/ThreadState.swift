import Synchronization

/// One stage thread as the control thread sees it, and its mailbox of commands.
final class ThreadState: @unchecked Sendable {
    /// What ``inside`` says of a thread that is in no stage's code.
    enum Place {
        /// In a wait that only another stage thread of the chain ends.
        static let chainWait: Int32 = -1
        /// In a wait that something beside the chain's threads ends: the clock, or a network thread that holds access
        /// units.
        static let outsideWait: Int32 = -2
        /// Before its first item.
        static let notBegun: Int32 = -3
    }

    let name: String
    /// Index of the stage whose code the thread is in, else a ``Place``. Why it waits is the queue's and pool's to say.
    let inside = Atomic<Int32>(Place.notBegun)
    /// Which of its calls the stage at `inside` is in.
    private let callCode = Atomic<UInt8>(StageCall.item.rawValue)
    /// `pthread_self()` of the thread once it runs: how a signal handler finds out whose it interrupts.
    let identity = Atomic<UInt>(0)
    let finished = Atomic<Bool>(false)
    private let mailFlag = Atomic<Bool>(false)
    private let mail = Condition()
    private var letters: [Letter] = []
    private var isClosed = false
    /// Under the lock of ``RunningThreads``.
    fileprivate(set) var isAbandoned = false
    /// Wakes the thread when it waits for input; set before it runs.
    var interrupt: (() -> Void)?

    /// The queue this thread takes from; nil for a source's or a join's. Set before it runs.
    var input: FrameQueue?

    static let mostLetters = 256

    /// Something to do between two items, or not at all when the thread has ended before.
    struct Letter {
        var open: () -> Void
        var refuse: () -> Void = {}
    }

    init(name: String) { self.name = name }

    /// [stage thread] From here on the thread is in a wait of ours, which `stop` ends; returns where it was.
    ///
    /// - Parameter place: ``Place/outsideWait`` where something beside the chain's threads may end it.
    @inline(__always)
    func enterWait(_ place: Int32 = Place.chainWait) -> Int32 {
        input?.settleWake()
        let before = inside.load(ordering: .relaxed)
        inside.store(place, ordering: .relaxed)
        return before
    }

    /// [stage thread] Back in the stage's own code.
    @inline(__always)
    func leaveWait(_ before: Int32) { inside.store(before, ordering: .relaxed) }

    /// [the thread itself] Calls a stage for something other than an item, so that whoever watches can name the call.
    func call<Result>(_ kind: StageCall, stage index: Int, _ body: () throws -> Result) rethrows -> Result {
        let before = inside.load(ordering: .relaxed)
        callCode.store(kind.rawValue, ordering: .relaxed)
        inside.store(Int32(index), ordering: .relaxed)
        defer {
            inside.store(before, ordering: .relaxed)
            callCode.store(StageCall.item.rawValue, ordering: .relaxed)
        }
        return try body()
    }

    /// [any thread] The call the stage at `inside` is in.
    var currentCall: StageCall { StageCall(rawValue: callCode.load(ordering: .relaxed)) ?? .item }

    /// [any thread] Opens `letter` on the thread between two items; false when the mailbox is full or the thread has
    /// ended.
    func post(_ letter: Letter) -> Bool {
        let isPosted = mail.locked {
            guard !isClosed, letters.count < Self.mostLetters else { return false }
            letters.append(letter)
            mailFlag.store(true, ordering: .releasing)
            return true
        }
        if isPosted { interrupt?() }
        return isPosted
    }

    /// [any thread] Something has been posted and not been read.
    var hasMail: Bool { @inline(__always) get { mailFlag.load(ordering: .relaxed) } }

    /// [stage thread] Does what has been posted.
    @inline(__always)
    func readMail() {
        if hasMail { readAll() }
    }

    private func readAll() {
        let waiting = mail.locked {
            defer { letters.removeAll(keepingCapacity: true) }
            mailFlag.store(false, ordering: .relaxed)
            return letters
        }
        for letter in waiting { letter.open() }
    }

    /// [stage thread at its end, control thread at the end of the run] Refuses what has not been read, and all that
    /// follows.
    func closeMail() {
        let unread = mail.locked {
            defer { letters = [] }
            isClosed = true
            return letters
        }
        for letter in unread { letter.refuse() }
    }
}

/// How many threads of a run have not ended, and where the control thread waits for that.
final class RunningThreads: @unchecked Sendable {
    let changed = Condition()
    /// Under the lock of `changed`.
    private(set) var count = 0

    /// [control thread] So many threads are about to be started.
    func add(_ more: Int) { changed.locked { count += more } }

    /// [stage thread, as its last act]
    func ended(_ thread: ThreadState) {
        changed.locked {
            if !thread.isAbandoned { count -= 1 }
            changed.broadcast()
        }
    }

    /// [control thread] Nobody waits for `thread` any more.
    func abandon(_ thread: ThreadState) {
        changed.locked {
            guard !thread.isAbandoned, !thread.finished.load(ordering: .acquiring) else { return }
            thread.isAbandoned = true
            count -= 1
            changed.broadcast()
        }
    }
}

/// Something a stage thread does between two items, for whoever asked to wait for.
final class Errand: @unchecked Sendable {
    enum Outcome { case done, withdrawn, refused, underWay }
    private enum State { case waiting, begun, done, withdrawn, refused }

    private let condition = Condition()
    // Below: under `condition`.
    private var state = State.waiting
    private let body: () -> Void

    init(_ body: @escaping () -> Void) { self.body = body }

    /// [any thread] Leaves it with `thread`.
    func post(to thread: ThreadState) {
        let letter = ThreadState.Letter(open: { [self] in perform() }, refuse: { [self] in enter(.refused) })
        if !thread.post(letter) { enter(.refused) }
    }

    private func enter(_ next: State) {
        condition.locked {
            state = next
            condition.broadcast()
        }
    }

    private func perform() {
        let begins = condition.locked { () -> Bool in
            guard state == .waiting else { return false }
            state = .begun
            return true
        }
        guard begins else { return }
        body()
        enter(.done)
    }

    /// [any thread but the stage's] Waits until it is done; what has not been begun after `patience` nanoseconds is
    /// withdrawn if so asked. Work that is under way is waited for until `stop`.
    func wait(_ patience: Int64, withdrawing: Bool = true, stop: StopSignal) -> Outcome {
        let deadline = ChainClock.system.now() + patience
        condition.lock()
        defer { condition.unlock() }
        while true {
            switch state {
            case .done: return .done
            case .refused: return .refused
            case .withdrawn: return .withdrawn
            case .waiting, .begun: break
            }
            let now = ChainClock.system.now()
            if stop.isRaised, state == .begun || !withdrawing { return .underWay }
            if state == .waiting, now >= deadline {
                guard withdrawing else { return .underWay }
                state = .withdrawn
                return .withdrawn
            }
            // The signal of `stop` is looked at from time to time: it lies under other locks.
            condition.wait(until: now + 50_000_000)
        }
    }
}
