// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Synchronization

/// Standard output and standard error, whole lines at a time.
enum Terminal {
    /// Writes `text` and a line feed to the program's standard output, which is no longer descriptor 1: see
    /// ``StandardOutput``.
    static func say(_ text: String) { write(text + "\n", to: StandardOutput.descriptor) }

    /// Writes `text` and a line feed to standard error.
    static func complain(_ text: String) { write(text.printable(keeping: .all) + "\n", to: STDERR_FILENO) }

    /// Whether standard error is a terminal.
    static var isInteractive: Bool { isatty(STDERR_FILENO) == 1 }

    /// How many milliseconds a line waits for a program that does not read. The thread that writes also watches the
    /// run, so this also limits how long a signal can wait.
    private static let patience: Int32 = 1000
    private static let unread = Atomic<Int>(0)
    /// Descriptors, a bit each, on which a line was not read in time. The next line there does not wait.
    private static let slowReaders = Atomic<UInt64>(0)
    /// Descriptors, a bit each, on which only the beginning of the last line was written.
    private static let tornLines = Atomic<UInt64>(0)

    /// Lines of several threads do not mix.
    private static let writing = Mutex(())
    /// errno of the first line that standard output could not take; 0 for none.
    private static let lost = Atomic<Int32>(0)

    /// The fault of output that could not be written, such as a full disk or a closed standard output; nil where
    /// all was written. A reader that has gone (`| head`) is not a fault.
    static var outputFault: FrameHostError? {
        let code = lost.load(ordering: .relaxed)
        guard code != 0 else { return nil }
        return FrameHostError(
            .unavailable, place: "standard output",
            what: "cannot be written: \(String(cString: strerror(code)))",
            remedy: code == EBADF
                ? "Start the program without '>&-', with a standard output that can be written."
                : code == ENOSPC || code == EDQUOT
                    ? "Free some space, or send the output to another file."
                    : "Check where standard output goes, or send the output to another file.")
    }

    /// The exit status of a program that would end with `status`. Where output could not be written, logs that and
    /// turns 0 into 1.
    static func status(_ status: Int32) -> Int32 {
        guard let fault = outputFault else { return status }
        RunLog.logger.critical("\(fault)")
        return max(status, 1)
    }

    /// Lines that were left out because nobody read them, since the last call.
    static func takeUnread() -> Int { unread.exchange(0, ordering: .relaxed) }

    /// Says that ``takeUnread()`` has given this many lines.
    static func leftOut(_ count: Int) -> String {
        let lines = count == 1 ? "1 line of output was" : "\(count) lines of output were"
        return "\(lines) left out: the program that gets the output had not read it for 1 s."
    }

    /// Writes all of `text`. A reader that has gone is not a fault. Where a reader does not read, the text is left
    /// out and counted.
    static func write(_ text: String, to file: Int32) { writing.withLock { _ in writeAlone(text, to: file) } }

    private static func writeAlone(_ text: String, to file: Int32) {
        let bit = UInt64(1) << UInt64(max(file, 0) % 64)
        // A line that was cut before is ended first.
        var bytes = Array(((tornLines.load(ordering: .relaxed) & bit != 0 ? "\n" : "") + text).utf8)[...]
        let whole = bytes.count
        while !bytes.isEmpty {
            // For a pipe, poll(2) promises room for PIPE_BUF bytes. More could block.
            var waiting = pollfd(fd: file, events: Int16(POLLOUT), revents: 0)
            let isSlow = slowReaders.load(ordering: .relaxed) & bit != 0
            let ready = poll(&waiting, 1, isSlow ? 0 : patience)
            if ready < 0, errno == EINTR { continue }
            guard ready != 0 else {
                slowReaders.bitwiseOr(bit, ordering: .relaxed)
                unread.add(1, ordering: .relaxed)
                if bytes.count < whole { tornLines.bitwiseOr(bit, ordering: .relaxed) }
                return
            }
            let count = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress, min($0.count, 4096)) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                if count < 0, errno != EPIPE, file == StandardOutput.descriptor {
                    _ = lost.compareExchange(expected: 0, desired: errno, ordering: .relaxed)
                }
                // The disk may be full, for example. The next text begins on a new line.
                if bytes.count < whole { tornLines.bitwiseOr(bit, ordering: .relaxed) }
                return
            }
            if isSlow { slowReaders.bitwiseAnd(~bit, ordering: .relaxed) }
            bytes = bytes.dropFirst(count)
        }
        tornLines.bitwiseAnd(~bit, ordering: .relaxed)
    }

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
    static func decimal(_ value: Double, places: Int = 1) -> String {
        guard value.isFinite else { return "–" }
        var scale = 1.0
        for _ in 0..<places { scale *= 10 }
        let scaled = Int64((value.magnitude * scale).rounded())
        let fraction = String(scaled % Int64(scale))
        let sign = value < 0 && scaled > 0 ? "-" : ""
        return places == 0
            ? "\(sign)\(scaled)"
            : "\(sign)\(scaled / Int64(scale)).\(String(repeating: "0", count: places - fraction.count))\(fraction)"
    }
}
