// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// What a chain and its stages say that they are doing, and whether they do it.
@Suite struct ChainStatusTests {
    private static let second: Int64 = 1_000_000_000

    private func sketch(_ log: String, filter: String = "{}", onError: OnError? = nil) throws -> ChainSketch {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100000000, "everyMs": 1}"#)
        try sketch.add(ProbeFilter.self, "mid", options: filter, onError: onError)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "\#(log)"}"#)
        return sketch
    }

    /// The `state` events of the chain (nil) or of a stage, in order, without those of start and end.
    private func words(_ driver: RunningChainDriver, _ stage: String?) -> [String] {
        driver.allEvents.filter { $0.name == "state" && $0.stage == stage }
            .compactMap { $0.details["state"]?.asString }
            .filter { !["starting", "draining", "stopped", "failed", "finishing"].contains($0) || stage != nil }
    }

    private func waitForState(_ driver: RunningChainDriver, _ stage: String?, _ state: String) {
        driver.waitForEvent { $0.name == "state" && $0.stage == stage && $0.details["state"]?.asString == state }
    }

    // MARK: Words

    @Test func streamsAndIsHealthy() throws {
        let driver = try RunningChainDriver(sketch("status-plain"))
        #expect(eventually { driver.chain.status.state == .streaming })
        let status = driver.chain.status
        #expect(status.isHealthy && status.problems == [])
        #expect(status.stages.map(\.id) == ["src", "mid", "sink"])
        #expect(status.stages.allSatisfy { $0.state == .streaming && $0.reason.isEmpty })
        #expect(
            status.json.text()
                == #"{"state":"streaming","healthy":true,"problems":[],"stages":[{"id":"src","state":"streaming"},{"id":"mid","state":"streaming"},{"id":"sink","state":"streaming"}]}"#
        )
        #expect(driver.finish().isSuccess)
        #expect(driver.chain.status.state == .stopped)
        #expect(driver.chain.status.problems == ["The chain is stopped."])
    }

    @Test func isNotHealthyBeforeItRuns() throws {
        let chain = try Chain(sketch("status-before").request)
        #expect(chain.status.state == .stopped)
        var watch = HealthWatch()
        watch.look(at: chain, now: 0) { [] }
        #expect(watch.status.now.problems == ["The chain is stopped."])
        #expect(!watch.status.now.isHealthy)
        _ = chain
    }

    @Test func saysThatItIsPausedAndThatItGoesOn() throws {
        let driver = try RunningChainDriver(sketch("status-paused"))
        driver.waitForFrames(3)
        #expect(driver.answer { driver.chain.pause(stage: "src", reply: $0) }.isOK)
        #expect(driver.chain.status.state == .paused, "at once, before anybody has looked after it")
        waitForState(driver, nil, "paused")
        waitForState(driver, "src", "paused")
        #expect(driver.chain.status.isHealthy, "somebody wanted it so")
        #expect(driver.answer { driver.chain.resume(stage: "src", reply: $0) }.isOK)
        #expect(eventually { driver.chain.status.state == .streaming })
        #expect(eventually { words(driver, "src") == ["paused", "streaming"] })
        #expect(eventually { words(driver, nil) == ["streaming", "paused", "streaming"] })
        let event = try #require(driver.allEvents.first { $0.name == "state" && $0.stage == "src" })
        #expect(event.text == "src: paused.")
        #expect(driver.finish().isSuccess)
    }

    /// A filter that lets frames by is paused, and the chain streams.
    @Test func oneStageThatIsPausedDoesNotPauseTheChain() throws {
        let driver = try RunningChainDriver(sketch("status-filter"))
        #expect(driver.answer { driver.chain.pause(stage: "mid", reply: $0) }.isOK)
        waitForState(driver, "mid", "paused")
        #expect(driver.chain.status.state == .streaming)
        #expect(words(driver, nil) == ["streaming"])
        #expect(driver.finish().isSuccess)
    }

    @Test func rendersWhileSomebodyIsGivenPictures() throws {
        let driver = try RunningChainDriver(sketch("status-rendering"))
        // A busy machine may look only when nobody has looked for two seconds.
        let deadline = ChainClock.system.now() + 60_000_000_000
        repeat {
            #expect(try driver.chain.picture(of: "mid", within: 60) != nil)
        } while !words(driver, nil).contains("rendering") && ChainClock.system.now() < deadline
        waitForState(driver, nil, "rendering")
        // Two seconds after the last picture nobody looks any more.
        #expect(eventually { driver.chain.status.state == .streaming })
        #expect(eventually { words(driver, nil).prefix(3) == ["streaming", "rendering", "streaming"] })
        #expect(words(driver, "mid") == [], "it is the chain's word")
        #expect(driver.finish().isSuccess)
    }

    @Test func recoversAsLongAsAStageSaysSo() throws {
        var sketch = ChainSketch()
        try sketch.add(AwaySource.self, "cam", options: #"{"log": "status-away"}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "status-away"}"#)
        let driver = try RunningChainDriver(sketch)
        AwaySource.reasons.withLock { $0["status-away"] = "/dev/video7 was unplugged" }
        waitForState(driver, "cam", "recovering")
        waitForState(driver, nil, "recovering")
        let stage = try #require(driver.chain.status.stages.first)
        #expect(stage.state == .recovering && stage.reason == "/dev/video7 was unplugged")
        #expect(driver.chain.status.isHealthy, "its stand-in is shown")
        let event = try #require(driver.allEvents.first { $0.name == "state" && $0.stage == "cam" })
        #expect(event.details["reason"]?.asString == "/dev/video7 was unplugged")
        AwaySource.reasons.withLock { $0["status-away"] = nil }
        #expect(eventually { words(driver, "cam") == ["recovering", "streaming"] })
        #expect(eventually { words(driver, nil) == ["streaming", "recovering", "streaming"] })
        #expect(driver.finish().isSuccess)
    }

    /// What it gives until then is its stand-in alone.
    @Test func isNotHealthyBeforeASourceHasBeenThere() throws {
        AwaySource.reasons.withLock { $0["status-never"] = "'rtsp://door/live' is not there yet" }
        var sketch = ChainSketch()
        try sketch.add(AwaySource.self, "door", options: #"{"log": "status-never"}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "status-never"}"#)
        let driver = try RunningChainDriver(sketch)
        waitForState(driver, "door", "recovering")
        let problem = "door (away-source) has not been connected yet: 'rtsp://door/live' is not there yet."
        #expect(eventually { driver.chain.status.problems == [problem] })
        driver.waitForFrames(20)
        #expect(driver.chain.status.problems == [problem] && driver.chain.status.state == .recovering)
        #expect(driver.chain.status.isAtWork, "starting the chain anew would not bring it")
        AwaySource.reasons.withLock { $0["status-never"] = nil }
        #expect(eventually { driver.chain.status.isHealthy })
        // Once it was there it may go.
        AwaySource.reasons.withLock { $0["status-never"] = "lost" }
        waitForState(driver, nil, "recovering")
        #expect(eventually { driver.chain.status.stages[0].reason == "lost" })
        pauseTest(ms: 600)
        #expect(driver.chain.status.isHealthy)
        #expect(driver.finish().isSuccess)
    }

    @Test func saysThatAStageHasFailed() throws {
        let driver = try RunningChainDriver(sketch("status-failed", filter: #"{"failAt": 5}"#, onError: .bypass))
        waitForState(driver, "mid", "failed")
        let status = driver.chain.status
        #expect(status.stages[1].state == .failed)
        #expect(status.state == .streaming, "the others go on")
        #expect(status.problems == ["mid (probe) has failed."])
        _ = driver.finish()
        #expect(driver.chain.status.state == .failed)
    }

    @Test func recoversWhileAFailedStageIsAboutToBeStartedAnew() throws {
        let driver = try RunningChainDriver(sketch("status-restart", filter: #"{"failAt": 5}"#, onError: .restart))
        waitForState(driver, "mid", "recovering")
        let event = try #require(driver.allEvents.first { $0.name == "state" && $0.stage == "mid" })
        #expect(event.details["reason"]?.asString == "the probe was told to fail")
        // A second later it runs again.
        #expect(eventually { words(driver, "mid").suffix(1) == ["streaming"] })
        #expect(eventually { driver.chain.status.isHealthy && driver.chain.status.state == .streaming })
        #expect(driver.finish().isSuccess)
    }

    // MARK: Health

    /// By a watch of the test's own, whose time is what the test says.
    @Test func namesASourceThatGivesNothing() throws {
        var sketch = ChainSketch()
        try sketch.add(AwaySource.self, "cam", options: #"{"log": "status-silent", "most": 5}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "status-silent"}"#)
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(5)
        #expect(eventually { driver.chain.runners[0].counters.emitted.value == 5 })
        var watch = HealthWatch()
        func look(_ seconds: Int64) -> [String] {
            watch.look(at: driver.chain, now: 1_000_000 * Self.second + seconds * Self.second) { [] }
            return watch.status.now.problems
        }
        #expect(look(0) == [])
        #expect(look(5) == [], "not yet")
        #expect(look(6) == ["cam (away-source) has given nothing for 6 s."])
        #expect(look(60) == ["cam (away-source) has given nothing for 60 s."])
        #expect(!watch.status.now.isHealthy && !watch.status.now.isAtWork)
        // It says why, and waits by itself: starting the chain anew would not bring it.
        AwaySource.reasons.withLock { $0["status-silent"] = "'rtsp://door/live' was lost" }
        waitForState(driver, "cam", "recovering")
        #expect(look(61) == ["cam (away-source) has given nothing for 61 s: 'rtsp://door/live' was lost."])
        #expect(!watch.status.now.isHealthy && watch.status.now.isAtWork)
        AwaySource.reasons.withLock { $0["status-silent"] = nil }
        waitForState(driver, "cam", "streaming")
        // Somebody pauses it: then it has nothing to give.
        #expect(driver.answer { driver.chain.pause(stage: "cam", reply: $0) }.isOK)
        #expect(look(70) == [])
        #expect(driver.answer { driver.chain.resume(stage: "cam", reply: $0) }.isOK)
        #expect(look(74) == [], "counted from when it went on")
        #expect(look(80).count == 1)
        #expect(driver.finish().isSuccess)
    }

    /// A source of a frame each 20 s takes the place of one of a hundred a second.
    @Test func judgesAReplacedSourceByItsOwnRate() throws {
        func sketch(_ log: String, frameMs: Int) throws -> ChainSketch {
            var sketch = ChainSketch()
            try sketch.add(AwaySource.self, "cam", options: #"{"log": "", "most": 5, "frameMs": \#(frameMs)}"#)
            try sketch.add(RecordingSink.self, "sink", options: #"{"log": "\#(log)"}"#, link: LinkRequest(queue: 0))
            return sketch
        }
        let driver = try RunningChainDriver(sketch("status-fast", frameMs: 10))
        driver.waitForFrames(5)
        let answer = driver.change(to: try sketch("status-slow", frameMs: 20_000))
        #expect(answer.isOK, "\(answer.error)")
        #expect(eventually { driver.chain.runners[0].counters.emitted.value == 10 })
        var watch = HealthWatch()
        func look(_ seconds: Int64) -> [String] {
            watch.look(at: driver.chain, now: 1_000_000 * Self.second + seconds * Self.second) { [] }
            return watch.status.now.problems
        }
        #expect(look(0) == [])
        #expect(look(39) == [])
        #expect(look(41) == ["cam (away-source) has given nothing for 41 s."])
        #expect(driver.finish().isSuccess)
    }

    @Test func looksFourTimesASecond() throws {
        let driver = try RunningChainDriver(sketch("status-often"))
        var watch = HealthWatch()
        var asked = 0
        for ms in Int64(0)..<1000 {
            watch.look(at: driver.chain, now: ms * 1_000_000) {
                asked += 1
                return []
            }
        }
        #expect(asked == 4)
        #expect(driver.finish().isSuccess)
    }

    @Test func namesACallThatHangs() throws {
        let driver = try RunningChainDriver(sketch("status-hang"))
        var watch = HealthWatch()
        watch.look(at: driver.chain, now: 0) { ["mid (probe): process of frame 3 has not returned for 10.0 s."] }
        #expect(watch.status.now.problems == ["mid (probe): process of frame 3 has not returned for 10.0 s."])
        #expect(driver.finish().isSuccess)
    }

    @Test func namesALinkThatStandsStill() throws {
        var sketch = ChainSketch()
        sketch.request.drainSeconds = 0.2
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100000000}"#)
        try sketch.add(
            RecordingSink.self, "sink", options: #"{"log": "status-stalled", "pauseAt": 5}"#,
            link: LinkRequest(queue: 2, whenFull: .wait))
        let driver = try RunningChainDriver(sketch)
        #expect(eventually { driver.chain.status.problems.contains { $0.hasPrefix("The link ") } })
        let problem = try #require(driver.chain.status.problems.first { $0.hasPrefix("The link ") })
        #expect(
            problem.contains("src") && problem.contains("sink") && problem.contains(" has been full for "), "\(problem)"
        )
        #expect(!driver.chain.status.isHealthy)
        _ = driver.finish()
    }
}

/// Gives frames, and is away as long as a test says so.
private final class AwaySource: Source {
    static let info = StageInfo(id: "away-source", summary: "Goes away.", output: .video(.gray8))

    struct Options: StageOptions {
        @Option(help: "Under which name the reason is found.") var log = ""
        @Option(help: "Frames until it gives nothing any more.") var most = 1_000_000
        @Option(help: "The time of a frame by its format.") var frameMs = 10
    }

    static let reasons = Locked<[String: String]>([:])

    var options: Options
    let context: StageContext
    private var next = 0

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    func negotiate() throws -> MediaFormat {
        .video(VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(1000, Int32(options.frameMs))))
    }

    func start() { context.recovering = Self.reasons.withLock { $0[options.log] } }

    func produce(_ output: Output) throws -> SourceProgress {
        let reason = Self.reasons.withLock { $0[options.log] }
        if context.recovering != reason { context.recovering = reason }
        guard context.sleep(until: context.clock.now() + 2_000_000) else { return .ended }
        guard next < options.most, let frame = try output.makeFrame() else { return .more }
        frame.pts = MediaTime(nanoseconds: Int64(next) * 10_000_000)
        next += 1
        try output.emit(frame)
        return .more
    }
}
