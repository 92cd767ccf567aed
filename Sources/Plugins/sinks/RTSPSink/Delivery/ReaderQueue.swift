// SPDX-License-Identifier: Apache-2.0

/// What a queue must know about a unit.
protocol QueuedUnit: Sendable {
    var isKeyframe: Bool { get }
    var byteCount: Int { get }
    /// Whether it is decoded without any other unit: a unit of sound.
    var standsAlone: Bool { get }
}

extension QueuedUnit {
    var standsAlone: Bool { false }
}

/// The units that wait for a slow reader: bounded in time and bytes, and cut only at keyframes.
///
/// A value without threads or clock: the connection asks it what to do. When the oldest unit waits longer than it may,
/// whole units are dropped: those before the newest waiting keyframe, or all, and then every further unit up to the
/// next keyframe. So a reader can always decode what it gets. It sees a gap in time, never a broken picture. Units that
/// stand alone wait among the others and are cut with them, but need no keyframe to go on. A reader that takes nothing
/// at all for too long is stuck.
struct ReaderQueue<Unit: QueuedUnit> {
    struct Limits: Sendable {
        /// Longest wait in the queue, nanoseconds.
        var mostAge: Int64
        var mostBytes: Int
        /// Longest time without taking anything while something waits, nanoseconds.
        var mostStillness: Int64
    }

    enum Admission: Equatable { case queued, dropped }

    private struct Entry {
        var unit: Unit
        var since: Int64
    }

    let limits: Limits
    private var entries: [Entry] = []
    private var first = 0
    private(set) var byteCount = 0
    /// Units left out since the reader's first keyframe, without those that stand alone.
    private(set) var droppedCount = 0
    /// Units left out that stand alone.
    private(set) var droppedAloneCount = 0
    private var hasBegun: Bool
    /// Whether units are dropped up to the next keyframe, all but those that stand alone.
    private(set) var awaitsKeyframe: Bool
    /// Since when something has waited for the reader, even if it was dropped meanwhile; nil when the reader has taken
    /// everything.
    private var waitingSince: Int64?

    /// - Parameter awaitsKeyframe: False where the first units that are added start with a keyframe.
    init(limits: Limits, awaitsKeyframe: Bool = true) {
        self.limits = limits
        self.awaitsKeyframe = awaitsKeyframe
        hasBegun = !awaitsKeyframe
        entries.reserveCapacity(16)
    }

    var count: Int { entries.count - first }
    var isEmpty: Bool { count == 0 }

    /// How long the oldest unit has waited, nanoseconds.
    func age(now: Int64) -> Int64 { isEmpty ? 0 : now - entries[first].since }

    /// Whether the reader must be disconnected.
    func isStuck(now: Int64) -> Bool { waitingSince.map { now - $0 > limits.mostStillness } ?? false }

    /// Adds a unit, or drops it.
    mutating func add(_ unit: Unit, now: Int64) -> Admission {
        if unit.standsAlone {
            guard hasBegun else { return .dropped }
        } else if awaitsKeyframe {
            guard unit.isKeyframe else {
                if hasBegun { droppedCount += 1 }
                return .dropped
            }
            awaitsKeyframe = false
            hasBegun = true
        }
        entries.append(Entry(unit: unit, since: now))
        byteCount += unit.byteCount
        if waitingSince == nil { waitingSince = now }
        if age(now: now) > limits.mostAge || byteCount > limits.mostBytes { shorten() }
        return isEmpty ? .dropped : .queued
    }

    /// The next unit to send. Must be called whenever the reader's socket takes bytes.
    mutating func take(now: Int64) -> Unit? {
        guard !isEmpty else {
            waitingSince = nil
            return nil
        }
        let entry = entries[first]
        first += 1
        waitingSince = isEmpty ? nil : now
        byteCount -= entry.unit.byteCount
        if first == entries.count || first > 32 { compact() }
        return entry.unit
    }

    /// Notes that the reader has already got units from a keyframe on, and continues with the next ones.
    mutating func begin() { (awaitsKeyframe, hasBegun) = (false, true) }

    /// Units were lost before they came here: drops units up to the next keyframe.
    ///
    /// - Parameters:
    ///   - count: How many, without those that stand alone.
    ///   - alone: How many that stand alone.
    mutating func missed(_ count: Int = 0, alone: Int = 0) {
        if hasBegun {
            droppedCount += count
            droppedAloneCount += alone
        }
        drop(before: entries.count)
        awaitsKeyframe = true
    }

    /// Drops all units before the newest keyframe; all units where it is the first one, or where there is none.
    private mutating func shorten() {
        let keyframe = entries.indices.last { $0 > first && entries[$0].unit.isKeyframe }
        drop(before: keyframe ?? entries.count)
        if keyframe == nil { awaitsKeyframe = true }
    }

    private mutating func drop(before end: Int) {
        for index in first..<end {
            byteCount -= entries[index].unit.byteCount
            if entries[index].unit.standsAlone { droppedAloneCount += 1 } else { droppedCount += 1 }
        }
        first = end
        compact()
    }

    private mutating func compact() {
        entries.removeSubrange(..<first)
        first = 0
    }
}
