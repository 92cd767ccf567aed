// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Options of ``AudioShift``.
struct AudioShiftOptions: StageOptions {
    @Option(
        help:
            "How much later the sound is heard, from -600s to 600s: \"120ms\", \"1.5s\". Less than 0 is earlier: \"-120ms\".",
        live: true)
    var shift = SoundShift(time: .zero)
}

/// Moves sound against the pictures of its chain. Only times change; samples and packets stay as they are.
///
/// It gives copies in memory of its own, so that the planner knows that its output does not come at the time of the
/// pictures that came with its input (docs/design/033-kinds-of-sample.md).
final class AudioShift: Transform {
    static let info = StageInfo(
        id: "audio-shift", summary: "Moves sound, encoded or not, to a later or earlier time.",
        input: .several([.audio, .encoded(.aac, .opus)]), output: .sameAsInput)

    /// What the queues of a live chain can hold, and how long they wait for sound.
    static let liveRange = MediaTime(nanoseconds: -1_000_000_000)...MediaTime(nanoseconds: 5_000_000_000)

    /// A file's pictures begin at 0, and nothing before is heard, but a decoder may need some of it.
    private static let earliest = MediaTime(nanoseconds: -500_000_000)

    var options: AudioShiftOptions
    private let context: StageContext
    private var slabBytes = 1 << 20
    /// The present shift.
    private var shift: MediaTime
    /// Where the sound ends that was given before a change: nothing before it is given any more. Nil once the sound has
    /// got there.
    private var due: MediaTime?
    private var end: MediaTime?

    /// [control thread] Opens nothing.
    init(options: AudioShiftOptions, context: StageContext) {
        self.options = options
        self.context = context
        shift = options.shift.time
    }

    /// [control thread]
    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        guard input.audio != nil || input.encoded?.audio != nil else {
            throw FrameHostError(.broken, what: "audio-shift needs sound, but got \(input)")
        }
        if let format = input.audio { slabBytes = audioSlabBytes(format) }
        try checkRange()
        return input
    }

    private func checkRange() throws {
        guard context.isLiveChain, !Self.liveRange.contains(options.shift.time) else { return }
        throw FrameHostError(
            .invalidConfiguration, place: "shift",
            what:
                "\(options.shift) must be from -1s to 5s in a live chain: pictures wait at most 1 s for earlier sound, and queues keep later sound for some seconds only",
            remedy: "Use a time in this range.")
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.outputBuffers = .own
        demand.slabBytes = slabBytes
        return demand
    }

    /// [stage thread] Takes effect with the next block or packet.
    func optionsChanged() throws {
        try checkRange()
        guard options.shift.time != shift else { return }
        shift = options.shift.time
        due = end
    }

    /// [stage thread] One block or packet in, the same one out at another time.
    func process(_ input: consuming Sample, _ output: Output) throws {
        switch consume input {
        case .audioBlock(let block):
            guard let isAfterChange = place(block.pts, block.duration) else { return output.drop(.byStage) }
            var result = try output.makeAudioBlock(sampleCount: block.sampleCount)
            block.withSamples { samples in
                result.withMutableSamples { _ = $0.update(fromContentsOf: samples) }
            }
            result.copyProperties(from: block)
            result.pts = block.pts + shift
            if isAfterChange { result.isDiscontinuity = true }
            try output.emit(result)
        case .accessUnit(let unit):
            guard let isAfterChange = place(unit.pts, unit.duration) else { return output.drop(.byStage) }
            var result = try output.makeAccessUnit(byteCount: unit.byteCount)
            unit.withBytes { bytes in result.withMutableBytes { $0.copyMemory(from: bytes) } }
            result.pts = unit.pts + shift
            result.dts = unit.dts + shift
            result.duration = unit.duration
            result.capturedAt = unit.capturedAt
            result.sequenceNumber = unit.sequenceNumber
            result.entry = unit.entry
            result.isDiscontinuity = unit.isDiscontinuity || isAfterChange
            try output.emit(result)
        default: throw FrameHostError(.broken, what: "audio-shift was handed something other than sound")
        }
    }

    /// Whether the sound at `pts` is the first after a change; nil where sound of its new time has been given already, and
    /// for a file's sound that comes to lie before its pictures.
    private func place(_ pts: MediaTime, _ duration: MediaTime) -> Bool? {
        let pts = pts + shift
        let isAfterChange = due != nil
        // A microsecond for times that were rounded.
        if let due, pts + MediaTime(nanoseconds: 1000) < due { return nil }
        if !context.isLiveChain, pts + duration < Self.earliest { return nil }
        due = nil
        end = pts + duration
        return isAfterChange
    }
}
