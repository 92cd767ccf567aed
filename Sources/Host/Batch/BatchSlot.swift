// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// A thread of a batch that does one task at a time.
final class BatchSlot {
    private let work: BatchWork
    private let digest: FetchLibrary
    /// Units of other shards that are made as a whole.
    private var undivided = Set<Int>()

    init(_ work: BatchWork) throws {
        self.work = work
        digest = try FetchLibrary()
    }

    /// Does tasks until none is left.
    func run() {
        doTasks()
        if work.parts != nil, work.queue.isShard { helpOthers() }
    }

    private func doTasks() {
        while !work.tally.isStopping {
            switch work.queue.take() {
            case .nothing: return
            // Without --parts no other slot can produce a task for this one.
            case .wait:
                guard work.parts != nil else { return }
                usleep(50_000)
            case .task(let task, let isFirstLook):
                let isFinished = doTask(task, isFirstLook: isFirstLook)
                work.queue.giveBack(task, isFinished: isFinished)
                if isFinished || isFirstLook { continue }
                // Another batch works on the task, or the task has just failed.
                for _ in 0..<5 where !work.tally.isStopping { usleep(100_000) }
            }
        }
    }

    /// Makes parts of units that other shards have divided. If there are more shards than units, also divides units of
    /// other shards.
    ///
    /// Keeps looking until every such unit is complete, because the shard to which a unit belongs may be killed.
    private func helpOthers() {
        while !work.tally.isStopping {
            var isWaiting = false
            for unit in 0..<work.units.count where !work.queue.isOurs(unit) && !work.tally.isStopping {
                if help(unit) { isWaiting = true }
            }
            guard isWaiting else { return }
            for _ in 0..<5 where !work.tally.isStopping { usleep(100_000) }
        }
    }

    /// - Returns: Whether the unit lacks parts that another process is making, or will give up.
    private func help(_ unit: Int) -> Bool {
        guard work.queue.fault(of: unit) == nil, let (path, input) = try? input(of: unit) else { return false }
        let folder = BatchUnitFolder(out: work.out, name: work.units.output(unit), key: work.chain.key(input, digest))
        guard !folder.hasRecord, folder.givenUp.contents == nil else { return false }
        var count = folder.partCount
        if count == nil, work.queue.hasMoreShards, !undivided.contains(unit) {
            count = lookForParts(of: path, unit)
            if let count { try? folder.setPartCount(count) } else { undivided.insert(unit) }
        }
        guard let count else { return false }
        var isWaiting = false
        for index in 0..<count where !folder.part(index).hasOutput && !work.tally.isStopping && !folder.hasRecord {
            if !doTask(BatchTask(unit: unit, kind: .part(index, of: count)), isFirstLook: false) { isWaiting = true }
        }
        return isWaiting
    }

    /// The number of parts of a unit; nil if the unit is not divided. A worker plans the unit, and is ended before it
    /// processes a frame.
    private func lookForParts(of path: String, _ unit: Int) -> Int? {
        var count = 1
        let worker = try? WorkerProcess(
            arguments: work.arguments, variables: variables(path, work.units.output(unit), trialOutput(of: unit)),
            owner: work.owner.file)
        _ = worker?.finish(
            MemoryGate(), isStopping: { work.tally.isStopping }, hears: { _ in }, waits: { _ in },
            divides: { length, hasIndex in
                if divides(length, hasIndex: hasIndex, nil) { count = parts(of: length) }
                return true
            })
        return count > 1 ? count : nil
    }

    /// An output name that a recorder accepts. Nothing is written there.
    private func trialOutput(of unit: Int) -> String {
        "\(work.out)/\(BatchUnitFolder.hidden)/owners/\(BatchFiles.safe(BatchFiles.last(work.units.output(unit))))"
    }

    private func variables(_ input: String, _ output: String, _ attempt: String) -> [(String, String)] {
        [
            ("input", input), ("output", attempt),
            ("name", BatchFiles.withoutEnding(BatchFiles.last(output))),
        ]
    }

    /// The path of a unit's input, and the identity that the input has now; nil for a name that chain files cannot
    /// have.
    private func input(of unit: Int) throws -> (path: String, input: InputIdentity)? {
        guard let named = work.units.input(unit) else { return nil }
        let path = named.hasPrefix("/") ? named : "\(work.current)/\(named)"
        return (path, try InputIdentity(path, work.identity, beside: filesBeside(path, unit), digest))
    }

    /// The files that the chain reads for this unit alone, beside its input.
    private func filesBeside(_ path: String, _ unit: Int) -> [String] {
        work.chain.reads.files(
            ofInput: path, name: BatchFiles.withoutEnding(BatchFiles.last(work.units.output(unit))))
    }

