// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore
import FrameSupport
import Glibc
import Rates
import Synchronization

/// `framehost top URL`: a live table of a running chain.
struct TopCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top", abstract: "Shows what a running chain and its stages do, second by second.",
        discussion: """
            Asks the chain's control server. On a terminal it redraws one table: q quits, s sorts by another column, arrows scroll. Elsewhere \
            it prints a table for each interval. Exit status: 0 the chain ended or you quit, 1 the chain failed or its server has gone, 2 the \
            command line is wrong.
            """)

    @Argument(help: "The server's address, such as 127.0.0.1:8080.")
    var url: String

    @ArgumentParser.Option(
        parsing: .unconditional, help: ArgumentHelp("Time between two tables. Default: 1.", valueName: "seconds"),
        transform: NumberOption.seconds(0.1...3600, example: 5))
    var interval: Double = 1

    @ArgumentParser.Option(
        parsing: .unconditional, help: ArgumentHelp("End after this many tables.", valueName: "tables"),
        transform: NumberOption.whole(1...1_000_000_000))
    var count: Int?

    @Flag(help: "Print one line of JSON instead of each table.")
    var json = false

    @ArgumentParser.Option(
        name: .customLong("token-file"),
        help: ArgumentHelp(
            "A file with the server's token. Without it, $FRAMEHOST_LOGIN has name:password, or $FRAMEHOST_TOKEN the token.",
            valueName: "file"
        ))
    var tokenFile: String?

    func run() throws {
        let client: ControlClient
        do { client = try ControlClient(url, tokenFile: tokenFile) } catch {
            _ = report(error)
            throw ExitCode(2)
        }
        let watch = ChainWatch(client, interval: interval)
        let end: ChainWatch.End?
        do {
            if TerminalScreen.isThere, !json {
                end = try TopScreen(watch, interval: interval, count: count, client.base).run()
            } else {
                end = try printTables(watch)
            }
        } catch {
            _ = report(error)
            throw ExitCode(1)
        }
        switch end {
        // Threads that ask the server may still run, so no destructors may run now.
        case nil: _exit(Terminal.status(0))
        case .ended:
            Terminal.complain("The chain has ended.")
            _exit(Terminal.status(0))
        case .fault(let error):
            _ = report(error)
            _exit(1)
        }
    }

    /// Prints a table or a line of JSON for each interval. The first comes after one interval, since rates need two
    /// looks.
    private func printTables(_ watch: ChainWatch) throws -> ChainWatch.End? {
        _ = try watch.look()
        var next = MonotonicTime.seconds()
        var printed = 0
        while count.map({ printed < $0 }) ?? true {
            next = max(next + interval, MonotonicTime.seconds())
            MonotonicTime.sleep(seconds: next - MonotonicTime.seconds())
            let figures: LiveFigures
            do { figures = try watch.look() } catch let end as ChainWatch.End { return end }
            if Self.hasReaderGone || Terminal.outputFault != nil { return nil }
            if json {
                Terminal.say(figures.json.text())
            } else {
                let table = TopTable(figures)
                let lines = table.heading(columns: nil) + table.rows(columns: nil) + table.notes(columns: nil)
                Terminal.say((printed > 0 ? "\n" : "") + lines.map(\.text).joined(separator: "\n"))
            }
            printed += 1
        }
        return nil
    }

    /// Whether the reader of a pipe has gone: `framehost top … | head`.
    private static var hasReaderGone: Bool {
        var output = pollfd(fd: StandardOutput.descriptor, events: 0, revents: 0)
        return poll(&output, 1, 0) > 0 && output.revents & Int16(POLLERR) != 0
    }
}

/// `framehost top` on a terminal.
///
/// The main thread draws and reads keys. One thread asks the server, so that `q` works even when the server does not
/// answer. Another waits for signals. Both wake the main thread by a byte in a pipe.
private final class TopScreen {
    private let watch: ChainWatch
    private let interval: Double
    private let count: Int?
    private let address: String
    private let screen = TerminalScreen()
    private let shared = Shared()
    private var figures: LiveFigures
    private var lastLook = MonotonicTime.seconds()
    private var order = TopTable.Order.chain
    private var offset = 0
    /// How many lines of the table's body were drawn last.
    private var page = 1

    private final class Shared: Sendable {
        struct News {
            var figures: [LiveFigures] = []
            var end: ChainWatch.End?
            var signals: [Int32] = []
        }
        let news = Mutex(News())
        let pipe = PipeEnds(blocks: false)

        func tell(_ change: (inout News) -> Void) {
            news.withLock { change(&$0) }
            var byte: UInt8 = 0
            _ = write(pipe.write, &byte, 1)
        }
    }

