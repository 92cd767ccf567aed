// SPDX-License-Identifier: Apache-2.0

/// Decides when sound counts as silent: once its momentary loudness has been below a bound for some time, and until
/// it no longer is.
///
/// It takes one reading for every stretch of sound, so that the sound's own time counts.
struct SilenceWatch {
    /// What changed with a reading.
    enum Change: Equatable {
        /// Silence began so many samples ago.
        case began(samples: Int64)
        /// Silence ended, after so many samples.
        case ended(samples: Int64)
    }

    /// Samples since the loudness fell below the bound; nil while it is above.
    private var below: Int64?
    private(set) var isSilent = false

    /// Looks at the loudness at the end of a stretch.
    ///
    /// - Parameters:
    ///   - isBelow: Whether it is below the bound.
    ///   - samples: How long the stretch was.
    ///   - needed: How many samples it must be below the bound until the sound counts as silent.
    mutating func look(isBelow: Bool, samples: Int64, needed: Int64) -> Change? {
        guard isBelow else {
            let before = below ?? 0
            below = nil
            guard isSilent else { return nil }
            isSilent = false
            return .ended(samples: before + samples)
        }
        // The first reading below the bound is the start: before it the loudness was above.
        below = below.map { $0 + samples } ?? 0
        guard !isSilent, let below, below >= needed else { return nil }
        isSilent = true
        return .began(samples: below)
    }
}