    /// Whether somebody has given the unit up, and its input has not changed since. If the input has changed, the note
    /// is removed.
    private func isGivenUp(_ unit: Int, _ result: inout BatchResult) -> Bool {
        let folder = BatchUnitFolder(out: work.out, name: result.output, key: "")
        guard let mark = folder.givenUp.contents else { return false }
        let now = (try? input(of: unit))?.input
        let isUnchanged: Bool
        switch (mark.input, now) {
        case (nil, nil): isUnchanged = true
        case (let then?, let now?): isUnchanged = now.isUnchanged(since: then)
        // A file that is away for a while does not count as another file.
        case (_?, nil): isUnchanged = true
        case (nil, _?): isUnchanged = false
        }
        guard isUnchanged else {
            folder.givenUp.remove()
            work.tally.note("\(result.input): has changed since it was given up, so it is tried again.")
            return false
        }
        result.state = .givenUp
        result.error = "given up by hand at \(mark.time). To try it again, remove \(folder.givenUp.path)."
        return true
    }

    /// - Returns: False if the task is to be taken again later.
    private func doTask(_ task: BatchTask, isFirstLook: Bool) -> Bool {
        let output = work.units.output(task.unit)
        var result = BatchResult(
            unit: task.unit, state: .setAside, input: work.units.shownInput(task.unit), output: output)
        if case .whole = task.kind, isGivenUp(task.unit, &result) {
            work.tally.add(result)
            return true
        }
        do {
            guard let (path, input) = try input(of: task.unit) else {
                return setAside(task, &result, "its name must be valid UTF-8, as chain files are. Rename the file.")
            }
            let whole = BatchUnitFolder(out: work.out, name: output, key: work.chain.key(input, digest))
            var folder = whole
            if case .part(let index, let count) = task.kind {
                // Another batch has made the whole and removed its parts. Or the input has changed; then the join will
                // divide the unit anew.
                if whole.hasRecord || whole.partCount != count { return true }
                folder = whole.part(index)
            }
            if work.isRetrying, isFirstLook { folder.forgetFailures() }
            switch try folder.look(
                attempts: work.attempts, acceptsDamaged: work.acceptsDamaged, owner: work.owner, path: path,
                input: input, work.chain)
            {
            case .busy: return false
            case .setAside(let error, let attempts): return setAside(task, &result, error, attempts: attempts)
            case .done(let record):
                if case .part = task.kind { return true }
                fill(&result, record)
                result.state = isFirstLook ? .present : .madeElsewhere
                work.tally.add(result)
                return true
            case .free(let number, let failures, let replaced):
                if case .join(let count) = task.kind {
                    guard whole.partCount == count else {
                        work.queue.again(task.unit)
                        return true
                    }
                    if let fault = work.queue.fault(of: task.unit) { return setAside(task, &result, fault) }
                    let missing = (0..<count).filter { !whole.part($0).hasOutput }
                    guard missing.isEmpty else {
                        work.queue.addMissing(missing, of: count, task.unit)
                        return false
                    }
                }
                guard let attempt = try folder.claim(number, owner: work.owner) else { return false }
                result.replaced = replaced
                return run(
                    Try(task: task, attempt: attempt, folder: folder, whole: whole, failures: failures), path, input,
                    &result)
            }
        } catch {
            let fault = FrameHostError.wrap(error)
            return setAside(
                task, &result,
                fault.place == FaultPlace(path(of: task.unit)) ? "\(fault.what). \(fault.remedy)" : "\(fault)")
        }
    }

    private func path(of unit: Int) -> String {
        work.units.input(unit).map { $0.hasPrefix("/") ? $0 : "\(work.current)/\($0)" } ?? ""
    }

    /// Gives up a unit. Giving up a part also gives up the unit that waits for that part.
    private func setAside(_ task: BatchTask, _ result: inout BatchResult, _ error: String, attempts: Int = 0) -> Bool {
        if case .part(let index, let count) = task.kind {
            work.queue.fail(task.unit, "part \(index + 1) of \(count): \(error)")
            return true
        }
        result.error = error
        result.attempts = attempts
        work.tally.add(result)
        return true
    }

    /// An attempt at a task.
    private struct Try {
        var task: BatchTask
        var attempt: BatchUnitFolder.Attempt
        /// The task's folder.
        var folder: BatchUnitFolder
        /// The folder of the task's unit.
        var whole: BatchUnitFolder
        /// Failed attempts before this one.
        var failures: Int

