// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Copies the access units that a stage gives to the inboxes that watch it.
///
/// The stage's thread looks at one flag for each unit. Where it is set, the thread copies the unit's bytes into the
/// memory of the inboxes. No lease is kept, and nothing is allocated. docs/design/021-live-operation.md.
final class UnitTap: @unchecked Sendable {
    private let isWatched = Atomic<Bool>(false)
    // Below: under `lock`.
    private let lock = Condition()
    private var watches: [Watch] = []
    private var isClosed = false
    /// System clock of the last unit that was given.
    private let lastGiven = Atomic<Int64>(0)

    private struct Watch {
        /// Nil once the watcher has given up.
        weak var inbox: UnitInbox?
        var stage: String
        /// Whether a unit found no room, so that the following units cannot be decoded.
        var hasLost = false
    }

    init() { watches.reserveCapacity(4) }

    /// [any thread but a stage's] Puts the stage's units into `inbox`, from the next one on. Asking again changes
    /// nothing. A closed tap answers at once that it has ended.
    func watch(_ stage: String, _ inbox: UnitInbox) {
        lock.locked {
            guard !isClosed else { return inbox.end(stage) }
            watches.removeAll { $0.inbox == nil }
            guard !watches.contains(where: { $0.inbox === inbox && $0.stage == stage }) else { return }
            watches.append(Watch(inbox: inbox, stage: stage, hasLost: true))
            isWatched.store(true, ordering: .releasing)
        }
    }

    /// [any thread but a stage's]
    func unwatch(_ inbox: UnitInbox) {
        lock.locked {
            watches.removeAll { $0.inbox == nil || $0.inbox === inbox }
            isWatched.store(!watches.isEmpty, ordering: .releasing)
        }
    }

    /// [stage thread] Looks at an item that the stage gives.
    @inline(__always)
    func see(_ lease: borrowing Lease) {
        guard isWatched.load(ordering: .relaxed), lease.record.pointee.header.kind == .accessUnit else { return }
        give(lease.record)
    }

    private func give(_ record: UnsafeMutablePointer<LeaseRecord>) {
        let bytes = UnsafeRawBufferPointer(start: record.pointee.base, count: record.pointee.byteCount)
        let header = StageUnit.Header(record.pointee.header)
        lock.locked {
            var hasGone = false
            for index in watches.indices {
                guard let inbox = watches[index].inbox else {
                    hasGone = true
                    continue
                }
                watches[index].hasLost =
                    !inbox.put(watches[index].stage, header, bytes, followsGap: watches[index].hasLost)
            }
            if hasGone {
                watches.removeAll { $0.inbox == nil }
                isWatched.store(!watches.isEmpty, ordering: .relaxed)
            } else {
                lastGiven.store(ChainClock.system.now(), ordering: .relaxed)
            }
        }
    }

    /// [any thread] As ``PictureTap/hasGiven(within:now:)``.
    func hasGiven(within nanoseconds: Int64, now: Int64) -> Bool {
        let last = lastGiven.load(ordering: .relaxed)
        return last != 0 && now - last < nanoseconds
    }

    /// [any thread] Ends the tap, and tells all inboxes that watch.
    func close() {
        lock.locked {
            isClosed = true
            isWatched.store(false, ordering: .relaxed)
            for watch in watches { watch.inbox?.end(watch.stage) }
            watches.removeAll()
        }
    }
}

/// Collects the access units of the stages that a thread watches. Each thread that watches has an inbox of its own.
///
/// The inbox has memory of a fixed size. A reader that takes units too late loses the newest, and the next unit says so
/// (``StageUnit/followsGap``). Every thread may use it.
public final class UnitInbox: Sendable {
    /// What can come to an inbox.
    public enum Arrival: Sendable {
        /// An access unit of the stage with this id.
        case unit(stage: String, StageUnit)
        /// The stage gives nothing any more, because it was replaced or removed, or because the run has ended. Watch it
        /// again.
        case ended(stage: String)
    }

    private let condition = Condition()
    private let ring: Ring

    /// [any thread but a stage's] Makes an inbox.
    ///
    /// - Parameter byteCount: The memory for all units that wait; a unit for which there is no room is lost.
    /// - Throws: ``FrameHostError`` with code `.exhausted`.
    public init(byteCount: Int = 8 << 20) throws { ring = try Ring(byteCount: max(byteCount, 1)) }

