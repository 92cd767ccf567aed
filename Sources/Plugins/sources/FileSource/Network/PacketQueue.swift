// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import FrameSupport

/// Passes items from the reader's thread to the stage thread, in order. Bounded in packets and bytes.
///
/// `@unchecked Sendable`: everything is used under the lock. A packet belongs to the thread that has taken it out.
final class PacketQueue: @unchecked Sendable {
    enum Item {
        case packet
        case opened(StreamTerms)
        case lost(String)
        /// The stream could not be opened.
        case refused(FrameHostError)
        case ended
    }

    private struct Entry {
        var item: Item
        var packet: UnsafeMutablePointer<AVPacket>?
        var byteCount = 0
        var isKey = false
        /// Nanoseconds of the monotonic clock.
        var cameAt: Int64 = 0

        /// When the packet is decoded, else shown.
        var tick: Int64? {
            guard let packet = packet?.pointee else { return nil }
            let tick = packet.dts == fh_av_no_pts ? packet.pts : packet.dts
            return tick == fh_av_no_pts ? nil : tick
        }
    }

    static let mostPackets = 512
    static let mostBytes = 32 << 20

    private let mostPackets: Int
    /// Whether only the oldest packets are dropped where there is no room. Packets of sound need no keyframe.
    private let dropsOldest: Bool

    private let changed = Condition()
    // Below: under the lock.
    private var entries: [Entry] = []
    /// Packets that are not in use.
    private var free: [UnsafeMutablePointer<AVPacket>] = []
    private var packetCount = 0
    private var byteCount = 0
    private var waitsForKey = false
    private var isEnding = false
    private var droppedCount = 0
    /// The connection of what is taken next; nil where that is not known, or lost.
    private var terms: StreamTerms?

    /// - Parameter mostPackets: How many packets it holds.
    init(mostPackets: Int = PacketQueue.mostPackets, dropsOldest: Bool = false) {
        self.mostPackets = mostPackets
        self.dropsOldest = dropsOldest
        entries.reserveCapacity(mostPackets + 16)
        free.reserveCapacity(mostPackets + 16)
    }

    deinit {
        for packet in entries.compactMap(\.packet) + free {
            var packet: UnsafeMutablePointer<AVPacket>? = packet
            av_packet_free(&packet)
        }
    }

    // MARK: The reader's side

    /// [reader's thread] Takes over the contents of `packet`, which is empty afterwards. What finds no room is dropped
    /// and counted.
    ///
    /// - Parameter waits: Whether to wait for room until the queue ends.
    func put(_ packet: UnsafeMutablePointer<AVPacket>, waits: Bool) {
        changed.locked {
            let size = Int(max(packet.pointee.size, 0))
            let isKey = packet.pointee.flags & AV_PKT_FLAG_KEY != 0
            // A packet that would fill the whole queue cannot be a picture.
            if size > Self.mostBytes / 2 { return drop(packet) }
            while waits, isFull(size), !isEnding { changed.wait() }
            if isFull(size) { makeRoom() }
            if isKey { waitsForKey = false }
            guard !isFull(size), !waitsForKey, let own = free.popLast() ?? av_packet_alloc() else {
                waitsForKey = true
                return drop(packet)
            }
            av_packet_move_ref(own, packet)
            entries.append(
                Entry(item: .packet, packet: own, byteCount: size, isKey: isKey, cameAt: MonotonicTime.now()))
            packetCount += 1
            byteCount += size
            changed.broadcast()
        }
    }

    /// [reader's thread] Adds an item that is not a packet. It always finds room.
    func put(_ item: Item) {
        changed.locked {
            if case .opened = item { waitsForKey = false }
            // If the items are not taken for a long time, only the newest is needed.
            if entries.count > mostPackets + 8, let index = entries.firstIndex(where: { $0.packet == nil }) {
                note(entries.remove(at: index).item)
            }
            entries.append(Entry(item: item))
            changed.broadcast()
        }
    }

    private func isFull(_ size: Int) -> Bool {
        packetCount >= mostPackets || byteCount + size > Self.mostBytes
    }

    private func drop(_ packet: UnsafeMutablePointer<AVPacket>) {
        droppedCount += 1
        av_packet_unref(packet)
    }

    /// Removes all packets before the newest keyframe, or with ``dropsOldest`` the oldest eighth of them.
    private func makeRoom() {
        if dropsOldest {
            var left = max(packetCount / 8, 1)
            remove { _ in
                left -= 1
                return left >= 0
            }
            return
        }
        guard let newest = entries.last(where: { $0.isKey })?.packet else { return }
        var isBefore = true
        remove { entry in
            if entry.packet == newest { isBefore = false }
            return isBefore
        }
    }

    /// [reader's thread] Drops the packets that came before `instant` of `CLOCK_MONOTONIC`.
    func drop(before instant: Int64) {
        changed.locked { remove { $0.cameAt < instant } }
    }

