// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore
import Glibc
import Logging

/// What a run shows: the log with a progress line, and JSON lines for programs.
///
/// With `--log-format json` there is no progress line. [control thread]
final class RunDisplay {
    private let quiet: Bool
    private let verbose: Bool
    private let jsonEvents: Bool
    private let onlyAnswers: Bool
    private let replies: CommandReplies
    /// The chain's name, where several chains run in this process.
    private let name: String?
    private let line: ProgressLine
    private var events: EventSubscription?
    private let isInteractive = Terminal.isInteractive && RunLog.format == .text
    private var start: Int64?
    private var lastShown: Int64 = 0
    private var lastCaptured = 0
    private var answers = AnswerOrder()
    /// Lines that were left out and not reported yet, and when that was done last.
    private var linesLost = OutputWriter.Counts()
    private var linesReported = Int64.min
    /// Nanoseconds between two reports of lines that were left out: listeners that are slow get few.
    private static let reportPause: Int64 = 1_000_000_000
    /// Failures that were shown as an event `stage-failed` already.
    private var shownFailures: Set<String> = []

    /// - Parameters:
    ///   - verbose: Events of the level debug are lines too.
    ///   - onlyAnswers: Of the events only the answers to commands go to standard output.
    ///   - replies: Answers to commands.
    ///   - name: The chain's name, where several chains run in this process. Its lines then begin with the name, and
    ///     the progress line is for all chains.
    ///   - line: Where the progress is shown; shared by several chains.
    init(
        quiet: Bool, verbose: Bool = false, jsonEvents: Bool, onlyAnswers: Bool, replies: CommandReplies,
        name: String? = nil, line: ProgressLine = ProgressLine()
    ) {
        self.name = name
        self.line = line
        self.replies = replies
        self.quiet = quiet
        self.verbose = verbose
        self.jsonEvents = jsonEvents
        self.onlyAnswers = onlyAnswers
    }

    /// Whether standard output has JSON lines.
    var hasEvents: Bool { jsonEvents }

    /// Shows new events and, from time to time, the progress.
    func update(_ chain: Chain) {
        let subscription = events ?? chain.subscribe()
        events = subscription
        let now = chain.clock.now()
        reportLostLines(chain, now: now)
        let (events, lost) = subscription.take()
        let hasLost = "\(lost == 1 ? "1 event was" : "\(lost) events were") lost: more came than could be written."
        // Where they are missing: they came before those that are there.
        if lost > 0, jsonEvents, !onlyAnswers {
            Terminal.linesLost.add(lost, ordering: .relaxed)
            let event = LinesLost(lost, .output).event(chain.clock, text: hasLost)
            Terminal.say(event.json(by: chain.clock, chain: name).text())
        }
        for event in events { show(event, chain) }
        // Answers keep the order of the lines they answer.
        // While they cannot be written, no further commands are read.
        if !jsonEvents || OutputWriter.shared.hasRoom(for: .output) {
            for reply in replies.take() { answers.add(reply, now: now) }
            // Not before: one that waits there is not missing.
            for reply in answers.take(now: now) { show(reply, chain) }
        }
        if lost > 0 { complain(.notice, hasLost) }
        let state = chain.currentState
        if state == .finishing { return showJob(chain, now: now) }
        guard state == .streaming || state == .draining else { return }
        if start == nil {
            start = now
            lastShown = now
        }
        guard !quiet, showsProgress, now - lastShown >= interval, let start else { return }
        showProgress(chain, now: now, start: start)
    }

    /// Tells all listeners of lines that were left out: one who reads neither the log nor standard output learns of it.
    /// With several chains in the process, ``ChainsDisplay`` says it.
    private func reportLostLines(_ chain: Chain, now: Int64) {
        guard name == nil else { return }
        let news = OutputWriter.shared.takeLost()
        for stream in OutputWriter.Stream.allCases { linesLost[stream] += news[stream] }
        guard linesLost != OutputWriter.Counts(), linesReported == .min || now - linesReported >= Self.reportPause
        else { return }
        for stream in OutputWriter.Stream.allCases where linesLost[stream] > 0 {
            chain.post(LinesLost(linesLost[stream], stream).event(chain.clock))
        }
        (linesLost, linesReported) = (OutputWriter.Counts(), now)
    }

    /// Nanoseconds from one progress line to the next.
    private var interval: Int64 { isInteractive ? 250_000_000 : 5_000_000_000 }

