// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// Chains in which one stage of several inputs waits for an item that another one holds up, on the real runner.
@Suite struct CrossedInputsTests {
    /// Runs a chain to its end, and stops it where it stands still.
    private func run(_ sketch: ChainSketch, _ name: String) throws -> Chain {
        let chain = try Chain(sketch.request)
        var watch = ProgressWatch()
        // Before it failed.
        var last: JSONNode?
        let result = chain.run {
            if chain.failures.withLock({ $0.isEmpty }) { last = chain.metrics }
            if watch.hasStoodStill(chain) { chain.cancel() }
        }
        #expect(!watch.isOver, "\(name) stood still:\n\(watch.standstill)")
        #expect(result.isSuccess, "\(name): \(result)\n\(last?.text() ?? "")")
        #expect(chain.ledger.dropped == 0 && chain.ledgerFaults(afterDrain: true).isEmpty, "\(name): \(chain.ledger)")
        return chain
    }

    /// A picture each millisecond, and motion each fourth, a fifth longer than the pictures.
    private static let pictures = getenv("FRAMEHOST_SANITIZED") == nil ? 2000 : 400
    private static let motions = pictures * 3 / 10
    private static let lastMotion = (motions - 1) * 4

    private func sources() throws -> ChainSketch {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "pic", options: #"{"count": \#(Self.pictures)}"#, from: [])
        try sketch.add(MotionTicker.self, "motion", options: #"{"count": \#(Self.motions)}"#, from: [])
        return sketch
    }

    /// The first filter waits for motion that the second one has no place for, since it waits for pictures.
    @Test(arguments: [(400, 0), (0, 400), (40, 40), (400, 8)])
    func twoFiltersThatLookAheadDifferently(first: Int, second: Int) throws {
        var sketch = try sources()
        for (index, ahead) in [first, second].enumerated() {
            try sketch.add(
                MotionReader.self, "reader\(index)",
                options: #"{"log": "two-\#(first)-\#(second)-\#(index)", "aheadMs": \#(ahead)}"#,
                from: ["pic", "motion"], link: LinkRequest(queue: 1))
            try sketch.add(UnitEncoder.self, "h264-\(index)")
            try sketch.add(OrderSink.self, "sink\(index)", options: #"{"log": "two"}"#)
        }
        _ = try run(sketch, "two filters")
        for (index, ahead) in [first, second].enumerated() {
            let entries = MotionReader.log("two-\(first)-\(second)-\(index)")
            #expect(entries.count == Self.pictures)
            #expect(
                entries.allSatisfy {
                    ($0.newest ?? -1) >= ($0.milliseconds + ahead) / 4 * 4 || $0.newest == Self.lastMotion
                })
        }
    }

    /// The sink waits for a picture of its own encoder, and the motion that the filter needs has no place there.
    @Test(arguments: [0, 3]) func aFilterAndASinkOfTheSameMotion(delay: Int) throws {
        var sketch = try sources()
        try sketch.add(
            MotionReader.self, "reader", options: #"{"log": "sink", "aheadMs": 40}"#, from: ["pic", "motion"],
            link: LinkRequest(queue: 1))
        try sketch.add(GraphSink.self, "shown")
        try sketch.add(
            GraphEncoder.self, "h264", options: #"{"delay": \#(delay)}"#, from: ["pic"], link: LinkRequest(queue: 1))
        try sketch.add(
            OrderSink.self, "file", options: #"{"log": "sink"}"#, from: ["h264", "motion"], link: LinkRequest(queue: 1))
        _ = try run(sketch, "a filter and a sink")
    }

    /// One filter behind the other, which needs less motion; pictures come slowly, motion often.
    @Test(arguments: [(0, 0), (0, 40), (40, 0)]) func twoFiltersInARow(first: Int, second: Int) throws {
        var sketch = try sources()
        for (index, ahead) in [first, second].enumerated() {
            try sketch.add(
                MotionReader.self, "reader\(index)",
                options: #"{"log": "row-\#(first)-\#(second)-\#(index)", "aheadMs": \#(ahead)}"#,
                from: [index == 0 ? "pic" : "reader0", "motion"], link: LinkRequest(queue: 1))
        }
        try sketch.add(GraphSink.self, "shown")
        _ = try run(sketch, "two filters in a row")
        for index in 0..<2 { #expect(MotionReader.log("row-\(first)-\(second)-\(index)").count == Self.pictures) }
    }

    /// Two filters of the same motion, whose pictures a join brings together. The one that has its motion must not stand
    /// before the join while the other one waits for motion.
    @Test(arguments: [(0, 0), (0, 40), (40, 0), (400, 0), (40, 400)]) func twoFiltersBeforeAJoin(
        first: Int, second: Int
    ) throws {
        var sketch = try sources()
        for (index, ahead) in [first, second].enumerated() {
            try sketch.add(
                MotionReader.self, "reader\(index)",
                options: #"{"log": "join-\#(first)-\#(second)-\#(index)", "aheadMs": \#(ahead)}"#,
                from: ["pic", "motion"], link: LinkRequest(queue: 1))
        }
        var tight = sketch
        try sketch.add(PairJoin.self, "pair", from: ["reader0", "reader1"])
        try sketch.add(GraphSink.self, "shown")
        // A file that wants too few places is refused.
        try tight.add(PairJoin.self, "pair", from: ["reader0", "reader1"], link: LinkRequest(queue: 1))
        try tight.add(GraphSink.self, "shown")
        #expect { _ = try Chain.plan(tight.request) } throws: { "\($0)".contains("or more, but is 1: the other path") }
        _ = try run(sketch, "two filters before a join")
        for (index, ahead) in [first, second].enumerated() {
            let entries = MotionReader.log("join-\(first)-\(second)-\(index)")
            #expect(entries.count == Self.pictures)
            #expect(
                entries.allSatisfy {
                    ($0.newest ?? -1) >= ($0.milliseconds + ahead) / 4 * 4 || $0.newest == Self.lastMotion
                })
        }
    }

    /// Two recorders of the same sound, of pictures that two encoders hold back differently.
    @Test(arguments: [(12, 0), (0, 12), (12, 12)]) func twoSinksOfEncodersThatDelay(first: Int, second: Int) throws {
        var sketch = try sources()
        for (index, delay) in [first, second].enumerated() {
            try sketch.add(
                GraphEncoder.self, "h264-\(index)", options: #"{"delay": \#(delay)}"#, from: ["pic"],
                link: LinkRequest(queue: 1))
            try sketch.add(
                OrderSink.self, "sink\(index)", options: #"{"log": "delays-\#(first)-\#(second)-\#(index)"}"#,
                from: ["h264-\(index)", "motion"], link: LinkRequest(queue: 1))
        }
        _ = try run(sketch, "two sinks")
    }

    /// The pool has only as many buffers as it must have, and they lie before the filter.
    @Test func aPoolOfTheFewestBuffers() throws {
        var sketch = try sources()
        for index in 0..<2 {
            try sketch.add(
                MotionReader.self, "reader\(index)", options: #"{"log": "few", "aheadMs": \#(40 * index)}"#,
                from: [index == 0 ? "pic" : "reader0", "motion"], link: LinkRequest(queue: 4))
        }
        try sketch.add(GraphSink.self, "shown")
        let plan = try Chain.plan(sketch.request)
        sketch.request.buffers = [0: plan.budget.pools[0].min]
        _ = try run(sketch, "few buffers")
    }
}
