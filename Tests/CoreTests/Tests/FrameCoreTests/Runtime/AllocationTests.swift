// SPDX-License-Identifier: Apache-2.0

import CMallocCount
import Glibc
import Testing

@testable import FrameCore

/// False in debug builds, where closures and generic calls allocate.
private let isOptimized: Bool = {
    var isDebug = false
    // Evaluated in debug builds alone.
    assert(
        {
            isDebug = true
            return true
        }())
    return !isDebug
}()

/// After warm-up a frame costs no allocation, counted on all stage threads of a chain.
///
/// In release builds alone: without the optimiser Swift allocates for closures and generic calls.
/// `FRAMEHOST_TRACE_MALLOC` with the raw value of a shape writes where each allocation of that shape comes from once it
/// is warm.
@Suite(.serialized, .enabled(if: isOptimized && fh_malloc_is_counted(), "needs a release build without sanitizers"))
struct AllocationTests {
    private static let tracedGroup = getenv("FRAMEHOST_TRACE_MALLOC").flatMap { Int32(String(cString: $0)) }

    enum Shape: Int, CaseIterable {
        case inline = 1
        case queued, live, fork, latest, dropping, writer, join, lossyJoin, encoder, sharedUnits, timed, metadata, tap,
            unitTap
        /// The same as some above, with a trace.
        case tracedInline, tracedQueued, tracedLatest, tracedWriter, tracedJoin, tracedUnits

        /// What its stages are like.
        var untraced: Shape {
            switch self {
            case .tracedInline: .inline
            case .tracedQueued: .queued
            case .tracedLatest: .latest
            case .tracedWriter: .writer
            case .tracedJoin: .join
            case .tracedUnits: .sharedUnits
            default: self
            }
        }
    }

