// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Puts the answers to commands in the order of their lines, though stages answer at different times.
///
/// An answer that does not come within a second, because its stage hangs, no longer holds up the others.
/// [control thread]
struct AnswerOrder {
    /// How long an answer waits for those before it, nanoseconds.
    static let patience: Int64 = 1_000_000_000
    private var next = 1
    private var waiting: [(reply: CommandReplies.Reply, since: Int64)] = []

    /// Keeps an answer until its turn.
    mutating func add(_ reply: CommandReplies.Reply, now: Int64) {
        let place = waiting.firstIndex { $0.reply.number > reply.number } ?? waiting.endIndex
        waiting.insert((reply, now), at: place)
    }

    /// The answers whose turn it is.
    mutating func take(now: Int64) -> [CommandReplies.Reply] {
        let isOverdue = waiting.contains { now - $0.since >= Self.patience }
        var taken: [CommandReplies.Reply] = []
        while let first = waiting.first?.reply, isOverdue || first.number <= next {
            taken.append(first)
            next = max(next, first.number + 1)
            waiting.removeFirst()
        }
        return taken
    }

    /// All answers that are left, at the end.
    mutating func takeAll() -> [CommandReplies.Reply] {
        defer { waiting = [] }
        return waiting.map(\.reply)
    }
}
