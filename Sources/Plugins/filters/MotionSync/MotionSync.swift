// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Gives each picture the motion of the camera at its time, as ``Motion``.
///
/// Values between two samples are interpolated: rates and accelerations on a straight line, attitudes at constant
/// angular rate. docs/design/035-motion.md.
final class MotionSync: MultiFilter {
    static let info = StageInfo(
        id: "motion-sync", summary: "Gives each picture the camera's motion at its time.", input: .anyVideo,
        furtherInputs: .motion, output: .sameAsInput, metadata: [Motion.self], events: events)

    /// How long samples are kept, in seconds: two, plus ten by which 'offsetMs' can move a picture back, which may
    /// change while the chain runs, plus eight that a queue of motion can hold and that are taken before their turn.
    private static let secondsKept = 2.0 + 10 + 8
    private static let leastGap: Int64 = 50_000_000

    var options: MotionSyncOptions
    private let context: StageContext
    private var slot: MetadataSlot<Motion>?
    private var format: MotionFormat?
    private var ring = MotionRing(capacity: 2, rate: 0)
    private let figures = MatchFigures()
    /// Since when pictures have had no motion, their PTS; nil while they have.
    private var missingSince: MediaTime?
    private var pictures = 0
    /// PTS of the picture that the event `motion` was last about.
    private var reportedAt: MediaTime?
    /// What is added to a picture's time to find its motion. Negative offsets make a picture wait for later motion.
    private var shift = MediaTime.zero
    private var mostApart: Int64?

    /// [control thread] Opens nothing.
    init(options: MotionSyncOptions, context: StageContext) {
        self.options = options
        self.context = context
        readOptions()
    }

    /// Asks for the memory of the ring.
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.ownBytes = ringCapacity * MemoryLayout<MotionSample>.stride
        return demand
    }

    /// [control thread]
    ///
    /// - Throws: ``FrameHostError`` without exactly one input of motion.
    func negotiate(_ format: VideoFormat, further: [MediaFormat]) throws {
        guard further.count == 1, let motion = further[0].motion else {
            throw FrameHostError(
                .invalidConfiguration, place: "from",
                what:
                    "motion-sync must have pictures and one input of motion, but has \(further.isEmpty ? "only pictures" : "\(further.count) inputs besides the pictures")",
                remedy: "Name a stage with pictures first, then one with motion, such as \"from\": [\"cam\", \"imu\"].")
        }
        self.format = motion
    }

    /// As many samples as come in ``secondsKept``; where the rate is unknown, as many as a fast sensor gives.
    private var ringCapacity: Int {
        let rate = format?.sampleRate ?? 0
        return max(Int(((rate > 0 ? rate : 1000) * Self.secondsKept).rounded(.up)), 64)
    }

    /// [control thread] Takes memory for the samples.
    func start() {
        slot = context.slot(for: Motion.self)
        ring = MotionRing(capacity: ringCapacity, rate: format?.sampleRate ?? 0)
        context.showFigures { [figures] in figures.json }
    }

    private func readOptions() {
        shift = MediaTime(seconds: (options.exposureMs / 2 - options.offsetMs) / 1000)
        mostApart = options.gapMs.map { Int64($0 * 1e6) }
    }

    /// [stage thread]
    func optionsChanged() { readOptions() }

    /// Two more samples, so that one after the picture has come even if one was lost.
    var lookAhead: MediaTime {
        max(.zero, shift + MediaTime(nanoseconds: 2 * min(ring.period, 1_000_000_000)))
    }
    var longestWait: MediaTime { MediaTime(nanoseconds: Int64(options.waitMs) * 1_000_000) }

    /// [stage thread] Keeps the samples.
    func receive(_ item: consuming Sample, from index: Int) {
        guard case .motionBlock(let block) = consume item else { return }
        for place in 0..<block.sampleCount {
            if ring.add(block[place]) { figures.add(figures.samples) } else { figures.add(figures.leftOut) }
        }
    }

    /// [stage thread] Allocates nothing but for an event.
    func process(_ frame: inout Frame) -> Verdict {
        pictures += 1
        let time = frame.pts + shift
        let most = mostApart ?? max(ring.period * 5, Self.leastGap)
        switch ring.match(at: time, mostApart: most) {
        case .between(let sample, let age): set(Motion(sample: sample, age: age, isExtrapolated: false), on: &frame)
        case .after(let sample, let age) where age <= most + longestWait.nanoseconds:
            figures.add(figures.extrapolated)
            var sample = sample
            sample.time = time
            set(Motion(sample: sample, age: age, isExtrapolated: true), on: &frame)
        case .after, .gap, .nothing: lack(frame.pts)
        }
        return .forward
    }

    private func set(_ motion: Motion, on frame: inout Frame) {
        if let slot { frame[slot] = motion }
        figures.add(figures.matched)
        figures.age.store(Int(motion.age), ordering: .relaxed)
        figures.roll.store((motion.roll ?? .nan).bitPattern, ordering: .relaxed)
        figures.pitch.store((motion.pitch ?? .nan).bitPattern, ordering: .relaxed)
        report(motion, at: frame.pts)
        guard let since = missingSince else { return }
        missingSince = nil
        let milliseconds = (frame.pts - since).nanoseconds / 1_000_000
        let without = figures.without.load(ordering: .relaxed)
        context.post(
            "motion-present", text: "Pictures have motion, after \(milliseconds) ms without.",
            details: ["missingMs": .number(Int(milliseconds)), "withoutMotion": .number(without)])
    }

    private func report(_ motion: Motion, at pts: MediaTime) {
        guard options.reportSeconds > 0 else { return }
        // A clip that is played again begins with earlier times.
        if let last = reportedAt, pts >= last, (pts - last).seconds < options.reportSeconds { return }
        reportedAt = pts
        func shown(_ angle: Double?) -> String {
            Self.known(angle).map { "\(Int(($0 * 180 / .pi).rounded()))°" } ?? "unknown"
        }
        context.post(
            "motion", text: "Roll \(shown(motion.roll)), pitch \(shown(motion.pitch)).",
            details: Self.details(of: motion))
    }

    private func lack(_ pts: MediaTime) {
        figures.add(figures.without)
        guard missingSince == nil else { return }
        missingSince = pts
        context.post(
            "motion-missing", level: .warning,
            text: "Pictures go on without motion: there are no samples near their times.",
            details: ["withoutMotion": .number(figures.without.load(ordering: .relaxed))])
    }

    /// [stage thread]
    ///
    /// - Throws: ``FrameHostError`` where no picture had motion.
    func stop() throws {
        // A run may be stopped before the first sample has come.
        guard pictures >= 10, figures.matched.load(ordering: .relaxed) == 0 else { return }
        let samples = figures.samples.load(ordering: .relaxed)
        throw FrameHostError(
            .unavailable,
            what:
                "none of \(pictures) pictures has motion: \(samples == 0 ? "no sample has come" : samples == 1 ? "the only sample does not match their times" : "none of the \(samples) samples matches their times")",
            remedy: samples == 0
                ? "Check that the source of the motion gives samples: a 'null-sink' with \"dump\": \"-\" after it prints them."
                : "Print the samples (a 'null-sink' with \"dump\": \"-\" after the source of the motion), compare their times with those of the pictures, and set 'offsetMs' to what must be added to the samples' times."
        )
    }
}
