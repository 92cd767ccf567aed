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
        // At most a few for each item, where the thread is not idle meanwhile; the whole mailbox for each would be 25,600.
        #expect((20...10_000).contains(opened.now), "\(opened.now) messages")
        return chain
    }

    @Test(arguments: ["src", "probe"]) func itemsOfASourceAndOfAQueueGoOn(stage: String) throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100}"#)
        try sketch.add(ProbeFilter.self, "probe", link: LinkRequest(queue: 1))
        try sketch.add(CountSink.self, "sink")
        #expect(try flood(stage, sketch).ledger == Ledger(captured: 100, delivered: 100))
    }

    /// The other way round: a command is answered though its thread always has a further item.
    @Test func aMessageIsReadBetweenItemsThatNeverRunOut() throws {
        let count = 20_000
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: "{\"count\": \(count)}")
        try sketch.add(ProbeFilter.self, "probe", link: LinkRequest(queue: 8))
        try sketch.add(CountSink.self, "sink", link: LinkRequest(queue: 8))
        let chain = try Chain(sketch.request)
        let seen = Locked<[Int]>([])
        let sender = try TestThread("sender") {
            _ = eventually { chain.progress.captured > 100 }
            for stage in ["src", "probe", "sink"] {
                let message = ThreadState.Message(open: { seen.withLock { $0.append(chain.progress.captured) } })
                _ = chain.graph.runner(id: stage)?.thread.post(message)
            }
        }
        let (result, _) = ChainTests.run(chain)
        sender.join()
        #expect(result.isSuccess, "\(result)")
        #expect(seen.now.count == 3 && seen.now.allSatisfy { $0 < count }, "\(seen.now)")
    }

    /// The commands before it would take many seconds.
    @Test func aChangeDoesNotWaitForTheCommandsBeforeIt() throws {
        var sketch = ChainSketch()
        sketch.request.spare = 4
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(ProbeFilter.self, "probe", link: LinkRequest(queue: 1))
        try sketch.add(CountSink.self, "sink")
        var longer = sketch
        try longer.add(CountSink.self, "late", from: ["probe"], link: LinkRequest(queue: 2))
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(10)
        let thread: ThreadState = try #require(driver.chain.graph.runner(id: "probe")).thread
        let opened = Locked(0)
        let command = ThreadState.Message(open: {
            opened.withLock { $0 += 1 }
            pauseTest(ms: 100)
        })
        for _ in 0..<200 { #expect(thread.post(command)) }
        let answer = driver.change(to: longer)
        #expect(answer.isOK, "\(answer)")
        #expect(opened.now < 150, "\(opened.now) commands came first")
        driver.chain.cancel()
        #expect(driver.finish().ledgerFaults.isEmpty)
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

    /// Each sink waits for the input that the other one has full, and must see so while the other reads messages.
    @Test func itemsOfTwoSinksOfTheSameInputsGoOn() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "pic", options: #"{"count": 200}"#, from: [])
        try sketch.add(UnitEncoder.self, "h264")
        try sketch.add(BlockSource.self, "snd", options: #"{"count": 21}"#, from: [])
        try sketch.add(BlockEncoder.self, "aac")
        for (id, inputs) in [("a", ["h264", "aac"]), ("b", ["aac", "h264"])] {
            try sketch.add(
                OrderSink.self, id, options: #"{"log": "flood-\#(id)"}"#, from: inputs, link: LinkRequest(queue: 1))
        }
        _ = try flood("a", sketch)
        #expect(OrderSink.log("flood-a").count { $0.input == 0 } == 200)
        #expect(OrderSink.log("flood-b").count { $0.input == 1 } == 200)
    }

    /// Commands that were sent before a stage has taken its last item are carried out.
    @Test(arguments: ["src", "probe"]) func whatIsLeftAtTheEndIsDone(stage: String) throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 3}"#)
        try sketch.add(ProbeFilter.self, "probe", link: LinkRequest(queue: 1))
        try sketch.add(CountSink.self, "sink")
        let chain = try Chain(sketch.request)
        let runner = try #require(chain.graph.runner(id: stage))
        let (opened, refused) = (Locked(0), Locked(0))
        // One before each of the three items and one before the end: one is left.
        for _ in 0..<5 {
            let message = ThreadState.Message(
                open: {
                    opened.withLock { $0 += 1 }
                    pauseTest(ms: 60)
                }, refuse: { refused.withLock { $0 += 1 } })
            #expect(runner.thread.post(message))
        }
        let (result, _) = ChainTests.run(chain)
        #expect(result.isSuccess, "\(result)")
        #expect(opened.now == 5 && refused.now == 0)
    }

    // MARK: One thread

    /// A message that takes as long as all that are read between two items.
    private func slowMessage(_ done: @escaping () -> Void) -> ThreadState.Message {
        ThreadState.Message(open: {
            done()
            let end = ChainClock.system.now() + ThreadState.longestReadNs
            while ChainClock.system.now() < end {}
        })
    }

    /// What does not fit between two items is left for after the next one, and the thread does not sleep meanwhile.
    @Test func theThreadReadsForAShortTimeAndComesBack() {
        let thread = ThreadState(name: "short")
        var (read, interrupts) = (0, 0)
        thread.interrupt = { _ in interrupts += 1 }
        for _ in 0..<3 { #expect(thread.post(slowMessage { read += 1 })) }
        for round in 1...3 {
            thread.readMail()
            #expect(read == round && thread.hasMail == (round < 3))
            #expect(interrupts == 3 + min(round, 2), "one with each post, one where something is left")
        }
    }

    /// Where the items take their time, so may the messages.
    @Test func messagesGetAQuarterOfTheTimeThatItemsTook() {
        let thread = ThreadState(name: "quarter")
        var read = 0
        func post(_ count: Int, ms: Int64) {
            for _ in 0..<count {
                #expect(
                    thread.post(
                        ThreadState.Message(open: {
                            read += 1
                            if ms > 0 { pauseTest(ms: ms) }
                        })))
            }
        }
        post(1, ms: 0)
        thread.readMail()
        // Right after that only as many as fit into the longest time.
        post(200, ms: 1)
        thread.readMail()
        #expect(read > 1 && read < 201)
        while thread.hasMail { thread.readMail() }
        // The items took their time. A test that is held up meanwhile tries again.
        var isAllAtOnce = false
        for _ in 0..<20 where !isAllAtOnce {
            pauseTest(ms: 120)
            post(20, ms: 0)
            thread.readMail()
            isAllAtOnce = !thread.hasMail
            while thread.hasMail { thread.readMail() }
        }
        #expect(isAllAtOnce)
    }

    /// A change of the chain counts on it, however much was sent before.
    @Test func anErrandIsDoneBeforeTheNextItemAndBeforeAllMessages() {
        let thread = ThreadState(name: "errand")
        var done: [String] = []
        for _ in 0..<ThreadState.mostMessages - 2 { #expect(thread.post(slowMessage { done.append("message") })) }
        let errands = (0..<2).map { number in Errand { done.append("errand \(number)") } }
        for errand in errands { errand.post(to: thread) }
        thread.readMail()
        #expect(done == ["errand 0", "errand 1", "message"])
        #expect(errands[0].isSettled && errands[1].isSettled && thread.hasMail)
        let late = Errand { done.append("late") }
        late.post(to: thread)
        thread.readMail()
        #expect(done == ["errand 0", "errand 1", "message", "late", "message"])
    }

    /// Who posted the errand hears that the thread has ended, and what was sent behind it is done.
    @Test func anErrandAtTheEndKeepsNothingFromBeingRead() {
        let thread = ThreadState(name: "rest")
        var (read, refused) = (0, 0)
        let errand = Errand {
            read += 100
        } refused: {
            refused += 1
        }
        errand.post(to: thread)
        for _ in 0..<2 { #expect(thread.post(ThreadState.Message(open: { read += 1 }))) }
        thread.readRest()
        #expect(read == 2 && thread.hasMail && !errand.isSettled)
        thread.closeMail()
        #expect(read == 2 && refused == 1 && errand.isSettled && !thread.hasMail)
    }

    @Test func aStopEndsTheReadingToo() {
        let (thread, stop) = (ThreadState(name: "stopped"), StopSignal())
        thread.stop = stop
        var (read, refused) = (0, 0)
        for _ in 0..<3 {
            let message = ThreadState.Message(
                open: {
                    read += 1
                    stop.raise()
                }, refuse: { refused += 1 })
            #expect(thread.post(message))
        }
        thread.readMail()
        thread.readRest()
        #expect(read == 1)
        thread.closeMail()
        #expect(refused == 2 && !thread.hasMail)
    }
}
