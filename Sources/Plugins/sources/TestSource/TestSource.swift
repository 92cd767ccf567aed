// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Gives test pictures: as fast as they are taken, or live at their rate.
///
/// Not live, frame `k` has the PTS `k / rate` exactly. Live, PTS, ``Frame/capturedAt`` and the strip are one reading of
/// the chain clock, taken when the picture is painted and just before it is handed on.
final class TestSource: Source {
    static let info = StageInfo(
        id: "test-source",
        summary:
            "Gives test pictures: colour bars, gradients, bouncing balls. Runs live, or as fast as the chain takes them.",
        output: .anyVideo,
        events: [
            EventDeclaration(
                "late",
                "The source left out some pictures: the machine or the chain is too slow, or the program was stopped for a while.",
                [.number("missed", "How many since the last event of this name.")])
        ], realTime: StageInfo.RealTime(with: "live", .bool(true)))

    var options: TestSourceOptions
    private let context: StageContext
    private let format: VideoFormat
    private let period: MediaTime

    private var background: Background?
    /// What a flash shows in place of the background; nil for another pattern.
    private var flash: (light: Background, watch: FlashWatch)?
    private let moving: MovingParts
    private let number: SequenceNumber
    private let strip: TimestampStrip
    /// Frames made or lost so far; the next one's sequence number.
    private var count = 0
    /// Live: the due time of frame `slot` is `origin + slot / rate`, so that no rounding adds up.
    private var origin: Int64?
    /// The end of the last pause for which the pace was adjusted.
    private var lastResume: Int64 = 0
    private var slot: Int64 = 0
    private var late = LateReport()

    /// [control thread] Opens nothing.
    init(options: TestSourceOptions, context: StageContext) {
        self.options = options
        self.context = context
        format = Self.format(options)
        period = Self.tick(options.rate).time(ofTicks: 1)
        moving = MovingParts(options.pattern, format: format)
        number = SequenceNumber(format)
        strip = TimestampStrip(format)
    }

    /// One frame's time as a time base.
    static func tick(_ rate: FrameRate) -> TimeBase { TimeBase(rate.rational.denominator, rate.rational.numerator) }

    /// BT.709 from 720 rows on, BT.601 below, both in video range; RGB in full range. Chroma sits left, as in MPEG.
    static func format(_ options: TestSourceOptions) -> VideoFormat {
        let isRGB = options.format.isRGB
        let code = ColorDescription().assumedMatrix(height: options.size.height)
        let color = ColorDescription(
            range: isRGB ? .full : .video, matrix: isRGB ? 0 : code, primaries: isRGB ? 1 : code,
            transfer: isRGB ? 13 : code,
            chromaSiting: isRGB || options.format == .gray8 ? 0 : 1)
        return VideoFormat(
            options.format, width: options.size.width, height: options.size.height, frameRate: options.rate.rational,
            // Live times are those of the clock, not multiples of the rate.
            timeBase: options.live ? .nanoseconds : tick(options.rate), color: color, sampleAspectRatio: Rational(1))
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isLive = options.live
        demand.expectedItems = options.frames
        demand.expectedDuration = options.frames.map { Self.tick(options.rate).time(ofTicks: Int64($0)) }
        return demand
    }

    func negotiate() -> MediaFormat { .video(format) }

    /// [control thread] Renders the model rows.
    func start() {
        background = Background(options.pattern, color: options.color, format: format)
        if options.pattern == .flash {
            let white = RGBColor(red: 255, green: 255, blue: 255)
            flash = (Background(.solid, color: white, format: format), FlashWatch())
        }
        count = 0
        slot = 0
        origin = nil
    }

    /// [stage thread] Reports what was missed since the last report.
    func stop() { late.report(context) }

    /// [stage thread] One frame. Live: sleeps until it is due.
    func produce(_ output: Output) throws -> SourceProgress {
        if let frames = options.frames, count >= frames { return .ended }
        if options.live, !waitUntilDue() { return .ended }
        let index = count
        count += 1
        guard var frame = try output.makeFrame() else { return .more }
        // A live flash needs the picture's time before it is painted.
        let flashTime = flash != nil && options.live ? context.clock.now() : nil
        if options.pattern != .none {
            let pts = flashTime ?? format.timeBase.time(ofTicks: Int64(index)).nanoseconds
            let isLight = flash?.watch.isLight(at: pts, period: period.nanoseconds) == true
            frame.withMutablePicture { picture in
                (isLight ? flash!.light : background!).paint(picture)
                moving.paint(frame: index, on: picture)
                if options.number { number.paint(index, on: picture) }
            }
        }
        if options.live || options.stamp {
            let now = flashTime ?? context.clock.now()
            frame.capturedAt = now
            if options.stamp {
                let word = TimestampStrip.word(microseconds: now / 1000)
                frame.withMutablePicture { strip.draw(word, on: $0) }
            }
        }
        if options.live {
            frame.pts = MediaTime(nanoseconds: frame.capturedAt)
            frame.duration = period
            frame.isDiscontinuity = late.takeGap()
        } else {
            let tick = format.timeBase
            frame.pts = tick.time(ofTicks: Int64(index))
            frame.duration = tick.time(ofTicks: Int64(index) + 1) - frame.pts
        }
        try output.emit(frame)
        return options.frames == count ? .ended : .more
    }

    /// Sleeps until the next picture is due; false when the run ends. A wake-up that is a whole period or more too
    /// late (a stopped process, a busy machine) skips the pictures whose time is over, as a camera would: they are
    /// reported, and the next frame is marked as following a gap.
    private func waitUntilDue() -> Bool {
        let tick = Self.tick(options.rate)
        let start = origin ?? context.clock.now()
        origin = start
        if context.resumedAt > lastResume {
            lastResume = context.resumedAt
            slot = max(slot, tick.ticksPassed(lastResume - start))
        }
        let missed = tick.ticksPassed(context.clock.now() - start) - slot
        if missed > 0 {
            slot += missed
            late.add(missed, context)
        }
        guard context.sleep(until: start + tick.time(ofTicks: slot).nanoseconds) else { return false }
        slot += 1
        return true
    }
}

extension TimeBase {
    /// Whole ticks in `nanoseconds`, rounded down.
    fileprivate func ticksPassed(_ nanoseconds: Int64) -> Int64 {
        let nearest = ticks(of: MediaTime(nanoseconds: nanoseconds))
        return time(ofTicks: nearest).nanoseconds > nanoseconds ? nearest - 1 : nearest
    }
}

/// Counts pictures for which a live source was too late, and reports them at once, then at most once a minute, and at
/// the end.
private struct LateReport {
    private var missed: Int64 = 0
    private var lastReport = Int64.min / 2
    private var hasGap = false

    mutating func add(_ count: Int64, _ context: StageContext) {
        missed += count
        hasGap = true
        if context.clock.now() - lastReport >= 60_000_000_000 { report(context) }
    }

    mutating func report(_ context: StageContext) {
        guard missed > 0 else { return }
        context.post(
            "late", level: .warning,
            text:
                "This source left out \(missed == 1 ? "1 picture" : "\(missed) pictures"): the machine or the chain is too slow, or the program was stopped for a while. If this repeats, lower 'rate' or 'size'.",
            details: ["missed": .number(missed)])
        missed = 0
        lastReport = context.clock.now()
    }

    mutating func takeGap() -> Bool {
        defer { hasGap = false }
        return hasGap
    }
}
