// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The places of frames at a constant rate: place `k` is `origin + k` periods.
///
/// Pausable chains have the origin 0, so that times are exact multiples of the period. A frame takes the place
/// nearest to its time (halves go up), as ffmpeg's `fps` filter does. In live chains the origin is the first frame's
/// time: a camera's times lie anywhere between multiples, and halfway between two of them its jitter would send
/// frames to either.
struct FrameGrid: Equatable {
    /// One frame of the rate.
    let period: TimeBase
    /// Nanoseconds.
    let origin: Int64
    /// Nanoseconds that are added to a frame's time before its place is found; 0 or less.
    let bias: Int64

    init(_ rate: Rational, origin: Int64 = 0, bias: Int64 = 0) {
        period = TimeBase(rate.denominator, rate.numerator)
        self.origin = origin
        self.bias = bias
    }

    /// The grid of a live chain, in which the first frame to reach a place has it.
    ///
    /// Where frames come faster than the rate, a frame may be early by at most half of *their* period. So the frame
    /// nearest to the place gets it, without waiting for the next one. With twice the rate that is every second frame,
    /// for any jitter.
    static func live(_ rate: Rational, first: MediaTime, input: Rational) -> FrameGrid {
        let period = 1e9 / rate.value
        let inputPeriod = input.isZero ? period : min(1e9 / input.value, period)
        return FrameGrid(rate, origin: first.nanoseconds, bias: Int64((inputPeriod - period) / 2))
    }

    func place(of time: MediaTime) -> Int64 {
        let distance = time.nanoseconds - origin + bias
        // Times are rounded to nanoseconds: a time halfway between two places may be slightly less.
        return period.ticks(of: MediaTime(nanoseconds: distance < 0 ? distance - 1 : distance + 1))
    }

    func time(of place: Int64) -> MediaTime { MediaTime(nanoseconds: origin + period.time(ofTicks: place).nanoseconds) }

    func duration(of place: Int64) -> MediaTime { time(of: place + 1) - time(of: place) }
}
