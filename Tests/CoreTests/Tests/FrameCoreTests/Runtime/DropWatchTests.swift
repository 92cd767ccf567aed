// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// The event `frames-dropped`.
@Suite struct DropWatchTests {
    private static let second: Int64 = 1_000_000_000

    /// Each look at a chain that has ended, by a watch of the test's own.
    @Test func tellsOnceOfWhatDoesNotGrow() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100}"#)
        try sketch.add(ProbeFilter.self, "mid", options: #"{"dropEvery": 10}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "drops-once"}"#)
        let chain = try Chain(sketch.request)
        #expect(chain.run().isSuccess)
        let events = chain.subscribe()
        // The first who listens is told of the whole run.
        _ = events.take()
        var watch = DropWatch()
        watch.look(at: chain, now: 0)
        let told = events.take().events
        #expect(told.count == 1)
        let event = try #require(told.first)
        #expect(event.name == "frames-dropped" && event.stage == "mid" && event.level == .debug)
        #expect(event.text == "10 frames dropped at mid (by the stage), 10 in all.", "\(event.text)")
        #expect(event.details["count"]?.asInt == 10 && event.details["total"]?.asInt == 10)
        #expect(event.details["reason"]?.asString == DropReason.byStage.name)
        for seconds in Int64(1)...60 { watch.look(at: chain, now: seconds * Self.second) }
        #expect(events.take().events.isEmpty)
    }

    @Test func tellsAtOnceAndThenEveryTenSeconds() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100000000, "everyMs": 1}"#)
        try sketch.add(ProbeFilter.self, "mid", options: #"{"dropEvery": 2}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "drops-often"}"#)
        let driver = try RunningChainDriver(sketch)
        // The chain's own watch has spoken, and is silent for the next ten seconds.
        let own = try #require(driver.waitForEvent { $0.name == "frames-dropped" })
        #expect(own.stage == "mid")
        let runner = try #require(driver.chain.graph.runner(id: "mid"))
        let events = driver.chain.subscribe()
        func told() -> [Event] { events.take().events.filter { $0.name == "frames-dropped" } }
        /// Waits until more have been dropped.
        func more() {
            let before = runner.dropCount(.byStage)
            #expect(eventually { runner.dropCount(.byStage) > before })
        }
        var watch = DropWatch()
        var sum = 0
        var spoken: [Int64] = []
        for seconds in Int64(0)...30 {
            more()
            // The chain's own watch may have spoken meanwhile.
            _ = told()
            watch.look(at: driver.chain, now: seconds * Self.second)
            for event in told() {
                spoken.append(seconds)
                sum += event.details["count"]?.asInt ?? 0
                #expect(event.details["total"]?.asInt == sum, "those since the last add up to all")
            }
        }
        #expect(spoken == [0, 10, 20, 30])
        #expect(driver.finish().isSuccess)
    }

    /// A chain that is changed for days has had many stages.
    @Test func forgetsStagesAndLinksThatHaveGone() throws {
        var plain = ChainSketch()
        plain.request.spare = 8
        try plain.add(CountingSource.self, "src", options: #"{"count": 100000000, "everyMs": 1}"#)
        try plain.add(RecordingSink.self, "file", options: #"{"log": "drops-gone"}"#)
        let driver = try RunningChainDriver(plain)
        var watch = DropWatch()
        for round in Int64(0)..<3 {
            var longer = plain
            try longer.add(
                ProbeFilter.self, "mid", options: #"{"dropEvery": 2}"#, from: ["src"],
                link: LinkRequest(whenFull: .latest))
            try longer.add(RecordingSink.self, "late", options: #"{"log": "drops-late", "sleepUs": 5000}"#)
            #expect(driver.change(to: longer).isOK)
            let runner = try #require(driver.chain.graph.runner(id: "mid"))
            #expect(eventually { runner.dropCount(.byStage) > 0 })
            watch.look(at: driver.chain, now: 2 * round * Self.second)
            #expect(watch.told["\(runner.number)"]?[.byStage] != nil)
            #expect(driver.change(to: plain).isOK)
            watch.look(at: driver.chain, now: (2 * round + 1) * Self.second)
            #expect(watch.told.isEmpty, "\(watch.told)")
        }
        #expect(driver.finish().isSuccess)
    }

    @Test func looksOnceASecond() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100}"#)
        try sketch.add(ProbeFilter.self, "mid", options: #"{"dropEvery": 10}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "drops-seldom"}"#)
        let chain = try Chain(sketch.request)
        var watch = DropWatch()
        watch.look(at: chain, now: 0)
        #expect(chain.run().isSuccess)
        let events = chain.subscribe()
        _ = events.take()
        watch.look(at: chain, now: Self.second - 1)
        #expect(events.take().events.isEmpty)
        watch.look(at: chain, now: Self.second)
        #expect(events.take().events.count == 1)
    }

    /// Drops of a link are told by their reason, with the stage that lost them.
    @Test func tellsOfALinkByItsEnds() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100000000, "everyMs": 1}"#)
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "drops-file"}"#, from: ["src"])
        try sketch.add(
            RecordingSink.self, "slow", options: #"{"log": "drops-slow", "sleepUs": 20000}"#, from: ["src"],
            link: LinkRequest(whenFull: .dropOldest))
        let driver = try RunningChainDriver(sketch)
        let event = try #require(driver.waitForEvent { $0.name == "frames-dropped" })
        #expect(event.stage == "slow")
        #expect(event.details["place"]?.asString == "between src and slow")
        let total = try #require(event.details["total"]?.asInt)
        let frames = total == 1 ? "1 frame" : "\(total) frames"
        #expect(total > 0 && event.text.hasPrefix("\(frames) dropped between src and slow ("), "\(event.text)")
        #expect(driver.finish().isSuccess)
    }

    // MARK: Who is too slow

    /// A live chain whose sink needs far longer than a frame lasts, behind a filter that needs nothing.
    private func slowChain(_ log: String) throws -> ChainSketch {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "cam", options: #"{"count": 100000000, "everyMs": 1, "live": true}"#)
        try sketch.add(ProbeFilter.self, "mid")
        try sketch.add(RecordingSink.self, "slow", options: #"{"log": "\#(log)", "sleepUs": 200000}"#)
        return sketch
    }

    @Test func warnsOfWhatALiveChainLosesAndNamesTheStageThatIsTooSlow() throws {
        let driver = try RunningChainDriver(slowChain("drops-live"))
        // On a busy machine another stage may seem too slow at first.
        let event = try #require(
            driver.waitForEvent { $0.name == "frames-dropped" && $0.details["tooSlow"]?.asString == "slow" })
        let percent = try #require(event.details["busyPercent"]?.asInt)
        #expect((DropWatch.leastPercent...100).contains(percent))
        let alone = "it was at work for \(percent) % of the last second."
        // The filter before it may have been seen at work too.
        let shared = /its thread was at work for \d+ % of the last second, (\d+) % in this stage\./
        let why = try #require(event.text.firstRange(of: " in all. slow (recording-sink) is too slow: "))
        let rest = event.text[why.upperBound...]
        let share = try? shared.prefixMatch(in: rest)
        #expect(share.map { Int($0.1) == percent } ?? rest.hasPrefix(alone), "\(event.text)")
        #expect(
            rest.hasSuffix(
                " Check the disk, the network or the device that it writes to, or give it less: a smaller picture, a lower rate."
            ), "\(event.text)")
        let result = driver.finish()
        // Lost frames are no failure of a live chain.
        #expect(result.keepsItsPromises)
        let place = try #require(event.details["place"]?.asString)
        let line = try #require(result.drops.first { $0.contains(" lost \(place): ") }, "\(result.drops)")
        let pattern = /\d+ frames lost .*: slow \(recording-sink\) was too slow( most often, then .*)?\./
        #expect(line.wholeMatch(of: pattern) != nil, "\(line)")
    }

    /// Every ten seconds for programs, but a line for people only once a minute.
    @Test func warnsOfAPlaceOnceAMinute() throws {
        let driver = try RunningChainDriver(slowChain("drops-seldom-warned"))
        // The chain's own watch has spoken of this place, and warns of it no more for a minute.
        let own = try #require(driver.waitForEvent { $0.name == "frames-dropped" && $0.level == .warning })
        let events = driver.chain.subscribe()
        func lost() -> Int { LiveLosses(driver.chain.graph).total }
        var watch = DropWatch()
        var levels: [Int64: Event.Level] = [:]
        for seconds in Int64(0)...70 {
            let before = lost()
            #expect(eventually { lost() > before })
            _ = events.take()
            watch.look(at: driver.chain, now: seconds * Self.second)
            for event in events.take().events where event.details["place"] == own.details["place"] {
                // The chain's own watch speaks of it too, in time that is not simulated.
                if event.level == .warning || levels[seconds] == nil { levels[seconds] = event.level }
            }
        }
        // A look too few to name a stage: what is lost is told a second later.
        #expect(levels.filter { $0.value == .warning }.keys.sorted() == [1, 61], "\(levels)")
        #expect(driver.finish().keepsItsPromises)
    }

    /// What a chain without a live source drops is wanted so.
    @Test func doesNotWarnOfWhatIsDroppedOnPurpose() throws {
        var file = ChainSketch()
        try file.add(CountingSource.self, "file", options: #"{"count": 100000000, "everyMs": 1}"#)
        try file.add(
            RecordingSink.self, "slow", options: #"{"log": "drops-file-newest", "sleepUs": 20000}"#,
            link: LinkRequest(whenFull: .dropNewest))
        let driver = try RunningChainDriver(file)
        let event = try #require(driver.waitForEvent { $0.name == "frames-dropped" })
        #expect(event.level == .debug && event.details["tooSlow"] == nil, "\(event.text)")
        let result = driver.finish()
        #expect(result.isSuccess && result.drops.isEmpty, "\(result.drops)")
    }

    /// Frames that a newer one replaces in a `latest` link are no drops, and nothing is said of them.
    @Test func saysNothingOfWhatANewerOneReplaces() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "cam", options: #"{"count": 300, "everyMs": 1, "live": true}"#)
        try sketch.add(
            RecordingSink.self, "slow", options: #"{"log": "drops-latest", "sleepUs": 20000}"#,
            link: LinkRequest(whenFull: .latest))
        let chain = try Chain(sketch.request)
        let events = chain.subscribe()
        let result = chain.run()
        #expect(result.isSuccess && result.drops.isEmpty, "\(result.drops)")
        #expect(chain.ledger.replaced > 0 && chain.ledger.dropped == 0)
        #expect(!events.take().events.contains { $0.name == "frames-dropped" })
    }
}
