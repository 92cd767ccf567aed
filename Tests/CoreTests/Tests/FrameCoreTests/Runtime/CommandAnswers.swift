// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

/// The answers that came, by the number that was asked with.
final class CommandAnswers: @unchecked Sendable {
    private let condition = Condition()
    // Below: under `condition`.
    private var answers: [Int: CommandAnswer] = [:]
    private var more = 0

    /// For the question `number`.
    func reply(_ number: Int) -> CommandReply {
        { [self] answer in
            condition.locked {
                if answers[number] != nil { more += 1 }
                answers[number] = answer
                condition.broadcast()
            }
        }
    }

    subscript(_ number: Int) -> CommandAnswer? { condition.locked { answers[number] } }
    /// Questions that were answered.
    var count: Int { condition.locked { answers.count } }
    /// Answers to questions that had one already.
    var repeated: Int { condition.locked { more } }

    /// Waits for it; nil after two minutes.
    func wait(for number: Int) -> CommandAnswer? {
        let deadline = ChainClock.system.now() + 120_000_000_000
        return condition.locked {
            while answers[number] == nil, ChainClock.system.now() < deadline { condition.wait(until: deadline) }
            return answers[number]
        }
    }
}
