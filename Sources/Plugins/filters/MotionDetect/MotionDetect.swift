// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Tells when something moves in the picture, and where.
///
/// Everything happens within the call, on a small picture of luma (docs/design/048-motion-detect.md).
final class MotionDetect: Filter {
    static let info = StageInfo(
        id: "motion-detect", summary: "Tells when something moves in the picture, and where.",
        input: .anyVideo, output: .sameAsInput, access: .modify, metadata: [MotionAreas.self], events: events)

    var options: MotionDetectOptions
    private let context: StageContext
    private var look: MotionLook?
    private var watch = MotionWatch()
    private var slot: MetadataSlot<MotionAreas>?
    let shown = Locked(MotionFigures())

    /// [control thread] Opens nothing.
    init(options: MotionDetectOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    /// Only reads, unless it draws.
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.access = options.draw ? .modify : .read
        demand.warmUp = WarmUp(frames: 0, time: MediaTime(seconds: Self.warmUpSeconds + options.learnSeconds))
        return demand
    }

    /// A part of a clip knows the scene as a whole run does.
    private static let warmUpSeconds = 30.0

    /// [control thread] Takes the memory.
    func negotiate(_ format: VideoFormat) {
        fit(format, .up)
        guard look == nil else { return }
        context.note("finds no motion in pictures with a side of less than 16 pixels", isWarning: true)
    }

    /// [setup thread]
    func start() {
        slot = context.slot(for: MotionAreas.self)
        context.showFigures { [shown, clock = context.clock] in shown.withLock { $0 }.json(at: clock.now()) }
    }

    /// [stage thread] Looks at the picture. Allocates only for an event, and when size or orientation change.
    func process(_ frame: inout Frame) -> Verdict {
        fit(frame.format, frame.orientation)
        let time = frame.pts.nanoseconds
        let patience = Int64(options.endSeconds * 1e9)
        look?.take(frame, time: time)
        // Nothing moves in pictures that are too small: what moved before ends after its patience.
        if let change = watch.take(size: look?.largestShare ?? 0, time: time, patience: patience) {
            post(change, at: time)
        }
        shown.withLock { $0.take(look, watch, time: time, now: context.clock.now(), patience: patience) }
        guard let look else { return .forward }
        let areas = look.areas(isMotion: watch.isMotion)
        if let slot { frame[slot] = areas }
        if options.draw { look.draw(areas, on: &frame) }
        return .forward
    }

    /// Pictures of another size, format or orientation begin everything anew. Allocates nothing for those that are too
    /// small.
    private func fit(_ format: VideoFormat, _ orientation: Orientation) {
        guard look?.fits(format, orientation) != true else { return }
        look = CellGrid(pictureWidth: format.width, pictureHeight: format.height).map {
            MotionLook($0, format, orientation, options)
        }
    }

    /// [stage thread] The new values hold from the next frame on.
    func optionsChanged() { look?.change(options) }

    /// [stage thread] Says that the motion has ended, if one is under way.
    func stop() {
        shown.withLock { $0.end() }
        if let change = watch.end() { post(change, at: 0) }
    }

    /// - Parameter time: Of the picture with which it began, nanoseconds.
    private func post(_ change: MotionWatch.Change, at time: Int64) {
        func percent(_ share: Float) -> Double { (Double(share) * 10_000).rounded() / 100 }
        switch change {
        case .began:
            let areas = look?.fractions ?? []
            let size = percent(look?.largestShare ?? 0)
            let since = Double(max(time - (look?.detector.movesSince ?? time), 0)) / 1e9
            context.post(
                "motion-began",
                text:
                    "Something moves\(areas.count > 1 ? " in \(areas.count) places" : ""), \(size.optionJSON.text()) % of the picture.",
                details: [
                    "areas": .array(areas), "size": .number(size), "since": .number((since * 100).rounded() / 100),
                ])
        case .ended(let duration, let size):
            let seconds = (Double(duration) / 1e7).rounded() / 100
            context.post(
                "motion-ended", text: "Nothing moves any more, after \(seconds.optionJSON.text()) s of motion.",
                details: ["seconds": .number(seconds), "size": .number(percent(size))])
        }
    }
}
