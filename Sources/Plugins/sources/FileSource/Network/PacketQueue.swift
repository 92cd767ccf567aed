// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Glibc

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
        var cameAt: Int64 = 0
    }

    /// What waits.
    struct Waiting {
        /// From the first packet to the last one; 0 where they have no times.
        var ticks: Int64 = 0
        /// When the newest one came, in nanoseconds of the monotonic clock.
        var newestCameAt: Int64?
        var count = 0
    }

    static let mostPackets = 512
    static let mostBytes = 32 << 20

    private let mostPackets: Int
    /// Whether only the oldest packets are dropped where there is no room. Packets of sound need no keyframe.
    private let dropsOldest: Bool

    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    // Below: under the lock.
    private var entries: [Entry] = []
    /// Packets that are not in use.
    private var free: [UnsafeMutablePointer<AVPacket>] = []
    private var packetCount = 0
    private var byteCount = 0
    private var waitsForKey = false
    private var isEnding = false
    private var droppedCount = 0

    /// - Parameter mostPackets: How many packets it holds.
    init(mostPackets: Int = PacketQueue.mostPackets, dropsOldest: Bool = false) {
        self.mostPackets = mostPackets
        self.dropsOldest = dropsOldest
        entries.reserveCapacity(mostPackets + 16)
        free.reserveCapacity(mostPackets + 16)
        pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        pthread_condattr_init(&attributes)
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        pthread_cond_init(changed, &attributes)
        pthread_condattr_destroy(&attributes)
    }

    deinit {
        for packet in entries.compactMap(\.packet) + free {
            var packet: UnsafeMutablePointer<AVPacket>? = packet
            av_packet_free(&packet)
        }
        pthread_cond_destroy(changed)
        pthread_mutex_destroy(mutex)
        changed.deallocate()
        mutex.deallocate()
    }

    // MARK: The reader's side

    /// [reader's thread] Takes over the contents of `packet`, which is empty afterwards. What finds no room is dropped
    /// and counted.
    ///
    /// - Parameter waits: Whether to wait for room until the queue ends.
    func put(_ packet: UnsafeMutablePointer<AVPacket>, waits: Bool) {
        locked {
            let size = Int(max(packet.pointee.size, 0))
            let isKey = packet.pointee.flags & AV_PKT_FLAG_KEY != 0
            // A packet that would fill the whole queue cannot be a picture.
            if size > Self.mostBytes / 2 { return drop(packet) }
            while waits, isFull(size), !isEnding { pthread_cond_wait(changed, mutex) }
            if isFull(size) { makeRoom() }
            if isKey { waitsForKey = false }
            guard !isFull(size), !waitsForKey, let own = free.popLast() ?? av_packet_alloc() else {
                waitsForKey = true
                return drop(packet)
            }
            av_packet_move_ref(own, packet)
            entries.append(
                Entry(item: .packet, packet: own, byteCount: size, isKey: isKey, cameAt: Self.now()))
            packetCount += 1
            byteCount += size
            pthread_cond_broadcast(changed)
        }
    }

    /// [reader's thread] Adds an item that is not a packet. It always finds room.
    func put(_ item: Item) {
        locked {
            if case .opened = item { waitsForKey = false }
            // If the items are not taken for a long time, only the newest is needed.
            if entries.count > mostPackets + 8, let index = entries.firstIndex(where: { $0.packet == nil }) {
                entries.remove(at: index)
            }
            entries.append(Entry(item: item))
            pthread_cond_broadcast(changed)
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
            entries.removeAll { entry in
                guard left > 0, let packet = entry.packet else { return false }
                left -= 1
                droppedCount += 1
                giveBack(packet, entry.byteCount)
                return true
            }
            return
        }
        guard let newest = entries.lastIndex(where: { $0.isKey }), newest > 0 else { return }
        var kept: [Entry] = []
        kept.reserveCapacity(mostPackets + 16)
        for (index, entry) in entries.enumerated() {
            if index < newest, let packet = entry.packet {
                giveBack(packet, entry.byteCount)
                droppedCount += 1
            } else {
                kept.append(entry)
            }
        }
        entries = kept
    }

    private func giveBack(_ packet: UnsafeMutablePointer<AVPacket>, _ size: Int) {
        av_packet_unref(packet)
        packetCount -= 1
        byteCount -= size
        free.append(packet)
    }

    /// [reader's thread] Sleeps until `instant` of `CLOCK_MONOTONIC`, or until the end.
    func sleep(until instant: Int64) {
        locked { while !isEnding, Self.now() < instant { wait(until: instant) } }
    }

    // MARK: The stage's side

    /// [stage thread] The next item, whose packet is moved into `packet`; nil when there is none until `instant` of
    /// `CLOCK_MONOTONIC`.
    func take(into packet: UnsafeMutablePointer<AVPacket>?, until instant: Int64) -> Item? {
        locked {
            while entries.isEmpty, !isEnding, Self.now() < instant { wait(until: instant) }
            guard !entries.isEmpty else { return nil }
            let entry = entries.removeFirst()
            if let own = entry.packet {
                if let packet { av_packet_move_ref(packet, own) }
                giveBack(own, entry.byteCount)
                pthread_cond_broadcast(changed)
            }
            return entry.item
        }
    }

    /// [control thread] Like `take`, but leaves the item in the queue.
    func look(until instant: Int64, unless isStopped: () -> Bool) -> Item? {
        locked {
            while entries.isEmpty, !isEnding, Self.now() < instant, !isStopped() {
                wait(until: min(instant, Self.now() + 20_000_000))
            }
            return entries.first?.item
        }
    }

    /// [stage thread] The packets that wait. Where they came at once, their ticks tell how long ago the first was captured.
    var waiting: Waiting {
        locked {
            var (waiting, first, last) = (Waiting(), Int64.max, Int64.min)
            for entry in entries {
                guard let packet = entry.packet else { continue }
                waiting.count += 1
                waiting.newestCameAt = entry.cameAt
                let tick = packet.pointee.dts == fh_av_no_pts ? packet.pointee.pts : packet.pointee.dts
                if tick != fh_av_no_pts { (first, last) = (min(first, tick), max(last, tick)) }
            }
            if last > first { waiting.ticks = max(last.minus(first), 0) }
            return waiting
        }
    }

    /// [any thread] Whether there is room for another packet of usual size.
    var hasRoom: Bool { locked { !isFull(1 << 16) } }

    /// [any thread] Whether at least a quarter of it is free.
    var hasAmpleRoom: Bool {
        locked { packetCount <= mostPackets - mostPackets / 4 && byteCount <= Self.mostBytes - Self.mostBytes / 4 }
    }

    /// [any thread] How many packets wait.
    var packetsWaiting: Int { locked { packetCount } }

    /// [any thread] Whether it has ended, and nothing is left.
    var isOver: Bool { locked { isEnding && entries.isEmpty } }

    /// [any thread] Ends every wait.
    func end() {
        locked {
            isEnding = true
            pthread_cond_broadcast(changed)
        }
    }

    /// [any thread] Packets that found no room.
    var dropped: Int { locked { droppedCount } }

    static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }

    private func wait(until instant: Int64) {
        var time = timespec(tv_sec: Int(instant / 1_000_000_000), tv_nsec: Int(instant % 1_000_000_000))
        pthread_cond_timedwait(changed, mutex, &time)
    }

    private func locked<Result>(_ body: () -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body()
    }
}
