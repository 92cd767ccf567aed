// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Encodes sound to AAC or Opus.
///
/// Blocks of any size are cut into the codec's frames. Time is counted in samples from the first block's PTS on; what
/// is missing in the input is filled with silence. Each packet has the capture time of the block that its first sample
/// lies in.
final class AudioEncoder: Transform {
    /// The most blocks of 10 ms that lie inside, with any codec and rate: two frames of AAC at 7350 Hz and one that
    /// is being filled, a block at either end, and the current one.
    private static let mostDelay = 45

    static let info = StageInfo(
        id: "audio-encoder", summary: "Encodes sound to AAC or Opus.", input: .audio, output: .encoded(.aac, .opus),
        delay: mostDelay, events: events)

    var options: AudioEncoderOptions
    private let context: StageContext
    private var encoder: AudioEncoderHandle?
    private var timeline = SampleTimeline(AudioFormat(sampleRate: 48_000, channelCount: 1))
    private var times = PacketTimes(AudioFormat(sampleRate: 48_000, channelCount: 1))
    private var pending = PendingBlocks(capacity: 1)
    private var sampleRate = 48_000
    private var delay = 0
    private var packetCount: UInt64 = 0
    private var lastCapture: Int64 = 0
    private var gaps = SoundReport()
    private var jumps = SoundReport()
    private var overlaps = SoundReport()

    /// [control thread] Opens nothing.
    init(options: AudioEncoderOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    /// [control thread] Opens the encoder, since the format has its extradata.
    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        guard let format = input.audio else {
            throw FrameHostError(.broken, what: "audio-encoder needs sound, but got \(input)")
        }
        let codec = options.codec
        let kbps = try Self.bitrate(codec, format, asked: options.bitrateKbps)
        var coded = format
        coded.layout = codec.layout(for: format.layout) ?? format.layout
        let encoder = try AudioEncoderHandle(codec, coded, bitrateKbps: kbps)
        self.encoder = encoder
        sampleRate = format.sampleRate
        timeline = SampleTimeline(format)
        times = PacketTimes(format)
        let inside = (encoder.initialPadding + encoder.frameSamples - 1) / encoder.frameSamples + 2
        delay = min(inside * encoder.frameSamples * 100 / format.sampleRate + 3, Self.mostDelay)
        pending = PendingBlocks(capacity: delay)
        return .encoded(
            EncodedFormat(
                codec: codec.codec,
                audio: AudioTrackFormat(
                    codec: codec.codec, timeBase: format.timeBase, sampleRate: format.sampleRate,
                    channelCount: format.channelCount, channelMask: encoder.channelMask,
                    samplesPerPacket: encoder.frameSamples, bitRate: kbps * 1000, profile: encoder.profile,
                    initialPadding: encoder.initialPadding,
                    // RFC 7845, 4.6: 80 ms.
                    seekPreroll: codec == .opus ? format.sampleRate * 8 / 100 : 0, extradata: encoder.extradata)))
    }

    /// The bitrate in kbit/s; throws where the codec cannot have this sound.
    private static func bitrate(_ codec: SoundCodec, _ format: AudioFormat, asked: Int?) throws -> Int {
        guard codec.sampleRates.contains(format.sampleRate) else {
            let best = codec.sampleRates.filter { $0 >= min(format.sampleRate, 48_000) }.min() ?? 48_000
            throw FrameHostError(
                .invalidConfiguration,
                what:
                    "the sound has a sample rate of \(format.sampleRate) Hz, but \(codec.title) takes only \(codec.sampleRates.map(String.init).joined(separator: ", ")) Hz",
                remedy: "Put an 'audio-resample' with \"sampleRate\": \(best) before this stage.")
        }
        guard codec.layout(for: format.layout) != nil else {
            // The smallest that has room for all of them.
            let best = codec.layouts.first { $0.channelCount >= format.channelCount }
            throw FrameHostError(
                .invalidConfiguration,
                what:
                    "the sound has \(format.channelCount) channels in the layout \(format.layout), but \(codec.title) takes only \(codec.layouts.map(\.description).joined(separator: ", "))",
                remedy:
                    "Put an 'audio-resample' with \"layout\": \"\(best ?? ChannelLayout(usualFor: 2))\" before this stage."
            )
        }
        let most = codec.mostKbps(format)
        guard let asked else { return min(codec.usualKbpsPerChannel * format.channelCount, most) }
        guard asked <= most else {
            let channels = format.channelCount == 1 ? "1 channel" : "\(format.channelCount) channels"
            throw FrameHostError(
                .invalidConfiguration, place: "bitrateKbps",
                what:
                    "'bitrateKbps' must be at most \(most) for \(codec.title) with \(format.sampleRate) Hz and \(channels), but is \(asked)",
                remedy: "Use \(most) or less, or leave 'bitrateKbps' out.")
        }
        return asked
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.delay = delay
        demand.slabBytes = 1 << 20
        // A gap that is filled gives many packets at once.
        demand.slabUnits = 16
        return demand
    }

    var held: Int { pending.count }

