// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Messages that come without an end, each slower than the next one comes, on the real runner.
@Suite struct MessageFloodTests {
    /// Keeps the mailbox of a stage's thread full for the whole run, and expects the chain to end all the same.
    private func flood(_ stage: String, _ sketch: ChainSketch) throws -> Chain {
        let chain = try Chain(sketch.request)
        let runner = try #require(chain.graph.runner(id: stage))
        let (opened, isOver) = (Locked(0), Locked(false))
        let message = ThreadState.Message(open: {
            opened.withLock { $0 += 1 }
            pauseTest(ms: 3)
        })
        while runner.thread.post(message) {}
        let sender = try TestThread("sender") {
            while !isOver.now {
                while runner.thread.post(message) {}
                pauseTest(ms: 1)
            }
        }
        let (result, _) = ChainTests.run(chain)
        isOver.set(true)
        sender.join()
        #expect(result.isSuccess, "\(result)")
        #expect(chain.ledger.isBalanced, "\(chain.ledger)")
        // One message takes longer than all that is read at a time.
        #expect((20...2000).contains(opened.now), "\(opened.now) messages for 100 items")
        return chain
    }

    @Test(arguments: ["src", "probe"]) func itemsOfASourceAndOfAQueueGoOn(stage: String) throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100}"#)
        try sketch.add(ProbeFilter.self, "probe", link: LinkRequest(queue: 1))
        try sketch.add(CountSink.self, "sink")
        #expect(try flood(stage, sketch).ledger == Ledger(captured: 100, delivered: 100))
    }

    @Test func itemsOfAJoinGoOn() throws {
        var sketch = ChainSketch()
        try sketch.add(TimedSource.self, "a", options: #"{"count": 100}"#)
        try sketch.add(TimedSource.self, "b", options: #"{"count": 100}"#)
        try sketch.add(NotingJoin.self, "pair", options: #"{"log": "flood"}"#, from: ["a", "b"])
        try sketch.add(CountSink.self, "sink")
        _ = try flood("pair", sketch)
        #expect(NotingJoin.notes("flood") == (0..<100).map { "\($0)+\($0)" })
    }

    @Test func itemsOfASinkOfSeveralInputsGoOn() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "pic", options: #"{"count": 100}"#, from: [])
        try sketch.add(UnitEncoder.self, "h264")
        try sketch.add(BlockSource.self, "snd", options: #"{"count": 11}"#, from: [])
        try sketch.add(BlockEncoder.self, "aac")
        try sketch.add(OrderSink.self, "sink", options: #"{"log": "flood"}"#, from: ["h264", "aac"])
        _ = try flood("sink", sketch)
        #expect(OrderSink.log("flood").count { $0.input == 0 } == 100)
    }

    @Test func picturesOfAFilterOfSeveralInputsGoOn() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "pic", options: #"{"count": 100}"#, from: [])
        try sketch.add(MotionTicker.self, "motion", options: #"{"count": 30}"#, from: [])
        try sketch.add(MotionReader.self, "reader", options: #"{"log": "flood"}"#, from: ["pic", "motion"])
        try sketch.add(CountSink.self, "sink")
        _ = try flood("reader", sketch)
        #expect(MotionReader.log("flood").count == 100)
    }

    /// What does not fit between two items is left for after the next one, and the thread does not sleep meanwhile.
    @Test func theThreadReadsForAShortTimeAndComesBack() {
        let thread = ThreadState(name: "short")
        var (read, interrupts) = (0, 0)
        thread.interrupt = { interrupts += 1 }
        for _ in 0..<3 {
            #expect(
                thread.post(
                    ThreadState.Message(open: {
                        read += 1
                        let end = ChainClock.system.now() + ThreadState.longestReadNs
                        while ChainClock.system.now() < end {}
                    })))
        }
        for round in 1...3 {
            thread.readMail()
            #expect(read == round && thread.hasMail == (round < 3))
            #expect(interrupts == 3 + min(round, 2), "one with each post, one where something is left")
        }
    }
}
