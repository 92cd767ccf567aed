// SPDX-License-Identifier: Apache-2.0

import Glibc

import Testing

@testable import FrameCore

@Suite struct ChainTests {
    /// Runs to the end, or fails the test after two minutes.
    static func run(_ chain: Chain, tick: (Chain) -> Void = { _ in }) -> (result: Chain.Result, events: [Event]) {
        var events: [Event] = []
        let subscription = chain.subscribe()
        let begin = ChainClock().now()
        let result = chain.run {
            events += subscription.take().events
            tick(chain)
            if ChainClock().now() - begin > 120_000_000_000 {
                Issue.record("the chain did not end in two minutes")
                chain.cancel()
            }
        }
        return (result, events)
    }

    /// Whether all stage threads have ended. The run waits less than a second for them after a stop.
    private static func haveEnded(_ chain: Chain) -> Bool {
        chain.runners.allSatisfy { $0.thread.finished.load(ordering: .acquiring) }
    }

    @Test func deliversEveryFrameOnOneThread() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 300}"#)
        try sketch.add(ProbeFilter.self, "a")
        try sketch.add(AddOne.self, "b")
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "one-thread"}"#)
        let chain = try Chain(sketch.request)
        #expect(chain.plan.budget.pools.map(\.size) == [1])
        let (result, _) = Self.run(chain)
        #expect(result.isSuccess, "\(result)")
        let log = RecordingSink.log("one-thread")
        #expect(
            log.entries == (0..<300).map { RecordingSink.Entry(sequence: $0, pixel: UInt8(truncatingIfNeeded: $0 + 1)) }
        )
        #expect(log.stops == 1)
        #expect(chain.ledger == Ledger(captured: 300, delivered: 300))
    }

    @Test func deliversEveryFrameAcrossQueuesAndAnEncoderLikeStage() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 500}"#)
        try sketch.add(CopyTransform.self, "copy", options: #"{"delay": 3}"#, link: LinkRequest(queue: 1))
        try sketch.add(AddOne.self, "b", link: LinkRequest(queue: 3))
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "queues"}"#, link: LinkRequest(queue: 2))
        let chain = try Chain(sketch.request)
        let (result, _) = Self.run(chain)
        #expect(result.isSuccess, "\(result)")
        #expect(RecordingSink.log("queues").entries.map(\.sequence) == Array(0..<500))
        #expect(chain.ledger.inFlight == 0)
    }

    @Test func keepsAWaitingBranchWholeBesideALatestOne() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 200}"#)
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "fan-file"}"#, from: ["src"])
        try sketch.add(
            RecordingSink.self, "preview", options: #"{"log": "fan-preview", "sleepUs": 3000}"#, from: ["src"],
            link: LinkRequest(whenFull: .latest))
        let chain = try Chain(sketch.request)
        let (result, _) = Self.run(chain)
        #expect(result.isSuccess, "\(result)")
        #expect(RecordingSink.log("fan-file").entries.map(\.sequence) == Array(0..<200))
        let seen = RecordingSink.log("fan-preview").entries.count
        let counts = chain.queues.first { $0.link.to == 2 }!.queue.snapshot().counts
        #expect(seen + counts.evicted[DropReason.replaced.rawValue] == 200)
        #expect(
            counts.evicted[DropReason.replaced.rawValue] > 0, "the slow branch lost nothing: the test shows nothing")
        #expect(chain.ledger.copies == 200)
        #expect(chain.ledger.isBalanced)
        // The preview asked for the newest alone.
        #expect(chain.ledger.replaced == counts.replaced && chain.ledger.dropped == 0, "\(chain.ledger)")
        #expect(chain.progress.dropped == 0)
    }

    @Test func copiesForAWriterBesideAReader() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 300}"#)
        try sketch.add(AddOne.self, "writer", from: ["src"])
        try sketch.add(RecordingSink.self, "written", options: #"{"log": "w-written"}"#)
        try sketch.add(
            RecordingSink.self, "raw", options: #"{"log": "w-raw", "keep": 2, "sleepUs": 100}"#, from: ["src"])
        let chain = try Chain(sketch.request)
        #expect(chain.plan.notes == ["up to 1 copy per frame at writer: its input is shared with raw"])
        let (result, _) = Self.run(chain)
        #expect(result.isSuccess, "\(result)")
        #expect(RecordingSink.log("w-raw").entries.map(\.pixel) == (0..<300).map { UInt8(truncatingIfNeeded: $0) })
        #expect(
            RecordingSink.log("w-written").entries.map(\.pixel) == (0..<300).map { UInt8(truncatingIfNeeded: $0 + 1) })
        let copies = chain.runners[1].counters.pixelCopies.value
        #expect(copies > 0 && copies <= 300)
    }

    @Test func joinsTheFramesOfOneTime() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 200}"#)
        try sketch.add(CopyTransform.self, "late", options: #"{"delay": 5}"#, from: ["src"])
        try sketch.add(ProbeFilter.self, "lossy", options: #"{"dropEvery": 3}"#, from: ["src"])
        try sketch.add(PairJoin.self, "pair", from: ["late", "lossy"])
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "join"}"#)
        let chain = try Chain(sketch.request)
        // The queues on the other way, and the frame its thread has in hand.
        #expect(chain.plan.links.filter { $0.to == 2 || $0.from == 2 }.reduce(1) { $0 + $1.settings.capacity } >= 5)
        let (result, _) = Self.run(chain)
        #expect(result.isSuccess, "\(result)")
        #expect(RecordingSink.log("join").entries.map(\.sequence) == Array(0..<200))
        #expect(chain.ledger.merged == 200 - 67)
    }

    // MARK: Ledger

    @Test func catchesASwallowedFrame() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 50}"#)
        try sketch.add(CopyTransform.self, "thief", options: #"{"swallow": 20}"#)
        try sketch.add(RecordingSink.self, "sink")
        let (result, _) = Self.run(try Chain(sketch.request))
        #expect(!result.isSuccess)
        #expect(
            result.ledgerFaults.first
                == "Ledger, thief (copy): the stage lost 1 item: it took 50 and made 0, but accounts for 49 (emitted, ended, dropped or held). This is a bug of the stage or of framehost: report it, with the chain file."
        )
    }

    @Test func catchesADoubledFrame() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 50}"#)
        try sketch.add(CopyTransform.self, "echo", options: #"{"double": 20}"#)
        try sketch.add(RecordingSink.self, "sink")
        let (result, _) = Self.run(try Chain(sketch.request))
        #expect(
            result.ledgerFaults.first
                == "Ledger, echo (copy): the stage gave 1 item too many: it took 50 and made 0, but accounts for 51 (emitted, ended, dropped or held). This is a bug of the stage or of framehost: report it, with the chain file."
        )
    }

    // MARK: Retention and starvation

    @Test func namesAStageThatKeepsMoreThanItDeclares() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 500}"#)
        try sketch.add(ProbeFilter.self, "hoarder", options: #"{"keep": 2, "declared": 1}"#)
        try sketch.add(RecordingSink.self, "sink", link: LinkRequest(queue: 2))
        let (_, events) = Self.run(try Chain(sketch.request)) { if $0.progress.captured < 500 { return } }
        let event = try #require(events.first { $0.name == "over-retention" })
        #expect(
            event.text
                == "hoarder (probe) keeps 2 buffers after its call but declares a 'hold' of 1. The chain may run out of buffers. In the plugin, raise 'hold' or release buffers earlier; if it is not yours, tell its author."
        )
    }

    @Test func saysWhoHoldsTheBuffersWhenThePoolIsEmpty() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "camera", options: #"{"count": 100}"#)
        try sketch.add(ProbeFilter.self, "hoarder", options: #"{"keep": 5, "declared": 1}"#)
        try sketch.add(RecordingSink.self, "sink")
        let chain = try Chain(sketch.request)
        #expect(chain.plan.budget.pools[0].size == 2)
        var events: [Event] = []
        let subscription = chain.subscribe()
        _ = chain.run {
            events += subscription.take().events
            if events.contains(where: { $0.name == "out-of-buffers" }) { chain.cancel() }
        }
        #expect(eventually { Self.haveEnded(chain) })
        let event = try #require(events.first { $0.name == "out-of-buffers" })
        let pattern =
            #/The pool 'camera' has been empty for \d+ ms \(2 of 2 buffers held\): hoarder 2 \((oldest \d+\.\d\d s, )?declared 1\)\. ('hoarder' holds more buffers than it declares\. Report this to the author of its plugin\.|Look at what .* or a later stage\.)/#
        #expect(event.text.wholeMatch(of: pattern) != nil, "\(event.text)")
    }

    // MARK: Stopping

    @Test func drainsAnEndlessSource() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000000}"#)
        try sketch.add(CopyTransform.self, "copy", options: #"{"delay": 4}"#, link: LinkRequest(queue: 4))
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "drain"}"#, link: LinkRequest(queue: 4))
        let chain = try Chain(sketch.request)
        let (result, _) = Self.run(chain) { if $0.progress.delivered > 100 { $0.drain() } }
        #expect(result.isSuccess, "\(result)")
        #expect(chain.ledger.captured == chain.ledger.delivered)
        #expect(RecordingSink.log("drain").entries.map(\.sequence) == Array(0..<UInt64(chain.ledger.captured)))
    }

    /// Sources that would give frames without an end, and one that would sleep for ten minutes.
    @Test func stopsAtOnceInEveryState() throws {
        for place in 0..<6 {
            var sketch = ChainSketch()
            let live = place % 2 == 0
            try sketch.add(
                CountingSource.self, "src",
                options: #"{"count": 1000000000, "live": \#(live), "everyMs": \#(place == 2 ? 600_000 : 0)}"#)
            try sketch.add(CopyTransform.self, "copy", options: #"{"delay": 2}"#, link: LinkRequest(queue: 1))
            try sketch.add(
                RecordingSink.self, "sink",
                options: #"{"log": "stop-\#(place)", "sleepUs": \#(place == 3 ? 20000 : 0)}"#,
                link: LinkRequest(queue: 1))
            let chain = try Chain(sketch.request)
            var ticks = 0
            let result = chain.run {
                if place == 5 || chain.currentState == .streaming { ticks += 1 }
                if place == 5 ? ticks == 1 : ticks == 2 { chain.cancel() }
            }
            #expect(result.failures.isEmpty && result.ledgerFaults.isEmpty, "state \(place): \(result)")
            if place == 5 {
                // The first tick comes before any stage has started: then there is nothing to stop.
                #expect(RecordingSink.log("stop-\(place)").stops == 0)
            } else {
                #expect(eventually { RecordingSink.log("stop-\(place)").stops == 1 }, "state \(place)")
                #expect(eventually { Self.haveEnded(chain) }, "state \(place)")
            }
        }
    }

    @Test func abandonsAStageThatBlocksInPauseAndFinishesTheOthers() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000000}"#)
        try sketch.add(RecordingSink.self, "good", options: #"{"log": "pause-good"}"#, from: ["src"])
        try sketch.add(RecordingSink.self, "stuck", options: #"{"log": "pause-stuck", "pauseAt": 10}"#, from: ["src"])
        let chain = try Chain(sketch.request)
        let result = chain.run { if chain.runners[2].lastSequence == 10 { chain.cancel() } }
        #expect(result.abandoned.contains("stuck (recording-sink)"))
        #expect(!result.isSuccess)
        #expect(eventually { RecordingSink.log("pause-good").stops == 1 })
        #expect(RecordingSink.log("pause-stuck").stops == 0)
        // What the stuck stage has in hand is neither free nor freed.
        #expect(chain.pools[0].census().leased >= 1)
    }

    @Test func namesWhatDidNotDrainInTime() throws {
        var sketch = ChainSketch()
        sketch.request.drainSeconds = 0.2
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000000}"#)
        try sketch.add(
            RecordingSink.self, "slow", options: #"{"log": "slow-drain", "waitsForStop": true}"#,
            link: LinkRequest(queue: 4))
        let chain = try Chain(sketch.request)
        let slow = chain.runners[1]
        let result = chain.run {
            if slow.thread.inside.load(ordering: .relaxed) == Int32(slow.number) { chain.drain() }
        }
        #expect(result.failures.count == 1)
        let failure = try #require(result.failures.first?.description)
        // The source too, where it has not come back from its call.
        let pattern =
            #/the drain did not finish in 0\.200 s: (src \(counting-source\), )?slow \(recording-sink\) (is|are) still at work\. Raise "drainSeconds" in the chain file if (this stage needs|these stages need) longer\./#
        #expect(failure.wholeMatch(of: pattern) != nil, "\(failure)")
        #expect(eventually { RecordingSink.log("slow-drain").stops == 1 })
    }

    @Test func endsWithTheStagesErrorAndDeliversWhatWasBefore() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100}"#)
        try sketch.add(ProbeFilter.self, "probe", options: #"{"failAt": 40}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "fail"}"#)
        let chain = try Chain(sketch.request)
        let (result, _) = Self.run(chain)
        #expect(
            result.failures.map(\.description) == [
                "probe (probe): frame 40, PTS 0.040 s: the probe was told to fail. Tell it otherwise."
            ])
        #expect(RecordingSink.log("fail").entries.count == 40)
        #expect(result.ledgerFaults == [])
    }

    @Test func letsOthersGoOnWhenAStageMayFail() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100}"#)
        try sketch.add(RecordingSink.self, "good", options: #"{"log": "continue-good"}"#, from: ["src"])
        try sketch.add(ProbeFilter.self, "bad", options: #"{"failAt": 10}"#, from: ["src"], onError: .continue)
        try sketch.add(RecordingSink.self, "end", options: #"{"log": "continue-bad"}"#)
        let (result, _) = Self.run(try Chain(sketch.request))
        #expect(result.failures.count == 1)
        #expect(RecordingSink.log("continue-good").entries.count == 100)
        #expect(RecordingSink.log("continue-bad").entries.count == 10)
    }

    @Test func aSinkFailsAloneWhileAnotherWorks() throws {
        for (count, last, expected) in [
            (100, #"{"log": "alone-1"}"#, 100), (10_000_000, #"{"log": "alone-2", "failAt": 30}"#, 30),
        ] {
            var sketch = ChainSketch()
            try sketch.add(CountingSource.self, "src", options: #"{"count": \#(count)}"#)
            try sketch.add(RecordingSink.self, "full", options: #"{"log": "alone-full", "failAt": 10}"#, from: ["src"])
            try sketch.add(RecordingSink.self, "last", options: last, from: ["src"])
            let chain = try Chain(sketch.request)
            let (result, _) = Self.run(chain)
            #expect(result.failures.count == (expected == 100 ? 1 : 2))
            #expect(RecordingSink.log(count == 100 ? "alone-1" : "alone-2").entries.count == expected)
            // With no sink left there is nothing to run for.
            #expect((chain.ledger.captured < count) == (expected == 30))
            #expect(result.ledgerFaults == [])
        }
    }

    @Test func aSinkGetsTheKeyframeItWishesFor() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 40}"#)
        try sketch.add(UnitEncoder.self, "h264", options: #"{"gop": 1000}"#)
        // On the encoder's thread, so that it is known which unit comes next.
        try sketch.add(UnitSink.self, "one", options: #"{"wishAt": 7, "log": "wish"}"#, link: LinkRequest(queue: 0))
        let (result, _) = Self.run(try Chain(sketch.request))
        #expect(result.isSuccess, "\(result)")
        #expect(UnitSink.keyframes("wish") == [0, 8], "ten wishes are one keyframe")
    }

    // MARK: Live

    @Test func neverWaitsInALiveSource() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "cam", options: #"{"count": 60, "live": true, "everyMs": 1}"#)
        try sketch.add(RecordingSink.self, "slow", options: #"{"log": "live", "sleepUs": 200000}"#)
        let chain = try Chain(sketch.request)
        #expect(chain.plan.links[0].settings.capacity == 2)
        let (result, _) = Self.run(chain)
        #expect(result.keepsItsPromises, "\(result)")
        #expect(chain.ledger.captured == 60)
        #expect(chain.ledger.dropped > 0)
        #expect(chain.ledger.delivered + chain.ledger.dropped == 60)
    }

    // MARK: Commands

    @Test func changesLiveOptionsAndSaysAtWhichFrame() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000000, "everyMs": 1, "live": true}"#)
        try sketch.add(ProbeFilter.self, "probe")
        try sketch.add(RecordingSink.self, "sink")
        let chain = try Chain(sketch.request)
        let answers = CommandAnswers()
        var ticks = 0
        _ = chain.run {
            guard chain.runners[1].counters.taken.value > 10 else { return }
            ticks += 1
            if ticks == 1 {
                chain.set(stage: "probe", options: [JSONNode.Member(key: "level", value: 7)], reply: answers.reply(1))
                chain.set(stage: "probe", options: [JSONNode.Member(key: "keep", value: 1)], reply: answers.reply(2))
                chain.send(stage: "prob", command: "x", reply: answers.reply(3))
            }
            if answers.count == 3 || ticks > 1200 { chain.cancel() }
        }
        #expect(answers[1]?.isDone == true)
        #expect((answers[1]?.frame ?? 0) > 0)
        #expect(
            answers[2]?.text
                == "probe.keep: cannot change while the chain runs. Set it in the chain file, then reload or restart the chain. Only 'level' and 'failFrom' can change while it runs."
        )
        #expect(answers[3]?.text == "prob: no such stage. Did you mean 'probe'?")
    }
}
