// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import CodedVideo
import FrameCore
import FrameSupport
import Reports

/// The access units of a stream beside its decoded pictures: `"from": "door.units"`, where `door` is a ``NetworkSource``.
///
/// They come over the connection of that stage, but through their own queue, so that neither waits for the other. The
/// pictures' offset places them on the chain clock: a unit has the time of its picture.
final class NetworkUnits: Source {
    static let info = StageInfo(
        id: "network-units",
        summary: "Gives the video of a network stream as it is: the output 'units' of 'network-source'.",
        output: .encoded(.h264, .h265, .mjpeg, .av1), events: NetworkSource.events)
    static let type = StageType(NetworkUnits.self)

    var options: NetworkSourceOptions
    private let context: StageContext
    private var reader: NetworkReader?
    private var encoded: EncodedFormat?

    // For the stage thread only.
    private var terms: StreamTerms?
    private var filter: UnitFilter?
    private var places = CompanionClock()
    private var gate = UnitGate()
    private var pacer = BurstPacer()
    private var nextReader: NextReader
    private var packet: UnsafeMutablePointer<AVPacket>?
    /// Whether ``packet`` is an access unit that waits for its picture's place.
    private var holdsUnit = false
    private var hasEnded = false
    private var join = ConnectionJoin()
    private var lastResume: Int64 = 0
    /// The DTS of the newest unit.
    private var latest: MediaTime?
    /// Whether that one is of the present connection.
    private var hasBegun = false
    private var followsGap = false
    private var dropped: Int?
    private var reported = Reported()

    /// [control thread] Opens nothing.
    init(options: NetworkSourceOptions, context: StageContext) {
        self.options = options
        self.context = context
        nextReader = NextReader(options)
    }

