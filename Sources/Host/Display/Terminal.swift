// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Rates
import Synchronization

/// Standard output and standard error, whole lines at a time, by the ``OutputWriter``.
enum Terminal {
    /// Writes `text` and a line feed to the program's standard output, which is no longer descriptor 1: see
    /// ``StandardOutput``. What a terminal would obey is written as `\u{1b}`, since much of it comes from others.
    static func say(_ text: String, as kind: OutputWriter.Kind = .line) {
        write(text.printable(keeping: .all) + "\n", to: .output, as: kind)
    }

    /// Writes `text` and a line feed to standard error.
    static func complain(_ text: String) { write(text.printable(keeping: .all) + "\n", to: .log) }

    /// Writes `text` as it is.
    static func write(_ text: String, to stream: OutputWriter.Stream, as kind: OutputWriter.Kind = .line) {
        OutputWriter.shared.write(text, to: stream, as: kind)
    }

    /// Whether standard error is a terminal.
    static var isInteractive: Bool { isatty(STDERR_FILENO) == 1 }

    /// [main thread] From here on no thread waits for a reader of standard output or standard error; see
    /// ``OutputWriter``. The signals that end the program are blocked by now.
    ///
    /// - Parameter hasEvents: Whether standard output has JSON lines.
    static func begin(hasEvents: Bool = false) {
        let clock = ChainClock()
        do {
            try OutputWriter.shared.begin(usesOutput: hasEvents) { count, stream in
                if stream == .output, hasEvents {
                    return LinesLost(count, .output).event(clock).json(by: clock).text() + "\n"
                }
                return RunLog.line(.warning, LinesLost(count, stream).textAtItsPlace) + "\n"
            }
        } catch {
            RunLog.logger.critical("\(error)")
            exit(1)
        }
    }

    /// The fault of output that could not be written, such as a full disk or a closed standard output; nil where
    /// all was written. A reader that has gone (`| head`) is not a fault.
    static var outputFault: FrameHostError? {
        guard let code = OutputWriter.shared.faultOfOutput else { return nil }
        return FrameHostError(
            .unavailable, place: "standard output",
            what: "cannot be written: \(String(cString: strerror(code)))",
            remedy: code == EBADF
                ? "Start the program without '>&-', with a standard output that can be written."
                : code == ENOSPC || code == EDQUOT
                    ? "Free some space, or send the output to another file."
                    : "Check where standard output goes, or send the output to another file.")
    }

    /// [at the end of the program] Waits until everything is written, as long as somebody reads it, and returns the exit
    /// status of a program that would end with `status`.
    ///
    /// Where output could not be written, or lines of it were left out, logs that and turns 0 into 1, whether or not
    /// anybody reads the log. Lines of the log that nobody reads change no status.
    static func status(_ status: Int32) -> Int32 {
        let lost = OutputWriter.shared.finish().output + linesLost.load(ordering: .relaxed)
        let fault = outputFault
        if let fault { RunLog.logger.critical("\(fault)") }
        if lost > 0 { RunLog.logger.warning("This run counts as failed: \(LinesLost(lost, .output).text)") }
        // Standard output has had its time.
        if fault != nil || lost > 0 { _ = OutputWriter.shared.finish([.log]) }
        return fault != nil || lost > 0 ? max(status, 1) : status
    }

    /// Lines of standard output that were left out before they reached the ``OutputWriter``.
    static let linesLost = Atomic<Int>(0)

    /// Writes a file whole, as ``RunFiles/write(_:_:as:)`` does.
    ///
    /// - Returns: what went wrong, nil when all is well.
    static func writeFile(_ path: String, _ text: String) -> String? {
        switch RunFiles().write(path, text, as: "framehost") {
        case nil: nil
        case .failed(let code): String(cString: strerror(code))
        case let refusal?: refusal.fault(path).what
        }
    }

    /// Columns of a text that is folded: those of the terminal, 80 elsewhere.
    static var columns: Int {
        var size = winsize()
        guard isatty(StandardOutput.descriptor) == 1,
            ioctl(StandardOutput.descriptor, UInt(TIOCGWINSZ), &size) == 0,
            size.ws_col > 0
        else { return 80 }
        return min(max(Int(size.ws_col), 40), 1000)
    }

    /// As ``table(_:)``, with the last column folded so that no line is longer than `columns`. Where the other
    /// columns leave less than 32 for it, it stands below its row.
    static func table(_ rows: [[String]], columns: Int) -> String {
        guard let count = rows.map(\.count).max(), count > 0 else { return "" }
        let whole = rows.filter { $0.count == count }
        let heads = table(rows.map { Array($0.prefix(count - 1)) + ($0.count == count ? ["|"] : []) })
            .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let begin = (heads.first { $0.hasSuffix("|") }).map { $0.count - 1 } ?? 0
        let isBelow = columns - begin < 32
        let indent = String(repeating: " ", count: isBelow ? 8 : begin)
        guard !whole.isEmpty else { return table(rows) }
        return zip(rows, heads).map { row, head in
            guard row.count == count, let last = row.last else { return head }
            let lines = folded(last, to: max(columns - indent.count, 24))
            let front = String(head.dropLast())
            guard !isBelow else {
                let own = front.reversed().drop { $0 == " " }.reversed()
                return ([String(own)] + lines.filter { !$0.isEmpty }.map { indent + $0 }).joined(
                    separator: "\n")
            }
            let text = lines.joined(separator: "\n" + indent)
            return text.isEmpty ? String(front.reversed().drop { $0 == " " }.reversed()) : front + text
        }.joined(separator: "\n")
    }

    /// `text` in lines of at most `columns`, broken at spaces; a longer word has a line of its own.
    static func folded(_ text: String, to columns: Int) -> [String] {
        var lines = [""]
        for word in text.split(separator: " ") {
            if lines[lines.count - 1].isEmpty {
                lines[lines.count - 1] = String(word)
            } else if lines[lines.count - 1].count + 1 + word.count <= columns {
                lines[lines.count - 1] += " " + word
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }

    /// Rows in columns, the first row a heading.
    static func table(_ rows: [[String]]) -> String {
        guard let count = rows.map(\.count).max() else { return "" }
        let widths = (0..<count).map { column in rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0 }
        return rows.map { row in
            let cells = row.enumerated().map { column, cell in
                column == row.count - 1 ? cell : cell + String(repeating: " ", count: widths[column] - cell.count)
            }
            return "  " + cells.joined(separator: "  ")
        }.joined(separator: "\n")
    }

    /// `1.4 MB`, for people.
    static func bytes(_ count: Int) -> String {
        for (unit, size) in [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)] where count >= size {
            let tenths = (count * 10 + size / 2) / size
            return "\(tenths / 10).\(tenths % 10) \(unit)"
        }
        return "\(count) B"
    }

    /// `value` with `places` decimals.
    static func decimal(_ value: Double, places: Int = 1) -> String { FigureText.decimal(value, places: places) }
}
