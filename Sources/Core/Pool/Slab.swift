// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The memory of the access units, or of the blocks of sound or motion, that one stage gives: bounded in bytes and units
/// by the plan, shared by count.
///
/// Pages are reserved at setup and get memory when first used. One thread allocates; any thread returns.
final class Slab: LeaseOwner, @unchecked Sendable {
    /// What an item of a slab is.
    enum Content: Equatable {
        case accessUnits
        case sound(channelCount: Int)
        case motion

        /// What a stage of this output makes.
        init(_ format: MediaFormat?) {
            self =
                switch format {
                case .audio(let audio): .sound(channelCount: audio.channelCount)
                case .motion: .motion
                case .video, .encoded, nil: .accessUnits
                }
        }

        var channelCount: Int { if case .sound(let count) = self { count } else { 0 } }
        fileprivate var kind: ItemKind {
            switch self {
            case .accessUnits: .accessUnit
            case .sound: .audioBlock
            case .motion: .motionBlock
            }
        }
        var itemText: String {
            switch self {
            case .accessUnits: "an access unit"
            case .sound: "a block of sound"
            case .motion: "a block of motion"
            }
        }
        var itemsText: String {
            switch self {
            case .accessUnits: "access units"
            case .sound: "blocks of sound"
            case .motion: "blocks of motion"
            }
        }
    }

    private struct Block {
        var start = 0
        var count = 0
        var leases = 0
    }

    let name: String
    let byteCount: Int
    let unitCount: Int
    /// What lies here.
    let content: Content
    /// Channels of the blocks of sound that lie here; 0 for anything else.
    let channelCount: Int
    private let memory: any FrameMemory
    private let base: UnsafeMutableRawPointer
    private let layout: MetadataLayout
    private let stop: StopSignal
    let condition = Condition()
    /// The trace of how many bytes are leased; nil without a trace. Set before the slab is used.
    var traceRing: TraceRing? { didSet { trace = traceRing?.pen } }
    @exclusivity(unchecked) private var trace: TracePen?
    // Below: under `condition`.
    private var state: SlabState
    private var blocks: [Block]
    private var freeBlocks: [Int32]
    private var leases: LeaseTable
    private var outstanding = 0
    private var waiters = 0
    private var mostBytes = 0
    // Written under `condition`, read by other threads without it.
    private let shownBytes = Atomic<Int>(0)
    private let shownMostBytes = Atomic<Int>(0)
    private let shownUnits = Atomic<Int>(0)

    /// [control thread]
    init(
        name: String, byteCount: Int, unitCount: Int, leasesPerUnit: Int = 4, content: Content = .accessUnits,
        metadata: MetadataLayout = .none, memory: any FrameMemory = AnonymousMemory(), stop: StopSignal
    ) throws {
        self.name = name
        self.byteCount = SlabState.rounded(byteCount)
        self.unitCount = unitCount
        self.memory = memory
        self.stop = stop
        layout = metadata
        self.content = content
        channelCount = content.channelCount
        leases = LeaseTable(content.kind, layout: metadata)
        do {
            base = try memory.allocate(byteCount: self.byteCount, touching: false)
        } catch { throw FrameHostError.wrap(error, place: name) }
        state = SlabState(byteCount: self.byteCount, mostBlocks: unitCount)
        blocks = Array(repeating: Block(), count: unitCount)
        freeBlocks = (0..<Int32(unitCount)).reversed()
        super.init()
        leases.reserve(unitCount * max(leasesPerUnit, 1), owner: self)
        stop.register(condition)
    }

    deinit {
        traceRing?.isOver.store(true, ordering: .releasing)
        memory.free(base, byteCount: byteCount)
    }

    /// [allocating thread] Leases room for one access unit of `count` bytes, and waits until there is some.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted` for a unit larger than the slab, `.stopped`.
    func lease(byteCount count: Int) throws -> AccessUnit { AccessUnit(try takeLease(count)) }

    /// [allocating thread] Leases room for a block of `count` samples of each channel, and waits until there is some.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted` for a block larger than the slab, `.stopped`.
    func lease(sampleCount count: Int) throws -> AudioBlock {
        let (bytes, isTooMuch) = count.multipliedReportingOverflow(by: channelCount * MemoryLayout<Float>.stride)
        return AudioBlock(try takeLease(isTooMuch ? .max / 2 : bytes))
    }

    /// [allocating thread] Leases room for a block of `count` samples of motion, and waits until there is some.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted` for a block larger than the slab, `.stopped`.
    func lease(motionCount count: Int) throws -> MotionBlock {
        let (bytes, isTooMuch) = count.multipliedReportingOverflow(by: MemoryLayout<MotionSample>.stride)
        return MotionBlock(try takeLease(isTooMuch ? .max / 2 : bytes))
    }

