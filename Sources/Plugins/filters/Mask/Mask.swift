// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Covers areas of the picture with a colour, blur or mosaic, in place.
///
/// The areas are fractions of the upright picture. Which pixels they are is worked out when the areas, the size or the
/// way the frames lie change, before that frame goes on (docs/design/047-originals.md).
final class Mask: Filter {
    static let info = StageInfo(
        id: "mask", summary: "Covers areas of the picture with a colour, blur or mosaic.",
        input: .video(.i420, .nv12, .yuyv, .bgra, .rgb24, .gray8, .i010, .p010), output: .sameAsInput,
        access: .modify, events: events)

    var options: MaskOptions
    private let context: StageContext
    private let file: AreasFile?
    private var plan: MaskPlan?
    /// How often the plan was made.
    private(set) var planCount = 0
    /// The areas that hold, for figures.
    private let shown = Locked<[MaskArea]>([])
    private var hasRead = false
    private var hasStarted = false

    /// [control thread] Opens nothing.
    init(options: MaskOptions, context: StageContext) {
        self.options = options
        self.context = context
        file = options.areasFile.map { AreasFile($0, context) }
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.mustNotBePassed = options.privacy
        // Of areas in a file nobody knows yet whether they are those of another mask.
        if file == nil { demand.hides = "areas \(JSONNode.array(options.areas.map(\.optionJSON)).text())" }
        demand.readsFiles = context.filesRead(options.areasFile)
        demand.writesFiles = context.filesRead(options.areasFile)
        return demand
    }

    /// [control thread] Reads the areas that are kept.
    ///
    /// - Throws: ``FrameHostError`` for a file of areas that cannot be read, and with privacy where there is no area.
    func negotiate(_ format: VideoFormat) throws {
        // Once: what has changed since then may not be in the file yet.
        guard let file, let name = options.areasFile, !hasRead else { return }
        hasRead = true
        if let kept = try file.read() {
            options.areas = kept
            context.note("covers the areas of \(name), not those of 'areas'")
        }
        try context.checkWritable(name, option: "areasFile")
        guard options.privacy, options.areas.isEmpty else { return }
        throw FrameHostError(
            .invalidConfiguration, place: "areasFile",
            what: "with \"privacy\": true at least one area must be covered, and neither '\(name)' nor 'areas' has one",
            remedy: "Add an area to 'areas', and remove '\(name)' if it exists.")
    }

    /// [setup thread] Shows the areas.
    func start() {
        hasStarted = true
        shown.withLock { $0 = options.areas }
        context.showFigures { [shown] in
            ["areas": .array(shown.withLock { $0 }.map(\.optionJSON))]
        }
    }

    /// [stage thread] Covers the areas. Allocates nothing, unless the areas, the size or the way the frames lie have
    /// changed.
    func process(_ frame: inout Frame) throws -> Verdict {
        let format = frame.format
        let orientation = frame.orientation
        if plan?.fits(format, lying: orientation) != true {
            planCount += 1
            plan = MaskPlan(options.areas, on: format, lying: orientation)
        }
        guard let plan, !options.privacy || !plan.isEmpty else {
            throw FrameHostError(
                .broken, what: "there is no area to cover, which \"privacy\": true forbids",
                remedy: "Set 'areas', or restart the stage.")
        }
        frame.withCanvas { plan.cover($0) }
        return .forward
    }

    /// [stage thread] The new areas hold from the next frame on.
    func optionsChanged() throws {
        if options.privacy, options.areas.isEmpty {
            throw FrameHostError(
                .invalidConfiguration, place: "areas",
                what: "with \"privacy\": true at least one area must be covered",
                remedy: "Leave an area in 'areas', or stop the chain.")
        }
        plan = nil
        shown.withLock { $0 = options.areas }
        if hasStarted { file?.write(options.areas) }
    }

    /// [stage thread] Frees the plan.
    func stop() {
        plan = nil
        hasStarted = false
    }
}
