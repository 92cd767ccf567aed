// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What one worker needs, according to plans of `framehost check --json`.
struct EngineNeeds: Equatable, Sendable {
    /// Pools, slabs, and what stages use themselves.
    var bytes = 0
    /// Threads that need a core: all but those of sinks.
    var cores = 1

    /// What a task takes beside its workers.
    private static let batchBytes = 64 << 20
    /// More than any plan needs. Larger numbers count as this one.
    private static let mostBytes = 1 << 46

    init() {}

    init(plan: JSONNode) {
        let stages = plan["stages"]?.asArray ?? []
        let parts =
            (plan["pools"]?.asArray ?? []).map { $0["bytes"]?.asInt ?? 0 }
            + (plan["slabs"]?.asArray ?? []).map { $0["bytes"]?.asInt ?? 0 }
            + stages.map { $0["ownBytes"]?.asInt ?? 0 }
        bytes = parts.reduce(0) { min($0 + min(max($1, 0), Self.mostBytes), Self.mostBytes) }
        let threads = stages.filter { $0["kind"]?.asString != "sink" }.compactMap { $0["thread"]?.asInt }
        cores = max(1, Set(threads).count)
    }

    /// The maximum of both, for bytes and for cores.
    func joined(_ other: EngineNeeds) -> EngineNeeds {
        var result = self
        result.bytes = max(bytes, other.bytes)
        result.cores = max(cores, other.cores)
        return result
    }

    /// MiB for a task that does `filesAtOnce` files at once. ``MemoryGate`` gives nine tenths of it to workers.
    func memoryMiB(filesAtOnce: Int) -> Int {
        let workers = (bytes + MemoryGate.baseBytes) * filesAtOnce
        return (workers / 9 * 10 + Self.batchBytes + (1 << 20) - 1) >> 20
    }
}
