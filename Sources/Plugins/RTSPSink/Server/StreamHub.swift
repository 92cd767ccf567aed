import FrameCore
import FrameNetwork

/// One stream's way from its stage thread to the event loops of its readers.
///
/// The stage thread packs each access unit once and hands the block to every loop that has readers; a loop without is
/// not woken. Who joins takes the kept blocks and a place in the order of blocks in one step, so that none comes twice
/// and none is missed.
final class StreamHub: Sendable {
    /// What loops and the stage thread share; reached under the lock alone.
    private struct Shared {
        var kept = KeptUnits<MediaBlock>()
        var requests = KeyframeRequests()
        var fans: [LoopFan] = []
        var nextIndex: UInt64 = 0
        var nextSequenceNumber: UInt16 = 0
        var packetCount: UInt32 = 0
        var payloadByteCount: UInt32 = 0
        /// Chain clock less PTS, nanoseconds.
        var anchor: Int64 = 0
        var isClosed = false
    }

    let path: String
    let ssrc: UInt32
    let clock: RTPClock
    let canonicalName: String
    let queueLimits: ReaderQueue<MediaBlock>.Limits
    /// Asks the encoder for a keyframe; called by event loops, must not block.
    let requestKeyframe: @Sendable () -> Void
    /// Chain clock: nanoseconds now, and the wall clock at a moment.
    let now: @Sendable () -> Int64
    let unixTime: @Sendable (Int64) -> Int64
    private let shared: NIOLockedValueBox<Shared>

    init(
        path: String, ssrc: UInt32, clock: RTPClock, canonicalName: String, queueLimits: ReaderQueue<MediaBlock>.Limits,
        requestKeyframe: @escaping @Sendable () -> Void, now: @escaping @Sendable () -> Int64,
        unixTime: @escaping @Sendable (Int64) -> Int64
    ) {
        self.path = path
        self.ssrc = ssrc
        self.clock = clock
        self.canonicalName = canonicalName
        self.queueLimits = queueLimits
        self.requestKeyframe = requestKeyframe
        self.now = now
        self.unixTime = unixTime
        shared = NIOLockedValueBox(Shared())
    }

    /// Nanoseconds of the monotonic clock, by which readers' queues are timed. Kept units go by the chain clock.
    static func monotonic() -> Int64 { Int64(NIODeadline.now().uptimeNanoseconds) }

    /// Within ±2^61 ns, whatever a clock says: differences do not overflow.
    private var boundedNow: Int64 { MediaTime(nanoseconds: now()).nanoseconds }

    // MARK: Stage thread

    /// [stage thread] Where the times of this stream lie on the chain clock: what was captured at `moment` is shown at
    /// `pts`.
    ///
    /// Both lie within ±2^61 ns (``MediaTime``), and so does the present: their differences do not overflow.
    func setAnchor(captured moment: MediaTime, pts: MediaTime) {
        let anchor = moment.nanoseconds - pts.nanoseconds
        shared.withLockedValue { $0.anchor = anchor }
    }

    /// [stage thread] Hands a block to all loops with readers. Never waits for one.
    func publish(_ block: MediaBlock) {
        let now = boundedNow
        let payloadBytes = block.packets.reduce(0) { $0 + $1.byteCount - RTPHeader.byteCount }
        shared.withLockedValue { shared in
            let isCrowded = block.isKeyframe && shared.requests.sawKeyframe(now: now)
            shared.kept.add(block, now: now, isCrowded: isCrowded)
            shared.nextIndex = block.index + 1
            shared.nextSequenceNumber = block.firstSequenceNumber &+ UInt16(truncatingIfNeeded: block.packets.count)
            shared.packetCount &+= UInt32(block.packets.count)
            shared.payloadByteCount &+= UInt32(payloadBytes)
            for fan in shared.fans { fan.post(block) }
        }
    }

    /// [stage thread] No block follows; kept ones are let go.
    func close() {
        shared.withLockedValue { shared in
            shared.isClosed = true
            shared.kept.clear()
            shared.fans = []
        }
    }

    // MARK: Event loops

    /// Where a reader begins.
    struct Entry {
        var kept: [MediaBlock]
        /// Blocks before this one have come already.
        var nextIndex: UInt64
    }

    /// [network loop] A reader begins: `fan` gets every block from the entry on.
    func join(_ fan: LoopFan) -> Entry? {
        let now = boundedNow
        let (entry, mustAsk) = shared.withLockedValue { shared -> (Entry?, Bool) in
            if shared.isClosed { return (nil, false) }
            if !shared.fans.contains(where: { $0 === fan }) { shared.fans.append(fan) }
            let kept = shared.kept.current(now: now)
            return (Entry(kept: kept, nextIndex: shared.nextIndex), kept.isEmpty && shared.requests.wish(now: now))
        }
        if mustAsk { requestKeyframe() }
        return entry
    }

    /// [network loop] `fan` has no reader any more.
    func leave(_ fan: LoopFan) { shared.withLockedValue { shared in shared.fans.removeAll { $0 === fan } } }

    /// [any thread] A compound packet with a sender report of this moment (RFC 3550, 6.4.1): its two times are the same
    /// tick.
    func senderReport() -> [UInt8] {
        let moment = boundedNow
        let (anchor, packets, bytes) = shared.withLockedValue { ($0.anchor, $0.packetCount, $0.payloadByteCount) }
        let ticks = RTPClock.ticks(ofNanoseconds: moment - anchor)
        let pts = RTPClock.nanoseconds(ofTicks: ticks)
        let report = SenderReport(
            ssrc: ssrc, ntp: NTPTime(unixNanoseconds: unixTime(pts + anchor)), rtpTime: clock.timestamp(ofPTS: pts),
            packetCount: packets,
            byteCount: bytes)
        return RTCP.bytes([.senderReport(report, []), .canonicalName(ssrc: ssrc, canonicalName)])
    }

    /// The end of the stream for its receivers.
    func farewell() -> [UInt8] { senderReport() + RTCP.bytes([.bye([ssrc])]) }
}
