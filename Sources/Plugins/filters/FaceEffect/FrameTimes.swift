// SPDX-License-Identifier: Apache-2.0

/// Tells gaps from the usual distance of frames: the stage may have missed what lies in one.
struct FrameTimes {
    /// A step of more than this many usual ones is a gap.
    private static let usualSteps = 2.5

    private var last: Int64?
    /// The last steps, of which the longest is usual: rates vary.
    private var steps = InlineArray<8, Int64>(repeating: 0)
    private var count = 0

    /// - Parameter frameDuration: What the format says, nanoseconds; 0 where it says nothing.
    init(frameDuration: Int64 = 0) { note(frameDuration) }

    private mutating func note(_ step: Int64) {
        guard step > 0 else { return }
        steps[count % 8] = step
        count += 1
    }

    /// Whether a gap lies before the frame of this time, in nanoseconds: it is marked as one, time steps back, or the step is
    /// far longer than those before. A time that stands still is none.
    mutating func isGap(_ time: Int64, isDiscontinuity: Bool) -> Bool {
        defer { last = time }
        guard let last else { return isDiscontinuity }
        let (step, overflows) = time.subtractingReportingOverflow(last)
        guard step >= 0, !overflows else { return true }
        defer { note(step) }
        var usual: Int64 = 0
        for index in 0..<min(count, 8) { usual = max(usual, steps[index]) }
        return isDiscontinuity || (usual > 0 && Double(step) > Self.usualSteps * Double(usual))
    }
}