    /// [stage thread] Takes one block; gives the packets that became ready.
    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .audioBlock(let block) = consume input, let encoder else {
            throw FrameHostError(.broken, what: "audio-encoder was handed something other than sound")
        }
        let isFirst = timeline.next == nil
        var skipped: Int64 = 0
        switch timeline.step(to: block.pts, isDiscontinuity: block.isDiscontinuity) {
        case .follows: break
        case .gap(let missing): try bridge(missing, encoder, output)
        case .overlap(let surplus):
            skipped = min(surplus, Int64(block.sampleCount))
            reportOverlap(skipped)
        }
        if isFirst, let tick = timeline.next { times.begin(sample: 0, at: tick) }
        let count = Int64(block.sampleCount) - skipped
        guard count > 0 else { return output.drop(.byStage) }
        timeline.advance(count)
        lastCapture = block.capturedAt
        if !pending.add(end: encoder.sent + Int64(encoder.filled) + count, capturedAt: block.capturedAt) {
            output.absorb()
        }
        var first = Int(skipped)
        while first < block.sampleCount {
            first += try block.withSamples { try encoder.add($0, from: first) }
            try sendIfFull(encoder, output)
        }
    }

    /// [stage thread] Encodes what is left, which may be less than a frame.
    func drain(_ output: Output) throws {
        guard let encoder, encoder.sent > 0 || encoder.filled > 0 else { return }
        if encoder.filled > 0 { try encoder.send() }
        try emitPackets(encoder, output)
        try encoder.end()
        try emitPackets(encoder, output)
        for _ in 0..<pending.finish(upTo: .max) { output.absorb() }
    }

    /// [stage thread] Closes the encoder, and reports what was not reported.
    func stop() {
        encoder = nil
        if let samples = gaps.rest() { tellGap(samples, isFilled: true) }
        if let samples = jumps.rest() { tellGap(samples, isFilled: false) }
        if let samples = overlaps.rest() { tellOverlap(samples) }
    }

    private func sendIfFull(_ encoder: AudioEncoderHandle, _ output: Output) throws {
        guard encoder.isFull else { return }
        try encoder.send()
        try emitPackets(encoder, output)
    }

    private func emitPackets(_ encoder: AudioEncoderHandle, _ output: Output) throws {
        while let packet = try encoder.receive() {
            let capturedAt = pending.oldestCapture ?? lastCapture
            let finished = pending.finish(upTo: packet.number + packet.count)
            // A packet that has only priming has times that the replaced encoder's last packets have too, and is
            // not heard.
            if context.repeatsParameterSets, packet.number + packet.count <= 0 { continue }
            let (pts, duration, isJump) = times.take(packet.number, count: packet.count)
            var unit = try output.makeAccessUnit(byteCount: packet.bytes.count)
            unit.withMutableBytes { $0.copyMemory(from: packet.bytes) }
            unit.pts = pts
            unit.dts = pts
            unit.duration = duration
            unit.isKeyframe = true
            unit.isDiscontinuity = isJump
            unit.capturedAt = capturedAt
            unit.sequenceNumber = packetCount
            packetCount += 1
            for _ in 0..<finished { output.absorb() }
            try output.emit(unit, as: .made)
        }
    }

    // MARK: Gaps

    /// Fills a gap with silence. After a long one the times jump: the current frame is filled up, and a frame of
    /// silence comes before the new sound, since a decoder mixes the end of a frame with the next one.
    private func bridge(_ missing: Int64, _ encoder: AudioEncoderHandle, _ output: Output) throws {
        let frame = Int64(encoder.frameSamples)
        let isFilled = Double(missing) <= max(options.maxGapSeconds * Double(sampleRate), Double(2 * frame))
        report(missing, isFilled: isFilled)
        guard !isFilled else { return try fill(missing, encoder, output) }
        if encoder.filled > 0 { try fill(frame - Int64(encoder.filled), encoder, output, isCounted: false) }
        timeline.advance(missing)
        times.begin(sample: encoder.sent, at: timeline.next! - frame)
        try fill(frame, encoder, output, isCounted: false)
    }

    private func fill(
        _ count: Int64, _ encoder: AudioEncoderHandle, _ output: Output, isCounted: Bool = true
    ) throws {
        var left = count
        while left > 0 {
            left -= try encoder.addSilence(left)
            try sendIfFull(encoder, output)
        }
        if isCounted { timeline.advance(count) }
    }

    private func report(_ missing: Int64, isFilled: Bool) {
        let now = context.clock.now()
        guard let samples = isFilled ? gaps.add(missing, at: now) : jumps.add(missing, at: now) else { return }
        tellGap(samples, isFilled: isFilled)
    }

    private func tellGap(_ samples: Int64, isFilled: Bool) {
        let milliseconds = milliseconds(samples)
        context.post(
            "sound-gap", level: .warning,
            text: isFilled
                ? "\(Self.amount(milliseconds)) is missing and replaced by silence."
                : "\(Self.amount(milliseconds)) is missing and not replaced by silence, since it is more than 'maxGapSeconds': the times jump. To fill such gaps, raise 'maxGapSeconds'.",
            details: ["milliseconds": .number(milliseconds), "isFilled": .bool(isFilled)])
    }

    private func reportOverlap(_ surplus: Int64) {
        guard let samples = overlaps.add(surplus, at: context.clock.now()) else { return }
        tellOverlap(samples)
    }

    private func tellOverlap(_ samples: Int64) {
        let milliseconds = milliseconds(samples)
        context.post(
            "sound-overlap", level: .warning,
            text: "\(Self.amount(milliseconds)) overlaps earlier sound, and is left out.",
            details: ["milliseconds": .number(milliseconds)])
    }

    /// `20 ms of sound`
    private static func amount(_ milliseconds: Int64) -> String {
        milliseconds > 0 ? "\(milliseconds) ms of sound" : "Less than 1 ms of sound"
    }

    private func milliseconds(_ samples: Int64) -> Int64 {
        (samples * 1000 + Int64(sampleRate) / 2) / Int64(sampleRate)
    }
}