    deinit { av_packet_free(&packet) }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isLive = true
        demand.slabBytes = encoded?.video.map(NetworkSource.slabBytes) ?? 16 << 20
        demand.ownBytes = PacketQueue.mostBytes
        return demand
    }

    /// [control thread] Asks the reader of the pictures, which has connected by now.
    func negotiate() throws -> MediaFormat {
        guard options.decode else {
            let stage = context.stageID.split(separator: ".").first ?? ""
            throw FrameHostError(
                .invalidConfiguration, place: "decode",
                what: "with \"decode\": false '\(stage)' gives its access units itself, and has no output 'units'",
                remedy: "Write \"from\": \"\(stage)\", or leave 'decode' out to have pictures beside the units.")
        }
        guard let reader = StreamReaders.reader(for: context) else { throw NetworkSound.unopened("access units") }
        guard reader.units != nil else {
            throw FrameHostError(
                .invalidConfiguration, place: "from",
                what: "'\(context.stageID)' cannot be taken now: the stream was opened without its access units",
                remedy: "Restart the chain with a stage that takes them.")
        }
        self.reader = reader
        if let fault = reader.planned?.unitsFault { throw fault }
        guard let found = reader.planned?.encoded(rate: options.rate?.rational) ?? reader.expectedUnits else {
            throw NetworkSound.unopened("access units")
        }
        encoded = found
        return .encoded(found)
    }

    /// [setup thread]
    func start() throws {
        guard let packet = av_packet_alloc() else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a packet",
                remedy: "Free some memory, and start the chain again.")
        }
        self.packet = packet
    }

    /// [stage thread] The reader ends with the pictures' stage.
    func stop() { filter = nil }

    // MARK: One item

    private static let wait: Int64 = 50_000_000

    /// [stage thread] A unit, or none yet.
    func produce(_ output: Output) throws -> SourceProgress {
        if context.isEnded { return .ended }
        guard let reader, let queue = reader.units, let packet else { return .ended }
        if context.resumedAt > lastResume {
            lastResume = context.resumedAt
            (dropped, followsGap) = (queue.dropped, true)
            gate.close()
        }
        if let current = join.connection(of: queue, now: context.clock.now()) {
            followsGap = true
            begin(current)
        }
        if holdsUnit { return try feed(output) }
        switch filter?.receive(into: packet) {
        case .unit:
            holdsUnit = true
            return try feed(output)
        case .ended: if hasEnded { return .ended }
        case .damaged: noteDamage()
        case .hungry, nil: break
        }
        let item = context.waiting { queue.take(into: packet, until: MonotonicTime.now() + Self.wait) }
        noteDrops(queue.dropped)
        switch item {
        case nil where queue.isOver: return awaitReader()
        case nil, .refused: break
        case .packet:
            filter?.send(packet)
            av_packet_unref(packet)
        case .opened(let terms): begin(terms)
        case .lost:
            followsGap = true
            (terms, filter) = (nil, nil)
        case .ended:
            guard let filter else { return .ended }
            hasEnded = true
            filter.send(nil)
        }
        return .more
    }

    private func awaitReader() -> SourceProgress {
        let now = context.clock.now()
        switch nextReader.look(context, instead: reader, now: now, where: { $0.units != nil }) {
        case .reader(let found):
            reader = found
            (terms, filter, followsGap, join) = (nil, nil, true, ConnectionJoin())
            return .more
        case .wait: return context.sleep(until: now + Self.wait) ? .more : .ended
        case .none:
            noteLack("the stage that gives its pictures has ended")
            return .ended
        }
    }

    /// Begins another connection.
    private func begin(_ terms: StreamTerms) {
        (self.terms, filter) = (nil, nil)
        places.begin()
        pacer.begin()
        gate.close()
        hasBegun = false
        guard let encoded, let video = encoded.video else { return }
        guard terms.coding?.codec == encoded.codec, terms.shape.width == video.width, terms.shape.height == video.height
        else {
            let isWritten = options.codec.map { $0.codec == encoded.codec && $0.codec != terms.coding?.codec } ?? false
            let remedy = "\(isWritten ? "Correct 'codec', and restart" : "Restart") the chain"
            return noteLack("it is \(terms.text) now, and the chain was planned for \(encoded). \(remedy)")
        }
        do {
            filter = try UnitFilter(terms.parameters, timeBase: terms.libavTimeBase, of: context.stageID)
            self.terms = terms
            reported.forget("units-missing")
        } catch {
            noteLack(FrameHostError.wrap(error).what)
        }
    }

    /// Gives the unit once the pictures of its connection have a place.
    private func feed(_ output: Output) throws -> SourceProgress {
        guard let reader, let packet, let terms else {
            dropUnit()
            return .more
        }
        let shown = time(packet.pointee.pts, terms)
        let decoded = terms.decodeTime(
            dts: packet.pointee.dts, pts: packet.pointee.pts, period: terms.period(encoded?.video))
        let pictures = reader.clock.place(of: terms, isNewest: reader.isNewest(terms))
        switch places.look(
            at: decoded, pictures, now: context.clock.now(), isPacedByStream: reader.isPacedByStream)
        {
        case .wait: _ = context.sleep(until: context.clock.now() + 10_000_000)
        case .drop:
            gate.close()
            followsGap = true
            dropUnit()
        case .here(let isStep):
            followsGap = followsGap || isStep
            return try give(packet, terms, shown: shown, decoded: decoded, output)
        }
        return .more
    }

    private func give(
        _ packet: UnsafeMutablePointer<AVPacket>, _ terms: StreamTerms, shown: MediaTime?, decoded: MediaTime?,
        _ output: Output
    ) throws -> SourceProgress {
        defer { dropUnit() }
        guard let video = encoded?.video else { return .more }
        let bytes = UnsafeRawBufferPointer(start: packet.pointee.data, count: Int(max(packet.pointee.size, 0)))
        let coding = terms.coding ?? .nal(.h264)
        let outline: UnitOutline
        switch gate.look(at: bytes, coding, mostBytes: NetworkSource.slabBytes(video) / 2) {
        case .given(let found): outline = found
        case .leftOut: return .more
        case .damaged:
            noteDamage()
            return .more
        }
        if packet.pointee.flags & AV_PKT_FLAG_CORRUPT != 0 { noteDamage() }
        let now = context.clock.now()
        // A stream without times has those of arrival.
        let next = hasBegun && places.offset != nil ? latest.map { $0 + terms.period(video) } : nil
        let begin = reader?.clock.begin(of: terms).map { MediaTime(nanoseconds: $0) }
        var dts = decoded.map(places.time) ?? next ?? (hasBegun ? nil : begin) ?? MediaTime(nanoseconds: now)
        // What came while the stage was paused is dropped.
        guard dts.nanoseconds >= max(context.resumedAt, join.begin) else {
            gate.close()
            return .more
        }
        gate.open()
        // The pictures' offset may step back by as much as a connection's first items were late.
        if let latest { dts = max(dts, latest + MediaTime(nanoseconds: 1_000_000)) }
        let instant =
            reader?.isPacedByStream == true
            ? dts.nanoseconds : pacer.place(dts, now: now, isUrgent: reader?.units?.hasAmpleRoom == false)
        guard instant <= now || context.sleep(until: instant) else { return .ended }
        (latest, hasBegun) = (dts, true)
        let known = encoded?.parameterSets ?? []
        if outline.entry != .none, !known.isEmpty, !coding.hasAll(known, in: bytes) { noteSets() }
        // What the chain was planned for is not what this connection's description says.
        let sets =
            outline.entry != .none && !outline.hasSets && known != terms.parameterSets ? terms.parameterSets : []
        let unit = try output.makeAccessUnit(of: bytes, behind: sets)
        unit.dts = dts
        unit.pts = max(shown.map(places.time) ?? dts, dts)
        unit.capturedAt = min(dts.nanoseconds, context.clock.now())
        unit.duration = video.frameRate.period
        unit.orientation = video.orientation
        unit.entry = outline.entry
        unit.isDiscontinuity = followsGap
        followsGap = false
        try output.emit(unit)
        return .more
    }

    private func dropUnit() {
        holdsUnit = false
        av_packet_unref(packet)
    }

    private func time(_ ticks: Int64, _ terms: StreamTerms) -> MediaTime? {
        ticks == fh_av_no_pts ? nil : terms.timeBase.possibleTime(ofTicks: ticks)
    }

    // MARK: Reports

    private func noteDrops(_ count: Int) {
        guard let dropped else { return dropped = count }
        guard count > dropped else { return }
        (self.dropped, followsGap) = (count, true)
        context.post(
            "packets-dropped", once: &reported, level: .warning,
            text:
                "The chain is slower than the stream: packets of its output 'units' are dropped up to a keyframe. Use a faster disk or faster stages behind it."
        )
    }

    private func noteDamage() {
        context.post(
            "stream-damaged", once: &reported, level: .warning,
            text:
                "An access unit of the output 'units' is damaged, or larger than there is room for; such are left out.",
            details: ["damaged": .number(1)])
    }

    private func noteSets() {
        context.post(
            "parameter-sets-changed", once: &reported, level: .warning,
            text:
                "The parameter sets (SPS and PPS) of the output 'units' have changed. The stream has the new ones, but the header of a recording and the SDP keep the old ones."
        )
    }

    private func noteLack(_ why: String) {
        context.post(
            "units-missing", once: &reported, level: .warning, text: "The stream gives no access units: \(why).")
    }
}
