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
