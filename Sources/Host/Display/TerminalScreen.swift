// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The whole screen of a terminal, redrawn line by line. Its earlier contents come back at the end.
///
/// Used by one thread. Every ``enter()`` needs a ``leave()``, which may be called at any time and more than once.
final class TerminalScreen {
    /// What a person or the terminal asks for.
    enum Input: Equatable {
        case key(Character)
        case up, down, pageUp, pageDown
        /// The terminal has gone.
        case hangup
    }

    private let output = StandardOutput.descriptor
    private var saved: termios?
    private var isEntered = false
    private var hasKeys = false
    private var unread: [UInt8] = []
    /// False where the user wants no colours: https://no-color.org.
    private let hasColour = getenv("NO_COLOR").map { $0.pointee == 0 } ?? true

    /// Whether standard output is a terminal that can be drawn on.
    static var isThere: Bool {
        guard isatty(StandardOutput.descriptor) == 1, let kind = getenv("TERM") else { return false }
        return !["", "dumb", "unknown"].contains(String(cString: kind))
    }

    /// Columns and rows; 80 and 24 where the terminal does not say.
    var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard ioctl(output, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return (80, 24) }
        return (min(Int(size.ws_col), 1000), min(Int(size.ws_row), 1000))
    }

    // MARK: Coming and going

    /// Switches to the other screen, without cursor and automatic line breaks. Keys come one by one, without an echo.
    func enter() {
        if saved == nil, isatty(STDIN_FILENO) == 1 {
            var state = termios()
            if tcgetattr(STDIN_FILENO, &state) == 0 { saved = state }
        }
        if var state = saved {
            // Keys still send signals: ctrl-C is one of them.
            state.c_lflag &= ~tcflag_t(ICANON | ECHO)
            withUnsafeMutableBytes(of: &state.c_cc) { keys in
                keys[Int(VMIN)] = 0
                keys[Int(VTIME)] = 0
            }
            hasKeys = tcsetattr(STDIN_FILENO, TCSANOW, &state) == 0
        }
        Terminal.write("\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l\u{1b}[2J", to: .output)
        isEntered = true
    }

    /// Restores the terminal as it was before ``enter()``.
    func leave() {
        guard isEntered else { return }
        isEntered = false
        // The user may have stopped the output (ctrl-S). Writing would then wait forever.
        _ = tcflow(output, TCOON)
        Terminal.write("\u{1b}[0m\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l", to: .output)
        if var state = saved {
            // Keys that were typed for this program must not reach the shell.
            _ = tcflush(STDIN_FILENO, TCIFLUSH)
            _ = tcsetattr(STDIN_FILENO, TCSANOW, &state)
        }
    }

    // MARK: Drawing

    /// Draws these lines from the top, and nothing below them.
    func draw(_ lines: [TopTable.Line]) {
        let (columns, rows) = size
        var text = "\u{1b}[H"
        for (index, line) in lines.prefix(rows).enumerated() {
            if index > 0 { text += "\r\n" }
            let cut = TerminalText.cut(TerminalText.clean(line.text), to: columns)
            let (begin, end) = colour(line.style)
            // At the end of a whole line the cursor is on its last character, which would be erased.
            text += begin + cut + end + (TerminalText.width(cut) < columns ? "\u{1b}[K" : "")
        }
        Terminal.write(text + (lines.count < rows ? "\r\n\u{1b}[J" : ""), to: .output)
    }

    private func colour(_ style: TopTable.Style) -> (String, String) {
        let end = "\u{1b}[0m"
        return switch style {
        case .plain: ("", "")
        case .heading: ("\u{1b}[1m", end)
        case .bad: hasColour ? ("\u{1b}[1;31m", end) : ("\u{1b}[1m", end)
        case .warn: hasColour ? ("\u{1b}[33m", end) : ("", "")
        case .rest: hasColour ? ("\u{1b}[2m", end) : ("", "")
        }
    }

    // MARK: Keys

    /// The descriptor on which keys come; nil without a keyboard.
    var keyboard: Int32? { hasKeys ? STDIN_FILENO : nil }

    /// Reads what was typed, once ``keyboard`` is readable.
    func read() -> [Input] {
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = Glibc.read(STDIN_FILENO, &bytes, bytes.count)
        if count < 0 ? errno != EINTR && errno != EAGAIN : count == 0 && hasHungUp {
            hasKeys = false
            return [.hangup]
        }
        unread += bytes[..<max(count, 0)]
        return takeInputs()
    }

    /// Whether the terminal has hung up. Nothing to read may also mean that another program has discarded the keys.
    private var hasHungUp: Bool {
        var keyboard = pollfd(fd: STDIN_FILENO, events: 0, revents: 0)
        return poll(&keyboard, 1, 0) > 0 && keyboard.revents & Int16(POLLHUP | POLLERR | POLLNVAL) != 0
    }

    private static let sequences: [(bytes: [UInt8], input: Input)] = [
        (Array("\u{1b}[A".utf8), .up), (Array("\u{1b}OA".utf8), .up), (Array("\u{1b}[B".utf8), .down),
        (Array("\u{1b}OB".utf8), .down), (Array("\u{1b}[5~".utf8), .pageUp), (Array("\u{1b}[6~".utf8), .pageDown),
    ]

    private func takeInputs() -> [Input] {
        var inputs: [Input] = []
        while let first = unread.first {
            if let (bytes, input) = Self.sequences.first(where: { unread.starts(with: $0.bytes) }) {
                unread.removeFirst(bytes.count)
                inputs.append(input)
            } else if first == 0x1b, unread.count < 4,
                Self.sequences.contains(where: { $0.bytes.starts(with: unread) })
            {
                // The rest of the sequence may still come.
                break
            } else {
                unread.removeFirst()
                if first > 0x1f, first < 0x7f { inputs.append(.key(Character(Unicode.Scalar(first)))) }
            }
        }
        return inputs
    }
}
