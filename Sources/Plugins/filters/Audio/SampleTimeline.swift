// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Compares the time stamps of blocks with the number of samples that came before them.
///
/// Times are ticks of one sample. The time of the first block is the origin; from there on samples are counted, so that
/// no rounding adds up.
struct SampleTimeline: Equatable {
    /// How a block relates to what came before it.
    enum Step: Equatable {
        /// It follows at once.
        case follows
        /// It comes so many samples too late: they are missing.
        case gap(Int64)
        /// It begins so many samples too early: they were there already.
        case overlap(Int64)
    }

    private let timeBase: TimeBase
    /// A millisecond in samples: how far time stamps may be off without a gap.
    private let tolerance: Int64
    /// The tick at which the next sample is due; nil before the first block.
    private(set) var next: Int64?

    init(_ format: AudioFormat) {
        timeBase = format.timeBase
        tolerance = Int64(format.sampleRate / 1000)
    }

    /// Looks at a block that begins at `pts`. The first one begins the count.
    ///
    /// - Parameter isDiscontinuity: Whether its maker says that something was lost before it: then only the
    ///   rounding of the time stamp is tolerated.
    mutating func step(to pts: MediaTime, isDiscontinuity: Bool) -> Step {
        let tick = timeBase.ticks(of: pts)
        guard let next else {
            self.next = tick
            return .follows
        }
        let difference = tick - next
        if difference.magnitude <= UInt64(isDiscontinuity ? 1 : tolerance) { return .follows }
        return difference > 0 ? .gap(difference) : .overlap(-difference)
    }

    /// Counts samples that follow.
    mutating func advance(_ samples: Int64) { next = next.map { $0 + samples } }

    /// Starts the count again at `pts`.
    mutating func restart(at pts: MediaTime) { next = timeBase.ticks(of: pts) }
}
