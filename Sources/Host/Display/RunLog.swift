// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore
import Glibc
import Logging
import Synchronization

/// How the log is written to standard error: `--log-format`.
enum LogFormat: String, CaseIterable, ExpressibleByArgument {
    /// Lines for people.
    case text
    /// A JSON object per line, for log collectors.
    case json
}

/// The program's log, by swift-log, on standard error.
enum RunLog {
    /// Set once, before anything is logged.
    private static let isJSON = Atomic<Bool>(false)

    static var format: LogFormat {
        get { isJSON.load(ordering: .relaxed) ? .json : .text }
        set { isJSON.store(newValue == .json, ordering: .relaxed) }
    }

    /// [any thread] The level `critical` is for faults that end the program or keep it from running.
    static let logger = Logger(label: "framehost") { _ in RunLogHandler() }

    /// [control thread] An event of a chain.
    ///
    /// - Parameters:
    ///   - text: For people; names the stage.
    ///   - chain: With several chains, the one whose event it is.
    static func log(_ event: Event, text: String, _ clock: ChainClock, chain: String? = nil) {
        guard format == .json else { return logger.log(level: event.level.ofLogger, "\(text)") }
        var line = event.json(by: clock, chain: chain).asObject ?? []
        // The time of day and the event's text take these names. A plugin's event may have members of the same
        // names.
        line.removeAll { $0.key == "time" || $0.key == "message" }
        for (old, new) in [("wallTime", "time"), ("text", "message")] {
            if let index = line.firstIndex(where: { $0.key == old }) { line[index].key = new }
        }
        Terminal.complain(JSONNode(.object(line)).text())
    }

    /// [any thread] A line that belongs to one of several chains, or to the program where `chain` is nil.
    static func log(_ level: Logger.Level, _ text: String, chain: String?) {
        guard let chain else { return logger.log(level: level, "\(text)") }
        logger.log(level: level, "\(text)", metadata: [chainKey: "\(chain)"])
    }

    fileprivate static let chainKey = "chain"
}

extension Event.Level {
    fileprivate var ofLogger: Logger.Level { Logger.Level(rawValue: rawValue) ?? .info }
}

/// A line on standard error for each message.
struct RunLogHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let chain = event.metadata?[RunLog.chainKey]?.description
        Terminal.complain(RunLog.line(event.level, event.message.description, chain: chain))
    }
}

extension RunLog {
    /// A line of the log as it is written, without its line feed.
    static func line(_ level: Logger.Level, _ text: String, chain: String? = nil) -> String {
        switch format {
        case .text:
            let isNamed = level == .warning || level == .error
            return "\(isNamed ? "\(level.rawValue): " : "")\(text)"
        case .json:
            var time = timespec()
            clock_gettime(CLOCK_REALTIME, &time)
            let nanoseconds = Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
            let chain = chain.map { [("chain", JSONNode.string($0))] } ?? []
            let line: JSONNode = .object(
                [("time", .string(WallTime.text(nanoseconds)))] + chain + [
                    ("level", .string(level.rawValue)), ("message", .string(text)),
                ])
            return line.text()
        }
    }
}