    /// Drops the packets of which `goes` says so, asked in their order.
    private func remove(_ goes: (Entry) -> Bool) {
        entries.removeAll { entry in
            guard let packet = entry.packet, goes(entry) else { return false }
            droppedCount += 1
            giveBack(packet, entry.byteCount)
            return true
        }
    }

    /// [reader's thread] When the first waiting packet came, by `CLOCK_MONOTONIC`; nil if none waits.
    var begin: Int64? { changed.locked { entries.first { $0.packet != nil }?.cameAt } }

    private func giveBack(_ packet: UnsafeMutablePointer<AVPacket>, _ size: Int) {
        av_packet_unref(packet)
        packetCount -= 1
        byteCount -= size
        free.append(packet)
    }

    /// [reader's thread] Sleeps until `instant` of `CLOCK_MONOTONIC`, or until the end.
    func sleep(until instant: Int64) {
        changed.locked { while !isEnding, MonotonicTime.now() < instant { changed.wait(until: instant) } }
    }

    // MARK: The stage's side

    /// [stage thread] The next item, whose packet is moved into `packet`; nil when there is none until `instant` of
    /// `CLOCK_MONOTONIC`.
    func take(into packet: UnsafeMutablePointer<AVPacket>?, until instant: Int64) -> Item? {
        changed.locked {
            while entries.isEmpty, !isEnding, MonotonicTime.now() < instant { changed.wait(until: instant) }
            guard !entries.isEmpty else { return nil }
            let entry = entries.removeFirst()
            note(entry.item)
            if let own = entry.packet {
                if let packet { av_packet_move_ref(packet, own) }
                giveBack(own, entry.byteCount)
                changed.broadcast()
            }
            return entry.item
        }
    }

    private func note(_ item: Item) {
        switch item {
        case .opened(let terms): self.terms = terms
        case .lost: terms = nil
        case .packet, .refused, .ended: break
        }
    }

    /// [stage thread] The connection of what is taken next, where another consumer has taken its beginning.
    var current: StreamTerms? { changed.locked { terms } }

    /// [control thread] Like `take`, but leaves the item in the queue.
    func look(until instant: Int64, unless isStopped: () -> Bool) -> Item? {
        changed.locked {
            while entries.isEmpty, !isEnding, MonotonicTime.now() < instant, !isStopped() {
                changed.wait(until: min(instant, MonotonicTime.now() + 20_000_000))
            }
            return entries.first?.item
        }
    }

    /// [stage thread] Ticks from the first waiting packet to the last one; 0 where they have no times.
    var ticksWaiting: Int64 {
        changed.locked {
            var (first, last) = (Int64.max, Int64.min)
            for entry in entries {
                guard let tick = entry.tick else { continue }
                (first, last) = (min(first, tick), max(last, tick))
            }
            return last > first ? max(last.minus(first), 0) : 0
        }
    }

    /// How long before it came a packet can have been captured, whatever its time says.
    private static let mostEarly: Int64 = 10_000_000_000

    /// [stage thread] When the waiting packets were captured, by the one that came soonest after its time. Nanoseconds of the
    /// monotonic clock; nil for fewer than two packets with times.
    ///
    /// - Returns: When the first one was, and what is to be added to the stream's times of decoding.
    func captured(_ timeBase: TimeBase) -> (first: Int64, offset: Int64)? {
        changed.locked { () -> (first: Int64, offset: Int64)? in
            let times = entries.compactMap { entry -> (time: Int64, cameAt: Int64, isExact: Bool)? in
                guard let tick = entry.tick, let time = timeBase.possibleTime(ofTicks: tick) else { return nil }
                return (time.nanoseconds, entry.cameAt, entry.packet?.pointee.dts != fh_av_no_pts)
            }
            // Where pictures are reordered, the time of showing says less.
            let exact = times.contains(where: \.isExact) ? times.filter(\.isExact) : times
            guard times.count > 1, let begin = exact.map(\.time).min(), let cameAt = times.first?.cameAt,
                let soonest = exact.map({ $0.cameAt - $0.time }).min()
            else { return nil }
            // All lie within ±2^61.
            let first = max(soonest + begin, cameAt - Self.mostEarly)
            return (first, first - begin)
        }
    }

    /// [any thread] Whether there is room for another packet of usual size.
    var hasRoom: Bool { changed.locked { !isFull(1 << 16) } }

    /// [any thread] Whether at least a quarter of it is free.
    var hasAmpleRoom: Bool {
        changed.locked {
            packetCount <= mostPackets - mostPackets / 4 && byteCount <= Self.mostBytes - Self.mostBytes / 4
        }
    }

    /// [any thread] How many packets wait.
    var packetsWaiting: Int { changed.locked { packetCount } }

    /// [any thread] Whether it has ended, and nothing is left.
    var isOver: Bool { changed.locked { isEnding && entries.isEmpty } }

    /// [any thread] Ends every wait.
    func end() {
        changed.locked {
            isEnding = true
            changed.broadcast()
        }
    }

    /// [any thread] Packets that found no room.
    var dropped: Int { changed.locked { droppedCount } }
}
