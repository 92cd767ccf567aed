// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// What a batch shows: one progress line for all units, failures as they happen, and with `--verbose` a row for each
/// finished unit.
///
/// [main thread]
final class BatchDisplay {
    private let isQuiet: Bool
    private let isVerbose: Bool
    private let count: Int
    private let tally: BatchTally
    private let isInteractive = Terminal.isInteractive && RunLog.format == .text
    private let began = MonotonicTime.seconds()
    private var lastShown = MonotonicTime.seconds()
    private var lastFrames = 0
    private var isLineOpen = false
    private var hasHeading = false
    /// Warnings of workers, and how many further files had the same warning.
    private var repeated: [String: Int] = [:]
    private var withWarnings = 0
    private static let mostWarnings = 50
    /// Inputs that every summary names.
    private var givenUp = NameList()
    private var damaged = NameList()

    init(_ tally: BatchTally, count: Int, isQuiet: Bool, isVerbose: Bool) {
        self.tally = tally
        self.count = count
        self.isQuiet = isQuiet
        self.isVerbose = isVerbose
    }

    var elapsed: Double { MonotonicTime.seconds() - began }

    /// Shows what is new, and now and then how far the batch is.
    func update() {
        for news in tally.takeNews() {
            switch news {
            case .note(let text, let isWarning):
                if isWarning || !isQuiet {
                    closeLine()
                    RunLog.logger.log(level: isWarning ? .warning : .notice, "\(text)")
                }
            case .result(let result): show(result)
            }
        }
        let now = MonotonicTime.seconds()
        guard !isQuiet, now - lastShown >= (isInteractive ? 0.25 : 5) else { return }
        let figures = tally.figures
        let fps = Double(figures.frames - lastFrames) / (now - lastShown)
        (lastShown, lastFrames) = (now, figures.frames)
        showLine(line(figures, fps: fps))
    }

    /// `12 of 60 files  3456 frames  412.0 fps  13.7x  1 set aside  ETA 00:42.0`
    private func line(_ figures: BatchTally.Figures, fps: Double) -> String {
        var parts = [
            "\(figures.finished) of \(Self.files(count))", Self.frames(figures.frames), "\(Terminal.decimal(fps)) fps",
        ]
        if figures.mediaSeconds > 0 { parts.append("\(Terminal.decimal(figures.mediaSeconds / elapsed))x") }
        if figures.setAside > 0 { parts.append("\(figures.setAside) set aside") }
        let worked = figures.made + figures.setAside
        if worked > 0 {
            parts.append("ETA \(RunDisplay.time(elapsed / Double(worked) * Double(count - figures.finished)))")
        }
        return parts.joined(separator: "  ")
    }

    private func show(_ result: BatchResult) {
        closeLine()
        if result.state == .setAside {
            let tries = result.attempts > 1 ? " after \(result.attempts) attempts" : ""
            RunLog.logger.error("\(Self.shown(result.input)): set aside\(tries): \(result.error)")
        }
        if result.state == .givenUp { givenUp.add(Self.shown(result.input)) }
        if !result.damage.isEmpty {
            damaged.add(Self.shown(result.input))
            if result.state == .made {
                RunLog.logger.warning("\(Self.shown(result.input)): made of a damaged input: \(result.damage)")
            }
        }
        if !result.warnings.isEmpty, result.state == .made { withWarnings += 1 }
        for text in Set(result.warnings).sorted() where result.state == .made {
            if repeated[text] != nil {
                repeated[text]! += 1
            } else if repeated.count < Self.mostWarnings {
                repeated[text] = 0
                RunLog.logger.warning("\(Self.shown(result.input)): \(text)")
            }
        }
        guard isVerbose else { return }
        if !hasHeading { Terminal.complain(Self.row("file", "frames", "time", "fps", "speed", "size", "what")) }
        hasHeading = true
        let isMade = result.state == .made && result.seconds > 0
        let isAgain = result.state == .made && !result.replaced.isEmpty
        Terminal.complain(
            Self.row(
                Self.shown(result.output), isMade ? "\(result.frames)" : "–",
                isMade ? RunDisplay.time(result.seconds) : "–",
                isMade ? Terminal.decimal(Double(result.frames) / result.seconds) : "–",
                isMade && result.mediaSeconds > 0 ? "\(Terminal.decimal(result.mediaSeconds / result.seconds))x" : "–",
                isMade ? Terminal.bytes(Int(result.bytes)) : "–",
                result.state.rawValue + (isAgain ? " again, because \(result.replaced) had changed" : "")
                    + (result.attempts > 1 ? " (attempt \(result.attempts))" : "")))
    }

