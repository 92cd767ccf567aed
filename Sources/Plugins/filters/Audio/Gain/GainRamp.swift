// SPDX-License-Identifier: Apache-2.0

/// A factor that moves linearly to a new value over some samples, so that a change makes no click.
struct GainRamp {
    private let rampSamples: Int
    private var factor: Float
    private var target: Float
    private var step: Float = 0
    /// Samples until the target is reached.
    private(set) var left = 0

    /// Begins at `factor`, without a ramp.
    init(_ factor: Float, rampSamples: Int) {
        self.factor = factor
        target = factor
        self.rampSamples = max(rampSamples, 1)
    }

    /// Moves to `factor` from the next sample on; also in the middle of another ramp.
    mutating func move(to factor: Float) {
        guard factor != target else { return }
        target = factor
        left = rampSamples
        step = (target - self.factor) / Float(rampSamples)
    }

    /// Writes `source` times the factor to `target`: interleaved samples, equally many in both. Allocates nothing.
    mutating func apply(
        _ source: UnsafeBufferPointer<Float>, to result: UnsafeMutableBufferPointer<Float>, channelCount: Int
    ) {
        var index = 0
        while left > 0, index < source.count {
            left -= 1
            // The last step gives the target itself, so that no rounding stays.
            factor = left == 0 ? target : factor + step
            for _ in 0..<channelCount {
                result[index] = source[index] * factor
                index += 1
            }
        }
        let factor = factor
        for index in index..<source.count { result[index] = source[index] * factor }
    }
}
