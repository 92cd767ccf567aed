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
    private let shown = Locked(MotionFigures())

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
        look = MotionLook(format, .up, options)
        guard look == nil else { return }
        context.note("finds no motion in pictures with a side of less than 16 pixels", isWarning: true)
    }

    /// [setup thread]
    func start() {
        slot = context.slot(for: MotionAreas.self)
        context.showFigures { [shown] in shown.withLock { $0 }.json }
    }

    /// [stage thread] Looks at the picture. Allocates only for an event, and when size or orientation change.
    func process(_ frame: inout Frame) -> Verdict {
        let (format, orientation) = (frame.format, frame.orientation)
        if let look, !look.fits(format, orientation) { self.look = MotionLook(format, orientation, options) }
        let time = frame.pts.nanoseconds
        guard let look else { return .forward }
        look.take(frame, time: time)
        let largest = look.largestShare
        if let change = watch.take(
            size: largest, time: time, patience: Int64(options.endSeconds * 1e9))
        {
            post(change, look)
        }
        let areas = look.areas(isMotion: watch.isMotion)
        if let slot { frame[slot] = areas }
        if options.draw { look.draw(areas, on: &frame) }
        shown.withLock { $0.take(look, watch, largest: largest, time: time) }
        return .forward
    }

    /// [stage thread] The new values hold from the next frame on.
    func optionsChanged() { look?.change(options) }

    /// [stage thread] Says that the motion has ended, if one is under way.
    func stop() {
        if let change = watch.end(), let look { post(change, look) }
    }

    private func post(_ change: MotionWatch.Change, _ look: MotionLook) {
        func percent(_ share: Float) -> Double { (Double(share) * 10_000).rounded() / 100 }
        switch change {
        case .began:
            let areas = look.fractions
            let size = percent(look.largestShare)
            context.post(
                "motion-began",
                text:
                    "Something moves\(areas.count > 1 ? " in \(areas.count) places" : ""), \(size.optionJSON.text()) % of the picture.",
                details: ["areas": .array(areas), "size": .number(size)])
        case .ended(let duration, let size):
            let seconds = (Double(duration) / 1e7).rounded() / 100
            context.post(
                "motion-ended", text: "Nothing moves any more, after \(seconds.optionJSON.text()) s of motion.",
                details: ["seconds": .number(seconds), "size": .number(percent(size))])
        }
    }
}
