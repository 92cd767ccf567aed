// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// A batch while it runs: its slots, its signals, what is shown, and the reports at the end.
enum BatchRun {
    /// - Returns: The exit status.
    static func run(
        _ work: BatchWork, _ folder: BatchFolder, jobs: Int, isQuiet: Bool, isVerbose: Bool, reports: [BatchReport]
    ) throws -> Int32 {
        // Only the wait below receives these signals.
        var signals = BlockedSignals.block([SIGINT, SIGTERM, SIGHUP])
        Terminal.begin()
        // Several slots can work on one divided file.
        let slots = work.parts == nil ? min(jobs, max(work.queue.count, 1)) : jobs
        folder.sweepOwners(work.owner)
        if !isQuiet { RunLog.logger.notice("\(opening(work, slots: slots, jobs: jobs))") }
        let display = BatchDisplay(work.tally, count: work.queue.count, isQuiet: isQuiet, isVerbose: isVerbose)
        try startSlots(slots, work)
        var touched = MonotonicTime.seconds()
        var stopped: Double?
        while work.tally.slots > 0 {
            var patience = timespec(tv_sec: 0, tv_nsec: 50_000_000)
            if sigtimedwait(&signals, nil, &patience) > 0 {
                OutputWriter.shared.hurry()
                if work.tally.isStopping {
                    work.owner.end()
                    ProgramEnd.atOnce(1)
                }
                work.tally.stop()
            }
            // Workers have ended by then. A slot may still read a large file for its digest, but nothing depends on
            // that.
            if work.tally.isStopping, stopped == nil { stopped = MonotonicTime.seconds() }
            if let stopped, MonotonicTime.seconds() - stopped > 3 { break }
            if MonotonicTime.seconds() - touched >= work.owner.beat {
                work.owner.touch()
                touched = MonotonicTime.seconds()
            }
            display.update()
        }
        folder.sweepOwners(work.owner)
        work.owner.end()
        display.finish(isStopped: work.tally.isStopping)
        let status = write(reports, work, seconds: display.elapsed)
        // No destructors may run while a slot is at work.
        if work.tally.slots > 0 { ProgramEnd.afterRun(1, mayUnwind: false) }
        return status
    }

    private static func startSlots(_ count: Int, _ work: BatchWork) throws {
        for index in 0..<count {
            work.tally.slotBegins()
            do {
                try ServiceThread.start(name: "slot:\(index + 1)") {
                    defer { work.tally.slotEnds() }
                    do { try BatchSlot(work).run() } catch { RunLog.logger.error("\(error)") }
                }
            } catch {
                work.tally.slotEnds()
                // The other slots do the work of this one.
                guard index > 0 else { throw error }
                RunLog.logger.warning("\(error)")
                break
            }
        }
    }

    /// Writes the reports.
    ///
    /// - Returns: The exit status: 1 where one cannot be written.
    private static func write(_ reports: [BatchReport], _ work: BatchWork, seconds: Double) -> Int32 {
        let figures = work.tally.figures
        var status = figures.status(of: work.queue.count)
        for report in reports {
            let text = report.text(work.tally.results, figures, count: work.queue.count, seconds: seconds)
            if let fault = Terminal.writeFile(report.path, text) {
                RunLog.logger.error(
                    "--report \(report.path): the report cannot be written: \(fault). Correct that and run the same command again: complete outputs are not made again."
                )
                status = 1
            }
        }
        return status
    }

    /// `60 files into 'out', 2 at once: one for each of 2 processors; workers may take 20.7 GiB of memory together.`
    private static func opening(_ work: BatchWork, slots: Int, jobs: Int) -> String {
        let why =
            slots < jobs
            ? work.queue.count == 1 ? "there is only one file" : "there are no more files"
            : jobs == Processors.usable ? "one for each processor" : "as --jobs says"
        let atOnce = work.queue.count > 0 ? ", \(slots) at once: \(why)" : ": this shard has none of its own"
        let memory = work.gate.bytes.map { "; workers may take \(AvailableMemory.text($0)) of memory together" } ?? ""
        let passed =
            switch work.units.passedOver {
            case 0: ""
            case 1: " 1 other file in the folders is not a clip."
            default: " \(work.units.passedOver) other files in the folders are not clips."
            }
        let repeated =
            work.units.repeated == 0
            ? ""
            : work.units.repeated == 1
                ? " 1 repetition of a name is left out." : " \(work.units.repeated) repetitions of names are left out."
        return
            "\(BatchDisplay.files(work.queue.count)) into '\(work.out)'\(atOnce)\(memory).\(passed)\(repeated)"
    }
}
