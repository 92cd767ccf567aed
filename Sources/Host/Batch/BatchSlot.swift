// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Synchronization

/// What all slots of a batch share. Immutable, or with locks of its own.
final class BatchWork: Sendable {
    let units: UnitList
    let out: String
    /// The folder that relative inputs start at.
    let current: String
    let chainFile: String
    let chain: ChainIdentity
    /// Of the chain file and the images of its plugins.
    let stamps: FileStamps
    let identity: InputIdentity.Kind
    let attempts: Int
    let isRetrying: Bool
    /// `run` and what follows, for every worker.
    let arguments: [String]
    let owner: BatchOwner
    let gate: MemoryGate
    let tally: BatchTally
    /// Every how many-th unit is ours, and the first: `--shard`.
    let shard: (first: Int, of: Int)
    private let next = Mutex(0)
    /// Units that somebody else has, or that failed and are tried again once the others are done.
    private let deferred = Mutex<[Int]>([])
    /// Failed attempts of this batch, by unit: on a full disk they cannot be noted in the folder.
    private let failures = Mutex<[Int: Int]>([:])

    init(
        units: UnitList, out: String, current: String, chainFile: String, chain: ChainIdentity,
        stamps: FileStamps, identity: InputIdentity.Kind, attempts: Int, isRetrying: Bool, arguments: [String],
        owner: BatchOwner,
        gate: MemoryGate, tally: BatchTally, shard: (first: Int, of: Int)
    ) {
        self.units = units
        self.out = out
        self.current = current
        self.chainFile = chainFile
        self.chain = chain
        self.stamps = stamps
        self.identity = identity
        self.attempts = attempts
        self.isRetrying = isRetrying
        self.arguments = arguments
        self.owner = owner
        self.gate = gate
        self.tally = tally
        self.shard = shard
    }

    /// How many units are ours.
    var count: Int {
        units.count > shard.first ? (units.count - shard.first + shard.of - 1) / shard.of : 0
    }

    /// The next unit that nobody of ours has looked at; nil after the last.
    func takeNext() -> Int? {
        next.withLock { next in
            let unit = shard.first + next * shard.of
            guard unit < units.count else { return nil }
            next += 1
            return unit
        }
    }

    /// Counts a failed attempt.
    ///
    /// - Parameter noted: How many the folder knows of.
    /// - Returns: How many there are with this one.
    func addFailure(of unit: Int, noted: Int) -> Int {
        failures.withLock { failures in
            let count = max(failures[unit] ?? 0, noted) + 1
            failures[unit] = count
            return count
        }
    }

    private let hasStopped = Atomic<Bool>(false)

    /// Ends the batch, and says why once.
    func stop(because path: String) {
        guard !hasStopped.exchange(true, ordering: .relaxed) else { return }
        tally.warn("\(path) changed while the batch ran, so the batch stops. Start it again.")
        tally.stop()
    }

    func putOff(_ unit: Int) { deferred.withLock { $0.append(unit) } }

    /// The unit that waits longest.
    func takeDeferred() -> Int? { deferred.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
}

/// A thread of a batch that does one unit at a time.
final class BatchSlot {
    private let work: BatchWork
    private let digest: FetchLibrary

    init(_ work: BatchWork) throws {
        self.work = work
        digest = try FetchLibrary()
    }

    /// Does units until none is left.
    func run() {
        while !work.tally.isStopping, let unit = work.takeNext() {
            if !doUnit(unit, isFirstLook: true) { work.putOff(unit) }
        }
        while !work.tally.isStopping, let unit = work.takeDeferred() {
            if doUnit(unit, isFirstLook: false) { continue }
            work.putOff(unit)
            // Somebody else has it, or it has just failed.
            for _ in 0..<5 where !work.tally.isStopping { usleep(100_000) }
        }
    }

    /// - Returns: False where it is to be looked at again later.
    private func doUnit(_ unit: Int, isFirstLook: Bool) -> Bool {
        let output = work.units.output(unit)
        var result = UnitResult(unit: unit, state: .setAside, input: work.units.shownInput(unit), output: output)
        func setAside(_ error: String, attempts: Int = 0) -> Bool {
            result.error = error
            result.attempts = attempts
            work.tally.add(result)
            return true
        }
        guard let named = work.units.input(unit) else {
            return setAside("its name is not UTF-8, which chain files are. Rename it.")
        }
        let path = named.hasPrefix("/") ? named : "\(work.current)/\(named)"
        do {
            let input = try InputIdentity(path, work.identity, digest)
            let folder = UnitFolder(out: work.out, name: output, key: work.chain.key(input, digest))
            if work.isRetrying, isFirstLook { folder.forgetFailures() }
            switch try folder.look(
                attempts: work.attempts, owner: work.owner, path: path, input: input, work.chain)
            {
            case .busy: return false
            case .setAside(let error, let attempts): return setAside(error, attempts: attempts)
            case .done(let record):
                fill(&result, record)
                result.state = isFirstLook ? .present : .madeElsewhere
                work.tally.add(result)
                return true
            case .free(let number, let failures, let replaced):
                guard let attempt = try folder.claim(number, owner: work.owner) else { return false }
                result.replaced = replaced
                return run(attempt, folder, path, input, failures: failures, &result)
            }
        } catch {
            let fault = FrameHostError.wrap(error)
            return setAside(fault.place.description == path ? "\(fault.what). \(fault.remedy)" : "\(fault)")
        }
    }

