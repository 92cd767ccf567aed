// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

/// Passes answers to commands and reloads to the control thread, which writes all lines.
final class CommandReplies: Sendable {
    struct Reply: Sendable {
        /// The number of the line that it answers, from 1 on; 0 for a request that came by another way.
        var number: Int
        /// The event `command-answered`.
        var event: Event
        /// With several chains, the one that answers; nil where the command names none.
        var chain: String?
    }

    /// How many answers may wait before no further command is read.
    private static let mostWaiting = 1024

    private let waiting = Mutex<[Reply]>([])

    /// [any thread]
    ///
    /// - Parameters:
    ///   - tag: The command's tag, which the answer repeats.
    ///   - time: Chain clock, nanoseconds.
    ///   - chain: With several chains, the one that answers.
    func add(_ answer: CommandAnswer, number: Int, tag: JSONNode?, time: Int64, chain: String? = nil) {
        var members = answer.members
        if let tag { members.insert(JSONNode.Member(key: "tag", value: tag), at: 1) }
        let event = Event(
            name: "command-answered", stage: answer.stage, level: answer.isDone ? .info : .warning,
            text: Self.indented(answer.text),
            details: JSONNode(.object(members)), time: time)
        waiting.withLock { $0.append(Reply(number: number, event: event, chain: chain)) }
    }

    /// The text with each further fault on a line that an event keeps: one that is indented.
    private static func indented(_ text: String) -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.first.map { first in
            lines.dropFirst().reduce(String(first)) { $0 + "\n" + ($1.hasPrefix("  ") ? $1 : "  \($1)") }
        } ?? text
    }

    /// [any thread] Whether so many answers wait to be written that no further command should be read.
    var isFull: Bool { waiting.withLock { $0.count >= Self.mostWaiting } }

    /// [control thread] The answers since the last call.
    func take() -> [Reply] {
        waiting.withLock { waiting in
            defer { waiting.removeAll() }
            return waiting
        }
    }
}

extension CommandAnswer {
    private static let goesOn = "The chain goes on without this change."

    /// What is said of a busy chain where the program repeats the change itself.
    static let triesAgain = "Wait: framehost tries the change again until the chain has time for it."

    /// The same answer, with each fault's place as `place` translates it.
    func placed(_ place: (FaultPlace) -> FaultPlace) -> CommandAnswer {
        guard !isDone else { return self }
        let faults = self.faults.map { fault in
            var fault = fault
            fault.place = place(fault.place)
            return fault
        }
        return CommandAnswer(stage: stage, error: FrameHostErrors(faults))
    }

    /// The same as the answer to a reload: says what takes effect, or that the chain goes on without it. A signal and a
    /// watched file have no sender who would know.
    ///
    /// - Parameters:
    ///   - what: What was read: `the chain file`.
    ///   - remedy: What is said of a change that the chain had no time for; nil where its own sentence holds.
    func ofReload(_ what: String, _ chain: Chain?, whenBusy remedy: String? = nil) -> CommandAnswer {
        var answer = self
        guard !isDone else {
            answer.text = "chain: \(what) takes effect at frame \(frame)."
            return answer
        }
        // A chain that drains does not go on, nor does one whose start has failed.
        guard let chain, chain.takesChanges, [.starting, .streaming].contains(chain.currentState) else { return self }
        var faults = faults
        let last = faults.count - 1
        if isBusy {
            // Such a fault says itself that nothing was changed.
            guard let remedy else { return self }
            faults[last].remedy = remedy
        } else if last == 0 {
            faults[last].remedy += (faults[last].remedy.isEmpty ? "" : " ") + Self.goesOn
        }
        var said = CommandAnswer(stage: stage, error: FrameHostErrors(faults))
        // What holds for all of several faults is no part of the last one.
        if !isBusy, last > 0 { said.text += "\n\(Self.goesOn)" }
        return said
    }
}
