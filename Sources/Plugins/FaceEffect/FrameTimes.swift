// SPDX-License-Identifier: Apache-2.0

/// Tells gaps from the usual distance of frames: the stage may have missed what lies in one.
struct FrameTimes {
    /// A step of more than this many usual ones is a gap.
    private static let usualSteps = 2.5

    private var last: Int64?
    private var lastStep: Int64

    /// - Parameter frameDuration: What the format says, nanoseconds; 0 where it says nothing.
    init(frameDuration: Int64 = 0) { lastStep = frameDuration }

    /// Whether a gap lies before the frame of this time, in nanoseconds: it is marked as one, time steps back, or the step is
    /// far longer than the one before.
    mutating func isGap(_ time: Int64, isDiscontinuity: Bool) -> Bool {
        defer { last = time }
        guard let last else { return isDiscontinuity }
        let (step, overflows) = time.subtractingReportingOverflow(last)
        guard step > 0, !overflows else { return true }
        defer { lastStep = step }
        return isDiscontinuity || (lastStep > 0 && Double(step) > Self.usualSteps * Double(lastStep))
    }
}
