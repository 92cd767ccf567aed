// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Copies the next picture that a stage gives when an inbox asked for it.
///
/// The stage's thread looks at one flag for each frame that it gives, and does the rest only where the flag is set.
/// docs/design/021-live-operation.md.
final class PictureTap: @unchecked Sendable {
    private let isWanted = Atomic<Bool>(false)
    // Below: under `lock`.
    private let lock = Condition()
    private(set) var waiting: [PictureInbox.Ask] = []
    private var isClosed = false
    /// Pictures to copy into. A picture that nobody holds any more is used again.
    private var pictures: [StagePicture] = []
    /// System clock of the last picture that was given.
    private let lastGiven = Atomic<Int64>(0)

    /// The most pictures that are kept: one that is being filled, and one for each of two askers.
    private static let mostKept = 3

    init() {
        waiting.reserveCapacity(16)
        pictures.reserveCapacity(Self.mostKept)
    }

    /// [any thread but a stage's] Puts the next picture of `format` into the inbox of `ask`. Asking again before it has
    /// come changes nothing. A closed tap answers at once, without a picture.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    func ask(_ ask: PictureInbox.Ask, format: VideoFormat) throws {
        let (isReady, former) = lock.locked {
            let former = pictures.filter { $0.format != format }
            pictures.removeAll { $0.format != format }
            return (isClosed || hasFree, former)
        }
        // After the lock: freeing much memory takes time.
        _ = consume former
        let fresh = isReady ? nil : try StagePicture(format)
        lock.locked {
            guard !isClosed else {
                ask.inbox?.put(ask.stage, nil)
                return
            }
            // Otherwise a stage that gives nothing would keep forever the asks of inboxes that have gone.
            waiting.removeAll { $0.inbox == nil }
            if let fresh {
                if pictures.count >= Self.mostKept { pictures.removeFirst() }
                pictures.append(fresh)
            }
            if !waiting.contains(where: { $0.inbox === ask.inbox && $0.stage == ask.stage }) { waiting.append(ask) }
            ask.inbox?.note(ask.stage)
            isWanted.store(true, ordering: .releasing)
        }
    }

    /// With the lock held.
    private var hasFree: Bool { pictures.indices.contains { isKnownUniquelyReferenced(&pictures[$0]) } }

    /// [stage thread] Looks at a frame that the stage gives.
    @inline(__always)
    func see(_ frame: borrowing Frame) {
        guard isWanted.load(ordering: .relaxed) else { return }
        give(frame)
    }

    /// [stage thread] The same for an item of an output, which need not be a frame.
    @inline(__always)
    func see(_ lease: borrowing Lease) {
        guard isWanted.load(ordering: .relaxed), lease.record.pointee.header.kind == .frame else { return }
        give(lease.record)
    }

    private func give(_ record: UnsafeMutablePointer<LeaseRecord>) {
        let frame = Frame(Lease(record))
        give(frame)
        // The lease stays with its owner.
        _ = frame.release().release()
    }

    private func give(_ frame: borrowing Frame) {
        lock.locked {
            isWanted.store(false, ordering: .relaxed)
            // Nobody looks at a picture that came after its asker had given up.
            guard waiting.contains(where: { $0.inbox?.wants($0.stage) ?? false }) else {
                return waiting.removeAll(keepingCapacity: true)
            }
            // A stage that passes frames on gives them with the format of the pool they come from, whose rate or aspect
            // may differ from that of the stage's link. Only the layout in memory has to match.
            let index = pictures.indices.first {
                pictures[$0].format.isLaid(as: frame.format) && isKnownUniquelyReferenced(&pictures[$0])
            }
            let picture = index.map { pictures[$0] }
            picture?.take(from: frame)
            if picture != nil { lastGiven.store(ChainClock.system.now(), ordering: .relaxed) }
            for ask in waiting where ask.inbox?.wants(ask.stage) ?? false { ask.inbox?.put(ask.stage, picture) }
            waiting.removeAll(keepingCapacity: true)
        }
    }

    /// [any thread] Whether the tap has given a picture within `nanoseconds` before `now`, by the system clock.
    func hasGiven(within nanoseconds: Int64, now: Int64) -> Bool {
        let last = lastGiven.load(ordering: .relaxed)
        return last != 0 && now - last < nanoseconds
    }

    /// [any thread] Ends the tap, and tells all inboxes that wait.
    func close() {
        lock.locked {
            isClosed = true
            isWanted.store(false, ordering: .relaxed)
            for ask in waiting { ask.inbox?.put(ask.stage, nil) }
            waiting.removeAll()
            pictures.removeAll()
        }
    }
}

/// Collects the pictures that a thread asked for. Each thread that asks has an inbox of its own.
///
/// It keeps only the newest picture of each stage. Every thread may use it.
public final class PictureInbox: Sendable {
    struct Ask {
        /// Nil once the asker has given up.
        weak var inbox: PictureInbox?
        var stage: String
    }

    private struct Arrival {
        var stage: String
        var picture: StagePicture?
    }

    private let condition = Condition()
    private let arrivals: Arrivals

    /// Under `condition`.
    private final class Arrivals: @unchecked Sendable {
        var list: [Arrival] = []
        var isWoken = false
        /// Stages that were asked, and have not answered.
        var open: Set<String> = []
    }

    /// [any thread but a stage's] Makes an empty inbox.
    public init() {
        arrivals = Arrivals()
        arrivals.list.reserveCapacity(16)
    }

    /// [any thread but a stage's] The picture of this stage that was asked for is wanted no longer.
    public func withdraw(_ stage: String) { condition.locked { _ = arrivals.open.remove(stage) } }

    fileprivate func note(_ stage: String) { condition.locked { _ = arrivals.open.insert(stage) } }

    /// [stage thread]
    fileprivate func wants(_ stage: String) -> Bool { condition.locked { arrivals.open.contains(stage) } }

    /// [stage thread] Stores a picture in place of an older one of the same stage.
    func put(_ stage: String, _ picture: StagePicture?) {
        condition.locked {
            arrivals.open.remove(stage)
            if let index = arrivals.list.firstIndex(where: { $0.stage == stage }) {
                arrivals.list[index].picture = picture
            } else {
                arrivals.list.append(Arrival(stage: stage, picture: picture))
            }
            condition.broadcast()
        }
    }

    /// [any thread but a stage's] Takes the oldest arrival, and waits at most `seconds` for one.
    ///
    /// - Returns: Nil when none came, or when ``wake()`` was called. The picture in it is nil where the stage could not
    ///   give one, because its format has just changed or because it is gone: ask again.
    public func take(within seconds: Double) -> (stage: String, picture: StagePicture?)? {
        let deadline = ChainClock.system.now() + MediaTime(seconds: min(max(seconds, 0), 1e6)).nanoseconds
        return condition.locked {
            while arrivals.list.isEmpty, !arrivals.isWoken, ChainClock.system.now() < deadline {
                condition.wait(until: deadline)
            }
            arrivals.isWoken = false
            guard !arrivals.list.isEmpty else { return nil }
            let first = arrivals.list.removeFirst()
            return (first.stage, first.picture)
        }
    }

    /// [any thread] Ends a wait of ``take(within:)``, so that the thread can do something else.
    public func wake() {
        condition.locked {
            arrivals.isWoken = true
            condition.broadcast()
        }
    }
}

extension VideoFormat {
    /// Whether pictures of both formats lie in memory in the same way.
    fileprivate func isLaid(as other: VideoFormat) -> Bool {
        pixelFormat == other.pixelFormat && width == other.width && height == other.height
    }
}