    /// A chain of this shape whose stages count for `group`.
    private func sketch(_ shape: Shape, frames: Int, group: Int) throws -> ChainSketch {
        var chain = ChainSketch()
        let own = #"{ "group": \#(group) }"#
        func queue(_ count: Int) -> LinkRequest { LinkRequest(queue: count) }
        func dropping(_ policy: DropPolicy) -> LinkRequest { LinkRequest(whenFull: policy) }
        try chain.add(
            CountedSource.self, "src",
            options: #"{ "group": \#(group), "count": \#(frames), "live": \#(shape == .live) }"#)
        switch shape.untraced {
        case .inline, .timed:
            try chain.add(CountedFilter.self, "a", options: own)
            try chain.add(CountedWriter.self, "b", options: own)
        case .queued:
            try chain.add(CountedFilter.self, "a", options: own, link: queue(1))
            try chain.add(CountedFilter.self, "b", options: own, link: queue(8))
        case .live: try chain.add(CountedFilter.self, "a", options: own)
        case .fork:
            try chain.add(CountedFilter.self, "a", options: own)
            try chain.add(CountedSink.self, "one", options: own, from: ["a"])
            try chain.add(CountedFilter.self, "b", options: own, from: ["a"])
        case .latest:
            try chain.add(CountedSink.self, "preview", options: own, from: ["src"], link: dropping(.latest))
            try chain.add(CountedFilter.self, "a", options: own, from: ["src"])
        case .dropping:
            try chain.add(CountedSink.self, "one", options: own, from: ["src"], link: dropping(.dropOldest))
            try chain.add(CountedSink.self, "two", options: own, from: ["src"], link: dropping(.dropNewest))
            try chain.add(CountedFilter.self, "a", options: own, from: ["src"])
        case .writer:
            try chain.add(CountedSink.self, "reader", options: own, from: ["src"])
            try chain.add(CountedFilter.self, "a", options: own, from: ["src"])
            try chain.add(CountedWriter.self, "b", options: own)
        case .join:
            try chain.add(CountedFilter.self, "a", options: own, from: ["src"])
            try chain.add(CountedFilter.self, "b", options: own, from: ["src"])
            try chain.add(CountedJoin.self, "pair", options: own, from: ["a", "b"])
        case .lossyJoin:
            try chain.add(CountedFilter.self, "a", options: own, from: ["src"], link: dropping(.dropNewest))
            try chain.add(CountedFilter.self, "b", options: own, from: ["src"])
            try chain.add(CountedJoin.self, "pair", options: own, from: ["a", "b"])
        case .tap:
            try chain.add(CountedFilter.self, "a", options: own)
            try chain.add(CountedSink.self, "copy", options: own, from: ["a"], link: LinkRequest(copies: true))
            try chain.add(CountedFilter.self, "b", options: own, from: ["a"])
        case .unitTap:
            try chain.add(CountedEncoder.self, "h264", options: own)
            try chain.add(
                CountedSink.self, "copy", options: own, from: ["h264"], link: LinkRequest(queue: 4, copies: true))
            try chain.add(CountedSink.self, "sink", options: own, from: ["h264"], link: queue(4))
            return chain
        case .encoder: try chain.add(CountedEncoder.self, "h264", options: own)
        case .tracedInline, .tracedQueued, .tracedLatest, .tracedWriter, .tracedJoin, .tracedUnits: break
        case .metadata:
            try chain.add(CountedFilter.self, "a", options: own)
            try chain.add(CountedReorderer.self, "h264", options: own)
            try chain.add(CountedSink.self, "other", options: own, from: ["h264"], link: queue(4))
            try chain.add(CountedMarkReader.self, "sink", options: own, from: ["h264"], link: queue(4))
            return chain
        case .sharedUnits:
            try chain.add(CountedEncoder.self, "h264", options: own)
            try chain.add(CountedSink.self, "other", options: own, from: ["h264"], link: queue(4))
            try chain.add(CountedSink.self, "sink", options: own, from: ["h264"], link: dropping(.dropToKeyframe))
            return chain
        }
        try chain.add(CountedSink.self, "sink", options: own, link: shape == .encoder ? queue(8) : LinkRequest())
        return chain
    }

    /// Allocations on the stage threads of a whole run.
    private func allocations(
        _ chain: ChainSketch, group: Int, timed: Bool = false, live: Bool = false, traced: Bool = false
    ) throws -> Int {
        let before = fh_malloc_count(Int32(group))
        let made = try Chain(
            chain.request, clock: live ? ManualClock(at: 1) : ChainClock(), timed: timed, traced: traced)
        if traced { try made.openTrace("/dev/null", as: "--trace", mostBytes: 1 << 30) }
        let result = made.run()
        #expect(result.keepsItsPromises, "\(result)")
        return fh_malloc_count(Int32(group)) - before
    }

    @Test(arguments: Shape.allCases)
    func aFrameCostsNoAllocationOnceWarm(shape: Shape) throws {
        let group = shape.rawValue
        let frames = 3000
        // The first run fills what the Swift runtime keeps of types and conformances.
        _ = try allocations(
            sketch(shape, frames: frames, group: group), group: group, timed: shape == .timed, live: shape == .live,
            traced: shape.untraced != shape)
        let runs = try [frames, frames * 2].map { count in
            if Self.tracedGroup == Int32(group) { fh_malloc_trace(Int32(group)) }
            return try allocations(
                sketch(shape, frames: count, group: group), group: group, timed: shape == .timed, live: shape == .live,
                traced: shape.untraced != shape)
        }
        print("allocations, \(shape): \(runs[0]) in a run of \(frames) frames, \(runs[1]) in one of \(frames * 2)")
        #expect(runs[1] == runs[0], "\(runs[1] - runs[0]) more for \(frames) more frames")
    }

    /// Shapes above have their taps too, and nobody who asks. Here somebody asks for one picture after the other.
    @Test func aPictureThatIsAskedForCostsTheStageNoAllocation() throws {
        let group = 41
        var answers = 0
        func run(_ wanted: Int) throws -> Int {
            let chain = try Chain(sketch(.inline, frames: 1_000_000_000, group: group).request)
            let before = fh_malloc_count(Int32(group))
            let isOver = Locked(false)
            let given = Locked(0)
            let asker = try TestThread("asker") {
                while !isOver.now, given.now < wanted {
                    for stage in ["src", "a", "b"] where (try? chain.picture(of: stage, within: 0.05)) != nil {
                        given.withLock { $0 += 1 }
                    }
                }
            }
            // However fast the pictures come, frames enough that all is warm.
            let deadline = ChainClock.system.now() + 120_000_000_000
            let result = chain.run {
                let isEnough = given.now >= wanted && chain.progress.captured >= 200_000
                if isEnough || ChainClock.system.now() > deadline { chain.drain() }
            }
            isOver.set(true)
            asker.join()
            #expect(result.isSuccess, "\(result)")
            answers = given.now
            return fh_malloc_count(Int32(group)) - before
        }
        _ = try run(50)
        let (short, few) = (try run(50), answers)
        let (long, many) = (try run(150), answers)
        print("allocations, asked: \(short) with \(few) pictures, \(long) with \(many)")
        #expect(few >= 50 && many >= 150, "\(few) and \(many) pictures")
        #expect(long == short)
    }

    @Test func theCounterSeesAStageThatAllocates() throws {
        let group = 40
        let runs = try [1000, 2000].map { count in
            var chain = ChainSketch()
            try chain.add(CountedSource.self, "src", options: #"{ "group": \#(group), "count": \#(count) }"#)
            try chain.add(CountedFilter.self, "waster", options: #"{ "group": \#(group), "wasteEvery": 10 }"#)
            try chain.add(CountedSink.self, "sink", options: #"{ "group": \#(group) }"#)
            return try allocations(chain, group: group)
        }
        #expect(runs[1] - runs[0] == 100)
    }
}
