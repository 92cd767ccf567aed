// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameNetwork

/// Carries one stream from its stage thread to the event loops of its readers.
///
/// The stage thread packs each access unit once and hands the block to every loop that has readers. A loop without
/// readers is not woken. A new reader takes the kept blocks and its place in the order of blocks in one step, so that
/// no block comes twice and none is missed. Each block is of pictures or of sound; both share one order.
final class StreamHub: Sendable {
    /// What loops and the stage thread share; used only under the lock.
    private struct Shared {
        var kept = KeptUnits<MediaBlock>()
        var joins = JoinCounts()
        var requests = KeyframeRequests()
        var fans: [LoopFan] = []
        var nextIndex: UInt64 = 0
        /// Blocks of sound so far.
        var soundCount: UInt64 = 0
        var sent = PerMedium(SentCounts())
        /// Chain clock less PTS, nanoseconds.
        var anchor: Int64 = 0
        var hasAnchor = false
        var isClosed = false
    }

    /// What a sender report says of a medium so far.
    private struct SentCounts {
        var packets: UInt32 = 0
        var payloadBytes: UInt32 = 0
    }

    /// How a medium's packets are marked.
    struct Track: Sendable {
        var ssrc: UInt32
        var clock: RTPClock
    }

    let path: String
    /// SSRC and clock of the pictures.
    let ssrc: UInt32
    let clock: RTPClock
    /// Nil where the stream has no sound.
    let sound: Track?
    let canonicalName: String
    let queueLimits: ReaderQueue<MediaBlock>.Limits
    /// Asks the encoder for a keyframe; called by event loops, must not block.
    let requestKeyframe: @Sendable () -> Void
    /// Kept in place of ``KeptUnits`` where no keyframe can be requested; used only under the lock.
    private let group: GroupStore?
    /// Chain clock: nanoseconds now, and the wall clock at a moment.
    let now: @Sendable () -> Int64
    let unixTime: @Sendable (Int64) -> Int64
    private let shared: NIOLockedValueBox<Shared>

    init(
        path: String, ssrc: UInt32, clock: RTPClock, sound: Track? = nil, canonicalName: String,
        queueLimits: ReaderQueue<MediaBlock>.Limits,
        group: GroupStore? = nil, requestKeyframe: @escaping @Sendable () -> Void,
        now: @escaping @Sendable () -> Int64, unixTime: @escaping @Sendable (Int64) -> Int64
    ) {
        self.path = path
        self.ssrc = ssrc
        self.clock = clock
        self.sound = sound
        self.canonicalName = canonicalName
        self.queueLimits = queueLimits
        self.group = group
        self.requestKeyframe = requestKeyframe
        self.now = now
        self.unixTime = unixTime
        shared = NIOLockedValueBox(Shared())
    }

    /// Within ±2^61 ns, whatever a clock says, so that differences do not overflow.
    private var boundedNow: Int64 { MediaTime(nanoseconds: now()).nanoseconds }

    // MARK: Stage thread

    /// [stage thread] Sets where the times of this stream lie on the chain clock: what was captured at `moment` is
    /// shown at `pts`.
    ///
    /// Both lie within ±2^61 ns (``MediaTime``), and so does the present: their differences do not overflow.
    func setAnchor(captured moment: MediaTime, pts: MediaTime) {
        let anchor = moment.nanoseconds - pts.nanoseconds
        shared.withLockedValue { ($0.anchor, $0.hasAnchor) = (anchor, true) }
    }

    /// A difference of the anchor that nobody sees in a picture's time of day.
    private static let near: UInt64 = 200_000_000

    /// [stage thread] Whether ``setAnchor(captured:pts:)`` would hardly move the stream.
    func isAnchored(near moment: MediaTime, pts: MediaTime) -> Bool {
        let anchor = moment.nanoseconds - pts.nanoseconds
        return shared.withLockedValue { shared in
            let (distance, isTooMuch) = shared.anchor.subtractingReportingOverflow(anchor)
            return shared.hasAnchor && !isTooMuch && distance.magnitude <= Self.near
        }
    }

    /// [stage thread] Hands a block to all loops with readers. Never waits for one.
    ///
    /// - Returns: The limit that the kept group reaches with this block.
    @discardableResult
    func publish(_ block: MediaBlock) -> GroupStore.Bound? {
        let now = boundedNow
        let payloadBytes = block.packets.reduce(0) { $0 + $1.byteCount - RTPHeader.byteCount }
        return shared.withLockedValue { shared in
            var bound: GroupStore.Bound?
            if let group {
                bound = block.withMediaBytes { group.add(block.keptUnit, $0) }
                if bound != nil { shared.joins.groupsTooLarge += 1 }
            } else {
                let isCrowded = block.isKeyframe && shared.requests.sawKeyframe(now: now)
                shared.kept.add(block, now: now, isCrowded: isCrowded)
            }
            shared.nextIndex = block.index + 1
            if block.medium == .sound { shared.soundCount = block.soundsBefore + 1 }
            shared.sent[block.medium].packets &+= UInt32(block.packets.count)
            shared.sent[block.medium].payloadBytes &+= UInt32(payloadBytes)
            for fan in shared.fans { fan.post(block) }
            return bound
        }
    }

