// SPDX-License-Identifier: Apache-2.0

/// When a change that the chain had no time for is tried again: 0.5 s after the answer, then 1 s, 2 s and so on after
/// each further one, up to 30 s.
///
/// Each attempt occupies the desk, makes stages and starts threads. Between attempts other commands have their turn.
struct ChangeRetry: Sendable {
    /// Nanoseconds.
    private static let firstPause: Int64 = 500_000_000
    private static let longestPause: Int64 = 30_000_000_000

    /// The number of the present change. Answers to an earlier one come late.
    private var change = 0
    private var pause = Self.firstPause
    /// Chain clock, nanoseconds; nil while an attempt is under way, and where none is owed.
    private var due: Int64?
    private var isReported = false
    /// How often the chain had been changed when the present change came.
    private var changesAtBegin = 0
    /// How often it had been changed before the first attempt that the chain had room for; nil until that begins.
    private var changesBefore: Int?

    /// A new change, which is tried at once. What was owed before no longer is.
    ///
    /// - Parameter changes: How often the chain was changed until now.
    /// - Returns: The number of the change, for its answer.
    mutating func begin(changes: Int = 0) -> Int {
        self = ChangeRetry(change: change + 1)
        changesAtBegin = changes
        return change
    }

    /// Whether this is the present change.
    func isPresent(_ change: Int) -> Bool { change == self.change }

    /// The attempt could not begin: another one is due at once.
    mutating func postpone(_ change: Int) { if isPresent(change) { due = Int64.min } }

    /// Whether the chain was changed in another way since the first attempt of this change began, or since the change
    /// came where the chain had no room for that attempt.
    ///
    /// - Parameter changes: How often the chain was changed until now, where an attempt begins.
    mutating func isOutdated(_ change: Int, changes: Int) -> Bool {
        guard isPresent(change) else { return false }
        let before = changesBefore ?? (isReported ? changesAtBegin : changes)
        changesBefore = before
        return changes != before
    }

    /// Whether the time for another attempt has come.
    func isDue(now: Int64) -> Bool { due.map { now >= $0 } ?? false }

    /// The next attempt of the present change, where one is due.
    mutating func beginAgain(now: Int64) -> Int? {
        guard isDue(now: now) else { return nil }
        due = nil
        return change
    }

    /// Takes the answer to an attempt.
    ///
    /// - Returns: Whether to report it: any answer that ends the attempts, and the first busy one of a change.
    mutating func ended(_ change: Int, isBusy: Bool, now: Int64) -> Bool {
        // A newer change is already being tried, and has an answer of its own.
        guard change == self.change else { return !isBusy }
        guard isBusy else { return true }
        due = now + pause
        pause = min(2 * pause, Self.longestPause)
        defer { isReported = true }
        return !isReported
    }

    init() {}

    private init(change: Int) { self.change = change }
}
