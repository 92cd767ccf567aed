// SPDX-License-Identifier: Apache-2.0

/// The attempts of one chain to load one watched plugin.
///
/// Bytes for which the chain had no time and that are not tried again are news when the file has them once more.
struct PluginRetry: Sendable {
    private let path: String
    private var retry = ChangeRetry()
    /// The sum of the copy for which the chain had no time; nil where none is owed.
    private var owed: UInt64?

    init(_ path: String) { self.path = path }

    /// A new change, which is tried at once. What was owed before no longer is.
    ///
    /// - Returns: The number of the change, for its answer.
    mutating func begin() -> Int {
        giveUp()
        return retry.begin()
    }

    /// Nothing is owed any more.
    mutating func drop() { _ = begin() }

    /// The chain did not run yet: the change is tried as soon as it does.
    mutating func postpone(_ change: Int) { retry.postpone(change) }

    /// Whether the time for another attempt has come.
    func isDue(now: Int64) -> Bool { retry.isDue(now: now) }

    /// The next attempt of the present change, where one is due.
    mutating func beginAgain(now: Int64) -> Int? { retry.beginAgain(now: now) }

    /// Takes the answer to an attempt.
    ///
    /// - Parameter sum: The sum of the copy that was loaded; nil where none was.
    /// - Returns: Whether to report it.
    mutating func ended(_ change: Int, isBusy: Bool, sum: UInt64?, now: Int64) -> Bool {
        if retry.isPresent(change) {
            // A chain with too many changes waiting loads nothing, and owes what it owed.
            let tried = sum ?? (isBusy ? owed : nil)
            if owed != tried { giveUp() }
            owed = isBusy ? tried : nil
        } else if isBusy, let sum {
            PluginImages.here.giveUp(sum, of: path)
        }
        return retry.ended(change, isBusy: isBusy, now: now)
    }

    private mutating func giveUp() {
        if let owed { PluginImages.here.giveUp(owed, of: path) }
        owed = nil
    }
}