    /// - Throws: The fault of the first look, or of starting a thread. The terminal is as it was.
    init(_ watch: ChainWatch, interval: Double, count: Int?, _ address: String) throws {
        self.watch = watch
        self.interval = interval
        self.count = count
        self.address = address
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in Background.signals { sigaddset(&signals, signal) }
        // The first look comes before that: until then ctrl-C ends the program as usual.
        figures = try watch.look()
        // Every thread of this program blocks these signals now, so that only `sigwait` gets them.
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        let shared = shared
        let set = signals
        guard shared.pipe.isOpen else {
            throw FrameHostError(
                .exhausted, place: "top", what: "no more files can be opened",
                remedy: "Close other programs, or raise the limit of open files (ulimit -n).")
        }
        let isStarted = Background.start { [set] in
            var set = set
            while true {
                var signal: Int32 = 0
                guard sigwait(&set, &signal) == 0 else { continue }
                shared.tell { $0.signals.append(signal) }
                guard ![SIGTSTP, SIGCONT, SIGWINCH].contains(signal) else { continue }
                // A terminal that nobody reads keeps the main thread in its write.
                usleep(800_000)
                _exit(0)
            }
        }
        guard isStarted else { throw Self.noThread }
    }

    // MARK: The loop

    func run() -> ChainWatch.End? {
        startLooking()
        screen.enter()
        defer { screen.leave() }
        var left = count
        draw()
        while true {
            if left == 0 { return nil }
            wait()
            let news = shared.news.withLock { news in
                defer { news = Shared.News() }
                return news
            }
            if let newest = news.figures.last {
                figures = newest
                lastLook = MonotonicTime.seconds()
                left = left.map { max($0 - news.figures.count, 0) }
            }
            for signal in news.signals where !obey(signal) { return nil }
            if let end = news.end { return end }
            draw()
        }
    }

    /// Waits until there is something new, a key, or the time of the next look.
    private func wait() {
        var files = [pollfd(fd: shared.pipe.read, events: Int16(POLLIN), revents: 0)]
        if let keyboard = screen.keyboard { files.append(pollfd(fd: keyboard, events: Int16(POLLIN), revents: 0)) }
        guard poll(&files, nfds_t(files.count), Int32(max(interval, 0.5) * 1000)) > 0 else { return }
        if files[0].revents != 0 {
            var bytes = [UInt8](repeating: 0, count: 256)
            while read(shared.pipe.read, &bytes, bytes.count) > 0 {}
        }
        if files.count > 1, files[1].revents != 0 {
            for input in screen.read() where !obey(input) { shared.tell { $0.signals.append(SIGTERM) } }
        }
    }

    private func startLooking() {
        let (watch, shared, interval) = (watch, shared, interval)
        let isStarted = Background.start {
            var next = MonotonicTime.seconds()
            while true {
                next = max(next + interval, MonotonicTime.seconds())
                MonotonicTime.sleep(seconds: next - MonotonicTime.seconds())
                do {
                    let figures = try watch.look()
                    shared.tell { $0.figures.append(figures) }
                } catch {
                    shared.tell { $0.end = error as? ChainWatch.End ?? .fault(error) }
                    return
                }
            }
        }
        if !isStarted { shared.tell { $0.end = .fault(Self.noThread) } }
    }

    private static let noThread = FrameHostError(
        .exhausted, place: "top", what: "no thread could be started",
        remedy: "Raise the limit of processes (ulimit -u, or TasksMax= of a service), or end other programs.")

    // MARK: Signals and keys

    /// Handles a signal; false where it ends the program.
    private func obey(_ signal: Int32) -> Bool {
        switch signal {
        case SIGWINCH: break
        case SIGTSTP:
            // ctrl-Z: the shell gets the terminal as it was, until SIGCONT.
            screen.leave()
            kill(getpid(), SIGSTOP)
            screen.enter()
        case SIGCONT: screen.enter()
        default: return false
        }
        return true
    }

    private func obey(_ input: TerminalScreen.Input) -> Bool {
        switch input {
        case .key("q"), .key("Q"), .hangup: return false
        case .key("s"): order = order.next
        case .key("j"), .down: offset += 1
        case .key("k"), .up: offset -= 1
        case .pageDown, .key(" "): offset += page
        case .pageUp: offset -= page
        case .key: break
        }
        return true
    }

    // MARK: Drawing

    private func draw() {
        let (columns, rows) = screen.size
        let table = TopTable(figures, order: order)
        var head = table.heading(columns: columns)
        let silence = MonotonicTime.seconds() - lastLook
        if silence > interval + 2 {
            let words = "! \(address) has not answered for \(FigureText.time(silence)); these figures are old."
            head.insert(TopTable.Line(text: words, style: .warn), at: min(1, head.count))
        }
        let body = table.rows(columns: columns)
        let notes = table.notes(columns: columns)
        // In a low terminal the table gets at least half of the lines.
        let free = max(rows - 2, 1)
        head = Array(head.prefix(max(free / 3, 1)))
        let stages = Array(body.dropFirst())
        let forNotes = min(notes.count, max(free - head.count - 1 - stages.count, min(free / 4, notes.count)))
        page = max(free - head.count - 1 - forNotes, 1)
        offset = min(max(offset, 0), max(stages.count - page, 0))
        var lines = head + body.prefix(1) + stages.dropFirst(offset).prefix(page) + notes.prefix(forNotes)
        lines = Array(lines.prefix(rows - 1))
        let hidden = max(stages.count - page, 0)
        let more =
            hidden > 0
            ? "  stages \(offset + 1) to \(min(offset + page, stages.count)) of \(stages.count), arrows move" : ""
        let keys = "q quit  s sort (\(order.rawValue))\(more)"
        screen.draw(lines + [TopTable.Line(text: keys, style: .rest)])
    }
}
