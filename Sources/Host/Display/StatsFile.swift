// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The file of `--stats`: figures of an earlier run, of one chain or of several, are replaced, anything else is kept.
enum StatsFile {
    /// More than the figures of any chain need.
    static let mostBytes = 64 << 20

    /// Writes the figures of a run that has ended.
    ///
    /// - Returns: Why they could not be written; nil where they were. The file may have appeared during the run.
    static func write(_ figures: JSONNode, to path: String, _ files: RunFiles) -> FrameHostError? {
        if let fault = fault(ofReplacing: path) { return fault }
        let text = figures.text(pretty: true) + "\n"
        guard var fault = mayWait(path) ? writeElsewhere(text, to: path, files) : written(text, to: path, files) else {
            return nil
        }
        fault.place = FaultPlace(argument: "--stats")
        return fault
    }

    private static func written(_ text: String, to path: String, _ files: RunFiles) -> FrameHostError? {
        files.write(path, text, as: "--stats")?.fault(path)
    }

    /// Whether somebody must read what is written there: of a pipe, a terminal or standard output.
    private static func mayWait(_ path: String) -> Bool {
        var status = stat()
        return StandardStream.output.paths.contains(path)
            || stat(path, &status) == 0 && status.st_mode & S_IFMT != S_IFREG
    }

    /// The pause between two looks, µs.
    private static let pause: useconds_t = 2_000

    /// Writes on a thread of its own: a reader that does not read holds up no end.
    private static func writeElsewhere(_ text: String, to path: String, _ files: RunFiles) -> FrameHostError? {
        // What was said before stands before it in standard output.
        if StandardStream.output.paths.contains(path) { _ = OutputWriter.shared.finish() }
        let outcome = Locked<FrameHostError??>(nil)
        do {
            try ServiceThread.start(name: "stats") {
                let fault = written(text, to: path, files)
                outcome.withLock { $0 = .some(fault) }
            }
        } catch { return FrameHostError.wrap(error) }
        let clock = ChainClock()
        // Set once somebody has told the program to end.
        var end: Int64?
        while true {
            if let outcome = outcome.withLock({ $0 }) { return outcome }
            if OutputWriter.shared.isHurried {
                let now = clock.now()
                end = end ?? now + OutputWriter.shared.timeLeft
                guard let end, now < end else {
                    return FrameHostError(
                        .unavailable, place: FaultPlace(argument: "--stats"),
                        what: "'\(path)' was not read in time, so the figures are incomplete",
                        remedy: "Name a file, or a pipe that is read.")
                }
            }
            usleep(pause)
        }
    }

    /// Why the file is not replaced; nil where it is not there, is empty, or has figures of an earlier run.
    static func fault(ofReplacing path: String) -> FrameHostError? {
        // What is written to standard output goes behind what is there.
        if StandardStream.output.paths.contains(path) { return nil }
        var status = stat()
        // Devices and pipes are written into.
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 else {
            return nil
        }
        if status.st_size <= mostBytes, let root = try? JSONReader.read(path: path, takesPipes: false),
            ["stages", "links", "pools", "ledger"].allSatisfy({ root[$0] != nil })
                || root["chains"]?.asArray?.allSatisfy({ $0["chain"] != nil && $0["status"] != nil }) == true
        {
            return nil
        }
        return FrameHostError(
            .invalidConfiguration, place: FaultPlace(argument: "--stats"),
            what: "'\(path)' exists and has no figures of an earlier run, so it is kept",
            remedy: "Name another file, or remove this one.")
    }
}