    /// [stage thread] False where there was no room. Allocates nothing.
    func put(_ stage: String, _ header: StageUnit.Header, _ bytes: UnsafeRawBufferPointer, followsGap: Bool) -> Bool {
        condition.locked {
            guard ring.put(stage, header, bytes, followsGap: followsGap) else { return false }
            condition.broadcast()
            return true
        }
    }

    /// [any thread]
    func end(_ stage: String) {
        condition.locked {
            if !ring.ended.contains(stage) { ring.ended.append(stage) }
            condition.broadcast()
        }
    }

    /// [any thread but a stage's] Takes the oldest arrival, and waits at most `seconds` for one; nil when none
    /// came, or when ``wake()`` was called.
    public func take(within seconds: Double) -> Arrival? {
        let deadline = ChainClock.system.now() + MediaTime(seconds: min(max(seconds, 0), 1e6)).nanoseconds
        return condition.locked {
            while ring.isEmpty, ring.ended.isEmpty, !ring.isWoken, ChainClock.system.now() < deadline {
                condition.wait(until: deadline)
            }
            ring.isWoken = false
            if let (stage, unit) = ring.take() { return .unit(stage: stage, unit) }
            return ring.ended.isEmpty ? nil : .ended(stage: ring.ended.removeFirst())
        }
    }

    /// [any thread] Ends a wait of ``take(within:)``, so that the thread can do something else.
    public func wake() {
        condition.locked {
            ring.isWoken = true
            condition.broadcast()
        }
    }

    /// Used only under the inbox's lock, which makes `@unchecked Sendable` safe.
    private final class Ring: @unchecked Sendable {
        private struct Entry {
            var stage = ""
            var header = StageUnit.Header()
            var followsGap = false
            var offset = 0
            var count = 0
        }

        private let base: UnsafeMutableRawPointer
        private let byteCount: Int
        private var entries = [Entry](repeating: Entry(), count: 512)
        private var first = 0
        private var count = 0
        private var writeAt = 0
        var ended: [String] = []
        var isWoken = false
        var isEmpty: Bool { count == 0 }

        init(byteCount: Int) throws {
            base = try AnonymousMemory().allocate(byteCount: byteCount, touching: false)
            self.byteCount = byteCount
            ended.reserveCapacity(16)
        }

        deinit { AnonymousMemory().free(base, byteCount: byteCount) }

        func put(_ stage: String, _ header: StageUnit.Header, _ bytes: UnsafeRawBufferPointer, followsGap: Bool) -> Bool
        {
            guard count < entries.count, let offset = room(for: bytes.count) else { return false }
            if let source = bytes.baseAddress, !bytes.isEmpty {
                (base + offset).copyMemory(from: source, byteCount: bytes.count)
            }
            entries[(first + count) % entries.count] = Entry(
                stage: stage, header: header, followsGap: followsGap, offset: offset, count: bytes.count)
            count += 1
            writeAt = offset + bytes.count
            return true
        }

        /// Where `needed` bytes are free in one piece. Never fills the ring completely, since a full ring would look
        /// empty.
        private func room(for needed: Int) -> Int? {
            guard count > 0 else { return needed <= byteCount ? 0 : nil }
            let readAt = entries[first].offset
            guard writeAt > readAt else { return readAt - writeAt > needed ? writeAt : nil }
            if byteCount - writeAt >= needed { return writeAt }
            return readAt > needed ? 0 : nil
        }

        func take() -> (String, StageUnit)? {
            guard count > 0 else { return nil }
            let entry = entries[first]
            let bytes = [UInt8](unsafeUninitializedCapacity: entry.count) { buffer, count in
                UnsafeMutableRawBufferPointer(buffer).copyMemory(
                    from: UnsafeRawBufferPointer(start: base + entry.offset, count: entry.count))
                count = entry.count
            }
            entries[first].stage = ""
            first = (first + 1) % entries.count
            count -= 1
            return (entry.stage, StageUnit(entry.header, bytes: bytes, followsGap: entry.followsGap))
        }
    }
}
