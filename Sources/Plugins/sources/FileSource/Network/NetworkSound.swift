// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import FrameSupport
import Reports

/// The sound of a stream beside its pictures: `"from": "cam.audio"`, where `cam` is a ``NetworkSource``.
///
/// The sound comes over the connection of that stage, but through its own queue, so that neither waits for the
/// other. The pictures' offset places it on the chain clock. It is decoded, or with `"decode": false` its packets
/// are given as they are.
final class NetworkSound: Source {
    static let info = StageInfo(
        id: "network-sound", summary: "Gives the sound of a network stream: the output 'audio' of 'network-source'.",
        output: .audio,
        otherOutput: StageInfo.OtherOutput(where: "decode", is: .bool(false), .encoded(AudioTrackFormat.passedOn)),
        events: NetworkSource.events)
    static let type = StageType(NetworkSound.self)

    var options: NetworkSourceOptions
    private let context: StageContext
    private var reader: NetworkReader?
    private var format: AudioFormat?
    private var encoded: AudioTrackFormat?

    // For the stage thread only.
    private var terms: StreamTerms?
    private var decoder: SoundDecoder?
    private var clock = SampleClock(sampleRate: 1)
    /// A connection begins with the sound since the pictures' last keyframe.
    private var pacer = BurstPacer()
    private var packet: UnsafeMutablePointer<AVPacket>?
    /// Whether ``packet`` waits for the first picture's place.
    private var holdsPacket = false
    private var places = CompanionClock()
    private var nextReader: NextReader
    private var hasEnded = false
    private var join = ConnectionJoin()
    private var lastResume: Int64 = 0
    /// Packets that were dropped before the first call or the end of the last pause: the chain was not too slow for
    /// those.
    private var droppedBefore: Int?
    private var latest: MediaTime?
    private var isFollowing = false
    private var followsGap = false
    /// Whether the packets that are passed on have another codec header than those of the chain's plan.
    private var isChanged = false
    private var scratch = UnsafeMutableBufferPointer<Float>(start: nil, count: 0)
    private var reported = Reported()

    /// [control thread] Opens nothing.
    init(options: NetworkSourceOptions, context: StageContext) {
        self.options = options
        self.context = context
        nextReader = NextReader(options)
    }

    deinit {
        scratch.deallocate()
        av_packet_free(&packet)
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isLive = true
        demand.slabBytes = 4 << 20
        demand.ownBytes = PacketQueue.mostBytes
        return demand
    }

    /// [control thread] Asks the reader of the pictures, which has connected by now.
    func negotiate() throws -> MediaFormat {
        guard let reader = StreamReaders.reader(for: context) else { throw Self.unopened("sound") }
        guard reader.sound != nil else {
            throw FrameHostError(
                .invalidConfiguration, place: "from",
                what: "'\(context.stageID)' cannot be taken now: the stream was opened without its sound",
                remedy: "Restart the chain with a stage that takes the sound.")
        }
        self.reader = reader
        // A chain that passes the sound on begins with its stream, where it was not there before.
        let needsStream = options.ifMissing == .fail || (!options.decode && reader.expectedSound == nil)
        guard reader.planned != nil || !needsStream else { throw Self.unopened("sound") }
        guard options.decode else {
            let found = reader.planned?.sound?.format ?? reader.expectedSound
            guard let found, found.obstacleToPassing == nil else {
                throw FrameHostError(
                    .invalidMedia, place: "decode",
                    what: found.map {
                        "the sound of the stream (\($0)) cannot be passed on: \($0.obstacleToPassing ?? "")"
                    } ?? Self.lack(reader),
                    remedy: found == nil
                        ? "Take the pictures only, or check the stream's sound with 'ffprobe'."
                        : "Add a second network-source of the stream without \"decode\": false, and encode its sound.")
            }
            encoded = found
            return .encoded(EncodedFormat(codec: found.codec, audio: found))
        }
        let found = reader.planned?.sound
        guard let found else {
            // The stream is opened when the chain runs: its sound is converted to this.
            guard options.ifMissing == .wait, reader.planned == nil else {
                throw FrameHostError(
                    .invalidMedia, place: "url", what: Self.lack(reader),
                    remedy: "Take the pictures only, or check the stream's sound with 'ffprobe'.")
            }
            let format = AudioFormat(sampleRate: 48_000, channelCount: 2)
            self.format = format
            return .audio(format)
        }
        var format = found.format.decoded
        if format.channelCount > 8 { format = AudioFormat(sampleRate: format.sampleRate, channelCount: 8) }
        self.format = format
        return .audio(format)
    }

