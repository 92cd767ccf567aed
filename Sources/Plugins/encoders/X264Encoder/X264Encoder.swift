// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Reports
import Shared

/// Encodes I420 or NV12 to H.264 with libx264.
///
/// Each access unit has the properties of its frame, metadata included: Core copies them by the PTS. x264 copies the
/// planes inside its call, so no frame is kept; one further copy, of the compressed bytes, goes into the chain's slab.
final class X264Encoder: Transform {
    static let info = StageInfo(
        id: "x264-encoder", summary: "Encodes video to H.264 with x264.", input: .video(.i420, .nv12),
        output: .encoded(.h264),
        delay: X264Handle.mostDelay, metadata: [ClosedCaptions.self],
        commands: [CommandInfo("keyframe", "Makes the next frame a keyframe.")],
        events: events)

    var options: X264EncoderOptions
    private let context: StageContext
    private var encoder: X264Handle?
    private var messages: PictureMessages?
    private var captions: MetadataSlot<ClosedCaptions>?
    /// Whether the input was guarded at the last frame, and since when it has been while nothing behind the guard has come.
    private var wasGuarded = false
    private var guardedSince: Int64?
    private var faces: MetadataSlot<Faces>?
    private var ticks = TickCounter(timeBase: .nanoseconds)
    private var pacer: KeyframePacer
    private var watchesTime = false
    private var rate: RateControl
    /// Whether the bitrate can change, by the rate control that the encoder was opened with.
    private var isAdjustable = false
    /// The message that is put before the first access unit.
    private var message: [UInt8] = []
    private var reported = Reported()
    private var slabBytes = 0
    private var encodedFormat: VideoFormat?
    /// Whether an odd side loses its last pixel.
    private var isCut = false

    /// [control thread] Opens nothing.
    init(options: X264EncoderOptions, context: StageContext) {
        self.options = options
        self.context = context
        pacer = KeyframePacer(seconds: options.keyframeSeconds)
        rate = RateControl(options, isLive: false)
    }

