// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import LiveStates

/// Gives the sound of an ALSA device on the chain's clock.
///
/// A ``SoundTimeline`` counts the frames of the output: frame n has the time of the first plus n / rate. A card has a
/// crystal of its own: ``DelayLockedLoop`` finds its rate from the driver's time stamps, ``DriftControl`` decides the
/// correction, ``DriftResampler`` makes it. What is missing (an overrun, a lost device) becomes silence of its length.
final class ALSASource: Source {
    static let info = StageInfo(
        id: "alsa-source",
        summary: "Gives the sound of a microphone or sound card (ALSA), on the chain's clock.",
        output: .audio, events: events)

    var options: ALSASourceOptions
    private let context: StageContext
    private let format: AudioFormat
    let figures = SoundFigures()
    /// Frames of output in a block of silence.
    private let blockFrames: Int

    // Set from `negotiate` on.
    private var isThere = false
    /// Why it could not be opened, then or in `start`; empty where it could.
    private var missing = ""

    // Set from `start` on; for the stage thread only.
    private(set) var session: CaptureSession?
    private(set) var timeline: SoundTimeline?
    private var control: DriftControl
    private var stamps = CardTime()
    /// Why the next period does not follow the one before; nil where it does.
    private var beginning: Beginning? = .first
    /// Frames of silence that are to be given before anything else.
    private var owedSilence = 0
    private var followsGap = false
    private var lastSoundAt: Int64 = 0
    private var reports: GapReports
    private var hasSoundSinceOverrun = true
    /// The name by which the device is opened again, at the start and after a loss: by the card's id as soon as that is
    /// known, since a number may become another card's.
    private var lookedFor: String
    /// Whether the card is there. It is back with its first sound.
    private var live = LiveState(isThere: true, whileLost: .hold, canStandIn: false, now: 0)

    private enum Beginning { case first, overrun, suspension, pause, jump, back }

    /// How long one wait for the card lasts, so that a stop is noticed, milliseconds.
    private static let wait: Int32 = 100
    /// Without sound for this long a card counts as lost, nanoseconds.
    private static let patience: Int64 = 1_000_000_000

    /// Opens the card of this name, and starts nothing. Throws ``CardFault`` or ``FrameHostError``.
    typealias Opening = (_ name: String, _ options: ALSASourceOptions) throws -> any SoundCard
    private let open: Opening

    /// [control thread] Opens nothing.
    convenience init(options: ALSASourceOptions, context: StageContext) {
        self.init(options: options, context: context) { name, options in
            try CaptureDevice(
                name: name, rate: options.sampleRate, channels: options.channels, periodMs: options.periodMs)
        }
    }

    /// [control thread] Gets its cards from `open`.
    init(options: ALSASourceOptions, context: StageContext, open: @escaping Opening) {
        self.options = options
        self.context = context
        self.open = open
        format = AudioFormat(sampleRate: options.sampleRate, channelCount: options.channels)
        blockFrames = options.sampleRate * options.periodMs / 1000
        control = DriftControl(rate: options.sampleRate)
        lookedFor = options.device
        reports = GapReports(context, figures)
    }

    static func topics() throws -> [StageTopic] { CaptureList.topics() }

    /// [control thread] A device with what it can do. Opens it for a moment.
    static func topic(_ name: String) throws -> StageTopic? { CaptureList.topic(name) }

    // MARK: Setup

    /// [control thread] Opens the device for a moment, to say what it gives.
    func negotiate() throws -> MediaFormat {
        do {
            let device = try open(options.device, options)
            isThere = true
            lookedFor = device.stableName
            let name = device.title == device.name ? device.name : "\(device.title) (\(device.name))"
            let resampled =
                device.format.rate == options.sampleRate ? "" : ", resampled to \(options.sampleRate) Hz"
            context.note("\(name): \(device.format)\(resampled)")
        } catch {
            let fault = Self.fault(error, options.device, mayWait: options.ifMissing == .fail)
            guard options.ifMissing == .wait, fault.code == .unavailable else { throw fault }
            missing = fault.what
            context.note(
                "\(fault.what): the chain starts with silence, and keeps trying to open the device", isWarning: true)
        }
        return .audio(format)
    }