    /// [stage thread] The stream has ended: releases the kept blocks. A reader that is catching up in the kept group
    /// may go on.
    func close() {
        shared.withLockedValue { shared in
            shared.isClosed = true
            shared.kept.clear()
            shared.fans = []
        }
    }

    // MARK: Event loops

    /// Where a reader starts.
    struct Entry {
        var kept: [MediaBlock] = []
        /// The first block that the reader gets as it is published.
        var nextIndex: UInt64
        /// The kept group, in which the reader catches up after the keyframe. The keyframe is in `kept`.
        var backlog: GroupStore.Backlog?

        /// The number and time of a medium's first packet, where it is known.
        func firstPacket(of medium: Medium) -> (sequenceNumber: UInt16, timestamp: UInt32)? {
            guard let keyframe = kept.first else { return nil }
            switch medium {
            case .pictures: return (keyframe.firstSequenceNumber, keyframe.timestamp)
            case .sound:
                if let unit = backlog?.firstSound { return (unit.firstSequenceNumber, unit.timestamp) }
                let block = kept.first {
                    $0.medium == .sound && Int32(bitPattern: $0.pictureTime &- keyframe.pictureTime) >= 0
                }
                return block.map { ($0.firstSequenceNumber, $0.timestamp) }
            }
        }
    }

    /// Counts of readers that joined a stream with a kept group, and of its groups.
    struct JoinCounts: Sendable, Equatable {
        /// Readers that had a picture at once.
        var atOnce = 0
        /// Readers that had to wait for the next keyframe.
        var waiting = 0
        var groupsTooLarge = 0
    }

    /// [network loop] Adds a reader: `fan` gets every block from the entry on. Nil where the stream has ended.
    ///
    /// - Parameter hasPictures: False for a reader of sound alone, which starts with the next block.
    func join(_ fan: LoopFan, hasPictures: Bool = true) -> Entry? {
        let now = boundedNow
        let (entry, mustAsk) = shared.withLockedValue { shared -> (Entry?, Bool) in
            if shared.isClosed { return (nil, false) }
            if !shared.fans.contains(where: { $0 === fan }) { shared.fans.append(fan) }
            guard hasPictures else { return (Entry(nextIndex: shared.nextIndex), false) }
            if let group { return (self.entry(group, shared.nextIndex), false) }
            let kept = shared.kept.current(now: now)
            return (Entry(kept: kept, nextIndex: shared.nextIndex), kept.isEmpty && shared.requests.noteNeed(now: now))
        }
        if mustAsk { requestKeyframe() }
        if entry?.backlog != nil { entry?.kept.first?.findPackets() }
        return entry
    }

    /// An entry with a copy of the keyframe. What the answer to PLAY says of the first packet then holds, even if
    /// another keyframe comes before the rest was sent.
    private func entry(_ group: GroupStore, _ nextIndex: UInt64) -> Entry {
        guard let backlog = group.backlog else { return Entry(nextIndex: nextIndex) }
        let block = MediaBlock()
        block.copy(backlog.keyframe, group.bytes(of: backlog.keyframe))
        return Entry(kept: [block], nextIndex: nextIndex, backlog: backlog)
    }

    /// [network loop] Counts a reader that has joined, with a picture at once or not.
    func countJoin(atOnce: Bool) {
        guard group != nil else { return }
        shared.withLockedValue { shared in
            if atOnce { shared.joins.atOnce += 1 } else { shared.joins.waiting += 1 }
        }
    }

    /// What comes next for a reader that catches up.
    enum CatchUp: Equatable {
        /// A unit was copied. `leftOut` pictures and `sounds` units of sound before it were left out.
        case unit(leftOut: Int, sounds: Int = 0)
        /// The reader has everything that was published. Blocks from this one on come by themselves.
        case done(nextIndex: UInt64)
        /// The rest of the group is gone. `leftOut` pictures and `sounds` units of sound were left out, and blocks
        /// from `nextIndex` on come by themselves.
        case lost(leftOut: Int, sounds: Int = 0, nextIndex: UInt64)
    }

