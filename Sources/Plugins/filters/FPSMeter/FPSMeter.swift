// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

struct FPSMeterOptions: StageOptions {
    @Option(
        help:
            "Draws the figures into the lower left corner. This changes the picture, so it is copied first if other stages use it."
    )
    var draw = false
}

/// Measures what passes: rate by PTS and by arrival, jitter, time since capture.
///
/// Frames are passed on unchanged, unless `draw` is on. Once a second the event `fps` has the figures.
final class FPSMeter: Filter {
    static let info = StageInfo(
        id: "fps-meter", summary: "Measures frame rate, jitter and latency. Can draw them into the picture.",
        input: .anyVideo, output: .sameAsInput, access: .modify, events: events)

    var options: FPSMeterOptions
    private let context: StageContext

    private var byPTS = RateWindow()
    private var byArrival = RateWindow()
    private var jitter = Jitter()
    private var latency = Mean()
    private var nextReport: Int64?
    private var label: FigureLabel?

    /// [control thread] Opens nothing.
    init(options: FPSMeterOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    /// Only reads, unless it draws.
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.access = options.draw ? .modify : .read
        return demand
    }

    /// [control thread]
    func negotiate(_ format: VideoFormat) { label = options.draw ? FigureLabel(format) : nil }

    /// [stage thread] Counts. Once a second it makes the texts; otherwise it does not allocate.
    func process(_ frame: inout Frame) -> Verdict {
        let now = context.clock.now()
        if frame.isDiscontinuity { jitter.restart() }
        let pts = frame.pts.nanoseconds
        byPTS.add(pts)
        byArrival.add(now)
        jitter.add(arrival: now, pts: pts)
        latency.add(Double(now - frame.capturedAt))
        if let nextReport {
            if now >= nextReport { report(now) }
        } else {
            nextReport = now + Self.reportInterval
        }
        if let label { frame.withMutablePicture { label.draw(on: $0) } }
        return .forward
    }

    private static let reportInterval: Int64 = 1_000_000_000

    private func report(_ now: Int64) {
        nextReport = now + Self.reportInterval
        let figures = Figures(
            fpsByPTS: byPTS.rate ?? 0, fpsByArrival: byArrival.rate ?? 0, jitterMs: jitter.nanoseconds / 1e6,
            latencyMs: latency.value / 1e6)
        latency = Mean()
        label?.set(figures)
        context.post("fps", text: figures.text, details: figures.details)
    }
}

/// The mean of the added values; 0 before the first.
private struct Mean {
    private var sum = 0.0
    private var count = 0.0
    var value: Double { count == 0 ? 0 : sum / count }

    mutating func add(_ value: Double) {
        sum += value
        count += 1
    }
}