    private static func fault(_ error: any Error, _ name: String, mayWait: Bool = false) -> FrameHostError {
        (error as? CardFault).map { CaptureFault.of($0, name, mayWait: mayWait) } ?? .wrap(error)
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isLive = true
        demand.isUrgent = true
        // Two seconds: what follows a stall is given at once.
        demand.slabBytes = max(1 << 20, 2 * format.sampleRate * format.bytesPerMoment)
        demand.ownBytes = 3 * blockFrames * format.bytesPerMoment
        return demand
    }

    /// [setup thread] Opens and starts the device.
    func start() throws {
        context.showFigures { [figures] in figures.json }
        if isThere { try begin() }
        live = LiveState(
            isThere: session != nil, whileLost: options.whileLost == .stop ? .stop : .hold, canStandIn: false,
            now: context.clock.now())
        if live.isAway { context.recovering = missing }
    }

    /// Opens the device and starts it. It may have gone since ``negotiate()``, and then is waited for as if it had not
    /// been there.
    private func begin() throws {
        do {
            let opened = try CaptureSession(open(lookedFor, options), format: format)
            lookedFor = opened.device.stableName
            session = opened
            lastSoundAt = context.clock.now()
        } catch {
            let fault = Self.fault(error, lookedFor, mayWait: options.ifMissing == .fail)
            guard options.ifMissing == .wait, fault.code == .unavailable else { throw fault }
            missing = fault.what
            context.log(
                "The chain starts with silence, and keeps trying to open the device: \(fault.what).", level: .warning)
        }
    }

    /// [stage thread] Closes the card, and reports what was not reported.
    func stop() {
        session?.device.close()
        session = nil
        reports.tellRest(now: lastSoundAt)
    }

    // MARK: One block

    /// [stage thread] One block, or none yet.
    func produce(_ output: Output) throws -> SourceProgress {
        if context.isEnded { return .ended }
        do {
            try passPause()
            if owedSilence > 0 {
                let frames = min(owedSilence, mostSilence)
                owedSilence -= frames
                try giveSilence(frames, output)
            } else if let session {
                if session.pending > 0 { try give(session, output) } else { try take(session, output) }
            } else {
                return try beAway(output)
            }
        } catch let fault as CardFault {
            try meet(fault)
        }
        return .more
    }

    /// Frames of one block of silence at most: a tenth of a second, so that a stall of a second is caught up with ten.
    private var mostSilence: Int { max(format.sampleRate / 10, blockFrames) }

    /// Leaves out what was captured while the chain stood still.
    private func passPause() throws(CardFault) {
        guard context.resumedAt > 0, timeline?.skip(to: context.resumedAt) == true else { return }
        followsGap = true
        owedSilence = 0
        guard let session, !live.isAway else { return }
        beginning = .pause
        lastSoundAt = context.clock.now()
        try session.restart()
    }

    /// Reads a period from the card, with its time.
    private func take(_ session: CaptureSession, _ output: Output) throws {
        let device = session.device
        if session.isSuspended {
            guard try device.resume() else {
                _ = context.sleep(until: context.clock.now() + Int64(Self.wait) * 1_000_000)
                return try waitOn(output)
            }
            session.isSuspended = false
            beginning = .suspension
        }
        guard try context.waiting({ () throws(CardFault) in try device.wait(milliseconds: Self.wait) }) else {
            return try waitOn(output)
        }
        let status = try device.look()
        let now = context.clock.now()
        let frames = try device.read(session.bytes.baseAddress!, frames: min(status.available, session.card.period))
        guard frames > 0 else {
            _ = context.sleep(until: now + 1_000_000)
            return try waitOn(output)
        }
        lastSoundAt = now
        hasSoundSinceOverrun = true
        let stamp = stamps.time(status.stamp, now: now)
        figures.stampsReplaced.store(stamps.replaced, ordering: .relaxed)
        // The stamp is that of the newest available frame; the oldest available frame is the first of this period.
        place(frames, from: stamp - Int64(Double(status.available) / Double(session.card.rate) * 1e9), session)
    }