    private func fill(_ result: inout UnitResult, _ record: WorkRecord) {
        result.frames = record.frames
        result.seconds = record.seconds
        result.mediaSeconds = record.mediaSeconds
        result.bytes = record.outputs.first?.bytes ?? 0
        result.attempts = record.attempt
        result.warnings = record.warnings
    }

    private func run(
        _ attempt: UnitFolder.Attempt, _ folder: UnitFolder, _ path: String, _ input: InputIdentity, failures: Int,
        _ result: inout UnitResult
    ) -> Bool {
        let name = UnitFolder.withoutEnding(UnitFolder.last(folder.name))
        let (began, start) = (WorkRecord.now(), ChainWatch.now())
        var outcome: WorkerProcess.Outcome
        do {
            outcome = try WorkerProcess(
                arguments: work.arguments, variables: [("input", path), ("output", attempt.output), ("name", name)],
                owner: work.owner.file
            ).finish(
                work.gate, isStopping: { work.tally.isStopping }, hears: { work.tally.add(frames: $0) },
                waits: { bytes in
                    work.tally.note(
                        "\(result.input): waits until \(AvailableMemory.text(bytes + MemoryGate.baseBytes)) of memory are free."
                    )
                })
        } catch {
            outcome = WorkerProcess.Outcome(fault: "\(error)")
            outcome.isOfMachine = true
        }
        if outcome.isStopped {
            folder.drop(attempt)
            return false
        }
        // Nobody knows what was read of a file that changed meanwhile.
        if let now = try? InputIdentity(path, work.identity, digest), now != input {
            folder.drop(attempt)
            let count = work.addFailure(of: result.unit, noted: 0)
            guard count < work.attempts else {
                work.tally.add(frames: -outcome.frames)
                result.error = "it changed each time it was read."
                result.attempts = count
                work.tally.add(result)
                return true
            }
            work.tally.attemptFailed(
                "\(result.input): it changed while it was read; it is read again.", frames: outcome.frames)
            return false
        }
        // Workers read the chain file and the plugins themselves: what they made may not be what the record would say.
        if let changed = work.stamps.changed {
            folder.drop(attempt)
            work.tally.add(frames: -outcome.frames)
            work.stop(because: changed)
            return false
        }
        var fault = outcome.fault
        if fault == nil {
            var record = WorkRecord(
                inputPath: path, input: input, chainFile: work.chainFile, work.chain, attempt: attempt.number,
                began: began, seconds: ChainWatch.now() - start, frames: outcome.frames,
                mediaSeconds: outcome.mediaSeconds, warnings: outcome.warnings, replaced: result.replaced)
            do {
                switch try folder.commit(attempt, record) {
                case .committed(let whole):
                    record = whole
                    fill(&result, record)
                    result.state = .made
                    work.tally.add(result)
                    return true
                case .late:
                    work.tally.add(frames: -outcome.frames)
                    return false
                case .taken(let text):
                    result.error = text
                    result.attempts = attempt.number
                    work.tally.add(result)
                    return true
                case .empty:
                    fault = "the chain ended well and wrote nothing to ${output}."
                    outcome.isFinal = true
                }
            } catch {
                fault = "\(FrameHostError.wrap(error))"
            }
        }
        // A batch that was frozen for longer than its lease finds the work of its workers removed.
        if folder.isLate(attempt) {
            folder.drop(attempt)
            work.tally.add(frames: -outcome.frames)
            return false
        }
        let text = fault ?? ""
        if outcome.isOfMachine {
            folder.drop(attempt)
        } else {
            folder.fail(attempt, text, isFinal: outcome.isFinal, host: WorkRecord.hostName)
        }
        let count = work.addFailure(of: result.unit, noted: failures)
        if count < work.attempts, !outcome.isFinal {
            work.tally.attemptFailed(
                "\(result.input): attempt \(count) of \(work.attempts) failed: \(text)", frames: outcome.frames)
            return false
        }
        work.tally.add(frames: -outcome.frames)
        result.error = text
        result.attempts = count
        work.tally.add(result)
        return true
    }
}
