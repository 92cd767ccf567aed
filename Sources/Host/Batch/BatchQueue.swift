// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// One thing that a slot does.
struct BatchTask: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// Making the whole unit, or dividing its input if that is long.
        case whole
        /// Making a part. Parts are counted from 0.
        case part(Int, of: Int)
        /// Joining the parts into the output.
        case join(of: Int)
    }

    var unit: Int
    var kind = Kind.whole
}

/// The tasks of a batch, and what became of parts. [any thread]
final class BatchQueue: Sendable {
    /// What a slot should do next.
    enum Order {
        case task(BatchTask, isFirstLook: Bool)
        /// There is nothing to do now, but another slot may still divide the unit on which it works.
        case wait
        case nothing
    }

    private struct State {
        /// How many units were taken.
        var taken = 0
        var parts: [BatchTask] = []
        /// Tasks to take again later: units on which another batch works, failed attempts, joins of which parts are
        /// missing.
        var deferred: [BatchTask] = []
        var inHand = 0
        /// For each divided unit, how many parts are neither finished nor given up.
        var pending: [Int: Int] = [:]
        /// Why a divided unit cannot be made.
        var faults: [Int: String] = [:]
        /// Frames of parts that this batch has made, by unit.
        var frames: [Int: Int] = [:]
        /// Failed attempts of this batch. They are counted here too, because the folder cannot note them on a full
        /// disk.
        var failures: [BatchTask: Int] = [:]
    }

    /// `--shard`: this process makes unit `first` and every `of`-th unit after that.
    private let shard: (first: Int, of: Int)
    private let unitCount: Int
    private let state = Mutex(State())

    init(unitCount: Int, shard: (first: Int, of: Int)) {
        self.unitCount = unitCount
        self.shard = shard
    }

    /// How many units this shard has.
    var count: Int { unitCount > shard.first ? (unitCount - shard.first + shard.of - 1) / shard.of : 0 }

    func isOurs(_ unit: Int) -> Bool { unit % shard.of == shard.first }

    /// Whether other processes work on the same list.
    var isShard: Bool { shard.of > 1 }
    /// Whether there are more shards than units. A shard without a unit can only make parts of units of other shards.
    var hasMoreShards: Bool { shard.of > unitCount }

    /// The next task. Parts come first, so that a divided file is complete soon. Units at which no slot of this process
    /// has looked come next.
    func take() -> Order {
        state.withLock { state in
            var task: BatchTask?
            var isFirstLook = true
            let next = shard.first + state.taken * shard.of
            if !state.parts.isEmpty {
                task = state.parts.removeFirst()
                if case .join = task?.kind { isFirstLook = false }
            } else if next < unitCount {
                task = BatchTask(unit: next)
                state.taken += 1
            } else if !state.deferred.isEmpty {
                task = state.deferred.removeFirst()
                isFirstLook = false
            }
            guard let task else { return state.inHand > 0 ? .wait : .nothing }
            state.inHand += 1
            return .task(task, isFirstLook: isFirstLook)
        }
    }

    /// Takes a task back from a slot: finished for good, or to be looked at again.
    func giveBack(_ task: BatchTask, isFinished: Bool) {
        state.withLock { state in
            state.inHand -= 1
            if !isFinished {
                state.deferred.append(task)
            } else if case .part(_, let count) = task.kind {
                state.pending[task.unit, default: 1] -= 1
                guard state.pending[task.unit] ?? 0 <= 0 else { return }
                // The join comes first, so that the output is complete soon even if many units follow.
                let join = BatchTask(unit: task.unit, kind: .join(of: count))
                guard let index = state.deferred.firstIndex(of: join) else { return }
                state.parts.insert(state.deferred.remove(at: index), at: 0)
            }
        }
    }

    /// Adds the parts of a unit, and with `joins` the task that joins them.
    func divide(_ unit: Int, into count: Int, joins: Bool) {
        state.withLock { state in
            Self.add(Array(0..<count), of: count, unit, &state)
            if joins { state.deferred.append(BatchTask(unit: unit, kind: .join(of: count))) }
        }
    }

    /// Begins a unit again, because its input has changed since the unit was divided.
    func again(_ unit: Int) {
        state.withLock { state in
            state.parts.removeAll { $0.unit == unit }
            state.pending[unit] = nil
            state.faults[unit] = nil
            state.deferred.append(BatchTask(unit: unit))
        }
    }

    /// Adds parts that were made and are gone, unless other parts of the unit are still being made.
    func addMissing(_ parts: [Int], of count: Int, _ unit: Int) {
        state.withLock { state in
            guard state.pending[unit] ?? 0 <= 0 else { return }
            Self.add(parts, of: count, unit, &state)
        }
    }

    private static func add(_ parts: [Int], of count: Int, _ unit: Int, _ state: inout State) {
        state.parts += parts.map { BatchTask(unit: unit, kind: .part($0, of: count)) }
        state.pending[unit] = parts.count
    }

    /// Counts a failed attempt.
    ///
    /// - Parameter noted: The number of failed attempts that the folder has noted.
    /// - Returns: The number of failed attempts, with this one.
    func addFailure(of task: BatchTask, noted: Int) -> Int {
        state.withLock { state in
            let count = max(state.failures[task] ?? 0, noted) + 1
            state.failures[task] = count
            return count
        }
    }

    /// Counts the frames of a part that was made. For a part that cannot be made, call ``fail(_:_:)``.
    func addFrames(_ count: Int, of unit: Int) { state.withLock { $0.frames[unit, default: 0] += count } }
    func fail(_ unit: Int, _ text: String) {
        state.withLock { state in
            guard state.faults[unit] == nil else { return }
            state.faults[unit] = text
            // The other parts of the unit would be made in vain.
            let before = state.parts.count
            state.parts.removeAll { $0.unit == unit }
            state.pending[unit, default: 0] -= before - state.parts.count
        }
    }

    func frames(of unit: Int) -> Int { state.withLock { $0.frames[unit] ?? 0 } }
    func fault(of unit: Int) -> String? { state.withLock { $0.faults[unit] } }
}
