import Synchronization

/// One stage thread as the control thread sees it, and its mailbox of commands.
final class ThreadState: @unchecked Sendable {
    let name: String
    /// Index of the stage whose code the thread is in; −1 while it is in ours.
    let inside = Atomic<Int32>(-1)
    /// Why this thread waits at the moment is the queue's and pool's to say; this is whether it has ended.
    let finished = Atomic<Bool>(false)
    private let hasMail = Atomic<Bool>(false)
    private let mail = Condition()
    private var letters: [Letter] = []
    private var isClosed = false
    /// Wakes the thread when it waits for input; set at setup.
    var interrupt: (() -> Void)?

    /// The queue this thread takes from; nil for a source's or a join's. Set at setup.
    var input: FrameQueue?

    static let mostLetters = 256

    /// Something to do between two items, or not at all when the thread has ended before.
    struct Letter {
        var open: () -> Void
        var refuse: () -> Void = {}
    }

    init(name: String) { self.name = name }

    /// [stage thread] From here on the thread is in a wait of ours, which `stop` ends; returns where it was.
    @inline(__always)
    func enterWait() -> Int32 {
        input?.settleWake()
        let before = inside.load(ordering: .relaxed)
        inside.store(-1, ordering: .relaxed)
        return before
    }

    /// [stage thread] Back in the stage's own code.
    @inline(__always)
    func leaveWait(_ before: Int32) { inside.store(before, ordering: .relaxed) }

    /// [any thread] Opens `letter` on the thread between two items; false when the mailbox is full or the thread has ended.
    func post(_ letter: Letter) -> Bool {
        let isPosted = mail.locked {
            guard !isClosed, letters.count < Self.mostLetters else { return false }
            letters.append(letter)
            hasMail.store(true, ordering: .releasing)
            return true
        }
        if isPosted { interrupt?() }
        return isPosted
    }

    /// [stage thread] Does what has been posted.
    @inline(__always)
    func readMail() {
        if hasMail.load(ordering: .relaxed) { readAll() }
    }

    private func readAll() {
        let waiting = mail.locked {
            defer { letters.removeAll(keepingCapacity: true) }
            hasMail.store(false, ordering: .relaxed)
            return letters
        }
        for letter in waiting { letter.open() }
    }

    /// [stage thread at its end, control thread at the end of the run] Refuses what has not been read, and all that follows.
    func closeMail() {
        let unread = mail.locked {
            defer { letters = [] }
            isClosed = true
            return letters
        }
        for letter in unread { letter.refuse() }
    }
}

/// How many stage threads of a run have not ended, and where the control thread waits for that.
final class RunningThreads: @unchecked Sendable {
    let changed = Condition()
    /// Under the lock of `changed`.
    var count = 0

    /// [stage thread, as its last act]
    func oneEnded() {
        changed.locked {
            count -= 1
            changed.broadcast()
        }
    }
}