    private static func row(_ cells: String...) -> String {
        let widths = [32, 8, 9, 8, 7, 9]
        return cells.enumerated().map { column, cell in
            guard column < widths.count else { return cell }
            let space = String(repeating: " ", count: max(0, widths[column] - cell.count))
            return column == 0 ? cell + space : space + cell
        }.joined(separator: "  ")
    }

    /// Shows how the batch ended.
    func finish(isStopped: Bool) {
        update()
        closeLine()
        for (text, count) in repeated.sorted(by: { $0.key < $1.key }) where count > 0 {
            RunLog.logger.warning("\(count == 1 ? "1 more file" : "\(count) more files"): \(text)")
        }
        let figures = tally.figures
        if figures.damaged > 0 {
            RunLog.logger.warning(
                "\(figures.damaged == 1 ? "1 output is" : "\(figures.damaged) outputs are") made of damaged inputs, which --accept-damaged permitted: \(damaged.text)."
            )
        }
        guard !isQuiet else { return }
        if figures.givenUp > 0 { RunLog.logger.notice("Given up by hand: \(givenUp.text).") }
        var parts = ["\(figures.made) made\(withWarnings > 0 ? " (\(withWarnings) with warnings)" : "")"]
        if figures.present > 0 { parts.append("\(figures.present) there already") }
        if figures.madeElsewhere > 0 { parts.append("\(figures.madeElsewhere) made by other batches") }
        if figures.damaged > 0 { parts.append("\(figures.damaged) of them of damaged inputs") }
        if figures.setAside > 0 { parts.append("\(figures.setAside) set aside") }
        if figures.givenUp > 0 { parts.append("\(figures.givenUp) given up") }
        if count > figures.finished { parts.append("\(count - figures.finished) left") }
        let speed = figures.mediaSeconds > 0 ? ", \(Terminal.decimal(figures.mediaSeconds / elapsed))x" : ""
        let how = isStopped ? "Stopped" : figures.setAside > 0 ? "Failed" : figures.damaged > 0 ? "Not whole" : "Done"
        let next =
            isStopped
            ? " Run the same command again to continue."
            : figures.setAside > 0
                ? " Correct the causes, then run the same command again with --retry."
                : figures.damaged > 0
                    ? " Replace the damaged inputs, or give them up with --give-up NAME." : ""
        RunLog.logger.notice(
            "\(how): \(Self.files(count)) in \(RunDisplay.time(elapsed)): \(parts.joined(separator: ", ")). \(Self.frames(figures.frames)) (\(Terminal.decimal(Double(figures.frames) / elapsed)) fps\(speed)).\(next)"
        )
    }

    /// A name without the characters on which a terminal would act.
    private static func shown(_ name: String) -> String {
        guard name.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7f }) else { return name }
        return String(
            String.UnicodeScalarView(name.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7f ? "?" : $0 }))
    }

    /// The first names of a list, and the number of names that follow.
    private struct NameList {
        private var names: [String] = []
        private var count = 0
        private static let most = 20

        mutating func add(_ name: String) {
            count += 1
            if names.count < Self.most { names.append(name) }
        }

        var text: String {
            names.joined(separator: ", ")
                + (count > names.count ? " and \(count - names.count) more (--report names them all)" : "")
        }
    }

    static func files(_ count: Int) -> String { count == 1 ? "1 file" : "\(count) files" }

    private static func frames(_ count: Int) -> String { count == 1 ? "1 frame" : "\(count) frames" }

    private func closeLine() {
        if isLineOpen { Terminal.write("\r\u{1b}[K", to: .log, as: .progress) }
        isLineOpen = false
    }

    private func showLine(_ line: String) {
        if isInteractive {
            Terminal.write("\r\(line)\u{1b}[K", to: .log, as: .progress)
            isLineOpen = true
        } else if RunLog.format == .text {
            Terminal.complain(line)
        }
    }
}
