// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// Random chains on the real runner, changed at random while frames flow: nothing stops, the ledger balances, every
/// lease returns.
///
/// `FRAMEHOST_CHANGE_CHAINS` and `FRAMEHOST_CHANGE_SEED` choose how many chains and which; `make soak` runs thousands.
@Suite struct RandomChangeTests {
    private static func number(_ name: String, _ usual: Int) -> Int {
        getenv(name).flatMap { Int(String(cString: $0)) } ?? usual
    }
    private static let chains = number("FRAMEHOST_CHANGE_CHAINS", getenv("FRAMEHOST_SANITIZED") == nil ? 60 : 8)
    private static let firstSeed = number("FRAMEHOST_CHANGE_SEED", 1)
    private static let operations = 50

    @Test func everythingAddsUpAfterRandomChanges() async throws {
        await withTaskGroup(of: Tally.self) { group in
            let lanes = 4
            for lane in 0..<lanes {
                group.addTask {
                    var tally = Tally()
                    for index in stride(from: lane, to: Self.chains, by: lanes) {
                        var chain = RandomChange(seed: UInt64(Self.firstSeed + index))
                        tally.add(chain.run(operations: Self.operations))
                    }
                    return tally
                }
            }
            var all = Tally()
            for await tally in group { all.add(tally) }
            print("random changes: \(all.text)")
            // A test of refusals alone would show nothing.
            #expect(all.done["attach", default: 0] > Self.chains / 2)
            #expect(all.done["attach with copies", default: 0] > Self.chains)
            #expect(all.done["attach with motion", default: 0] > Self.chains / 8)
            #expect(all.done["detach", default: 0] > Self.chains / 2)
            #expect(all.done["replace", default: 0] > Self.chains)
            #expect(all.done["insert", default: 0] > Self.chains / 4)
            #expect(all.done["take out", default: 0] > Self.chains / 4)
        }
    }
}

/// How often each operation was done and refused.
private struct Tally: Sendable {
    var done: [String: Int] = [:]
    var refused: [String: Int] = [:]

    mutating func add(_ other: Tally) {
        done.merge(other.done, uniquingKeysWith: +)
        refused.merge(other.refused, uniquingKeysWith: +)
    }

    var text: String {
        done.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value) (refused \(refused[$0.key] ?? 0))" }
            .joined(separator: ", ")
    }
}

private struct RandomChange {
    private let seed: UInt64
    private var random: SplitMix
    private var sketch = ChainSketch()
    private var nextID = 0
    private var tally = Tally()
    private var log: [String] = []

    init(seed: UInt64) {
        self.seed = seed
        random = SplitMix(state: seed)
    }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    mutating func run(operations: Int) -> Tally {
        do {
            try makeTrunk()
            let driver = try RunningChainDriver(sketch)
            for _ in 0..<operations { try operate(driver) }
            let result = driver.finish()
            if !result.keepsItsPromises {
                let plan = driver.chain.plan
                log.append(
                    "stages: "
                        + plan.stages.map { "\($0.id) \($0.use) thread \($0.thread) hold \($0.demand.hold)" }.joined(
                            separator: ", "))
                log.append(
                    "links: "
                        + plan.links.map {
                            "\(plan.stages[$0.from].id)-\(plan.stages[$0.to].id) \($0.settings.capacity) \($0.settings.policy)"
                        }.joined(separator: ", "))
                log.append(
                    "pools: "
                        + plan.budget.pools.map {
                            "\(plan.stages[$0.allocator].id) \($0.isCopyPool) min \($0.min) need \($0.need) size \($0.size)"
                        }.joined(separator: ", "))
            }
            if !result.keepsItsPromises { Issue.record("seed \(seed): \(result)\n\(log.joined(separator: "\n"))") }
            for pool in driver.chain.pools where pool.freeCount != pool.bufferCount {
                Issue.record("seed \(seed): pool \(pool.name) lacks \(pool.bufferCount - pool.freeCount) buffers")
            }
            if driver.chain.graph.leaving.contains(where: { !$0.hasEnded }) {
                Issue.record("seed \(seed): a branch has not ended")
            }
        } catch {
            Issue.record("seed \(seed): \(error)\n\(log.joined(separator: "\n"))")
        }
        return tally
    }