    /// Goes on while the card has nothing yet: loses it after ``patience``.
    private func waitOn(_ output: Output) throws {
        let now = context.clock.now()
        guard now - lastSoundAt <= Self.patience else {
            return try lose("no sound for \((now - lastSoundAt) / 1_000_000) ms")
        }
        if live.isAway { try giveDueSilence(now, output) }
    }

    /// Finds where a period belongs.
    ///
    /// - Parameter first: When its first frame was captured, nanoseconds of the chain clock, with the stamp's jitter.
    private func place(_ frames: Int, from first: Int64, _ session: CaptureSession) {
        session.pending = frames
        if timeline == nil { timeline = SoundTimeline(rate: format.sampleRate, origin: first) }
        let end = Double(first - timeline!.origin) / 1e9 + Double(frames) / Double(session.card.rate)
        if beginning == nil, session.loop.take(frames, until: end) == .lost { beginning = .jump }
        figures.ppmThousandths.store(Int(session.loop.ppm * 1000), ordering: .relaxed)
        guard let cause = beginning else { return }
        beginning = nil
        session.loop.restart(at: end)
        control.restart()
        meet(first, cause, session)
    }

    /// Starts the card's sound again: what is missing becomes silence, what is too much is left out.
    private func meet(_ first: Int64, _ cause: Beginning, _ session: CaptureSession) {
        let meeting = timeline!.meet(first)
        owedSilence = meeting.silence
        session.excess = meeting.excess * session.card.rate / format.sampleRate
        figures.add(figures.excess, meeting.excess)
        followsGap = cause != .first
        figures.isStreaming.store(true, ordering: .relaxed)
        if case .sayBack(_, let after)? = live.given(now: lastSoundAt) { return tellBack(after) }
        let missing = milliseconds(meeting.silence + meeting.hole)
        switch cause {
        case .first, .pause, .back: break
        case .overrun, .suspension:
            let why = cause == .overrun ? "The card's buffer has overrun" : "The system had suspended the card"
            reports.tell(overrun: why, missing, isFilled: meeting.hole == 0, now: lastSoundAt)
        case .jump:
            figures.add(figures.jumps)
            let by = missing - milliseconds(meeting.excess)
            reports.tell(jumpBy: by, isFilled: meeting.hole == 0, now: lastSoundAt)
        }
    }

    private func milliseconds(_ frames: Int) -> Int { frames * 1000 / format.sampleRate }

    /// Converts the period that was read, and gives it.
    private func give(_ session: CaptureSession, _ output: Output) throws {
        let left = min(session.excess, session.pending)
        let frames = session.pending - left
        session.excess -= left
        session.pending = 0
        guard frames > 0 else { return }
        let samples = try session.resampler.convert(
            session.bytes.baseAddress! + left * session.card.frameBytes, frames: frames)
        let count = samples.count / format.channelCount
        if count > 0 {
            var block = try output.makeAudioBlock(sampleCount: count)
            // One copy: how many frames come out is only known now.
            block.withMutableSamples { _ = $0.update(fromContentsOf: samples) }
            try emit(block, output)
        }
        try correct(after: count, session)
    }

    private func correct(after count: Int, _ session: CaptureSession) throws {
        let place = timeline!.place(of: session.loop.end)
        let reached = Double(timeline!.given) + session.resampler.held
        figures.errorMicroseconds.store(
            Int((reached - place) / Double(format.sampleRate) * 1e6), ordering: .relaxed)
        switch control.decide(after: count, place: place, reached: reached, deviation: session.loop.deviation) {
        case .unchanged: break
        case .stretch(let frames, let distance): try session.resampler.stretch(by: frames, over: distance)
        case .jump: beginning = .jump
        }
    }

    private func giveSilence(_ frames: Int, _ output: Output) throws {
        var block = try output.makeAudioBlock(sampleCount: frames)
        block.withMutableSamples { $0.update(repeating: 0) }
        figures.add(figures.silent, frames)
        try emit(block, output)
    }

    private func emit(_ block: consuming AudioBlock, _ output: Output) throws {
        let given = timeline!.given
        let time = timeline!.time(of: given)
        block.pts = MediaTime(nanoseconds: time)
        block.capturedAt = time
        block.duration = MediaTime(nanoseconds: timeline!.time(of: given + Int64(block.sampleCount)) - time)
        block.isDiscontinuity = followsGap
        followsGap = false
        timeline!.advance(by: block.sampleCount)
        try output.emit(block)
    }