    /// [network loop] The unit at `index` of the kept group, or the keyframe where that is newer, copied into `block`.
    ///
    /// - Parameters:
    ///   - sounds: How many units of sound there are before `index`.
    ///   - block: The reader's own.
    func catchUp(_ index: UInt64, sounds: UInt64 = 0, into block: MediaBlock) -> CatchUp {
        let next = shared.withLockedValue { shared -> CatchUp in
            guard index < shared.nextIndex else { return .done(nextIndex: shared.nextIndex) }
            guard let group, let unit = group.unit(from: index) else {
                let missed = Int(shared.soundCount - sounds)
                return .lost(
                    leftOut: Int(shared.nextIndex - index) - missed, sounds: missed, nextIndex: shared.nextIndex)
            }
            block.copy(unit, group.bytes(of: unit))
            let missed = Int(unit.soundsBefore - sounds)
            return .unit(leftOut: Int(unit.index - index) - missed, sounds: missed)
        }
        if case .unit = next { block.findPackets() }
        return next
    }

    /// [any thread] Figures of the kept group; nil where none is kept.
    var groupFigures: JSONNode? {
        guard let group else { return nil }
        let (joins, bytes, ticks) = shared.withLockedValue { ($0.joins, group.byteCount, group.ticks) }
        return .object([
            ("bytes", .number(bytes)), ("milliseconds", .number(Int(ticks / 90))),
            ("tooLarge", .number(joins.groupsTooLarge)), ("joinedAtOnce", .number(joins.atOnce)),
            ("joinedWaiting", .number(joins.waiting)),
        ])
    }

    /// [network loop] Removes a fan that has no readers, so that it gets no blocks.
    func leave(_ fan: LoopFan) { shared.withLockedValue { shared in shared.fans.removeAll { $0 === fan } } }

    /// [any thread] A compound packet with a sender report of the pictures at this moment (RFC 3550, 6.4.1): its two
    /// times are the same tick.
    func senderReport() -> [UInt8] { senderReports().pictures }

    /// [any thread] The same for each medium, for one moment and with one mapping of their times to the wall clock,
    /// by which players synchronise them. Empty for a medium that the stream does not have.
    ///
    /// - Parameter earlier: How long before now that moment is, nanoseconds.
    func senderReports(earlier: Int64 = 0) -> PerMedium<[UInt8]> {
        let moment = MediaTime(nanoseconds: boundedNow - earlier).nanoseconds
        let (anchor, sent) = shared.withLockedValue { ($0.anchor, $0.sent) }
        func report(_ track: Track, _ counts: SentCounts) -> [UInt8] {
            let ticks = track.clock.ticks(ofNanoseconds: moment - anchor)
            let pts = track.clock.nanoseconds(ofTicks: ticks)
            let report = SenderReport(
                ssrc: track.ssrc, ntp: NTPTime(unixNanoseconds: unixTime(pts + anchor)),
                rtpTime: track.clock.timestamp(ofPTS: pts), packetCount: counts.packets, byteCount: counts.payloadBytes)
            return RTCP.bytes([.senderReport(report, []), .canonicalName(ssrc: track.ssrc, canonicalName)])
        }
        return PerMedium(
            pictures: report(Track(ssrc: ssrc, clock: clock), sent.pictures),
            sound: sound.map { report($0, sent.sound) } ?? [])
    }

    /// [network loop] The reports for a reader that starts; nil while the stream has no anchor. Players would then
    /// synchronise the media by a wrong mapping, so the reports come with the first unit instead.
    ///
    /// For a reader that starts with an old keyframe, reports of the present moment would not help at first:
    /// GStreamer ignores a report that is more than a second ahead of the packets, or before them. So they are for
    /// half a second after that keyframe. The mapping is the same.
    func firstReports(of entry: Entry) -> PerMedium<[UInt8]>? {
        guard sound != nil else { return senderReports() }
        guard let anchor = shared.withLockedValue({ $0.hasAnchor ? $0.anchor : nil }) else { return nil }
        guard let keyframe = entry.backlog?.keyframe else { return senderReports() }
        let present = clock.timestamp(ofPTS: boundedNow - anchor)
        let age = clock.nanoseconds(ofTicks: Int64(Int32(bitPattern: present &- keyframe.timestamp)))
        return senderReports(earlier: max(0, age - 500_000_000))
    }

    /// A sender report of each medium, and BYE: the stream has ended (RFC 3550, 6.6).
    func bye() -> PerMedium<[UInt8]> {
        var reports = senderReports()
        reports.pictures += RTCP.bytes([.bye([ssrc])])
        if let sound { reports.sound += RTCP.bytes([.bye([sound.ssrc])]) }
        return reports
    }
}