    /// The fault of the pictures' stage says why.
    static func unopened(_ what: String) -> FrameHostError {
        var fault = FrameHostError(
            .unavailable, place: "url",
            what: "the stream was not opened, so its \(what) \(what == "sound" ? "is" : "are") not known",
            remedy: "Correct the fault that this network-source reports for its pictures.")
        fault.isConsequence = true
        return fault
    }

    private static func lack(_ reader: NetworkReader) -> String {
        reader.planned == nil
            ? "what sound the stream has is not known before the chain runs"
            : "the stream has no sound, or none that can be decoded"
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
    func stop() { decoder = nil }

    // MARK: One item

    private static let wait: Int64 = 50_000_000

    /// [stage thread] A block or a unit, or none yet.
    func produce(_ output: Output) throws -> SourceProgress {
        if context.isEnded { return .ended }
        guard let reader, let queue = reader.sound else { return .ended }
        if context.resumedAt > lastResume {
            lastResume = context.resumedAt
            droppedBefore = queue.dropped
        }
        if droppedBefore == nil { droppedBefore = queue.dropped }
        if let current = join.connection(of: queue, now: context.clock.now()) {
            followsGap = true
            try begin(current)
        }
        if let decoder {
            let step: SoundDecoder.Step?
            do {
                step = try decoder.step()
            } catch {
                if hasEnded { return .ended }
                // The pictures go on, and so may the sound with the next connection.
                step = nil
                self.decoder = nil
                let fault = FrameHostError.wrap(error)
                noteLack(fault.what, remedy: fault.remedy)
            }
            switch step {
            case .samples(let most): return try give(most, decoder, output)
            case .ended:
                if hasEnded { return .ended }
                self.decoder = nil
                noteLack("too much of its sound is damaged")
            case .damaged: noteDamage()
            case .hungry, nil: break
            }
        }
        if holdsPacket { return try feed(output) }
        let item = context.waiting { queue.take(into: packet, until: MonotonicTime.now() + Self.wait) }
        if queue.dropped > droppedBefore ?? 0 { reportDrops() }
        switch item {
        case nil where queue.isOver: return awaitReader()
        case nil, .refused: break
        case .packet:
            holdsPacket = true
            return try feed(output)
        case .opened(let terms): try begin(terms)
        case .lost:
            followsGap = true
            terms = nil
            decoder = nil
        case .ended:
            guard let decoder else { return .ended }
            hasEnded = true
            decoder.flush()
        }
        return .more
    }

    private func reportDrops() {
        context.post(
            "packets-dropped", once: &reported, level: .warning,
            text:
                "The chain is slower than the sound of the stream. The oldest packets of the sound are dropped. Use faster stages for the sound."
        )
    }

    private func awaitReader() -> SourceProgress {
        let now = context.clock.now()
        switch nextReader.look(context, instead: reader, now: now, where: { $0.sound != nil }) {
        case .reader(let found):
            reader = found
            (terms, decoder, followsGap, join) = (nil, nil, true, ConnectionJoin())
            return .more
        case .wait: return context.sleep(until: now + Self.wait) ? .more : .ended
        case .none:
            noteLack("the stage that gives its pictures has ended")
            return .ended
        }
    }

    private func begin(_ terms: StreamTerms) throws {
        self.terms = terms
        (decoder, isChanged) = (nil, false)
        places.begin()
        pacer.begin()
        guard let found = terms.sound else { return noteLack("it has none, or none that can be decoded") }
        guard let format else {
            if encoded?.codec != found.format.codec || encoded?.extradata != found.format.extradata
                || encoded?.sampleRate != found.format.sampleRate
                || encoded?.channelCount != found.format.channelCount
            {
                self.terms = nil
                noteLack(
                    "its sound has another format or codec header than when the chain started (now \(found.format)). Restart the chain"
                )
            } else {
                reported.forget("sound-missing")
            }
            return
        }
        do {
            decoder = try SoundDecoder(found, format: format)
            reported.forget("sound-missing")
        } catch {
            let fault = FrameHostError.wrap(error)
            noteLack(fault.what, remedy: fault.remedy)
        }
        clock = SampleClock(sampleRate: format.sampleRate, isLive: true)
    }

    /// Hands the packet on once the pictures of its connection have a place.
    private func feed(_ output: Output) throws -> SourceProgress {
        guard let reader, let packet, let terms, let found = terms.sound else {
            dropPacket()
            return .more
        }
        let pictures = reader.clock.place(of: terms, isNewest: reader.isNewest(terms))
        let time = given(packet.pointee.pts, found)
        switch places.look(
            at: time, pictures, now: context.clock.now(), isPacedByStream: reader.isPacedByStream)
        {
        case .wait: _ = context.sleep(until: context.clock.now() + 10_000_000)
        case .drop(let ahead):
            if let ahead {
                noteLack(
                    "the times of its sound are \(ahead / 1_000_000_000) s ahead of those of its pictures",
                    remedy: "Check the sender's time stamps.")
            }
            dropPacket()
        case .here(let isStep):
            if isStep {
                clock = SampleClock(sampleRate: format?.sampleRate ?? 1, isLive: true)
                followsGap = true
            }
            guard options.decode else { return try pass(packet, found, output) }
            if decoder?.send(packet) == false { noteDamage() }
            dropPacket()
        }
        return .more
    }

    private func dropPacket() {
        holdsPacket = false
        av_packet_unref(packet)
    }

    /// A time of the stream; nil where there is none, or an impossible one.
    private func given(_ ticks: Int64?, _ terms: SoundTerms) -> MediaTime? {
        guard let ticks, ticks != fh_av_no_pts else { return nil }
        return terms.timeBase.possibleTime(ofTicks: ticks)
    }

    /// A time of the stream on the chain clock; nil where there is none, or an impossible one.
    private func time(_ ticks: Int64?, _ terms: SoundTerms) -> MediaTime? { given(ticks, terms).map(places.time) }

    private func waits(for time: MediaTime) -> Bool {
        let now = context.clock.now()
        let instant =
            reader?.isPacedByStream == true
            ? time.nanoseconds : pacer.place(time, now: now, isUrgent: reader?.sound?.hasAmpleRoom == false)
        return instant <= now || context.sleep(until: instant)
    }

    private func pass(_ packet: UnsafeMutablePointer<AVPacket>, _ terms: SoundTerms, _ output: Output) throws
        -> SourceProgress
    {
        defer { dropPacket() }
        guard packet.pointee.size < 1 << 20 else {
            noteDamage()
            return .more
        }
        if let header = packet.pointee.sideData(AV_PKT_DATA_NEW_EXTRADATA) {
            isChanged = header != terms.format.extradata
        }
        guard !isChanged else {
            noteLack(
                "its sound has another codec header than when the chain started. Restart the chain")
            return .more
        }
        guard packet.pointee.size > 0, let data = packet.pointee.data, var pts = time(packet.pointee.pts, terms) else {
            return .more
        }
        // What came while the stage was paused is dropped.
        guard pts.nanoseconds >= max(context.resumedAt, join.begin) else { return .more }
        // The pictures' offset may step back by as much as a connection's first items were late.
        if let latest { pts = max(pts, latest + MediaTime(nanoseconds: 1000)) }
        guard waits(for: pts) else { return .ended }
        latest = pts
        let bytes = UnsafeRawBufferPointer(start: data, count: Int(packet.pointee.size))
        let header = ADTSHeader.read(bytes)
        if let header, header.header.config != terms.format.extradata {
            noteLack("its sound has another codec header than when the chain started. Restart the chain")
            return .more
        }
        let payload = UnsafeRawBufferPointer(rebasing: bytes[(header?.byteCount ?? 0)...])
        var unit = try output.makeAccessUnit(byteCount: payload.count)
        unit.withMutableBytes { $0.copyMemory(from: payload) }
        (unit.pts, unit.dts) = (pts, pts)
        let samples = MediaTime(
            seconds: Double(terms.format.samplesPerPacket) / Double(max(terms.format.sampleRate, 1)))
        let given = terms.timeBase.possibleTime(ofTicks: packet.pointee.duration) ?? .zero
        unit.duration = given > .zero ? given : samples
        unit.capturedAt = pts.nanoseconds
        unit.isKeyframe = true
        unit.isDiscontinuity = followsGap
        followsGap = false
        try output.emit(unit)
        return .more
    }

    private func give(_ most: Int, _ decoder: SoundDecoder, _ output: Output) throws -> SourceProgress {
        guard most > 0, let terms = terms?.sound else { return .more }
        let channels = decoder.format.channelCount
        let time = time(decoder.tick, terms)
        if let change = decoder.takeChange() { report(change, to: decoder.format) }
        if scratch.count < most * channels {
            scratch.deallocate()
            scratch = .allocate(capacity: most * channels)
        }
        if let time { follow(time - clock.end, decoder) }
        let decoded = decoder.take(scratch)
        clock.add(decoded, at: time)
        guard case .place(let place, _) = clock.next(before: nil) else { return .more }
        // The sound of a new connection can start before the end of the last one's.
        if let latest, place.pts < latest { return .more }
        // What came while the stage was paused is dropped.
        guard place.pts.nanoseconds >= max(context.resumedAt, join.begin) else { return .more }
        guard waits(for: place.pts) else { return .ended }
        var block = try output.makeAudioBlock(sampleCount: place.samples.count)
        let part = UnsafeBufferPointer(
            rebasing: scratch[place.samples.lowerBound * channels..<place.samples.upperBound * channels])
        block.withMutableSamples { _ = $0.update(fromContentsOf: part) }
        block.pts = place.pts
        block.duration = clock.duration(of: place.samples.count)
        latest = block.pts + block.duration
        block.capturedAt = block.pts.nanoseconds
        block.isDiscontinuity = place.isDiscontinuity || followsGap
        followsGap = false
        try output.emit(block)
        return .more
    }

    /// Sound that is this far from its pictures is brought back to them.
    private static let mostApartFromPictures = MediaTime(nanoseconds: 3_000_000)

    /// Follows the pictures' offset, which moves while a connection settles and where clocks drift: slowly, and not by
    /// leaving out or putting in anything that could be heard.
    private func follow(_ late: MediaTime, _ decoder: SoundDecoder) {
        guard clock.hasBegun else { return }
        let distance = max(late, .zero - late)
        if distance > Self.mostApartFromPictures {
            isFollowing = true
        } else if distance < MediaTime(nanoseconds: 500_000) {
            isFollowing = false
        }
        decoder.stretch(by: isFollowing && distance <= SampleClock.tolerance ? late : .zero)
    }

    // MARK: Reports

    private func report(_ change: AudioFormat, to format: AudioFormat) {
        context.post(
            "sound-changed",
            text: "The sound of the stream is \(change.figures). It is converted to \(format.figures).",
            details: ["from": .string(change.figures), "to": .string(format.figures)])
    }

    private func noteDamage() {
        context.post(
            "sound-damaged", once: &reported, level: .warning,
            text: "A packet of the sound of the stream is damaged; it is left out.")
    }

    /// - Parameter remedy: A sentence; empty where `why` says enough.
    private func noteLack(_ why: String, remedy: String = "") {
        context.post(
            "sound-missing", once: &reported, level: .warning,
            text: "The stream gives no sound: \(why).\(remedy.isEmpty ? "" : " \(remedy)")")
    }
}
