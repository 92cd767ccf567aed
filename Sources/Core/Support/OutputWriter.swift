// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Writes the program's lines to standard output and standard error. Until ``begin(usesOutput:naming:)`` a line is written where
/// it is said, and waits for its reader.
///
/// From then on no thread waits for a reader: a terminal may be stopped, a pipe full, a log's daemon hang. Lines go
/// through a bounded queue to a thread that writes them. poll(2) does not promise that a write to a terminal returns, and
/// making the descriptor non-blocking would change it for every program that shares it. So the thread may wait in
/// write(2) for good, and the process ends without it. Each of the two streams has a queue and a thread, since one may be
/// read while the other is not; where both lead to one file they share them, and the order of all lines stays.
///
/// What is left out is counted and named in the text itself, at its place.
public final class OutputWriter: Sendable {
    /// Where a line goes.
    public enum Stream: Int, CaseIterable, Sendable {
        /// The program's standard output (``StandardOutput``): events, answers, what a command prints.
        case output
        /// Standard error: the log.
        case log
    }

    /// What a text is worth where there is no room for it.
    public enum Kind: Sendable {
        /// It is left out and counted.
        case line
        /// It is kept: each command is answered. Who says it asks ``hasRoom(for:)`` before.
        case answer
        /// The next one takes its place, and it is not counted: a line of a terminal that is overwritten.
        case progress
    }

    /// A number of lines for each stream.
    public struct Counts: Sendable, Equatable {
        /// Lines of standard output.
        public var output = 0
        /// Lines of standard error.
        public var log = 0

        /// None of either.
        public init() {}

        /// The lines of a stream.
        public subscript(stream: Stream) -> Int {
            get { stream == .output ? output : log }
            set { if stream == .output { output = newValue } else { log = newValue } }
        }
    }

    /// The writer of this process.
    public static let shared = OutputWriter()

    /// How much may wait for a reader, bytes of each queue.
    static let mostBytes = 4 << 20
    /// How long the end waits while nobody reads anything, counted from when something was last read, ns.
    static let patience: Int64 = 700_000_000
    /// The least time that the end gives to what was said last, ns.
    static let grace: Int64 = 100_000_000
    /// How long the end waits for one who reads slowly, ns; and after a signal.
    public static let longestWait: Int64 = 10_000_000_000
    static let longestHurriedWait: Int64 = 500_000_000

    /// What one thread writes. `@unchecked Sendable`: all but the atomics is under `condition`.
    private final class Lane: @unchecked Sendable {
        let condition = Condition()
        var queue = LineQueue(mostBytes: OutputWriter.mostBytes)
        /// The stream of the text that is being written, and whether it is a line and not the name of a gap; nil where
        /// none is.
        var current: (stream: Stream, isLine: Bool)?
        /// When the reader last took something, or when something first waited for it; system's clock.
        let progress = Atomic<Int64>(0)
    }

    /// The descriptor of each stream.
    private let descriptor: @Sendable (Stream) -> Int32
    /// By stream; empty until ``begin(usesOutput:naming:)``. Set once.
    private let lanes = Locked<[Lane]>([])
    private let naming = Locked<@Sendable (Int, Stream) -> String>({ _, _ in "" })
    /// Lines of several threads do not mix.
    private let writing = Locked(())
    /// Whether only the beginning of the last text was written, a bit for each stream.
    private let torn = Atomic<Int>(0)
    /// errno of the first text that standard output could not take; 0 for none.
    private let lost = Atomic<Int32>(0)
    private let told = Locked(Counts())
    private let hurried = Atomic<Bool>(false)
    /// When the program's end is over, as far as it waits for others; the system's clock.
    private let end = Atomic<Int64>(.max)

    /// - Parameter descriptor: Where each stream leads, asked for each text.
    init(
        descriptor: @escaping @Sendable (Stream) -> Int32 = {
            $0 == .output ? StandardOutput.descriptor : STDERR_FILENO
        }
    ) { self.descriptor = descriptor }

