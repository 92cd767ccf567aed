// SPDX-License-Identifier: Apache-2.0

/// Finds a card's true clock from time stamps that jitter: when the last frame was captured, and how long one lasts.
/// Pure.
///
/// A second-order loop (F. Adriaensen, "Using a DLL to filter time", 2005) that is made independent of the size of the
/// periods. It begins wide, so that it finds the clock within a second, and narrows to ``narrowest`` as it gets older.
struct DelayLockedLoop {
    enum Result: Equatable {
        /// The stamp was taken in.
        case taken
        /// The stamp is far off, and the loop went on without it.
        case ignored
        /// So many stamps were far off that frames are missing, or the stamps have jumped: start again.
        case lost
    }

    /// Bandwidth of the settled loop, Hz.
    private static let narrowest = 0.01
    /// Bandwidth times age, with which the loop weighs all stamps since its start about alike.
    private static let growth = 0.6
    /// The age that the loop begins with, seconds: with less, the first coarse stamps are heard in the pitch.
    private static let headStart = 3.0
    /// A stamp that is further away from where it is expected is not jitter, seconds.
    static let farthest = 0.05
    /// More than this many in a row mean that it is not the stamps that are wrong.
    private static let mostIgnored = 3
    /// The most by which a crystal differs from its rate.
    private static let mostDeviation = 0.001

    /// The card's nominal rate, frames per second.
    let rate: Double
    /// When the newest frame ended, seconds; smoothed.
    private(set) var end = 0.0
    /// Length of the card's frames over the nominal length, less 1.
    private(set) var deviation = 0.0
    private var age = 0.0
    private var ignored = 0

    init(rate: Int) { self.rate = Double(rate) }

    /// By how much the card is faster than its nominal rate, parts per million.
    var ppm: Double { (1 / (1 + deviation) - 1) * 1e6 }

    /// Begins at a first time stamp. What is known of the card's rate stays.
    mutating func restart(at end: Double) {
        (self.end, age, ignored) = (end, 0, 0)
    }

    /// - Parameters:
    ///   - frames: Read since the time stamp before, at least 1.
    ///   - measured: When the last of them ended, seconds.
    mutating func take(_ frames: Int, until measured: Double) -> Result {
        let length = Double(frames) / rate
        let expected = end + length * (1 + deviation)
        let error = measured - expected
        guard abs(error) <= Self.farthest else {
            end = expected
            ignored += 1
            return ignored > Self.mostIgnored ? .lost : .ignored
        }
        ignored = 0
        age += length
        let omega = 2 * Double.pi * max(Self.narrowest, Self.growth / (Self.headStart + age))
        end = expected + 2.0.squareRoot() * omega * length * error
        deviation += omega * omega * length * error
        deviation = min(max(deviation, -Self.mostDeviation), Self.mostDeviation)
        return .taken
    }
}
