// SPDX-License-Identifier: Apache-2.0

/// Hands on the frames of a part, and drops those that stages needed before and after it.
///
/// The planner puts one before each sink and encoder of a chain that makes a part of its timeline.
final class PartGate: Filter {
    static let info = StageInfo(
        id: "part-gate", summary: "Drops frames outside of a part of the timeline.", input: .anyVideo,
        output: .sameAsInput)
    static let type = StageType(PartGate.self)

    var options: NoOptions
    private let context: StageContext
    private var begin = MediaTime(nanoseconds: MediaTime.range.lowerBound)
    private var end: MediaTime?

    /// [control thread] Opens nothing.
    init(options: NoOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    /// [setup thread]
    func start() throws {
        guard let part = context.part else { return }
        (begin, end) = (part.begin, part.end)
    }

    /// [stage thread] Reads only the PTS.
    func process(_ frame: inout Frame) -> Verdict {
        frame.pts >= begin && end.map { frame.pts < $0 } != false ? .forward : .drop(.byStage)
    }
}