    // MARK: Faults of the card

    private func meet(_ fault: CardFault) throws {
        guard let session else { throw CaptureFault.of(fault, lookedFor) }
        switch fault.errno {
        case EPIPE:
            let now = context.clock.now()
            guard now - lastSoundAt <= Self.patience || hasSoundSinceOverrun else {
                return try lose(
                    "no sound for \((now - lastSoundAt) / 1_000_000) ms, only overruns of the card's buffer")
            }
            // A card that only overruns does not keep the thread busy.
            if !hasSoundSinceOverrun { _ = context.sleep(until: now + 10_000_000) }
            hasSoundSinceOverrun = false
            figures.add(figures.overruns)
            beginning = .overrun
            do throws(CardFault) { try session.restart() } catch { return try lose(CaptureFault.text(error)) }
        case ESTRPIPE:
            session.isSuspended = true
        default: try lose(CaptureFault.text(fault))
        }
    }

    private func lose(_ reason: String) throws {
        session?.device.close()
        session = nil
        beginning = .back
        owedSilence = 0
        figures.isStreaming.store(false, ordering: .relaxed)
        let now = context.clock.now()
        // It was opened, but has been silent since: it was never back.
        if live.isAway { return live.missed(now: now) }
        followsGap = true
        figures.add(figures.losses)
        guard case .sayLost? = live.lost(reason, now: now) else {
            throw FrameHostError(
                .unavailable, what: "the device '\(options.device)' is lost: \(reason)",
                remedy:
                    "Set \"whileLost\": \"silence\" to give silence until the device is back."
            )
        }
        context.recovering = "the device is lost: \(reason)"
        context.post(
            "device-lost", level: .warning,
            text: "The device is lost: \(reason). It is opened again when it is back.",
            details: ["reason": .string(reason)])
    }

    // MARK: Away

    /// Gives silence at the chain's rate, and looks for the device.
    private func beAway(_ output: Output) throws -> SourceProgress {
        if timeline == nil {
            timeline = SoundTimeline(rate: format.sampleRate, origin: context.clock.now())
            beginning = .back
        }
        let due = timeline!.time(of: timeline!.given + Int64(blockFrames))
        guard context.sleep(until: min(live.nextTry, due)) else { return .ended }
        let now = context.clock.now()
        if now >= live.nextTry { comeBack() }
        if session == nil { try giveDueSilence(now, output) }
        return .more
    }

    private func giveDueSilence(_ now: Int64, _ output: Output) throws {
        let due = timeline!.frame(at: now) - timeline!.given
        guard due >= Int64(blockFrames) else { return }
        if due > Int64(SoundTimeline.longestSilence * format.sampleRate) {
            followsGap = timeline!.skip(to: now)
        } else {
            try giveSilence(min(Int(due), mostSilence), output)
        }
    }

    private func comeBack() {
        do {
            session = try CaptureSession(open(lookedFor, options), format: format)
            lastSoundAt = context.clock.now()
        } catch {
            live.missed(now: context.clock.now())
            if let fault = error as? CardFault, [ENOENT, ENODEV, ENXIO].contains(fault.errno) { return }
            // It is there but cannot be used.
            let fault = Self.fault(error, lookedFor)
            guard
                case .sayRefused(let text)? = live.refused(
                    fault.what + (fault.cause.isEmpty ? "" : " (\(fault.cause))"))
            else { return }
            context.post(
                "device-refused", level: .warning,
                text: "The device cannot be used yet: \(text). The stage keeps trying. \(fault.remedy)")
        }
    }

    /// Reports that the device is back, after nanoseconds: its first sound is here.
    private func tellBack(_ after: Int64) {
        context.recovering = nil
        if let session { lookedFor = session.device.stableName }
        context.post(
            "device-back",
            text: "The device '\(lookedFor)' now gives sound, after \(after / 1_000_000) ms without any.",
            details: ["device": .string(lookedFor), "awayMs": .number(after / 1_000_000)])
    }
}
