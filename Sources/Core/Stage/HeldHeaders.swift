// SPDX-License-Identifier: Apache-2.0

/// Keeps the headers of the items inside a transform until it answers them. An answer then has the properties of
/// its picture, whatever the transform holds and reorders in between.
///
/// It serves a transform that gives access units or takes them: an encoder, a decoder. A transform from frames to
/// frames has both in hand and calls `copyProperties(from:)`.
///
/// An answer belongs to the item of equal PTS. There is room for as many headers as the stage declares as `delay`,
/// and for two more. The memory is made at setup; noting and answering allocate nothing. It belongs to the stage's
/// thread. docs/design/012-items.md.
final class HeldHeaders {
    /// A header that is held, or a place that is free.
    private struct Entry {
        var pts: MediaTime
        var place: Int
        /// The stage dropped an item while it had this one in hand.
        var isDoubtful = false
    }

    /// Most headers at once.
    let capacity: Int
    private let layout: MetadataLayout
    private let headers: UnsafeMutablePointer<ItemHeader>
    private let metadata: UnsafeMutableRawPointer?
    /// The first `count` are held, in the order they came; behind them are the free places.
    private let entries: UnsafeMutablePointer<Entry>
    private(set) var count = 0
    /// An item that was never answered followed a gap, so the next answer is marked in its place.
    private var owesDiscontinuity = false

    /// [control thread, desk's thread] Nil for a stage that needs no held headers.
    ///
    /// - Parameters:
    ///   - input: What the stage takes.
    ///   - output: What it gives.
    convenience init?(
        _ kind: StageKind, input: MediaFormat?, output: MediaFormat?, _ demand: StageDemand, _ layout: MetadataLayout
    ) {
        let capacity = Self.capacity(kind, input: input, output: output, demand)
        guard capacity > 0 else { return nil }
        self.init(capacity: capacity, layout)
    }

    /// The most headers of a stage at once; 0 for a stage that needs none.
    private static func capacity(
        _ kind: StageKind, input: MediaFormat?, output: MediaFormat?, _ demand: StageDemand
    ) -> Int {
        // An encoder cuts sound anew, so its output has the time of none of the blocks that came in.
        guard kind == .transform, demand.outputBuffers == .own, input?.encoded != nil || output?.encoded != nil,
            input?.isSound != true, output?.isSound != true
        else { return 0 }
        // Beside what is held: the item in hand, and one that was dropped.
        return AvailableMemory.sum(demand.delay, 2)
    }

    /// The memory for the headers of a stage, in bytes.
    static func byteCount(
        _ kind: StageKind, input: MediaFormat?, output: MediaFormat?, _ demand: StageDemand, _ layout: MetadataLayout
    ) -> Int {
        let each = MemoryLayout<ItemHeader>.stride + MemoryLayout<Entry>.stride + layout.byteCount
        return AvailableMemory.product(capacity(kind, input: input, output: output, demand), each)
    }

    init(capacity: Int, _ layout: MetadataLayout) {
        self.capacity = capacity
        self.layout = layout
        headers = .allocate(capacity: capacity)
        entries = .allocate(capacity: capacity)
        metadata =
            layout.byteCount == 0
            ? nil : .allocate(byteCount: capacity * layout.byteCount, alignment: MetadataLayout.alignment)
        for place in 0..<capacity {
            let region = metadata.map { $0 + place * layout.byteCount }
            (headers + place).initialize(to: ItemHeader(.frame, metadata: region))
            (entries + place).initialize(to: Entry(pts: .zero, place: place))
        }
    }

    deinit {
        for index in 0..<count { layout.clear(&headers[entries[index].place]) }
        headers.deinitialize(count: capacity)
        headers.deallocate()
        entries.deallocate()
        metadata?.deallocate()
    }

    /// Keeps the header of an item that comes in. Without room it forgets one: the oldest that seems to be dropped,
    /// or else the oldest.
    func note(_ header: borrowing ItemHeader) {
        if count == capacity { forget(at: doubtful ?? 0) }
        headers[entries[count].place].replace(with: header, layout)
        entries[count].pts = header.pts
        entries[count].isDoubtful = false
        count += 1
    }

    /// The stage has dropped an item: most likely the one that came last.
    func doubt() {
        if count > 0 { entries[count - 1].isDoubtful = true }
    }

    private var doubtful: Int? {
        for index in 0..<count where entries[index].isDoubtful { return index }
        return nil
    }

    /// Fills the header of an answer from the item of equal PTS.
    ///
    /// - Returns: False when metadata is lost: no item of that PTS is held, while other held items have metadata.
    func answer(_ header: inout ItemHeader) -> Bool {
        let isKnown = take(header.pts, into: &header) || !haveMetadata
        // Answers rise by this time, and no item is shown before it is decoded. So a held item that is not later is
        // never answered.
        let time = header.orderTime
        var index = 0
        while index < count {
            if entries[index].pts <= time { forget(at: index) } else { index += 1 }
        }
        if owesDiscontinuity {
            header.isDiscontinuity = true
            owesDiscontinuity = false
        }
        return isKnown
    }

    /// Takes the oldest item of this PTS; false when there is none.
    private func take(_ pts: MediaTime, into header: inout ItemHeader) -> Bool {
        for index in 0..<count where entries[index].pts == pts {
            header.fill(from: &headers[entries[index].place], layout)
            remove(at: index)
            return true
        }
        return false
    }

    private var haveMetadata: Bool {
        for index in 0..<count where headers[entries[index].place].metadataPresent != 0 { return true }
        return false
    }

    private func forget(at index: Int) {
        if headers[entries[index].place].isDiscontinuity { owesDiscontinuity = true }
        remove(at: index)
    }

    private func remove(at index: Int) {
        let entry = entries[index]
        layout.clear(&headers[entry.place])
        for later in index + 1..<max(count, index + 1) { entries[later - 1] = entries[later] }
        count -= 1
        entries[count] = entry
    }
}