    /// [main thread, before other threads write] From here on nobody waits for a reader. To be called by what must
    /// answer signals, commands and stages, with the signals of the process blocked.
    ///
    /// - Parameters:
    ///   - usesOutput: Whether standard output gets lines. Otherwise one thread is enough.
    ///   - naming: Says in a stream's own form that so many of its lines were left out at this place; with its line
    ///     feed.
    /// - Throws: ``FrameHostError`` `.exhausted` when the system gives no further thread.
    public func begin(usesOutput: Bool = true, naming: @escaping @Sendable (Int, Stream) -> String) throws {
        guard lanes.withLock({ $0.isEmpty }) else { return }
        self.naming.withLock { $0 = naming }
        let output = Lane()
        let isOne = !usesOutput || Self.isOneFile(descriptor(.output), descriptor(.log))
        let log = isOne ? output : Lane()
        for lane in isOne ? [output] : [output, log] {
            try ServiceThread.start(name: "output", mostlyWaits: true) { [self] in work(lane) }
        }
        lanes.withLock { $0 = [output, log] }
    }

    private static func isOneFile(_ first: Int32, _ second: Int32) -> Bool {
        var (one, other) = (stat(), stat())
        guard fstat(first, &one) == 0, fstat(second, &other) == 0 else { return false }
        return one.st_dev == other.st_dev && one.st_ino == other.st_ino && one.st_rdev == other.st_rdev
    }

    private func lane(_ stream: Stream) -> Lane? { lanes.withLock { $0.isEmpty ? nil : $0[stream.rawValue] } }

    // MARK: Any thread

    /// [any thread] Writes a text, or passes it to the thread that does. After ``begin(usesOutput:naming:)`` this does not
    /// wait.
    ///
    /// - Parameters:
    ///   - text: Whole lines, with their line feeds; of `.progress` what overwrites a line.
    ///   - stream: Where it goes.
    ///   - kind: What happens where there is no room for it.
    public func write(_ text: String, to stream: Stream, as kind: Kind = .line) {
        guard let lane = lane(stream) else { return writing.withLock { _ in put(Array(text.utf8), stream, nil) } }
        lane.condition.locked {
            if lane.queue.isEmpty, lane.current == nil { lane.progress.store(Self.now, ordering: .relaxed) }
            lane.queue.offer(Array(text.utf8), stream, kind)
            lane.condition.broadcast()
        }
    }

    /// [any thread] Whether a line would be taken now. True before ``begin(usesOutput:naming:)``, where writing waits.
    public func hasRoom(for stream: Stream) -> Bool {
        guard let lane = lane(stream) else { return true }
        return lane.condition.locked { lane.queue.hasRoom }
    }

    /// [any thread] Lines that were left out, since the last call.
    public func takeLost() -> Counts {
        let now = sum(\.lost)
        return told.withLock { told in
            var news = Counts()
            for stream in Stream.allCases { news[stream] = now[stream] - told[stream] }
            told = now
            return news
        }
    }

    private func sum(_ counts: KeyPath<LineQueue, Counts>) -> Counts {
        var result = Counts()
        let lanes = lanes.withLock { $0 }
        for stream in Stream.allCases where !lanes.isEmpty {
            let lane = lanes[stream.rawValue]
            lane.condition.locked { result[stream] = lane.queue[keyPath: counts][stream] }
        }
        return result
    }

    /// [any thread] Whether nothing waits and nothing is being written. Where something is, exit(3) may wait too: what
    /// libraries have in stdio's buffers goes to the same reader.
    public var isIdle: Bool {
        lanes.withLock { $0 }.allSatisfy { lane in
            lane.condition.locked { lane.current == nil && lane.queue.isEmpty }
        }
    }

    /// [any thread] errno of the first text that standard output could not take; nil where all was written or waits. A
    /// reader that has gone (`| head`) is not a fault.
    public var faultOfOutput: Int32? {
        let code = lost.load(ordering: .relaxed)
        return code == 0 ? nil : code
    }

    /// [any thread] Somebody has told the program to end: ``finish(_:longest:)`` takes no longer than ``timeLeft``.
    public func hurry() { hurried.store(true, ordering: .relaxed) }

    /// [any thread] Whether somebody has told the program to end.
    public var isHurried: Bool { hurried.load(ordering: .relaxed) }

