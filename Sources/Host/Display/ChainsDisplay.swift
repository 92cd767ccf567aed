// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Logging

/// What a run of several chains shows beside what each of them shows: the progress of all, answers to commands, and
/// how the run ended.
///
/// [thread `chains`]
final class ChainsDisplay {
    /// One of the chains.
    struct Member {
        var status: ChainsStatus.Member
        /// Frames since its start.
        var captured: Int
        var dropped: Int
    }

    private let quiet: Bool
    private let showsAnswers: Bool
    private let clock = ChainClock()
    private let line: ProgressLine
    private let isInteractive = Terminal.isInteractive && RunLog.format == .text
    private var answers = AnswerOrder()
    /// Lines of standard output that were left out and not reported yet, and when that was done last.
    private var linesLost = 0
    private var linesReported: Int64 = 0
    private var lastShown: Int64?
    private var lastCaptured = 0

    /// - Parameters:
    ///   - showsAnswers: Answers to commands go to standard output.
    ///   - line: Where the progress is shown; shared with the chains' own displays.
    init(quiet: Bool, showsAnswers: Bool, line: ProgressLine) {
        self.quiet = quiet
        self.showsAnswers = showsAnswers
        self.line = line
    }

    /// Shows new answers, and says which lines were left out. While answers cannot be written, no further commands are
    /// read.
    ///
    /// - Parameter isLast: Takes all answers, at the end.
    func update(_ replies: CommandReplies, now: Int64, isLast: Bool = false) {
        if isLast || !showsAnswers || OutputWriter.shared.hasRoom(for: .output) {
            for reply in replies.take() { answers.add(reply, now: now) }
            // Not before: one that waits there is not missing.
            for reply in answers.take(now: now) { show(reply) }
        }
        linesLost += OutputWriter.shared.takeLost().output
        guard linesLost > 0, isLast || now - linesReported >= 1_000_000_000 else { return }
        say(.warning, LinesLost(linesLost, .output).text, chain: nil)
        (linesLost, linesReported) = (0, now)
    }

    /// Whether it is time for the progress.
    func isDue(now: Int64, begin: Int64) -> Bool {
        !quiet && now - (lastShown ?? begin) >= (isInteractive ? 250_000_000 : 5_000_000_000)
    }

    private func show(_ reply: CommandReplies.Reply) {
        guard showsAnswers else { return }
        Terminal.say(reply.event.json(by: clock, chain: reply.chain).text(), as: .answer)
    }

    /// `00:12.4  20 chains: 19 streaming, 1 failed  7440 frames  600.0 fps  0 dropped`
    func showProgress(_ members: [Member], now: Int64, begin: Int64) {
        guard !members.isEmpty, isDue(now: now, begin: begin) else { return }
        let captured = members.reduce(0) { $0 + $1.captured }
        let fps = Double(captured - lastCaptured) / (Double(now - (lastShown ?? begin)) / 1e9)
        (lastShown, lastCaptured) = (now, captured)
        var counts: [(word: String, count: Int)] = []
        for member in members {
            let word = Self.word(member.status)
            if let index = counts.firstIndex(where: { $0.word == word }) {
                counts[index].count += 1
            } else {
                counts.append((word, 1))
            }
        }
        let states = counts.map { "\($0.count) \($0.word)" }.joined(separator: ", ")
        let text = [
            RunDisplay.time(Double(now - begin) / 1e9), "\(Self.chains(members.count)): \(states)",
            "\(captured) frames",
            "\(Terminal.decimal(fps)) fps", "\(members.reduce(0) { $0 + $1.dropped }) dropped",
        ].joined(separator: "  ")
        guard !CrashReport.isCrashing else { return }
        if isInteractive {
            line.show(text)
        } else if RunLog.format == .text {
            Terminal.complain(text)
        }
    }

    private static func word(_ member: ChainsStatus.Member) -> String {
        guard member.hasEnded else { return member.isAway ? "away" : member.status.state.rawValue }
        return member.status.state == .failed ? "failed" : "done"
    }

    private static func chains(_ count: Int) -> String { count == 1 ? "1 chain" : "\(count) chains" }

    /// A line of the log, of one chain or of the program.
    func say(_ level: Logger.Level, _ text: String, chain: String?) {
        let isNamed = RunLog.format == .text
        line.clear { RunLog.log(level, isNamed ? chain.map { "\($0): \(text)" } ?? text : text, chain: chain) }
    }

    /// Shows the last answers, and one line on how the run ended.
    func finish(count: Int, failed: [String], leftOut: [String]) {
        for reply in answers.takeAll() { show(reply) }
        line.clear()
        var sentences: [String] = []
        if !failed.isEmpty {
            sentences.append(
                "\(failed.count) of \(Self.chains(count)) failed: \(ChainsCommands.listed(failed, "and")).")
        }
        if !leftOut.isEmpty {
            let were = leftOut.count == 1 ? "was" : "were"
            let names = ChainsCommands.listed(leftOut, "and")
            sentences.append("\(leftOut.count) of \(Self.chains(count)) \(were) left out: \(names).")
        }
        guard sentences.isEmpty else { return say(.error, sentences.joined(separator: " "), chain: nil) }
        if !quiet { say(.notice, "Done: \(Self.chains(count)).", chain: nil) }
    }
}