        /// Arguments of the worker besides the chain.
        func arguments(seconds: Double) -> [String] {
            switch task.kind {
            case .whole: []
            // One word and not two, because the value may begin with a dash.
            case .part(let index, let count):
                ["--\(PartRequest.option)=\(PartRequest.text(part: index, of: count, seconds: seconds))"]
            case .join(let count): ["--\(PartRequest.option)=\(PartRequest.text(join: count, in: whole.partsFolder))"]
            }
        }

        var isJoin: Bool { if case .join = task.kind { true } else { false } }
        var isPart: Bool { if case .part = task.kind { true } else { false } }
    }

    private func fill(_ result: inout BatchResult, _ record: WorkRecord) {
        result.frames = record.frames
        result.seconds = record.seconds
        result.mediaSeconds = record.mediaSeconds
        result.bytes = record.outputs.first?.bytes ?? 0
        result.attempts = record.attempt
        result.warnings = record.warnings
        result.damage = record.damage
        result.account = record.account
    }

    private func run(_ it: Try, _ path: String, _ input: InputIdentity, _ result: inout BatchResult) -> Bool {
        let (task, attempt, folder) = (it.task, it.attempt, it.folder)
        let (began, start) = (WorkRecord.now(), MonotonicTime.seconds())
        var outcome = process(it, path, result)
        if outcome.isStopped {
            folder.drop(attempt)
            return false
        }
        if let length = outcome.dividedLength {
            folder.drop(attempt)
            do { try folder.setPartCount(parts(of: length)) } catch {
                return setAside(task, &result, "\(FrameHostError.wrap(error))")
            }
            work.queue.divide(task.unit, into: parts(of: length), joins: true)
            return true
        }
        let frames = it.isJoin ? 0 : outcome.frames
        if let isOver = giveUpWhatChanged(it, path, input, &result, frames: frames) { return isOver }
        let lacks = outcome.lacks.joined(separator: "; ")
        let isRefused = outcome.fault == nil && !lacks.isEmpty && !work.acceptsDamaged
        if outcome.fault == nil, !outcome.drops.isEmpty {
            outcome.fault =
                "pictures were lost on the way: \(outcome.drops.joined(separator: "; ")). Look at the worker's warnings."
        } else if isRefused {
            outcome.fault =
                "not all that the file promises could be read: \(lacks). Replace the file, or add --accept-damaged to keep what can be made of it."
            outcome.isFinal = true
        }
        if outcome.fault == nil {
            var record = WorkRecord(
                inputPath: path, input: input, chainFile: work.chainFile, work.chain, attempt: attempt.number,
                began: began, seconds: MonotonicTime.seconds() - start, frames: outcome.frames,
                mediaSeconds: outcome.mediaSeconds, warnings: outcome.warnings, replaced: result.replaced)
            record.damage = lacks
            record.account = outcome.accounts
            if it.isJoin { add(parts: it, to: &record) }
            if let isDone = commit(it, record, &outcome, &result, frames: frames) { return isDone }
        }
        return fail(it, outcome, isDamaged: isRefused && outcome.drops.isEmpty, &result, frames: frames)
    }

    /// Lets a worker process the input.
    private func process(_ it: Try, _ path: String, _ result: BatchResult) -> WorkerProcess.Outcome {
        do {
            return try WorkerProcess(
                arguments: work.arguments + it.arguments(seconds: work.parts ?? 0),
                variables: variables(path, result.output, it.attempt.output), owner: work.owner.file
            ).finish(
                work.gate, isStopping: { work.tally.isStopping },
                // The frames of a join were counted when the parts were made.
                hears: { if !it.isJoin { work.tally.add(frames: $0) } },
                waits: { bytes in
                    work.tally.note(
                        "\(result.input): waits until \(AvailableMemory.text(bytes + MemoryGate.baseBytes)) of memory is free."
                    )
                }, divides: { it.task.kind == .whole && divides($0, hasIndex: $1, result.input) })
        } catch {
            var outcome = WorkerProcess.Outcome(fault: "\(error)")
            outcome.isOfMachine = true
            return outcome
        }
    }

