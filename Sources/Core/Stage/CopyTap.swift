// SPDX-License-Identifier: Apache-2.0

/// Copies each item into buffers of its own and lets go of the original, before any other stage behind the fork gets
/// it.
///
/// The planner puts one at the head of a branch whose link says `"copy": true`. It runs on the thread of the stage
/// before it, which serves taps first. The branch behind it therefore takes and shares none of that stage's buffers,
/// and makes no writer beside it copy. docs/design/009-running-graph.md.
final class CopyTap: Transform {
    static let info = StageInfo(
        id: "copy-tap", summary: "Copies the items of a branch into buffers of its own.", input: .any,
        output: .any)
    /// The only instance of this type, so that a plan recognizes a running tap.
    static let type = StageType(CopyTap.self)

    var options: NoOptions
    private let context: StageContext
    /// A unit was left out, so the units up to the next keyframe cannot be decoded.
    private var awaitsKeyframe = false

    /// [control thread] Opens nothing.
    init(options: NoOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    /// [control thread]
    func negotiate(_ input: MediaFormat) throws -> MediaFormat { input }

    /// [stage thread] Allocates nothing; waits for a free buffer, except on a live source's thread, where the item is
    /// dropped for want of one.
    func process(_ input: consuming Sample, _ output: Output) throws {
        switch consume input {
        case .frame(let frame):
            guard let copy = try output.makeCopy(of: frame) else { return output.drop(.noBuffer) }
            // The fork gets its buffer back before the copy may have to wait for a place.
            _ = consume frame
            try output.emit(copy)
        case .accessUnit(let unit):
            if awaitsKeyframe, !unit.isKeyframe { return output.drop(.untilKeyframe) }
            guard let copy = try output.makeCopy(of: unit) else {
                awaitsKeyframe = true
                context.keyframeRequest?.raise()
                return output.drop(.noBuffer)
            }
            awaitsKeyframe = false
            _ = consume unit
            try output.emit(copy)
        case .audioBlock(let block):
            guard let copy = try output.makeCopy(of: block) else { return output.drop(.noBuffer) }
            _ = consume block
            try output.emit(copy)
        case .motionBlock(let block):
            guard let copy = try output.makeCopy(of: block) else { return output.drop(.noBuffer) }
            _ = consume block
            try output.emit(copy)
        }
    }
}
