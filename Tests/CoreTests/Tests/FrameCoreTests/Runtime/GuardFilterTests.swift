// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Hides something in each frame, as a stand-in writes a mark.
final class Cover: Filter {
    static let info = StageInfo(
        id: "cover", summary: "Hides.", input: .anyVideo, output: .sameAsInput, access: .modify)

    struct Options: StageOptions {
        @Option(help: "No frame may pass.") var guards = true
        @Option(help: "The frame at which it fails.") var failsAt = -1
        @Option(help: "What it hides.") var hides: String? = nil
        @Option(help: "Which mark it writes.") var mark = 0
    }

    var options: Options
    private var count = 0

    init(options: Options, context: StageContext) { self.options = options }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.mustNotBePassed = options.guards
        demand.hides = options.hides
        return demand
    }

    func process(_ frame: inout Frame) throws -> Verdict {
        count += 1
        if count == options.failsAt { throw FrameHostError(.broken, what: "asked to fail") }
        frame.withMutablePlane(0) { $0.row(0)[options.mark] = 255 }
        return .forward
    }
}

/// Counts frames with and without the mark.
final class CoverCheck: Sink {
    static let info = StageInfo(id: "cover-check", summary: "Looks.", input: .anyVideo)
    struct Options: StageOptions {
        @Option(help: "Name under which the counts are found.") var log = ""
        @Option(help: "How many marks a covered frame has.") var marks = 1
    }
    private static let counts = Locked<[String: (covered: Int, bare: Int)]>([:])
    static func count(_ log: String) -> (covered: Int, bare: Int) { counts.withLock { $0[log] ?? (0, 0) } }

    var options: Options
    init(options: Options, context: StageContext) { self.options = options }

    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        guard case .frame(let frame) = consume input else { return .dropped(.byStage) }
        Self.count(options.log, isCovered: Self.isCovered(frame, marks: options.marks))
        return .delivered
    }

    static func isCovered(_ frame: borrowing Frame, marks: Int) -> Bool {
        frame.withPlane(0) { plane in (0..<marks).allSatisfy { plane.row(0)[$0] == 255 } }
    }

    static func count(_ log: String, isCovered: Bool) {
        counts.withLock {
            var count = $0[log] ?? (0, 0)
            if isCovered { count.covered += 1 } else { count.bare += 1 }
            $0[log] = count
        }
    }
}

/// A stage that hides something is never passed by.
@Suite struct GuardFilterTests {
    private func sketch(_ log: String, cover: String) throws -> ChainSketch {
        var sketch = ChainSketch()
        try sketch.add(
            CountingSource.self, "pic", options: #"{"count": 100000, "live": true, "everyMs": 2}"#, from: [])
        try sketch.add(Cover.self, "cover", options: cover)
        try sketch.add(CoverCheck.self, "sink", options: #"{"log": "\#(log)"}"#)
        return sketch
    }

    @Test(arguments: [true, false]) func endsFramesWhileItIsPaused(guards: Bool) throws {
        let log = "paused-\(guards)"
        let driver = try RunningChainDriver(try sketch(log, cover: #"{"guards": \#(guards)}"#))
        let cover = try #require(driver.chain.graph.runner(id: "cover"))
        func waitForTaken(_ count: Int) {
            #expect(eventually { cover.counters.taken.value >= count }, "\(cover.counters.taken.value) of \(count)")
        }
        waitForTaken(20)
        #expect(driver.answer { driver.chain.pause(stage: "cover", reply: $0) }.isOK)
        waitForTaken(cover.counters.taken.value + 20)
        #expect(eventually { guards || CoverCheck.count(log).bare >= 20 })
        #expect(driver.answer { driver.chain.resume(stage: "cover", reply: $0) }.isOK)
        waitForTaken(cover.counters.taken.value + 20)
        #expect(eventually { CoverCheck.count(log).covered >= 30 })
        #expect(driver.finish().keepsItsPromises)
        let count = CoverCheck.count(log)
        #expect(count.covered >= 30)
        #expect(guards ? count.bare == 0 : count.bare >= 20, "\(count)")
        #expect(cover.dropCount(.paused) >= (guards ? 20 : 0))
        #expect(driver.chain.ledger.isBalanced)
    }

    /// Privacy is turned on while the filter is paused.
    @Test func endsFramesWhereItReplacesOneThatIsPausedAndMayBePassed() throws {
        let log = "paused-replaced"
        var open = try sketch(log, cover: #"{"guards": false}"#)
        var guarded = try sketch(log, cover: #"{"guards": true}"#)
        (open.request.spare, guarded.request.spare) = (4, 4)
        let driver = try RunningChainDriver(open)
        let cover = try #require(driver.chain.graph.runner(id: "cover"))
        #expect(driver.answer { driver.chain.pause(stage: "cover", reply: $0) }.isOK)
        #expect(eventually { CoverCheck.count(log).bare >= 20 })
        let replaced = driver.change(to: guarded)
        #expect(replaced.isOK && replaced.details["replaced"] == ["cover"], "\(replaced.error)")
        driver.waitForEvent {
            $0.name == "stage-paused" && $0.text == "cover (cover) is paused: no frame passes meanwhile."
        }
        let (emitted, taken) = (cover.counters.emitted.value, cover.counters.taken.value)
        #expect(eventually { cover.counters.taken.value >= taken + 20 }, "\(cover.counters.taken.value) after \(taken)")
        #expect(cover.counters.emitted.value == emitted, "frames pass a stage that must not be passed")
        #expect(cover.mode == .drops && driver.chain.status.stages[1].state == .paused)
        let covered = CoverCheck.count(log).covered
        #expect(driver.answer { driver.chain.resume(stage: "cover", reply: $0) }.isOK)
        #expect(eventually { CoverCheck.count(log).covered >= covered + 20 })
        #expect(driver.finish().keepsItsPromises)
        #expect(CoverCheck.count(log).bare <= emitted)
        #expect(driver.chain.ledger.isBalanced)
    }

    /// The pause may have been asked for of the instance before.
    @Test(arguments: [true, false]) func decidesWhetherFramesPassWhenItIsPaused(guards: Bool) throws {
        let chain = try Chain(try sketch("unrun", cover: #"{"guards": \#(guards)}"#).request)
        let cover = try #require(chain.graph.runner(id: "cover"))
        #expect(cover.setMode(.passes) == .done)
        #expect(cover.mode == (guards ? .drops : .passes))
        #expect(cover.setMode(.passes) == .unchanged)
    }

    @Test func isNotPassedByWhenItFails() throws {
        var sketch = try sketch("bypass", cover: #"{"failsAt": 5}"#)
        sketch.request.stages[1].onError = .bypass
        #expect {
            _ = try Chain(sketch.request)
        } throws: {
            "\($0)".contains(
                "stages[1].onError: 'bypass' would let frames pass unchanged, which the options of 'cover' forbid")
        }
        sketch.request.stages[1].onError = .continue
        let driver = try RunningChainDriver(sketch)
        let cover = try #require(driver.chain.graph.runner(id: "cover"))
        #expect(eventually { cover.counters.taken.value >= 50 }, "\(cover.counters.taken.value)")
        _ = driver.finish()
        let count = CoverCheck.count("bypass")
        #expect(count.covered == 4 && count.bare == 0)
    }
}