    /// Gives up an attempt during which its input, the chain or a plugin has changed.
    ///
    /// - Returns: Whether the unit is over; nil where nothing has changed.
    private func giveUpWhatChanged(
        _ it: Try, _ path: String, _ input: InputIdentity, _ result: inout BatchResult, frames: Int
    ) -> Bool? {
        let (task, attempt, folder) = (it.task, it.attempt, it.folder)
        // The input changed during the attempt, so the output may mix old and new content.
        if let now = try? InputIdentity(path, work.identity, beside: filesBeside(path, task.unit), digest), now != input
        {
            folder.drop(attempt)
            let count = work.queue.addFailure(of: task, noted: 0)
            guard count < work.attempts else {
                work.tally.add(frames: -frames)
                return setAside(
                    task, &result,
                    "the file changed while it was read. Run the same command again when no program writes the file.",
                    attempts: count)
            }
            work.tally.attemptFailed(
                "\(result.input): the file changed while it was read, so it is read again.", frames: frames)
            return false
        }
        // Workers read the chain file and the plugins themselves. If one of these has changed, the record would not say
        // truly what the output was made of.
        if let changed = work.stamps.changed {
            folder.drop(attempt)
            work.tally.add(frames: -frames)
            work.stop(because: changed)
            return false
        }
        return nil
    }

    /// Makes what the worker wrote the unit's output.
    ///
    /// - Returns: Whether the unit is over; nil where the attempt has failed, and `outcome` says why.
    private func commit(
        _ it: Try, _ record: WorkRecord, _ outcome: inout WorkerProcess.Outcome, _ result: inout BatchResult,
        frames: Int
    ) -> Bool? {
        do {
            switch try it.folder.commit(it.attempt, record) {
            case .committed(let whole):
                if it.isPart {
                    work.queue.addFrames(outcome.frames, of: it.task.unit)
                    return true
                }
                // Frames before and behind a part were processed twice, and are counted once.
                if it.isJoin { work.tally.add(frames: outcome.frames - work.queue.frames(of: it.task.unit)) }
                fill(&result, whole)
                result.state = .made
                work.tally.add(result)
                return true
            case .late:
                work.tally.add(frames: -frames)
                return false
            case .taken(let text): return setAside(it.task, &result, text, attempts: it.attempt.number)
            case .empty:
                outcome.fault =
                    "the chain ended without a fault, but wrote nothing to ${output}. Check that its recorder gets pictures."
                outcome.isFinal = true
            }
        } catch {
            let wrapped = FrameHostError.wrap(error)
            // If a disk does not take the output, that is no fault of the input.
            outcome.isOfMachine = wrapped.code == .unavailable
            outcome.fault = "\(wrapped)"
        }
        return nil
    }

    /// Notes why an attempt failed.
    ///
    /// - Returns: Whether the unit is over: it is set aside.
    private func fail(
        _ it: Try, _ outcome: WorkerProcess.Outcome, isDamaged: Bool, _ result: inout BatchResult, frames: Int
    ) -> Bool {
        let (task, attempt, folder) = (it.task, it.attempt, it.folder)
        // If a batch was frozen for longer than its lease, the work of its workers is removed.
        if folder.isLate(attempt) {
            folder.drop(attempt)
            work.tally.add(frames: -frames)
            return false
        }
        let text = outcome.fault ?? ""
        if outcome.isOfMachine {
            folder.drop(attempt)
        } else {
            folder.fail(
                attempt, text, isFinal: outcome.isFinal, isDamaged: isDamaged,
                host: WorkRecord.hostName)
        }
        let count = work.queue.addFailure(of: task, noted: it.failures)
        if count < work.attempts, !outcome.isFinal {
            work.tally.attemptFailed(
                "\(result.input): attempt \(count) of \(work.attempts) failed: \(text)", frames: frames)
            return false
        }
        work.tally.add(frames: -frames)
        return setAside(task, &result, text, attempts: count)
    }

    /// Whether an input is divided into parts. If an input has no index of its pictures, jumps in its times would lose
    /// pictures at the joints.
    private func divides(_ length: Double, hasIndex: Bool, _ input: String?) -> Bool {
        guard parts(of: length) > 1 else { return false }
        if !hasIndex, let input {
            work.tally.note(
                "\(input): is processed as a whole, because only MP4 and MOV files with an index can be divided. To divide this one, copy it into an MP4 file first: ffmpeg -i IN -c copy OUT.mp4."
            )
        }
        return hasIndex
    }

    private func parts(of length: Double) -> Int { work.parts.map { PartRequest.count(length, seconds: $0) } ?? 1 }

    /// Adds the seconds and the warnings of the parts' records to the record of the whole.
    private func add(parts it: Try, to record: inout WorkRecord) {
        guard case .join(let count) = it.task.kind else { return }
        for index in 0..<count {
            guard let part = it.whole.part(index).record else { continue }
            record.seconds += part.seconds
            if !part.damage.isEmpty {
                record.damage += (record.damage.isEmpty ? "" : "; ") + "part \(index + 1): \(part.damage)"
            }
            for warning in part.warnings where record.warnings.count < 20 && !record.warnings.contains(warning) {
                record.warnings.append(warning)
            }
        }
    }
}