    /// [any thread] A chain has ended, and what is left of the program's end has this time together.
    ///
    /// - Parameter nanoseconds: The time that services and readers have.
    public func endBegins(within nanoseconds: Int64) { end.store(Self.now + nanoseconds, ordering: .relaxed) }

    /// [any thread] How long the program may still wait for a reader once it was told to end, ns: what is left of the time
    /// that all of its end shares, a tenth of a second at least. Half a second where no chain has ended; without a limit
    /// where nobody has told it to.
    public var timeLeft: Int64 {
        guard isHurried else { return .max }
        return max(min(end.load(ordering: .relaxed) - Self.now, Self.longestHurriedWait), Self.grace)
    }

    /// [any thread, at the end] Waits until everything is written, as long as somebody reads it.
    ///
    /// - Parameters:
    ///   - streams: Those that are waited for.
    ///   - longest: At most this long, nanoseconds.
    /// - Returns: All lines that were left out, and those that are not written. The readers of the latter do not read.
    public func finish(_ streams: [Stream] = Stream.allCases, longest: Int64 = longestWait) -> Counts {
        let lanes = lanes.withLock { $0 }
        let begin = Self.now
        var end = begin + longest
        var left = Counts()
        for stream in streams where !lanes.isEmpty {
            let lane = lanes[stream.rawValue]
            var waiting: Int32 = -1
            while true {
                let (isDone, lines) = lane.condition.locked { () -> (Bool, Int) in
                    let current = lane.current.map { $0.stream == stream && $0.isLine } == true ? 1 : 0
                    let lines = lane.queue.lost[stream] + lane.queue.unwritten[stream] + current
                    return (lane.current == nil && lane.queue.isEmpty, lines)
                }
                left[stream] = lines
                if isDone { break }
                let now = Self.now
                // A reader that takes less than the next line needs is one too.
                var unread: Int32 = 0
                if ioctl(descriptor(stream), UInt(FIONREAD), &unread) == 0, unread != waiting {
                    if waiting >= 0 { lane.progress.store(now, ordering: .relaxed) }
                    waiting = unread
                }
                if isHurried { end = min(end, now + timeLeft) }
                let stuck = max(lane.progress.load(ordering: .relaxed) + Self.patience, begin + Self.grace)
                guard now < min(end, stuck) else { break }
                usleep(1_000)
            }
        }
        return left
    }

    // MARK: The writing thread

    private func work(_ lane: Lane) {
        while true {
            let (text, stream) = next(of: lane)
            put(text, stream, lane)
            lane.condition.locked { lane.current = nil }
        }
    }

    private func next(of lane: Lane) -> ([UInt8], Stream) {
        let next = lane.condition.locked { () -> LineQueue.Next in
            while true {
                if let next = lane.queue.take() {
                    switch next {
                    case .text(_, let stream): lane.current = (stream, true)
                    case .gap(_, let stream): lane.current = (stream, false)
                    }
                    return next
                }
                lane.condition.wait()
            }
        }
        switch next {
        case .text(let text, let stream): return (text, stream)
        case .gap(let count, let stream): return (Array(naming.withLock { $0 }(count, stream).utf8), stream)
        }
    }

    /// Writes all of a text. A reader that has gone is not a fault.
    private func put(_ text: [UInt8], _ stream: Stream, _ lane: Lane?) {
        let file = descriptor(stream)
        let bit = 1 << stream.rawValue
        // A line that was cut before, by a full disk for example, is ended first.
        let whole = torn.load(ordering: .relaxed) & bit != 0 ? [10] + text : text
        var done = 0
        let code = whole.withUnsafeBytes { bytes in
            Transfer.write(bytes, to: file) {
                lane?.progress.store(Self.now, ordering: .relaxed)
                done = $0
            }
        }
        if code == 0 {
            torn.bitwiseAnd(~bit, ordering: .relaxed)
        } else if done > 0 {
            torn.bitwiseOr(bit, ordering: .relaxed)
        }
        if ![0, EPIPE].contains(code), stream == .output {
            _ = lost.compareExchange(expected: 0, desired: code, ordering: .relaxed)
        }
    }

    private static var now: Int64 { MonotonicTime.now() }
}