    /// One of several chains shows its own progress only with --verbose and not on a terminal, where the line for all
    /// chains would overwrite it.
    private var showsProgress: Bool { name == nil || (verbose && !isInteractive) }

    /// `finalising out.mp4  42 %  2 more  (ctrl-C leaves it as it is)`
    private func showJob(_ chain: Chain, now: Int64) {
        guard !quiet, showsProgress, now - lastShown >= interval, let job = chain.currentJob else { return }
        lastShown = now
        let following = job.following > 0 ? "  \(job.following) more" : ""
        showLine("\(job.title)  \(Int(job.fraction * 100)) %\(following)  (ctrl-C leaves it as it is)")
    }

    /// An answer to a line is for whoever wrote that line. Where nobody asked (a watched file, a signal), the log says
    /// too what went wrong.
    private func show(_ reply: CommandReplies.Reply, _ chain: Chain) {
        show(reply.event, chain, isForLog: reply.number == 0 && reply.event.level >= .warning)
    }

    /// - Parameter isForLog: Whether the log has the event even where standard output does.
    private func show(_ event: Event, _ chain: Chain, isForLog: Bool = false) {
        if ["stage-failed", "stage-end-failed"].contains(event.name) { shownFailures.insert(event.text) }
        if jsonEvents, !onlyAnswers || event.name == "command-answered" {
            // The writer itself says on standard output what is missing there.
            let isSaid = event.name == LinesLost.name && event.details["stream"]?.asString == "output"
            if !isSaid {
                Terminal.say(
                    event.json(by: chain.clock, chain: name).text(),
                    as: event.name == "command-answered" ? .answer : .line)
            }
        }
        let isWorthALine =
            event.level >= .warning || (verbose && event.level == .debug)
            || (!quiet && event.level == .info && event.name != "state" && event.name != "fps")
        // The same holds for the log.
        let isSaid = event.name == LinesLost.name && event.details["stream"]?.asString == "log"
        if isWorthALine, !isSaid, isForLog || !(jsonEvents && event.name == "command-answered") {
            line.clear { RunLog.log(event, text: named(Self.text(event)), chain.clock, chain: name) }
        }
    }

    /// `rec: The recording to 'out.mp4' begins.` Some texts name the stage themselves, by its id or as
    /// `rec (recorder): …`.
    static func text(_ event: Event) -> String {
        guard let stage = event.stage, event.name != "out-of-buffers" else { return event.text }
        let isNamed = event.text.hasPrefix("\(stage): ") || event.text.hasPrefix("\(stage) (")
        return isNamed ? event.text : "\(stage): \(event.text)"
    }

    private static func blocks(_ count: Int, _ kind: String) -> String {
        "\(count) \(count == 1 ? "block" : "blocks") of \(kind)"
    }

    /// Shows why the chain cannot start, and returns the exit status that follows.
    func refuse(_ error: any Error) -> ExitCode {
        guard name != nil else { return report(error) }
        for error in (error as? FrameHostErrors)?.errors ?? [.wrap(error)] { complain(.error, "\(error)") }
        return ExitCode(1)
    }

    /// Says what the run's exit status is for although the chain has ended well.
    func complain(_ fault: FrameHostError) { complain(.critical, "\(fault)") }

    private func complain(_ level: Logger.Level, _ text: String) {
        line.clear { RunLog.log(level, named(text), chain: name) }
    }

    /// `cam1: recording …`: with several chains, each line names its chain. A JSON line has a member for the name.
    private func named(_ text: String) -> String {
        guard let name, RunLog.format == .text else { return text }
        return "\(name): \(text)"
    }

    /// `00:12.4  372 frames  30.0 fps  1.00x  0 dropped  ETA 00:03`
    private func showProgress(_ chain: Chain, now: Int64, start: Int64) {
        let progress = chain.progress
        let elapsed = Double(now - start) / 1e9
        let fps = Double(progress.captured - lastCaptured) / (Double(now - lastShown) / 1e9)
        lastShown = now
        lastCaptured = progress.captured
        var parts = [
            Self.time(elapsed), "\(progress.captured) frames", "\(Terminal.decimal(fps)) fps",
        ]
        if !progress.frameRate.isZero {
            parts.append("\(Terminal.decimal(fps / progress.frameRate.value, places: 2))x")
        }
        parts.append("\(progress.dropped) dropped")
        if let expected = progress.expectedItems, progress.captured > 0 {
            let left = Double(max(expected - progress.captured, 0)) * elapsed / Double(progress.captured)
            parts.append("ETA \(Self.time(left))")
        }
        showLine(parts.joined(separator: "  "))
    }

