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

    // Set from `negotiate` on.
    private var reader: NetworkReader?
    private var format: VideoFormat?
    private var planned: StreamTerms?
    private var encoded: EncodedFormat?
    private var slate: Slate?

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
    private var shape: PictureShape?
    private var hasStopped = false
    private var reported = Reported()
    /// Since when access units have waited for a keyframe.
    private var keyframeSince: Int64?

    /// [control thread] Opens nothing.
    init(options: NetworkSourceOptions, context: StageContext) throws {
        self.options = options
        self.context = context
        address = try NetworkAddress(options.url)
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

    /// What the stage waits for to be planned.
    private struct Opening {
        var expected: (stream: RememberedStream, isRemembered: Bool)?
        /// Whether a connection is made; the chain begins without the stream where none is.
        var connects = true
    }
    private var opening: Result<Opening, any Error>?

    /// [control thread] Begins to connect.
    func beginNegotiation() { opening = Result { try open() } }

    /// [control thread] Opens nothing where the stream may be missing.
    private func open() throws -> Opening {
        slate = try Slate(
            color: options.slateColor, picturePath: options.slatePicture.map(context.resolve), text: options.slateText)
        let login = try options.login.map { try ServerLogin.read($0, resolve: context.resolve) }
        let settings = NetworkInput.Settings(
            address: address, login: login,
            trust: try CertificateTrust(verify: options.verify, caFile: options.caFile.map(context.resolve)),
            isDecoded: options.decode, takesSound: context.takenOutputs.contains("audio"), takesUnits: takesUnits,
            transport: options.transport,
            connectSeconds: options.connectSeconds,
            stallSeconds: options.stallSeconds ?? (address.scheme.isPacedByStream ? 20 : 3),
            latencyMs: options.latencyMs, bufferBytes: options.bufferBytes, probeBytes: options.probeBytes,
            analyzeSeconds: options.analyzeSeconds, noBuffer: options.noBuffer)
        if let login, let most = address.scheme.mostLoginBytes, settings.isLoginTooLong, !settings.canUseClient {
            throw NetworkFault.loginTooLong(
                login.encoded.utf8.count, most: most, isOverUDP: address.scheme == .rtsp)
        }
        if address.scheme.isSecured, !options.verify {
            context.note(
                "any server can pose as '\(address.shown)': \"verify\": false accepts any certificate",
                isWarning: true)
        }
        let mayMiss = options.ifMissing == .wait
        let givesUnits = !options.decode || takesUnits
        if options.codec != nil, !givesUnits { throw NetworkFault.codecWithoutUnits(context.stageID) }
        let memory = mayMiss && givesUnits ? StreamMemory(url: options.url) : nil
        let expected = memory.flatMap(expected)
        if let obstacle = memory?.obstacle {
            context.note(
                "what '\(address.shown)' is cannot be remembered for a later start without it: \(obstacle). Name a folder in the variable STATE_DIRECTORY",
                isWarning: true)
        }
        let reader = NetworkReader(
            settings, stageID: context.stageID, failsAtOnce: !mayMiss || (givesUnits && expected == nil),
            memory: memory)
        self.reader = reader
        StreamReaders.add(reader, of: context)
        let opening = Opening(expected: expected, connects: expected == nil && (!mayMiss || givesUnits))
        if opening.connects { try reader.start() }
        return opening
    }

    /// [control thread] Waits for the stream at most `connectSeconds`.
    func negotiate() throws -> MediaFormat {
        let opening = try (self.opening ?? Result { try open() }).get()
        self.opening = nil
        if let expected = opening.expected { return plan(expected.stream, isRemembered: expected.isRemembered) }
        guard opening.connects, let reader else { return planPicturesWithout() }
        let mayMiss = options.ifMissing == .wait
        do {
            let terms = try firstTerms(of: reader)
            return try plan(terms)
        } catch {
            reader.end()
            var fault = FrameHostError.wrap(error)
            fault.isAwaited = mayMiss && fault.code == .unavailable
            if fault.isAwaited, options.codec == nil, options.decode || !context.takenOutputs.contains("audio") {
                fault.remedy +=
                    " To start the chain without the stream, set 'codec'\(options.size == nil ? " and 'size'" : "")."
            }
            throw fault
        }
    }

    private var takesUnits: Bool { options.decode && context.takenOutputs.contains("units") }

    private func planPicturesWithout() -> MediaFormat {
        let format = plannedWithout()
        self.format = format
        context.note(
            "'\(address.shown)' is opened when the chain runs. The chain is planned for \(format.width)x\(format.height) at \(format.frameRate.short) fps in i420"
        )
        return .video(format)
    }

    /// What a stream that is passed on, and may be missing, is planned for; nil where that is not known, and the chain
    /// begins with the stream.
    private func expected(_ memory: StreamMemory) -> (stream: RememberedStream, isRemembered: Bool)? {
        // Sound that is decoded is converted to what the chain was planned for.
        let takesSound = !options.decode && context.takenOutputs.contains("audio")
        let known = memory.read().flatMap { !takesSound || $0.sound != nil ? $0 : nil }
        guard let codec = options.codec?.codec, let size = options.size else { return known.map { ($0, true) } }
        // Beside decoded pictures 'size' is theirs too, and they may be scaled.
        if let known, known.video.codec == codec,
            options.decode || known.video.video.map({ PictureSize($0.width, $0.height) }) == size
        {
            return (known, true)
        }
        guard !takesSound else { return nil }
        let framing = UnitCoding(codec)?.framing ?? .annexB
        return (RememberedStream(video: EncodedFormat(codec: codec, framing: framing, video: plannedWithout())), false)
    }

    private func plan(_ expected: RememberedStream, isRemembered: Bool) -> MediaFormat {
        var encoded = expected.video
        if let rate = options.rate { encoded.video?.frameRate = rate.rational }
        guard !options.decode else {
            reader?.expectedUnits = encoded
            return planPicturesWithout()
        }
        reader?.expect(encoded, sound: expected.sound, isWritten: !isRemembered)
        format = encoded.video
        self.encoded = encoded
        let why =
            isRemembered
            ? "which it was when it was last there" : "as 'codec', 'size' and 'rate' say"
        context.note("'\(address.shown)' is opened when the chain runs. The chain is planned for \(encoded), \(why)")
        return .encoded(encoded)
    }

    private func firstTerms(of reader: NetworkReader) throws -> StreamTerms {
        // The reader ends within `connectSeconds` unless it looks up a name.
        let limit = MonotonicTime.now() + Int64((options.connectSeconds + 0.5) * 1e9)
        switch reader.queue.look(until: limit, unless: { context.isStopped }) {
        case .opened(let terms): return terms
        case .refused(let fault): throw fault
        default:
            if context.isStopped { throw FrameHostError(.stopped, what: "stopped while connecting") }
            throw NetworkFault.noAnswer(
                address.shown, seconds: options.connectSeconds, mayWait: options.ifMissing == .fail)
        }
    }

    private func plan(_ terms: StreamTerms) throws -> MediaFormat {
        planned = terms
        reader?.planned = terms
        let size = options.size ?? PictureSize(terms.shape.width, terms.shape.height)
        let isScaled = size != PictureSize(terms.shape.width, terms.shape.height)
        var format = terms.video(rate: options.rate?.rational)
        if isScaled {
            format.sampleAspectRatio = Rational(1)
            format = format.resized(to: size)
        }
        self.format = format
        // Who only looks at the pictures need not hear of it.
        let sound =
            terms.leavesSound && (!options.decode || takesUnits)
            ? ", and sound that no stage takes. To use it, link \"from\": \"\(context.stageID).audio\" too" : ""
        context.note("'\(address.shown)' gives \(terms.text)\(isScaled ? ", scaled to \(size)" : "")\(sound)")
        guard !options.decode else { return .video(format) }
        let encoded = terms.encoded(rate: options.rate?.rational)
        reader?.expect(encoded, sound: terms.sound?.format, isWritten: false)
        self.encoded = encoded
        return .encoded(encoded)
    }

    /// The format for a stream that is not there yet: the pictures of every stream can be converted to it.
    private func plannedWithout() -> VideoFormat {
        let size = options.size ?? PictureSize(1280, 720)
        return VideoFormat(
            .i420, width: size.width, height: size.height, frameRate: options.rate?.rational ?? Rational(25),
            color: ColorDescription(range: .video, matrix: 1, primaries: 1, transfer: 1, chromaSiting: 1),
            sampleAspectRatio: Rational(1))
    }

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
                format, slate ?? Slate(color: options.slateColor), keepsPicture: options.whileLost == .hold)
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
        if !hasStopped { reportConcealment() }
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
            case .damaged: noteDamage()
            case .hungry: break
            }
        } else if let filter {
            switch filter.receive(into: packet) {
            case .unit: return try give(output)
            case .ended: return end()
            case .damaged: noteDamage()
            case .hungry: break
            }
        }
        if live.isStandInDue(now: context.clock.now()) { try showStandIn(output) }
        let item = context.waiting {
            reader.queue.take(
                into: packet, until: MonotonicTime.now() + live.patience(now: context.clock.now(), most: Self.wait))
        }
        reportDrops(reader)
        reportMissed(reader)
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
            if packet.pointee.flags & AV_PKT_FLAG_CORRUPT != 0 { noteDamage() }
            if try !decoder.send(packet) { noteDamage() }
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
                if let known = encoded?.parameterSets, !known.isEmpty, known != terms.parameterSets { reportSets() }
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
            noteDamage(isGiven: true)
        }
        let given = time(picture.givenTick, terms)
        if isStale(given) { return .more }
        if let time = times.placeOfLeftOut(given, now: context.clock.now()) {
            reader?.clock.set(times.offset, of: terms, at: time)
            figures.add(figures.skipped)
            return .more
        }
        guard let placement = place(given, of: terms) else { return .ended }
        guard var frame = try output.makeFrame() else { return .more }
        let found = PictureShape(picture, aspect: terms.shape.aspect)
        look(at: found, format)
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

    /// Reports where the pictures change.
    private func look(at found: PictureShape, _ format: VideoFormat) {
        defer { shape = found }
        let isScaled = found.width != format.width || found.height != format.height
        lookAtColor(found, format)
        guard shape.map({ $0.width != found.width || $0.height != found.height }) ?? (isScaled && planned == nil)
        else { return }
        let (from, to) = ("\(found.width)x\(found.height)", "\(format.width)x\(format.height)")
        context.post(
            "pictures-scaled",
            text: isScaled
                ? "The pictures are \(from) and are scaled to \(to)."
                : "The pictures are \(from) and are no longer scaled.",
            details: ["from": .string(from), "to": .string(to)])
    }

    /// Reports where range or matrix begin to be converted, and where they end to be.
    private func lookAtColor(_ found: PictureShape, _ format: VideoFormat) {
        let isConverted = !found.hasSamples(of: format)
        guard isConverted != (shape.map { !$0.hasSamples(of: format) } ?? false),
            !PixelConversion(found.pixels).isRGB
        else { return }
        let (from, to) = (found.color.codes, format.color.codes)
        context.post(
            "color-changed",
            text: isConverted
                ? "The pictures' colour is \(from) and is converted to \(to) (range, then primaries-transfer-matrix in numbers of H.273)."
                : "The pictures' colour is \(from) and is no longer converted.",
            details: ["from": .string(from), "to": .string(to)])
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
            if gate.isClosed { reportMissingKeyframe() }
            return .more
        case .damaged:
            noteDamage()
            return .more
        }
        let isKeyframe = outline.entry != .none
        if packet.pointee.flags & AV_PKT_FLAG_CORRUPT != 0 { noteDamage() }
        let shown = time(packet.pointee.pts, terms)
        let decoded = terms.decodeTime(
            dts: packet.pointee.dts, pts: packet.pointee.pts, period: terms.period(format))
        if isStale(decoded) {
            gate.close()
            return .more
        }
        gate.open()
        keyframeSince = nil
        guard let placement = place(decoded, of: terms) else { return .ended }
        let known = encoded?.parameterSets ?? []
        if isKeyframe, !known.isEmpty, !coding.hasAll(known, in: bytes) { reportSets() }
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

    /// The time of ticks; nil where there is none, or an impossible one.
    private func time(_ ticks: Int64, _ terms: StreamTerms) -> MediaTime? {
        ticks == fh_av_no_pts ? nil : terms.timeBase.possibleTime(ofTicks: ticks)
    }

    // MARK: Away

    private func lose(_ reason: String) throws {
        decoder = nil
        filter = nil
        followsGap = true
        // The timeline goes on from the last picture.
        let next = times.last.map { $0 + (format?.frameRate.period.nanoseconds ?? 0) }
        try perform(live.lost(reason, now: context.clock.now(), next: next))
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
        guard case .sayBack(let isFirst, let after)? = action else { return }
        context.recovering = nil
        context.post(
            "stream-back",
            text:
                "'\(address.shown)' is \(isFirst ? "there" : "back") after \(after / 1_000_000) ms: \(terms?.text ?? "").",
            details: ["awayMs": .number(Int(after / 1_000_000))])
    }

    private func perform(_ action: LiveState.Action?) throws {
        guard let action else { return }
        figures.isStreaming.store(false, ordering: .relaxed)
        figures.add(figures.losses)
        switch action {
        case .fail(let reason):
            throw FrameHostError(
                .unavailable, what: "'\(address.shown)' is lost: \(reason)",
                remedy:
                    "Check its server or sender. To keep the chain running until the stream is back, set \"whileLost\": \"hold\"."
            )
        case .sayLost(let reason):
            context.recovering = "'\(address.shown)' is lost: \(reason)"
            context.post(
                "stream-lost", level: .warning,
                text: "'\(address.shown)' is lost: \(reason). It is opened again when it is back.",
                details: ["reason": .string(reason), "shown": .string(options.whileLost.rawValue)])
        case .sayBack, .sayRefused: break
        }
    }

    // MARK: Reports

    /// - Parameter isGiven: Whether it is a picture that is given, with parts that the decoder guessed.
    private func noteDamage(isGiven: Bool = false) {
        figures.add(figures.damaged)
        // What a decoder cannot use before a connection's first picture is not damaged: the connection began in the
        // middle.
        guard !live.isFresh else { return }
        if isGiven { figures.add(figures.concealed) }
        let count = figures.damaged.load(ordering: .relaxed)
        guard reported.isNextPower("stream-damaged", of: count) else { return }
        let frame = figures.given.load(ordering: .relaxed)
        context.post(
            "stream-damaged", level: .warning,
            text:
                "'\(address.shown)' has \(count == 1 ? "a damaged packet or picture" : "\(count) damaged packets and pictures so far, the last") at picture \(frame)\(isGiven ? ", of which the decoder guessed parts" : "").",
            details: ["damaged": .number(count), "frame": .number(frame)])
    }

    /// Says at the end how many pictures had guessed parts.
    private func reportConcealment() {
        let (damaged, concealed) = (
            figures.damaged.load(ordering: .relaxed), figures.concealed.load(ordering: .relaxed)
        )
        guard concealed > 0 else { return }
        context.post(
            "stream-damaged", level: .warning,
            text:
                "\(damaged) \(damaged == 1 ? "packet or picture" : "packets and pictures") of '\(address.shown)' \(damaged == 1 ? "was" : "were") damaged. Of \(concealed) \(concealed == 1 ? "picture that was" : "pictures that were") given the decoder had to guess parts.",
            details: ["damaged": .number(damaged), "concealed": .number(concealed)])
    }

    private func reportDrops(_ reader: NetworkReader) {
        guard let droppedBefore, reader.queue.dropped > droppedBefore else { return }
        context.post(
            "packets-dropped", once: &reported, level: .warning,
            text:
                "The chain is slower than '\(address.shown)': packets up to a keyframe are dropped, and counted in the figure 'dropped'. Set the sender to a smaller size or rate, or use faster stages."
        )
    }

    private func reportMissed(_ reader: NetworkReader) {
        let (missed, segments) = reader.missed
        if reported.isNextPower("segments-missed", of: segments) {
            context.post(
                "segments-missed", level: .warning,
                text:
                    "\(segments) \(segments == 1 ? "segment" : "segments") of '\(address.shown)' \(segments == 1 ? "has" : "have") been left out so far: the server does not have what its playlist names, or no longer. Check the server, and how long it keeps segments.",
                details: ["missed": .number(segments)])
        }
        guard reported.isNextPower("packets-missed", of: missed) else { return }
        let remedy =
            options.transport == .udp
            ? "Set \"transport\": \"tcp\", or raise 'latencyMs' or 'bufferBytes'."
            : "The server leaves out what its connection does not take: set it to a lower bitrate, or use a faster network."
        context.post(
            "packets-missed", level: .warning,
            text:
                "\(missed) RTP \(missed == 1 ? "packet" : "packets") of '\(address.shown)' \(missed == 1 ? "has" : "have") been lost so far: pictures or sound are damaged. \(remedy)",
            details: ["missed": .number(missed)])
    }

    /// How long a keyframe may take, nanoseconds.
    private static let keyframePatience: Int64 = 10_000_000_000

    private func reportMissingKeyframe() {
        let now = context.clock.now()
        let since = keyframeSince ?? now
        keyframeSince = since
        guard now - since >= Self.keyframePatience else { return }
        let count = figures.skipped.load(ordering: .relaxed)
        context.post(
            "keyframe-missing", once: &reported, level: .warning,
            text:
                "'\(address.shown)' has had no keyframe for 10 s, so nothing of it is given: \(count) access units were left out so far. Set the sender to send keyframes (IDR), no intra refresh; or leave 'decode' out and put an encoder after this stage.",
            details: ["skipped": .number(count)])
    }

    private func reportSets() {
        context.post(
            "parameter-sets-changed", once: &reported, level: .warning,
            text:
                "The parameter sets (SPS and PPS, of AV1 the sequence header) of '\(address.shown)' have changed. The stream has the new ones, but the header of a recording and the SDP keep the old ones. If a player shows a damaged picture from there on, leave 'decode' out and put an encoder after this stage."
        )
    }
}
