// SPDX-License-Identifier: Apache-2.0

/// Decides how much the resampler stretches the sound, so that it stays on the chain's clock. Pure.
///
/// Every half second it sets the stretch to what the loop knows of the card's rate, plus a tenth of the remaining
/// error per second. So the pitch changes by a few millionths, and an error dies away in half a minute.
struct DriftControl {
    enum Decision: Equatable {
        case unchanged
        /// `frames` more (or fewer) in the next `distance` frames of output: `swr_set_compensation`.
        case stretch(frames: Int, distance: Int)
        /// The sound is too far from its place to be moved there unheard.
        case jump
    }

    /// From one decision to the next, seconds.
    private static let pause = 0.5
    /// The time in which an error is taken back, seconds.
    private static let settling = 10.0
    /// Seconds over which libswresample spreads a correction. So its smallest step is 2 ppm at 48 kHz.
    private static let spread = 10
    /// The most by which the pitch changes: with a crystal of 250 ppm, the sum is below a thousandth.
    private static let mostStretch = 0.0007
    /// An error beyond this is a gap, which stretching does not close, seconds.
    static let farthest = 0.05

    /// Of the output, frames per second.
    let rate: Double
    private let wholeRate: Int
    private var since = 0

    init(rate: Int) {
        self.rate = Double(rate)
        wholeRate = rate
    }

    /// Starts again: the next decision is made at once.
    mutating func restart() { since = wholeRate }

    /// - Parameters:
    ///   - frames: Frames of output since the call before.
    ///   - place: Where on the output the next frame of the card belongs, in frames.
    ///   - reached: Where it would come if nothing were changed: the frames given and those in the resampler.
    ///   - deviation: ``DelayLockedLoop/deviation``.
    mutating func decide(after frames: Int, place: Double, reached: Double, deviation: Double) -> Decision {
        since += frames
        guard Double(since) >= Self.pause * rate else { return .unchanged }
        since = 0
        let error = place - reached
        guard abs(error) <= Self.farthest * rate else { return .jump }
        let most = Self.mostStretch * rate
        let perSecond = min(max(deviation * rate + error / Self.settling, -most), most)
        return .stretch(
            frames: Int((perSecond * Double(Self.spread)).rounded()), distance: Self.spread * wholeRate)
    }
}
