// SPDX-License-Identifier: Apache-2.0

/// The frames of the output on the chain's clock: frame n has the time of the first plus n / rate, whatever the card
/// does. Pure.
struct SoundTimeline: Equatable {
    /// How a first frame of the card meets what was given before it.
    struct Meeting: Equatable {
        /// Frames of silence to give before it.
        var silence = 0
        /// Frames of the output's length to leave out, because their time has been given.
        var excess = 0
        /// Frames of time that pass without a block, because the gap is longer than
        /// ``SoundTimeline/longestSilence``.
        var hole = 0
    }

    /// The longest gap that becomes silence, seconds. A longer one, as when the process stood still, is a gap in
    /// the times.
    static let longestSilence = 5

    /// Frames per second.
    let rate: Int
    /// The time of frame 0, nanoseconds of the chain clock.
    let origin: Int64
    /// Frames that were given, or whose time has passed: the next one's number.
    private(set) var given: Int64 = 0

    init(rate: Int, origin: Int64) {
        self.rate = rate
        self.origin = origin
    }

    /// The time of a frame, nanoseconds of the chain clock; exact, rounded down.
    func time(of frame: Int64) -> Int64 {
        let (seconds, rest) = frame.quotientAndRemainder(dividingBy: Int64(rate))
        return origin + seconds * 1_000_000_000 + rest * 1_000_000_000 / Int64(rate)
    }

    /// Where on the output an instant lies, in frames.
    ///
    /// - Parameter seconds: Since ``origin``.
    func place(of seconds: Double) -> Double { seconds * Double(rate) }

    /// Like ``place(of:)``, for nanoseconds of the chain clock, rounded.
    func frame(at time: Int64) -> Int64 { Int64((place(of: Double(time - origin) / 1e9)).rounded()) }

    mutating func advance(by frames: Int) { given += Int64(frames) }

    /// Goes on at the frame nearest to `time`, where that is later: after a pause.
    ///
    /// - Returns: Whether there is a hole.
    mutating func skip(to time: Int64) -> Bool {
        let frame = frame(at: time)
        guard frame > given else { return false }
        given = frame
        return true
    }

    /// The card starts again with a frame of `time`, nanoseconds of the chain clock. A hole is skipped.
    mutating func meet(_ time: Int64) -> Meeting {
        let gap = frame(at: time) - given
        if gap < 0 { return Meeting(excess: Int(-gap)) }
        guard gap > Int64(Self.longestSilence * rate) else { return Meeting(silence: Int(gap)) }
        given += gap
        return Meeting(hole: Int(gap))
    }
}