    private func takeLease(_ count: Int) throws -> Lease {
        guard mayHold(byteCount: count) else {
            throw FrameHostError(
                .exhausted, place: name,
                what:
                    "\(content.itemText) of \(count) bytes is larger than the \(byteCount) bytes reserved for all \(content.itemsText)",
                remedy:
                    "\(content == .accessUnits ? "Lower the bitrate" : "Make smaller blocks"), or raise \"link\": { \"megabytes\": … } of the stage that takes them."
            )
        }
        condition.lock()
        defer { condition.unlock() }
        while true {
            if stop.isRaised { throw FrameHostError(.stopped, place: name, what: "stopped while waiting for room") }
            if !freeBlocks.isEmpty, let start = state.take(count) {
                let block = freeBlocks.removeLast()
                blocks[Int(block)] = Block(start: start, count: count, leases: 1)
                mostBytes = max(mostBytes, state.usedBytes)
                showUsage()
                if let trace { trace.level(state.usedBytes) }
                if outstanding == 0 { _ = Unmanaged.passRetained(self) }
                outstanding += 1
                let record = leases.take(owner: self)
                record.pointee.buffer = block
                record.pointee.base = base + start
                record.pointee.byteCount = count
                record.pointee.since.store(0, ordering: .relaxed)
                record.pointee.header.reset(orientation: nil)
                return Lease(record)
            }
            waiters += 1
            Spinner.fallAsleep()
            condition.wait()
            Spinner.wakeUp()
            waiters -= 1
        }
    }

    /// Whether a unit of `count` bytes would fit in the empty slab.
    func mayHold(byteCount count: Int) -> Bool { SlabState.rounded(count) <= byteCount }

    /// Gives `copy`, an item of this slab, the header of `item`.
    func copyHeader(of item: UnsafeMutablePointer<LeaseRecord>, to copy: UnsafeMutablePointer<LeaseRecord>) {
        copy.pointee.header.replace(with: item.pointee.header, layout)
    }

    override func share(_ record: UnsafeMutablePointer<LeaseRecord>) -> UnsafeMutablePointer<LeaseRecord> {
        condition.lock()
        blocks[Int(record.pointee.buffer)].leases += 1
        outstanding += 1
        let other = leases.take(owner: self)
        other.pointee.buffer = record.pointee.buffer
        condition.unlock()
        other.pointee.base = record.pointee.base
        other.pointee.byteCount = record.pointee.byteCount
        other.pointee.holder.store(record.pointee.holder.load(ordering: .relaxed), ordering: .relaxed)
        other.pointee.since.store(record.pointee.since.load(ordering: .relaxed), ordering: .relaxed)
        other.pointee.header.replace(with: record.pointee.header, layout)
        return other
    }

    override func giveBack(_ record: UnsafeMutablePointer<LeaseRecord>) {
        record.pointee.hand(to: nil)
        if record.pointee.header.metadataPresent != 0 { layout.clear(&record.pointee.header) }
        let block = Int(record.pointee.buffer)
        condition.lock()
        leases.giveBack(record)
        blocks[block].leases -= 1
        if blocks[block].leases == 0 {
            state.giveBack(start: blocks[block].start, count: blocks[block].count)
            freeBlocks.append(Int32(block))
            showUsage()
            if let trace { trace.level(state.usedBytes) }
            if waiters > 0 { condition.signal() }
        }
        outstanding -= 1
        let isLast = outstanding == 0
        condition.unlock()
        if isLast { Unmanaged.passUnretained(self).release() }
    }

    /// With the lock held.
    private func showUsage() {
        shownBytes.store(state.usedBytes, ordering: .relaxed)
        shownMostBytes.store(mostBytes, ordering: .relaxed)
        shownUnits.store(unitCount - freeBlocks.count, ordering: .relaxed)
    }

    /// [any thread] Bytes in use, the most there ever were, and units in use, each as it was at some moment of the
    /// call. Does not wait.
    var usage: (bytes: Int, mostBytes: Int, units: Int) {
        (
            shownBytes.load(ordering: .relaxed), shownMostBytes.load(ordering: .relaxed),
            shownUnits.load(ordering: .relaxed)
        )
    }

    /// [control thread] Free blocks and distinct leased ones: ledger law 5.
    func census() -> (free: Int, leased: Int) {
        condition.locked {
            var seen = Set<Int32>()
            leases.records.forEachOut { seen.insert($0.buffer) }
            return (freeBlocks.count, seen.count)
        }
    }
}
