// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// What became of a stage's items. The stage's thread writes it, any thread may read it.
struct StageCounters: ~Copyable {
    let taken = Counter()
    let made = Counter()
    let emitted = Counter()
    let delivered = Counter()
    let merged = Counter()
    let idle = Counter()
    let unconnected = Counter()
    /// Additional leases that this stage's fork has made.
    let copies = Counter()
    /// Pictures whose pixels were copied so that this stage could write.
    let pixelCopies = Counter()
    /// Calls of `produce`: a source may give nothing for long and still not hang.
    let productions = Counter()
    /// Items accepted and unanswered by the stage's own count, read after each call.
    private let inside = Atomic<Int>(0)
    private let dropped = InlineArray<14, Counter> { _ in Counter() }

    init() {
        precondition(
            DropReason.allCases.count == 14, "StageCounters needs a counter for each DropReason")
    }

    var held: Int {
        get { inside.load(ordering: .acquiring) }
        nonmutating set { inside.store(newValue, ordering: .releasing) }
    }

    @inline(__always)
    func drop(_ reason: DropReason, _ count: Int = 1) { dropped[reason.rawValue].add(count) }

    func dropCount(_ reason: DropReason) -> Int { dropped[reason.rawValue].value }

    /// The same, with the items for which there was no link.
    func lost(_ reason: DropReason) -> Int { dropCount(reason) + (reason == .unconnected ? unconnected.value : 0) }

    /// Changes with every call and every item of the stage.
    var progress: Int { taken.value &+ made.value &+ emitted.value &+ productions.value }

    /// Emitted, ended and dropped items: law 3 of the ledger without `held`.
    var answered: Int {
        emitted.value + delivered.value + merged.value + idle.value
            + DropReason.allCases.reduce(0) { $0 + dropCount($1) }
    }

    /// Items that came in or were made, and are not answered.
    var unanswered: Int { taken.value + made.value - answered }
}
