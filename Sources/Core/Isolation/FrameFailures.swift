// SPDX-License-Identifier: Apache-2.0

/// Counts the frames that went by an isolated stage: those that it could not process though its process lives (an
/// exception in Python), and those that found no process. A value, without a clock.
struct FrameFailures {
    private var frames = 0
    /// Frames that went on as they came, were covered or dropped.
    private var letBy = 0
    private var failed = 0
    /// Those that no event has told of.
    private var untold = 0
    private var toldAt: Int64?
    private var last: FrameHostError?

    /// Ten seconds, in nanoseconds.
    private static let pause: Int64 = 10_000_000_000

    /// The stage has processed a frame.
    mutating func noteDone() { frames += 1 }

    /// A frame goes by the stage.
    mutating func noteLetBy() {
        frames += 1
        letBy += 1
    }

    /// The stage could not process a frame.
    ///
    /// - Returns: The event to post; nil if one was posted in the last ten seconds.
    mutating func count(_ fault: FrameHostError, now: Int64) -> (text: String, details: JSONNode)? {
        failed += 1
        untold += 1
        last = fault
        if let toldAt, now - toldAt < Self.pause { return nil }
        defer { (toldAt, untold) = (now, 0) }
        let count = untold == 1 ? "A frame" : "\(untold) frames"
        return (
            "\(count) could not be processed: \(fault.what).\(fault.cause.isEmpty ? "" : "\n\(fault.cause)")",
            ["frames": .number(untold), "reason": .string(fault.what), "cause": .string(fault.cause)]
        )
    }

    /// What the run ends with; nil if all is as it should be. In a live chain that is also where a process ended and
    /// another one took over: frames that came meanwhile could not wait.
    func summary(isLive: Bool) -> FrameHostError? {
        if failed > 0, let last {
            return FrameHostError(
                .broken, what: "\(failed) of \(frames) frames could not be processed; the last: \(last.what)",
                remedy: "Correct the stage: the event 'frame-failed' has the whole text.", cause: last.cause)
        }
        guard letBy > 0, !isLive else { return nil }
        return FrameHostError(
            .broken, what: "\(letBy) of \(frames) frames were not processed, since its process ended",
            remedy: "Correct the stage: the event 'stage-lost' has its last words.")
    }
}