    /// [control thread] Opens x264 here already, since the plan needs its delay, and the format its parameter sets.
    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        guard let given = input.video else {
            throw FrameHostError(.broken, what: "x264-encoder needs raw video, but got \(input)")
        }
        let format = try Self.evenPart(of: given)
        isCut = format != given
        rate = RateControl(options, isLive: context.isLiveChain)
        isAdjustable = rate.isAdjustable
        let encoder = try X264Handle(settings(format)) { [context] in context.log($0, level: .warning) }
        self.encoder = encoder
        message = encoder.settingsMessage
        ticks = TickCounter(timeBase: format.timeBase)
        pacer = KeyframePacer(seconds: options.keyframeSeconds)
        // While frames are inside x264 the stage cannot know whether x264 has just made a keyframe by itself.
        watchesTime = format.frameRate.isZero || encoder.maximumDelay == 0
        slabBytes = max(16 << 20, 2 * format.bufferBytes)
        encodedFormat = format
        noteLight(format)
        return .encoded(
            EncodedFormat(
                codec: .h264, framing: .annexB, parameterSets: encoder.parameterSets, video: format,
                reorderDepth: encoder.reorderDepth,
                bitrateKbps: rate.averageKbps))
    }

    /// 4:2:0 colour has one sample for two by two pixels, and H.264's cropping has no smaller step (7.4.2.1.1,
    /// CropUnitX and CropUnitY). So the last pixel of an odd side is not encoded.
    private static func evenPart(of format: VideoFormat) throws -> VideoFormat {
        var format = format
        guard format.width > 1, format.height > 1 else {
            throw FrameHostError(
                .invalidConfiguration,
                what:
                    "H.264 with 4:2:0 colour needs pictures of at least 2x2, but these are \(format.width)x\(format.height)",
                remedy: "Put a 'crop-orient' with a larger \"size\" before this stage.")
        }
        format.width &= ~1
        format.height &= ~1
        guard H264Level.fits(width: format.width, height: format.height) else {
            throw FrameHostError(
                .invalidConfiguration,
                what:
                    "no H.264 decoder accepts pictures of \(format.width)x\(format.height): level 6.2, the highest, permits at most \(H264Level.mostMacroblocks) macroblocks of 16x16 (for example 8704x4096) and \(H264Level.mostSide) pixels on each side",
                remedy: "Put a 'crop-orient' with a smaller \"size\" before this stage.")
        }
        return format
    }

    /// [control thread] Reports what is cut off.
    func start() {
        messages = PictureMessages(mostDelay: encoder?.maximumDelay ?? 0, hasStamps: options.stamp)
        captions = context.slot(for: ClosedCaptions.self)
        wasGuarded = context.isGuarded
        // Where no stage finds faces there is no slot.
        if options.stamp { faces = context.slot(for: Faces.self) }
        guard isCut, let format = encodedFormat else { return }
        context.post(
            "picture-cut",
            text:
                "H.264 with 4:2:0 colour needs even sides: the picture is encoded as \(format.width)x\(format.height), without the last row or column of an odd side.",
            details: ["width": .number(format.width), "height": .number(format.height)])
    }

    private func settings(_ format: VideoFormat) -> X264Settings {
        X264Settings(
            format: format, preset: options.preset, tune: options.tune ?? (context.isLiveChain ? .zerolatency : .none),
            profile: options.profile, level: options.level, rate: rate, keyframeSeconds: options.keyframeSeconds,
            sceneCut: options.sceneCut, threads: options.threads, bframes: options.bframes,
            repeatsParameterSets: context.repeatsParameterSets, hdr: format.color.isHDR ? givenLight : nil)
    }

    /// What the source says of the pictures' brightness (HDR10).
    private var givenLight: HDRMetadata? {
        guard let input = context.inputTags.first else { return nil }
        if case .joined? = input.withheld { return nil }
        return input.tags?.track.hdr
    }

    /// Says what becomes of HDR.
    private func noteLight(_ format: VideoFormat) {
        if format.color.isHDR {
            context.note(
                "the pictures are HDR, but are encoded with 8 bits for each colour, so that smooth areas may show bands",
                isWarning: true)
        } else if givenLight != nil {
            context.note(
                "the mastering display and the light levels of the input (HDR10) are left out, because the pictures are no longer HDR"
            )
        }
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.delay = encoder?.maximumDelay ?? 0
        if slabBytes > 0 { demand.slabBytes = slabBytes }
        demand.ownBytes = encoder?.ownBytes ?? 0
        demand.ownBytes += PictureMessages.byteCount(mostDelay: demand.delay, hasStamps: options.stamp)
        if let encodedFormat {
            demand.cost = encodedFormat.cost(nanosecondsPerPixel: options.preset.nanosecondsPerPixel)
        }
        return demand
    }

    var held: Int { encoder?.delayedFrames ?? 0 }

    /// [stage thread] One frame in; the picture that became ready out, if any.
    func process(_ input: consuming Sample, _ output: Output) throws {
        switch consume input {
        case .frame(let frame):
            guard let picture = try encode(frame, output) else { return }
            try emit(picture, output)
        default:
            throw FrameHostError(.broken, what: "x264-encoder was handed something other than a frame")
        }
    }

    /// [stage thread] Gives all pictures that are still inside x264.
    func drain(_ output: Output) throws {
        guard let encoder else { return }
        while encoder.delayedFrames > 0 {
            if let picture = try encoder.flush() { try emit(picture, output) }
        }
    }

    /// [stage thread] Closes x264.
    func stop() {
        encoder = nil
        // x264 reads them until it is closed.
        messages = nil
    }

    /// [stage thread] The only live option is the bitrate.
    ///
    /// - Throws: ``FrameHostError`` where this run cannot change it; the old bitrate then stays, in `options` too.
    func optionsChanged() throws {
        let changed = RateControl(options, isLive: context.isLiveChain)
        guard changed != rate else { return }
        do {
            guard isAdjustable else {
                throw FrameHostError(
                    .invalidConfiguration,
                    what:
                        "x264 can change the bitrate while it runs only if a VBV buffer limits the stream to that bitrate",
                    remedy: "In the chain file, \(stepsToAdjust), and start the chain again.")
            }
            try encoder?.setRate(changed)
        } catch {
            options.bitrateKbps = rate.averageKbps
            throw error
        }
        rate = changed
    }

    /// What must change so that the bitrate can: `set 'vbvBufferKbits'`.
    private var stepsToAdjust: String {
        [
            options.vbvMaxKbps == nil ? nil : "leave 'vbvMaxKbps' out",
            context.isLiveChain || options.vbvBufferKbits != nil ? nil : "set 'vbvBufferKbits'",
        ].compactMap(\.self).joined(separator: " and ")
    }

    func command(_ name: String, arguments: JSONNode) throws { pacer.request() }

    func keyframeRequested() { pacer.request() }

    // MARK: One frame

    /// The frame's lease ends when this function returns, before the stage waits for room behind it.
    private func encode(_ frame: consuming Frame, _ output: Output) throws -> EncodedPicture? {
        guard let encoder else {
            throw FrameHostError(.broken, what: "x264-encoder was handed a frame before it was opened")
        }
        guard let tick = ticks.tick(of: frame.pts) else {
            reportTime(frame)
            output.drop(.byStage)
            return nil
        }
        let isDue = pacer.isDue(at: frame.pts, watchesTime: watchesTime) || beginsGuarded(frame)
        if options.stamp {
            messages?.addStamp(
                capturedAt: context.clock.unixTime(at: frame.capturedAt), sequenceNumber: frame.sequenceNumber,
                faces: faces.flatMap { frame[$0] })
        }
        if let captions, let found = frame[captions] {
            if context.isGuarded { reportCaptions() } else { messages?.add(found) }
        }
        return try encoder.encode(frame, tick: tick, asKeyframe: isDue, messages: messages?.take())
    }

    /// Whether the frame is the first of those behind a stage that hides something: who joins later, or keeps what has been
    /// since the last keyframe, has nothing from before.
    private func beginsGuarded(_ frame: borrowing Frame) -> Bool {
        let isGuarded = context.isGuarded
        if isGuarded != wasGuarded {
            wasGuarded = isGuarded
            guardedSince = isGuarded ? context.clock.now() : nil
        }
        guard let since = guardedSince, frame.capturedAt >= since else { return false }
        guardedSince = nil
        return true
    }

    /// What is said tells who is there, as tags do.
    private func reportCaptions() {
        guard reported.isFirst("captions") else { return }
        context.log(
            "\(context.stageID): The closed captions are left out: a stage before this one hides what is in the pictures, and captions may tell it."
        )
    }

    private func emit(_ picture: EncodedPicture, _ output: Output) throws {
        var unit = try output.makeAccessUnit(byteCount: message.count + picture.bytes.count)
        unit.withMutableBytes { target in
            if !message.isEmpty { target.copyBytes(from: message) }
            UnsafeMutableRawBufferPointer(rebasing: target[message.count...]).copyMemory(from: picture.bytes)
        }
        if !message.isEmpty { message = [] }
        unit.pts = picture.pts
        // Equal ticks can differ by up to half a tick in nanoseconds. The DTS must never be later than the PTS.
        unit.dts = min(ticks.timeBase.time(ofTicks: picture.dtsTicks), picture.pts)
        unit.isKeyframe = picture.isKeyframe
        if picture.isKeyframe { pacer.sawKeyframe(at: picture.pts) }
        try output.emit(unit)
    }

    /// Reports once that times do not rise. Each such frame is counted as dropped.
    private func reportTime(_ frame: borrowing Frame) {
        context.post(
            "time-not-rising", once: &reported, level: .warning,
            text:
                "Frame \(frame.sequenceNumber) has the time \(frame.pts.seconds) s, but must be at least one tick (\(ticks.timeBase) s) later than the frame before it. Such frames are dropped and counted as dropped 'byStage'.",
            details: ["frame": .number(frame.sequenceNumber), "ptsNanoseconds": .number(frame.pts.nanoseconds)])
    }
}
