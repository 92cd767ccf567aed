// SPDX-License-Identifier: Apache-2.0

/// Chooses how finely a live chain with privacy searches: more coarsely while searches are late, and more finely again when
/// there is time.
///
/// A frame whose search is late is covered completely, so a search that always comes too late protects nobody better
/// than a smaller one. A value without a clock: it is told what became of each frame's search.
struct SearchPace {
    /// Frames that are looked at, and how many of them may be late before the search becomes coarser.
    private static let window = 32
    private static let mostLate = 4
    /// The share of the patience that a search may take by the prediction.
    private static let share = 0.7
    /// For how long no search may be late before the search becomes finer, nanoseconds; doubled each time that was too
    /// much.
    private static let leastCalm: Int64 = 5_000_000_000
    private static let mostCalm: Int64 = 80_000_000_000
    /// How many durations are remembered.
    private static let remembered = 8

    /// Pixels of each level's searches, descending.
    private let pixels: [Int]
    /// The longest wait for a search, nanoseconds.
    private let patience: Int64
    /// The level in force; 0 is the finest.
    private(set) var level = 0

    /// Whether each of the last frames was late, the newest in the lowest bit.
    private var late: UInt32 = 0
    private var nanosecondsPerPixel = InlineArray<8, Double>(repeating: 0)
    private var durations = 0
    private var calm = leastCalm
    private var calmSince: Int64?
    private var finerAt: Int64?

    /// - Parameters:
    ///   - pixels: What each level searches, the finest first; not empty.
    ///   - patience: The longest wait for a search, nanoseconds.
    init(pixels: [Int], patience: Int64) {
        precondition(!pixels.isEmpty, "there is nothing to choose from")
        self.pixels = pixels
        self.patience = patience
    }

    /// Notes how long a search took.
    ///
    /// - Parameter level: The level that was searched.
    mutating func searched(_ level: Int, nanoseconds: Int64) {
        nanosecondsPerPixel[durations % Self.remembered] = Double(nanoseconds) / Double(max(pixels[level], 1))
        durations += 1
    }

    /// Notes whether the search of a frame was late, and chooses the level of the next one.
    ///
    /// - Parameter now: A clock that only rises, nanoseconds.
    /// - Returns: Whether the level has changed.
    mutating func frame(isLate: Bool, now: Int64) -> Bool {
        late = late << 1 | (isLate ? 1 : 0)
        if isLate || calmSince == nil { calmSince = now }
        if late.nonzeroBitCount > Self.mostLate {
            guard level < pixels.count - 1 else {
                late = 0
                return false
            }
            // A finer search that was soon too much is tried again only after twice the time.
            if let finerAt, now - finerAt < 2 * Self.leastCalm { calm = min(2 * calm, Self.mostCalm) }
            finerAt = nil
            begin(level: coarser)
            return true
        }
        guard level > 0, durations >= Self.remembered, let calmSince, now - calmSince >= calm else { return false }
        let slowest = known().max() ?? 0
        guard slowest * Double(pixels[level - 1]) <= Self.share * Double(patience) else {
            self.calmSince = now
            return false
        }
        begin(level: level - 1)
        finerAt = now
        return true
    }

    private mutating func begin(level: Int) {
        self.level = level
        late = 0
        durations = 0
        calmSince = nil
    }

    /// The finest level below the present one whose search would be in time, by what searches took.
    private var coarser: Int {
        let known = known().sorted()
        guard !known.isEmpty else { return level + 1 }
        let typical = known[known.count / 2]
        let fitting = (level + 1..<pixels.count).first { typical * Double(pixels[$0]) <= Self.share * Double(patience) }
        return fitting ?? pixels.count - 1
    }

    private func known() -> [Double] { (0..<min(durations, Self.remembered)).map { nanosecondsPerPixel[$0] } }
}
