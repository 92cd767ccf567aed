// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import CodedVideo
import FrameCore
import FrameSupport
import Glibc
import LiveInput
import Reports
import Shared

/// Gives the pictures of a stream from the network, or its access units as they are.
///
/// ``NetworkReader`` connects and reads on a thread of its own, and connects again when the stream is lost.
/// Meanwhile ``StandIn`` pictures keep the later stages going.
final class NetworkSource: Source {
    static let info = StageInfo(
        id: "network-source",
        summary:
            "Plays a network stream (RTSP, RTMP, SRT, HTTP, HLS, UDP). Reconnects when the stream is lost.",
        output: .video(.i420, .nv12, .yuyv, .gray8, .i010, .p010, .bgra, .rgb24),
        otherOutput: StageInfo.OtherOutput(where: "decode", is: .bool(false), .encoded(.h264, .h265, .mjpeg, .av1)),
        furtherOutputs: [
            StageInfo.FurtherOutput("audio", NetworkSound.type), StageInfo.FurtherOutput("units", NetworkUnits.type),
        ], events: events)

    var options: NetworkSourceOptions
    private let context: StageContext
    private let address: NetworkAddress
    private let figures = NetworkFigures()

    private let plan: NetworkPlan

    // Set from `negotiate` on.
    private var reader: NetworkReader? { plan.reader }
    private var format: VideoFormat? { plan.format }
    private var planned: StreamTerms? { plan.planned }
    private var encoded: EncodedFormat? { plan.encoded }

    // For the stage thread only.
    private var standIn: StandIn?
    private var captions: MetadataSlot<ClosedCaptions>?
    private var converter: ScalingConverter?
    private var decoder: PictureDecoder?
    private var filter: UnitFilter?
    private var terms: StreamTerms?
    private var times: LiveTimeline
    private var pacer = BurstPacer()
    private var packet: UnsafeMutablePointer<AVPacket>?
    private var picture: DecodedPicture?
    /// Whether the stream is there, and what is shown while it is not.
    private var live = LiveState(isThere: true, whileLost: .hold, canStandIn: false, now: 0)
    private var followsGap = false
    /// The ``StageContext/resumedAt`` that ``stale`` was counted for.
    private var lastResume: Int64 = 0
    /// How many items at most may be of the time of the last pause.
    private var stale = 0
    /// Packets that were dropped before the first item since the start, or since the last pause: the chain was not too
    /// slow for those. nil before that item.
    private var droppedBefore: Int?
    private var gate = UnitGate()
    private var hasStopped = false
    private var reports: NetworkReports

    /// [control thread] Opens nothing.
    init(options: NetworkSourceOptions, context: StageContext) throws {
        self.options = options
        self.context = context
        address = try NetworkAddress(options.url)
        plan = NetworkPlan(options, address, context)
        reports = NetworkReports(options, address, figures, context)
        times = LiveTimeline(address.scheme.isPacedByStream ? .stream : .arrival)
    }

    deinit {
        // After a plan without a run the program may end at once. The thread must have left libavformat before
        // that.
        reader?.stop()
        var frame = picture?.frame
        av_frame_free(&frame)
        av_packet_free(&packet)
    }

    /// For tests, as a run shows them.
    var figuresForTests: JSONNode { reader.map { figures.json($0) } ?? JSONNode(.object([])) }
    var isReadingForTests: Bool { reader?.isRunning ?? false }

    // MARK: Setup

    /// [control thread] Begins to connect.
    func beginNegotiation() { plan.begin() }

    /// [control thread] Waits for the stream at most `connectSeconds`.
    func negotiate() throws -> MediaFormat { try plan.negotiate() }

