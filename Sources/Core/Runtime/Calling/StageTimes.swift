// SPDX-License-Identifier: Apache-2.0

/// The times of a stage's items, and of a source's calls. It belongs to the stage's thread. The two histograms, which
/// other threads read at any time, are the runner's.
struct StageTimes: ~Copyable {
    /// Checks the times of the items that the stage makes.
    var check = TimeCheck()
    /// Keeps the times of a source rising over all its instances.
    var source = SourceTimes()
    /// The time that a source has worked since the last item it gave: it may be called often for one item.
    private var ofItem: Int64 = 0
    private var items = 0

    /// Another instance takes over.
    mutating func beginAnew() {
        check = TimeCheck()
        source.beginAnew()
    }

    /// Adds the time of a call after which a source has made `items` items.
    ///
    /// - Returns: The time of an item, where the call has given one.
    mutating func add(call nanoseconds: Int64, items made: Int) -> Int64? {
        ofItem &+= nanoseconds
        guard made != items else { return nil }
        items = made
        defer { ofItem = 0 }
        return ofItem
    }
}