    private mutating func makeTrunk() throws {
        let isLive = chance(50)
        sketch.request.spare = Int.random(in: 0...12, using: &random)
        try sketch.add(
            CountingSource.self, "src",
            options: #"{"count": 100000000, "everyMs": \#(Int.random(in: 0...1, using: &random)), "live": \#(isLive)}"#)
        for _ in 0..<Int.random(in: 0...3, using: &random) { try addMiddle() }
        try addSink()
        guard chance(50) else { return }
        try sketch.add(MotionTicker.self, "motion", options: #"{"count": 100000000, "live": \#(isLive)}"#, from: [])
        try sketch.add(GraphSink.self, "moved", from: ["motion"])
    }

    /// A filter of pictures and motion, or an encoder with a sink of both.
    private mutating func addMotion(from giver: String) throws {
        if chance(50) {
            try sketch.add(
                MotionReader.self, id(), options: #"{"aheadMs": \#([0, 8, 40].randomElement(using: &random)!)}"#,
                from: [giver, "motion"], link: link(copies: false))
            try addSink()
        } else {
            let encoder = id()
            try sketch.add(UnitEncoder.self, encoder, from: [giver], link: link(copies: false))
            try sketch.add(
                OrderSink.self, id(), options: #"{"log": "change-\#(seed)"}"#, from: [encoder, "motion"],
                link: link(copies: false))
        }
    }

    private mutating func id() -> String {
        nextID += 1
        return "s\(nextID)"
    }

    private mutating func addMiddle(from: [String]? = nil, copies: Bool = false) throws {
        let link = link(copies: copies)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: try sketch.add(AddOne.self, id(), from: from, link: link)
        case 1: try sketch.add(CopyTransform.self, id(), options: copyOptions(), from: from, link: link)
        default: try sketch.add(ProbeFilter.self, id(), options: probeOptions(), from: from, link: link)
        }
    }

    private mutating func addSink(from: [String]? = nil, copies: Bool = false) throws {
        let sleep = chance(20) ? Int.random(in: 100...3000, using: &random) : 0
        try sketch.add(
            RecordingSink.self, id(), options: #"{"log": "change-\#(seed)", "sleepUs": \#(sleep)}"#, from: from,
            link: link(copies: copies))
    }

    private mutating func copyOptions() -> String { #"{"delay": \#(Int.random(in: 0...3, using: &random))}"# }

    private mutating func probeOptions() -> String {
        #"{"keep": \#(Int.random(in: 0...2, using: &random)), "dropEvery": \#(chance(20) ? 7 : 0), "level": \#(Int.random(in: 0...3, using: &random))}"#
    }

    private mutating func link(copies: Bool) -> LinkRequest {
        if chance(60) { return LinkRequest(copies: copies) }
        let policy = [DropPolicy.wait, .latest, .dropOldest, .dropNewest].randomElement(using: &random)!
        return LinkRequest(queue: Int.random(in: 1...4, using: &random), whenFull: policy, copies: copies)
    }

    // MARK: Operations

    private mutating func operate(_ driver: RunningChainDriver) throws {
        if chance(30) { usleep(UInt32.random(in: 0...3000, using: &random)) }
        let ids = sketch.request.stages.map(\.id)
        let before = sketch
        switch Int.random(in: 0..<9, using: &random) {
        case 0, 1:
            let givers = givers
            guard sketch.request.stages.count < 14, let at = givers.randomElement(using: &random) else { return }
            let count = Int.random(in: 0...2, using: &random)
            let copies = chance(40)
            if count == 0 { try addSink(from: [at], copies: copies) } else { try addMiddle(from: [at], copies: copies) }
            for _ in 1..<max(count, 1) { try addMiddle() }
            if count > 0 { try addSink() }
            finish(copies ? "attach with copies" : "attach", change(driver), before, driver)
        case 2:
            guard let (id, shorter) = detached() else { return }
            sketch = shorter
            finish("detach", change(driver), before, driver, id)
        case 3:
            guard
                let stage = sketch.request.stages.filter({ ["probe", "copy"].contains($0.type.info.id) })
                    .randomElement(using: &random)
            else { return }
            sketch = try sketch.setting(stage.id, stage.type.info.id == "copy" ? copyOptions() : probeOptions())
            finish("replace", change(driver, isDraining: chance(70)), before, driver, stage.id)
        case 8:
            guard sketch.request.stages.count < 14, sketch.request.stages.contains(where: { $0.id == "motion" }),
                let at = givers.randomElement(using: &random)
            else { return }
            try addMotion(from: at)
            finish("attach with motion", change(driver), before, driver)
        case 6:
            guard sketch.request.stages.count < 14, try insert() else { return }
            finish("insert", change(driver), before, driver)
        case 7:
            guard let id = takeOut() else { return }
            finish("take out", change(driver, isDraining: chance(70)), before, driver, id)
        default:
            guard let id = ids.randomElement(using: &random) else { return }
            let drops = chance(50)
            let isResume = chance(60)
            let answer = driver.answer(isRepeating: false) { reply in
                if isResume {
                    driver.chain.resume(stage: id, reply: reply)
                } else {
                    driver.chain.pause(stage: id, isDropping: drops, reply: reply)
                }
            }
            finish(isResume ? "resume" : "pause", answer, before, driver, id)
        }
    }

    /// Asks once: where a paused stage holds up the chain, the threads before it are late for good.
    private func change(_ driver: RunningChainDriver, isDraining: Bool = true) -> RunningChainDriver.Answer {
        driver.change(to: sketch, isDraining: isDraining, isRepeating: false)
    }

    /// Stages that give pictures.
    private var givers: [String] {
        sketch.request.stages.filter {
            !["motion-ticker", "unit-encoder"].contains($0.type.info.id) && $0.type.kind != .sink
        }
        .map(\.id)
    }

    /// A stage more between two others.
    private mutating func insert() throws -> Bool {
        let stages = sketch.request.stages
        guard let place = stages.indices.filter({ stages[$0].from.count == 1 }).randomElement(using: &random) else {
            return false
        }
        try addMiddle(from: [stages[stages[place].from[0]].id])
        var new = sketch.request.stages.removeLast()
        if chance(60) { new.link = LinkRequest(queue: 0) }
        sketch.request.stages.insert(new, at: place)
        for index in sketch.request.stages.indices where index > place {
            sketch.request.stages[index].from = sketch.request.stages[index].from.map { $0 >= place ? $0 + 1 : $0 }
        }
        sketch.request.stages[place + 1].from = [place]
        return true
    }

    /// A stage less between others, which go on with what it had.
    private mutating func takeOut() -> String? {
        let stages = sketch.request.stages
        let middle = stages.indices.filter { index in
            stages[index].from.count == 1 && stages.contains { $0.from.contains(index) }
        }
        guard let place = middle.randomElement(using: &random) else { return nil }
        let before = stages[place].from[0]
        sketch.request.stages.remove(at: place)
        for index in sketch.request.stages.indices {
            sketch.request.stages[index].from = sketch.request.stages[index].from.map {
                $0 == place ? before : $0 > place ? $0 - 1 : $0
            }
        }
        return stages[place].id
    }

    /// A random branch less, unless it is all that some stage feeds.
    private mutating func detached() -> (String, ChainSketch)? {
        let stages = sketch.request.stages
        guard let start = stages.indices.dropFirst().randomElement(using: &random) else { return nil }
        var gone: Set<Int> = [start]
        for (index, stage) in stages.enumerated() where stage.from.contains(where: gone.contains) { gone.insert(index) }
        let kept = stages.indices.filter { !gone.contains($0) }
        let isWhole = kept.allSatisfy { index in
            stages[index].type.kind == .sink || kept.contains { stages[$0].from.contains(index) }
        }
        guard isWhole else { return nil }
        var shorter = sketch
        shorter.request.stages = kept.map { index in
            var stage = stages[index]
            stage.from = stage.from.map { kept.firstIndex(of: $0)! }
            return stage
        }
        return (stages[start].id, shorter)
    }

    private mutating func finish(
        _ name: String, _ answer: RunningChainDriver.Answer, _ before: ChainSketch, _ driver: RunningChainDriver,
        _ id: String = ""
    ) {
        log.append("\(name) \(id): \(answer.isOK ? "frame \(answer.frame)" : answer.error)")
        if answer.isOK {
            tally.done[name, default: 0] += 1
        } else {
            tally.refused[name, default: 0] += 1
            sketch = before
        }
        let present = Set(driver.chain.plan.stages.filter { !$0.isTap }.map(\.id))
        if present != Set(sketch.request.stages.map(\.id)) {
            Issue.record("seed \(seed): after \(log.last!) the chain has \(present.sorted())")
        }
    }
}