    private static let threads = min(max(Int(av_cpu_count()), 1), 8)

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isLive = true
        demand.readsFiles = context.filesRead(options.login, options.caFile, options.slatePicture)
        guard let format else { return demand }
        demand.ownBytes = PacketQueue.mostBytes
        if !options.decode {
            demand.slabBytes = Self.slabBytes(format)
            return demand
        }
        demand.ownBytes += StandIn.bytes(format, keepsPicture: options.whileLost == .hold)
        if let planned {
            demand.ownBytes += DecoderMemory.bytes(
                planned.parameters.pointee, hasLoans: false, threads: Self.threads)
        }
        demand.cost = format.cost(
            nanosecondsPerPixel: planned.map { DecoderCost.nanosecondsPerPixel($0.parameters.pointee) } ?? 4)
        return demand
    }

    static func slabBytes(_ format: VideoFormat) -> Int { max(16 << 20, 2 * format.bufferBytes) }

    /// [setup thread]
    func start() throws {
        guard let format, let reader else {
            throw FrameHostError(.broken, what: "network-source was started before its stream was planned")
        }
        guard let packet = av_packet_alloc(), let frame = av_frame_alloc() else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a stream",
                remedy: "Free some memory, and start the chain again.")
        }
        (self.packet, picture) = (packet, DecodedPicture(frame: frame))
        if options.decode {
            standIn = try StandIn(
                format, plan.slate ?? Slate(color: options.slateColor), keepsPicture: options.whileLost == .hold)
            converter = ScalingConverter(to: format)
            captions = context.slot(for: ClosedCaptions.self)
        }
        context.showFigures { [figures, reader] in figures.json(reader) }
        live = LiveState(
            isThere: planned != nil, whileLost: options.whileLost, canStandIn: options.decode, now: context.clock.now())
        if live.isAway { context.recovering = "'\(address.shown)' is not there yet" }
        if !reader.isRunning, live.isAway { try reader.start() }
    }

    /// [stage thread]
    func stop() {
        if !hasStopped { reports.reportConcealment() }
        hasStopped = true
        reader?.clock.end()
        reader?.stop()
        decoder = nil
        filter = nil
    }

    // MARK: One item

    /// How long one wait for the reader lasts, so that a stop is noticed: nanoseconds.
    private static let wait: Int64 = 50_000_000

    /// [stage thread] One picture or access unit, or none yet.
    func produce(_ output: Output) throws -> SourceProgress {
        if context.isEnded { return .ended }
        guard let reader, let picture else { return .ended }
        if context.resumedAt > lastResume {
            lastResume = context.resumedAt
            stale = reader.queue.packetsWaiting + Self.mostDecoding
            droppedBefore = nil
        }
        if let decoder {
            switch decoder.receive(into: picture.frame) {
            case .picture: return try show(picture, output)
            case .ended: return end()
            case .damaged: reports.noteDamage(isFresh: live.isFresh)
            case .hungry: break
            }
        } else if let filter {
            switch filter.receive(into: packet) {
            case .unit: return try give(output)
            case .ended: return end()
            case .damaged: reports.noteDamage(isFresh: live.isFresh)
            case .hungry: break
            }
        }
        if live.isStandInDue(now: context.clock.now()) { try showStandIn(output) }
        let item = context.waiting {
            reader.queue.take(
                into: packet, until: MonotonicTime.now() + live.patience(now: context.clock.now(), most: Self.wait))
        }
        if let droppedBefore, reader.queue.dropped > droppedBefore { reports.reportDrops() }
        reports.reportMissed(reader)
        switch item {
        case nil: break
        case .packet: try feed()
        case .opened(let terms): try begin(terms)
        case .lost(let reason): try lose(reason)
        case .refused(let fault): refuse(fault)
        case .ended:
            if decoder == nil, filter == nil { return end() }
            _ = try decoder?.send(nil)
            filter?.send(nil)
        }
        return .more
    }

    /// Ends the pictures, and tells the sound that it need not wait for one.
    private func end() -> SourceProgress {
        reader?.clock.end()
        return .ended
    }

    private func feed() throws {
        guard let packet else { return }
        defer { av_packet_unref(packet) }
        if let decoder {
            if packet.pointee.flags & AV_PKT_FLAG_CORRUPT != 0 { reports.noteDamage(isFresh: live.isFresh) }
            if try !decoder.send(packet) { reports.noteDamage(isFresh: live.isFresh) }
        } else if let filter {
            filter.send(packet)
        }
    }

    /// Begins another connection.
    private func begin(_ terms: StreamTerms) throws {
        self.terms = terms
        reader?.clock.set(nil, of: terms, at: nil)
        awaitFirstLive()
        begin(terms, isStoodIn: live.isAway && options.decode)
        pacer.begin()
        gate.close()
        live.opened()
        do {
            if options.decode {
                decoder = try PictureDecoder(
                    terms.parameters, timeBase: terms.libavTimeBase, of: address.shown, threads: Self.threads,
                    isLive: true)
            } else {
                filter = try UnitFilter(terms.parameters, timeBase: terms.libavTimeBase, of: address.shown)
                if let known = encoded?.parameterSets, !known.isEmpty, known != terms.parameterSets {
                    reports.reportSets()
                }
            }
        } catch {
            refuse(FrameHostError.wrap(error))
        }
    }

    /// A connection may begin with a burst: what was read to examine the stream, or what the server has kept. When its
    /// items were captured is known once the first one behind it has come. Waits for that one, at most 200 ms.
    private func awaitFirstLive() {
        guard let reader else { return }
        let begin = context.clock.now()
        var (count, changedAt) = (reader.queue.packetsWaiting, begin)
        while context.sleep(until: context.clock.now() + 2_000_000), context.clock.now() - begin < 200_000_000 {
            let (now, next) = (context.clock.now(), reader.queue.packetsWaiting)
            let isBurstOver = now - changedAt >= 10_000_000
            // A single item is no burst.
            if isBurstOver, next > count || next < 2 { return }
            if next > count { (count, changedAt) = (next, now) }
        }
    }

    /// Begins the timeline with the items that wait.
    private func begin(_ terms: StreamTerms, isStoodIn: Bool) {
        let (now, captured) = (context.clock.now(), reader?.queue.captured(terms.timeBase))
        times.begin(
            age: MediaTime(nanoseconds: captured.map { max(now - $0.first, 0) } ?? 0), now: now,
            offset: captured?.offset,
            period: terms.period(format), isStoodIn: isStoodIn)
    }

    // MARK: After a pause

    /// How many pictures a decoder holds at most: 16 to put them into order (H.264, A.3.1 h), and one for each thread.
    private static let mostDecoding = 32

    /// The place of an item on the chain's clock, once its moment has come; nil when the stage is stopped.
    private func place(_ given: MediaTime?, of terms: StreamTerms) -> LiveTimeline.Placement? {
        var now = context.clock.now()
        var isBehind = false
        if times.isLate(given, now: now), let reader {
            // A moment for what comes behind it.
            guard context.sleep(until: now + 20_000_000) else { return nil }
            times.expectBurst(terms.timeBase.time(ofTicks: reader.queue.ticksWaiting))
            now = context.clock.now()
        }
        if times.pace == .arrival, let reader {
            let instant = pacer.place(given, now: now, isUrgent: !reader.queue.hasAmpleRoom)
            isBehind = instant > now
            if isBehind {
                guard context.sleep(until: instant) else { return nil }
                now = context.clock.now()
            }
        }
        let placement = times.place(given, now: now, isBehind: isBehind)
        figures.jumps.store(times.jumps, ordering: .relaxed)
        reader?.clock.set(times.offset, of: terms, at: placement.time)
        if times.pace == .stream, placement.time > now {
            guard context.sleep(until: placement.time) else { return nil }
        }
        comeBack()
        return placement
    }

    /// Whether an item came while the stage was paused. A stream that is given by its own times stood still meanwhile;
    /// any other went on, and is not late now: its times keep their place.
    private func isStale(_ given: MediaTime?) -> Bool {
        guard stale > 0, times.pace == .arrival, let given, let reader, let terms else { return false }
        // Of a connection that was made meanwhile only the newest item is of this moment.
        let now = context.clock.now()
        // All lie within ±2^61.
        let time =
            times.offset.map { $0 + given.nanoseconds } ?? reader.queue.captured(terms.timeBase)?.first ?? now
        guard time < context.resumedAt else {
            stale = 0
            if times.offset == nil { begin(terms, isStoodIn: false) }
            return false
        }
        stale -= 1
        followsGap = true
        figures.add(figures.skipped)
        return true
    }

    // MARK: Pictures

    private func show(_ picture: DecodedPicture, _ output: Output) throws -> SourceProgress {
        guard let terms, let format else { return .more }
        if decoder?.takesComplaints() == true && !live.isFresh || picture.isDamaged {
            reports.noteDamage(isFresh: live.isFresh, isGiven: true)
        }
        let given = terms.time(ofTicks: picture.givenTick)
        if isStale(given) { return .more }
        if let time = times.placeOfLeftOut(given, now: context.clock.now()) {
            reader?.clock.set(times.offset, of: terms, at: time)
            figures.add(figures.skipped)
            return .more
        }
        guard let placement = place(given, of: terms) else { return .ended }
        guard var frame = try output.makeFrame() else { return .more }
        let found = PictureShape(picture, aspect: terms.shape.aspect)
        reports.look(at: found, format, isPlanned: planned != nil)
        try converter?.convert(picture, found, into: &frame)
        frame.pts = MediaTime(nanoseconds: placement.time)
        frame.capturedAt = min(placement.time, context.clock.now())
        frame.duration = format.frameRate.period
        frame.orientation = picture.orientation?.value ?? format.orientation
        frame.isDiscontinuity = followsGap || placement.isJump
        frame.isKeyframe = picture.isKey
        if let captions, let said = picture.captions { frame[captions] = said }
        followsGap = false
        standIn?.look(at: frame, now: context.clock.now())
        figures.add(figures.given)
        try output.emit(frame)
        return .more
    }

    private func showStandIn(_ output: Output) throws {
        guard let format else { return }
        let now = context.clock.now()
        live.stoodIn(now: now, period: format.frameRate.period.nanoseconds)
        guard var frame = try output.makeFrame() else { return }
        standIn?.paint(&frame)
        let time = times.place(nil, now: now).time
        frame.pts = MediaTime(nanoseconds: time)
        frame.capturedAt = time
        frame.duration = format.frameRate.period
        frame.isDiscontinuity = followsGap
        followsGap = false
        try output.emit(frame)
    }

    // MARK: Access units

    private func give(_ output: Output) throws -> SourceProgress {
        guard let terms, let format, let packet else { return .more }
        defer { av_packet_unref(packet) }
        let bytes = UnsafeRawBufferPointer(start: packet.pointee.data, count: Int(max(packet.pointee.size, 0)))
        let coding = terms.coding ?? .nal(.h264)
        let outline: UnitOutline
        switch gate.look(at: bytes, coding, mostBytes: Self.slabBytes(format) / 2) {
        case .given(let found): outline = found
        case .leftOut:
            stale = max(stale - (gate.isClosed ? 1 : 0), 0)
            figures.add(figures.skipped)
            if gate.isClosed { reports.reportMissingKeyframe() }
            return .more
        case .damaged:
            reports.noteDamage(isFresh: live.isFresh)
            return .more
        }
        let isKeyframe = outline.entry != .none
        if packet.pointee.flags & AV_PKT_FLAG_CORRUPT != 0 { reports.noteDamage(isFresh: live.isFresh) }
        let shown = terms.time(ofTicks: packet.pointee.pts)
        let decoded = terms.decodeTime(
            dts: packet.pointee.dts, pts: packet.pointee.pts, period: terms.period(format))
        if isStale(decoded) {
            gate.close()
            return .more
        }
        gate.open()
        reports.keyframeSince = nil
        guard let placement = place(decoded, of: terms) else { return .ended }
        let known = encoded?.parameterSets ?? []
        if isKeyframe, !known.isEmpty, !coding.hasAll(known, in: bytes) { reports.reportSets() }
        // What the chain was planned for is not what this connection's description says.
        let sets = isKeyframe && !outline.hasSets && known != terms.parameterSets ? terms.parameterSets : []
        let unit = try output.makeAccessUnit(of: bytes, behind: sets)
        // By the stream's own time, since a DTS that was guessed may not rise and is put one step on. All lie within ±2^61,
        // so that nothing overflows.
        let ahead = shown.flatMap { shown in times.offset.map { $0 + shown.nanoseconds - placement.time } } ?? 0
        unit.dts = MediaTime(nanoseconds: placement.time)
        unit.pts = MediaTime(nanoseconds: placement.time + ((0...10_000_000_000).contains(ahead) ? ahead : 0))
        unit.capturedAt = min(placement.time, context.clock.now())
        unit.duration = format.frameRate.period
        unit.orientation = format.orientation
        unit.entry = outline.entry
        unit.isDiscontinuity = followsGap || placement.isJump
        followsGap = false
        figures.add(figures.given)
        try output.emit(unit)
        return .more
    }

    // MARK: Away

    private func lose(_ reason: String) throws {
        decoder = nil
        filter = nil
        followsGap = true
        // The timeline goes on from the last picture.
        let next = times.last.map { $0 + (format?.frameRate.period.nanoseconds ?? 0) }
        try reports.isLost(live.lost(reason, now: context.clock.now(), next: next))
    }

    private func refuse(_ fault: FrameHostError) {
        // A sentence of its own, as of every event.
        let description = fault.description
        let text = description.prefix(1).uppercased() + description.dropFirst()
        if case .sayRefused(let text)? = live.refused(text) {
            context.post("stream-refused", level: .warning, text: text)
        }
    }

    /// Notes that one of the stream's items is about to be given.
    private func comeBack() {
        if droppedBefore == nil { droppedBefore = reader?.queue.dropped }
        let action = live.given(now: context.clock.now())
        figures.isStreaming.store(true, ordering: .relaxed)
        if case .sayBack(let isFirst, let after)? = action { reports.isBack(isFirst, after, terms) }
    }
}
