// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc
import Publishing

/// The thread that posts what the spool has, one event after the other.
final class WebhookSender: Sendable {
    private let control: any RunControl
    private let server: String
    private let secret: WebhookSecret?
    private let spool: Spool
    private let post: WebhookPost
    private let news: Locked<OutwardNews>
    /// When the thread is to end, milliseconds of the monotonic clock.
    private let deadline = Locked<Int64?>(nil)

    /// Time since the last event that was taken after which the receiver counts as away, in milliseconds.
    private static let patience: Int64 = 5_000

    init(
        _ control: any RunControl, server: String, secret: WebhookSecret?, spool: Spool, post: WebhookPost,
        news: Locked<OutwardNews>
    ) {
        self.control = control
        self.server = server
        self.secret = secret
        self.spool = spool
        self.post = post
        self.news = news
    }

    /// [thread of the end]
    ///
    /// - Parameter end: Milliseconds of the monotonic clock.
    func stop(at end: Int64) {
        deadline.withLock { $0 = end }
        spool.doorbell.ring()
        post.wake()
    }

    /// Milliseconds until the thread must end; nil while it need not.
    private var left: Int? { deadline.withLock { $0 }.map { Int(clamping: max($0 - MonotonicTime.milliseconds(), 0)) } }

    /// The state of the thread.
    private struct Sending {
        /// Records that were taken from the spool and not answered; the next one is the last.
        var waiting: [SpoolRecord] = []
        var pause = WebhookPause()
        /// When an event was taken last, milliseconds of the monotonic clock.
        var lastTaken: Int64?
        /// Until when nothing is sent, milliseconds of the monotonic clock.
        var silence: Int64?
    }

    /// [sending thread]
    func run() {
        var state = Sending()
        while true {
            if let left, left == 0 || state.silence != nil || (state.waiting.isEmpty && spool.waitingCount == 0) {
                break
            }
            if let silence = state.silence {
                // New events ring too, and change nothing.
                let now = MonotonicTime.milliseconds()
                if now >= silence { state.silence = nil } else { spool.doorbell.wait(milliseconds: Int(silence - now)) }
                continue
            }
            if state.waiting.isEmpty { state.waiting = spool.take(most: 64).reversed() }
            guard let record = state.waiting.last else {
                spool.doorbell.wait(milliseconds: left.map { min($0, 20) } ?? 500)
                continue
            }
            handle(send(record), of: record, &state)
        }
    }

    private func handle(_ outcome: WebhookPost.Outcome, of record: SpoolRecord, _ state: inout Sending) {
        let answer: WebhookAnswer
        switch outcome {
        case .cancelled: return
        case .failed(let reason): answer = .notTaken(reason, after: nil)
        case .answered(let status, let retryAfter): answer = WebhookAnswer(status: status, retryAfter: retryAfter)
        }
        let now = MonotonicTime.milliseconds()
        switch answer {
        case .notTaken(let reason, let seconds):
            let pause = state.pause.take(asked: seconds)
            state.silence = now + Int64(pause)
            // Not at once: a receiver that restarts takes seconds.
            if let last = state.lastTaken, now - last < Self.patience { return }
            return say { $0.disconnected(reason, waiting: spool.waitingCount, now: control.clock.now()) }
        case .refused(let reason):
            // The event about a loss would make the next one, once a minute for ever.
            if record.event != "events-lost" {
                news.withLock { $0.refused(reason) }
                spool.count(.refused)
            }
        case .taken: break
        }
        state.waiting.removeLast()
        spool.acknowledge(through: record.number)
        state.pause.reset()
        state.lastTaken = now
        // A receiver that answers and refuses takes no events.
        if answer == .taken { say { $0.connected(to: server, waiting: spool.waitingCount) } }
    }

    private func send(_ record: SpoolRecord) -> WebhookPost.Outcome {
        let body = Array(record.text.utf8)
        let now = time(nil)
        var fields = [
            // No wait for an answer before the body is sent.
            "Content-Type: application/json", "Expect:", "Framehost-Id: \(record.id)", "Framehost-Time: \(now)",
        ]
        if let secret { fields.append("Framehost-Signature: \(secret.signature(time: now, body: body))") }
        return post.post(body, fields: fields) { left }
    }

    private func say(_ make: (inout OutwardNews) -> OutwardNews.Said?) { news.withLock(make)?.post(control) }
}