    private func showLine(_ line: String) {
        // Below a backtrace it would say that the chain goes on.
        guard !CrashReport.isCrashing else { return }
        if isInteractive {
            self.line.show(line)
        } else if RunLog.format == .text {
            Terminal.complain(named(line))
        }
    }

    /// Shows the last events, and one line on how the run ended.
    ///
    /// - Parameters:
    ///   - shortfalls: What inputs did not give of what they promise, where the run counts as failed for it.
    ///   - leftBehind: Services that did not end in time.
    func finish(
        _ chain: Chain, _ result: Chain.Result, shortfalls: [String] = [], leftBehind: [String] = [], elapsed: Double
    ) {
        linesReported = .min
        update(chain)
        for reply in replies.take() { answers.add(reply, now: chain.clock.now()) }
        for reply in answers.takeAll() { show(reply, chain) }
        line.clear()
        for failure in result.failures where !shownFailures.contains(failure.description) {
            complain(.error, "\(failure)")
        }
        // Nothing else says why a run without errors has failed.
        if let loss = result.losses.first {
            let more = result.losses.count == 1 ? "" : " The same happened in \(result.losses.count - 1) more calls."
            complain(.warning, "This run counts as failed: \(loss).\(more)")
        }
        for shortfall in shortfalls {
            complain(
                .warning,
                "This run counts as failed: \(shortfall). Replace the file, or add --accept-damaged if what it has is enough."
            )
        }
        for key in leftBehind {
            complain(
                .warning,
                "The service '\(key)' had not ended \(RunServices.patience) ms after it was told to, and was left behind. What it had not finished by then is missing."
            )
        }
        guard !quiet else { return }
        for line in result.drops { complain(.notice, line) }
        let ledger = chain.ledger
        let how = result.isSuccess ? shortfalls.isEmpty ? "Done" : "Not whole" : "Failed"
        let units = Self.unitsBesidePictures(chain)
        let frames = ledger.captured - ledger.capturedSound - ledger.capturedMotion - units
        let fps = elapsed > 0 ? Terminal.decimal(Double(frames) / elapsed) : "–"
        var parts: [String] = []
        if units > 0 { parts.append("\(units) access \(units == 1 ? "unit" : "units")") }
        if ledger.capturedSound > 0 { parts.append(Self.blocks(ledger.capturedSound, "sound")) }
        if ledger.capturedMotion > 0 { parts.append(Self.blocks(ledger.capturedMotion, "motion")) }
        let hasFrames = frames > 0 || parts.isEmpty
        if hasFrames { parts.insert("\(frames) \(frames == 1 ? "frame" : "frames")", at: 0) }
        let pace = hasFrames ? " (\(fps) fps)" : ""
        // Those are no loss: a preview, or a join that takes the newest picture, asked for it.
        let replaced = ledger.replaced > 0 ? ", \(ledger.replaced) replaced by newer ones" : ""
        complain(
            .notice,
            "\(how): \(wordList(parts, "and")) in \(Self.time(elapsed))\(pace), \(ledger.delivered) delivered, \(ledger.dropped) dropped\(replaced)."
        )
    }

    /// How many items are pictures of another output once more, as they came: `door.units` beside `door`. Only a further
    /// output has a dot in its name.
    private static func unitsBesidePictures(_ chain: Chain) -> Int {
        let units = chain.plan.stages.filter {
            $0.kind == .source && $0.id.contains(".") && $0.output?.encoded?.video != nil
        }.map(\.id)
        guard !units.isEmpty else { return 0 }
        return (chain.figures["stages"]?.asArray ?? []).filter { units.contains($0["id"]?.asString ?? "") }
            .reduce(0) { $0 + ($1["framesOut"]?.asInt ?? 0) }
    }

    /// `01:02:03.4` or `02:03.4`.
    static func time(_ seconds: Double) -> String {
        let tenths = Int((seconds * 10).rounded())
        func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let whole = tenths / 10
        let hours = whole >= 3600 ? "\(two(whole / 3600)):" : ""
        return "\(hours)\(two(whole / 60 % 60)):\(two(whole % 60)).\(tenths % 10)"
    }
}
