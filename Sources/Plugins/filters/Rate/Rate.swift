// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Reports

/// Gives the frames that come at a constant rate: repeats some, drops some, copies none.
///
/// A frame takes the place of the new rate that is nearest to its time (``FrameGrid``). Places without a frame of
/// their own repeat the one before; surplus frames are dropped. In a pausable chain the later of two frames for one
/// place wins, as in ffmpeg's `fps` filter, so a frame is given when the next one has come (`delay` 1). In a live
/// chain nothing waits: a frame is given at once, the first one for a place wins, and repeats are made when the frame
/// after the gap has come.
final class Rate: Transform {
    static let info = StageInfo(
        id: "rate", summary: "Gives frames at a constant rate. Repeats and drops frames as needed.", input: .anyVideo,
        output: .sameAsInput, hold: 1,
        delay: 1, events: events)

    var options: RateOptions
    private let context: StageContext
    private let rate: Rational
    private var inputRate = Rational(0)
    /// Set from the first frame on.
    private var grid: FrameGrid?
    /// Pausable: the frame that was accepted and not answered yet. Live: another lease of the last frame that was
    /// given, for repeats.
    private var kept: Frame?
    /// The next place to fill; in a pausable chain the place of `kept`.
    private var next: Int64 = 0
    private var figures = RateFigures()
    private var reported = Reported()
    private var isFollowingGap = false
    private var hasStopped = false

    /// The longest gap that is filled by default, seconds. Otherwise one wrong time stamp of a file would fill the disk
    /// with repeats.
    static let longestGap = 3600.0

    /// [control thread] Opens nothing.
    init(options: RateOptions, context: StageContext) {
        self.options = options
        self.context = context
        rate = options.rate?.rational ?? Rational(1)
    }

    private var isLive: Bool { context.isLiveChain }

    /// A live chain delays nothing, and keeps nothing without repeats.
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.hold = isLive && !options.repeats ? 0 : 1
        demand.delay = isLive ? 0 : 1
        if inputRate.isZero {
            demand.warmUp = .never("does not know the frame rate of its input")
        } else {
            // All frames for one place, and the one before, which is repeated.
            let forOne = Int((inputRate.value / rate.value).rounded(.up)) + 1
            demand.warmUp = WarmUp(frames: forOne + 1, time: MediaTime(seconds: 1 / rate.value))
            demand.lookAhead = forOne
        }
        return demand
    }

    var held: Int { !isLive && kept != nil ? 1 : 0 }

    /// [control thread]
    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        guard var video = input.video else { throw FrameHostError(.broken, what: "rate was handed access units") }
        inputRate = video.frameRate
        video.frameRate = rate
        // Live times start wherever the clock is, not at a multiple of the period.
        video.timeBase = isLive ? .nanoseconds : TimeBase(rate.denominator, rate.numerator)
        return .video(video)
    }

    /// [stage thread] One frame in; none, one or several out. Allocates nothing.
    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame(let frame) = consume input else {
            throw FrameHostError(.broken, what: "rate was handed access units")
        }
        figures.taken += 1
        let grid = grid ?? (isLive ? .live(rate, first: frame.pts, input: inputRate) : FrameGrid(rate))
        if self.grid == nil { next = grid.place(of: frame.pts) }
        self.grid = grid
        let place = grid.place(of: frame.pts)
        if isLive {
            try giveAtOnce(frame, at: place, on: grid, output)
        } else {
            try giveLater(frame, at: place, on: grid, output)
        }
    }

    // MARK: Pausable chains

    /// Keeps `frame` and gives the one kept before, once for each place up to this one.
    private func giveLater(_ frame: consuming Frame, at place: Int64, on grid: FrameGrid, _ output: Output) throws {
        if let old = kept.take() {
            if place > next {
                try give(old, upTo: fills(next + 1, place, on: grid) ? place : next + 1, on: grid, output)
                leaveGap(upTo: place, on: grid)
            } else {
                isFollowingGap = isFollowingGap || old.isDiscontinuity
                drop(output)
            }
        }
        kept = consume frame
    }

    /// Gives `frame` at all places from `next` up to `end`, at least at one.
    private func give(_ frame: consuming Frame, upTo end: Int64, on grid: FrameGrid, _ output: Output) throws {
        var origin = Output.Origin.answer
        while next < end - 1 {
            try emit(frame.share(), origin, on: grid, output)
            origin = .made
        }
        try emit(frame, origin, on: grid, output)
    }

    // MARK: Live chains

    /// Gives `frame`, after a repeat of the one before for each place up to it.
    private func giveAtOnce(_ frame: consuming Frame, at place: Int64, on grid: FrameGrid, _ output: Output) throws {
        guard place >= next else {
            isFollowingGap = isFollowingGap || frame.isDiscontinuity
            return drop(output)
        }
        try repeatKept(upTo: place, on: grid, output)
        leaveGap(upTo: place, on: grid)
        if options.repeats { kept = frame.share() }
        try emit(frame, .answer, on: grid, output)
    }

    /// Gives the kept frame at all places before `end` that may be filled, and releases it.
    private func repeatKept(upTo end: Int64, on grid: FrameGrid, _ output: Output) throws {
        guard let frame = kept.take(), fills(next, end, on: grid) else { return }
        frame.isDiscontinuity = false
        while next < end { try emit(frame.share(), .made, on: grid, output) }
    }

    // MARK: Both

    /// [stage thread] The last frame gets the places that its duration covers, and at least one where it is the only
    /// frame.
    func drain(_ output: Output) throws {
        guard let grid, let last = kept.take() else { return }
        let end = last.duration > .zero ? grid.place(of: last.pts + last.duration) : next + 1
        if isLive {
            kept = consume last
            return try repeatKept(upTo: end, on: grid, output)
        }
        guard end > next || figures.given == 0 else { return drop(output) }
        try give(last, upTo: fills(next + 1, end, on: grid) ? end : next + 1, on: grid, output)
    }

    /// Whether the places from `start` up to `end` are filled by repeats.
    private func fills(_ start: Int64, _ end: Int64, on grid: FrameGrid) -> Bool {
        options.repeats && (grid.time(of: end) - grid.time(of: start)).seconds <= longestFilled
    }

    /// The longest gap that is filled, seconds.
    private var longestFilled: Double { options.maxGapSeconds ?? (isLive ? 2 : Self.longestGap) }

    /// Goes on at `place`. The gap before it was too long to be filled. Gaps are counted, and reported at most once a
    /// second.
    private func leaveGap(upTo place: Int64, on grid: FrameGrid) {
        defer { next = place }
        guard place > next, options.repeats else { return }
        figures.gaps += 1
        isFollowingGap = true
        guard reported.isDue("gap", now: context.clock.now(), every: 1_000_000_000) else { return }
        let seconds = decimal((grid.time(of: place) - grid.time(of: next)).seconds)
        context.post(
            "gap", level: .warning,
            text:
                "A gap of \(seconds) s between frames is not filled with repeats, because it is longer than 'maxGapSeconds' (\(longestFilled.optionJSON.text()) s). To fill such gaps, set a higher 'maxGapSeconds' in the chain file.",
            details: ["seconds": JSONNode(.number(seconds))])
    }

    /// Gives `frame` the time of the place `next`, and hands it on.
    private func emit(_ frame: consuming Frame, _ origin: Output.Origin, on grid: FrameGrid, _ output: Output) throws {
        frame.pts = grid.time(of: next)
        frame.duration = grid.duration(of: next)
        if origin == .answer {
            frame.isDiscontinuity = frame.isDiscontinuity || isFollowingGap
            isFollowingGap = false
        } else {
            frame.isDiscontinuity = false
            figures.repeats += 1
        }
        figures.given += 1
        next += 1
        try output.emit(frame, as: origin)
    }

    private func drop(_ output: Output) {
        figures.drops += 1
        output.drop(.byStage)
    }

    /// [stage thread] Reports how many frames were repeated and dropped.
    func stop() {
        kept = nil
        guard !hasStopped else { return }
        hasStopped = true
        context.post("rate", text: figures.text, details: figures.details)
    }
}

/// The value with three decimal places.
private func decimal(_ value: Double) -> String {
    let thousandths = Int64((value * 1000).rounded())
    let places = String(thousandths % 1000)
    return "\(thousandths / 1000).\(String(repeating: "0", count: 3 - places.count))\(places)"
}
