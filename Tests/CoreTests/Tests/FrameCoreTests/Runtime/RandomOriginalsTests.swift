// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// A chain in which one stage hides something, or two stages hide one thing each, is changed at random while frames flow: no sink, no picture and no watched
/// unit shows it, unless it is meant to.
///
/// `FRAMEHOST_CHANGE_CHAINS` and `FRAMEHOST_CHANGE_SEED` choose how many chains and which, as for ``RandomChangeTests``.
@Suite struct RandomOriginalsTests {
    private static func number(_ name: String, _ usual: Int) -> Int {
        getenv(name).flatMap { Int(String(cString: $0)) } ?? usual
    }

    @Test func showsNothingThatIsHidden() async throws {
        let chains = Self.number("FRAMEHOST_CHANGE_CHAINS", getenv("FRAMEHOST_SANITIZED") == nil ? 40 : 4)
        let firstSeed = Self.number("FRAMEHOST_CHANGE_SEED", 1)
        await withTaskGroup(of: [String: Int].self) { group in
            for lane in 0..<4 {
                group.addTask {
                    var tally: [String: Int] = [:]
                    for index in stride(from: lane, to: chains, by: 4) {
                        var chain = OriginalsChange(seed: UInt64(firstSeed + index))
                        tally.merge(chain.run(operations: 50), uniquingKeysWith: +)
                    }
                    return tally
                }
            }
            var all: [String: Int] = [:]
            for await tally in group { all.merge(tally, uniquingKeysWith: +) }
            print(
                "random originals: \(all.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))"
            )
            // A test of refusals alone would show nothing, nor one without any.
            for name in [
                "attach", "attach, refused", "insert", "take out", "take out, refused", "replace, refused", "picture",
                "original seen",
            ] {
                #expect(all[name, default: 0] > chains / 8, "\(name)")
            }
        }
    }
}

private struct OriginalsChange {
    private let seed: UInt64
    private var random: SplitMix
    private var sketch = ChainSketch()
    private var nextID = 0
    private var tally: [String: Int] = [:]
    private var log: [String] = []
    /// Names of counts that may have what is hidden.
    private var originals: [String] = []
    private var names: [String] = []
    /// How many things are hidden.
    private let marks: Int

    init(seed: UInt64) {
        self.seed = seed
        random = SplitMix(state: seed &* 7919)
        marks = random.hits(50) ? 2 : 1
    }

    private mutating func id() -> String {
        nextID += 1
        return "s\(nextID)"
    }

    mutating func run(operations: Int) -> [String: Int] {
        do {
            sketch.request.spare = 12
            try sketch.add(CountingSource.self, "cam", options: #"{"count": 100000000, "everyMs": 1, "live": true}"#)
            if random.hits(50) { try sketch.add(ProbeFilter.self, "look") }
            try sketch.add(Cover.self, "hide", options: #"{"hides": "it"}"#)
            if marks == 2 { try sketch.add(Cover.self, "hide-more", options: #"{"mark": 1}"#) }
            try addSink(from: nil)
            let driver = try RunningChainDriver(sketch)
            for _ in 0..<operations { try operate(driver) }
            let result = driver.finish()
            if !result.ledgerFaults.isEmpty { fail("\(result)") }
            for name in names {
                let count = CoverCheck.count(name)
                if count.bare == 0 { continue }
                if originals.contains(name) {
                    tally["original seen", default: 0] += 1
                } else {
                    fail("\(name): \(count)")
                }
            }
        } catch { fail("\(error)") }
        return tally
    }

    private func fail(_ text: String) { Issue.record("seed \(seed): \(text)\n\(log.joined(separator: "\n"))") }

    /// A sink of pictures or of access units, which may be meant to have originals.
    private mutating func addSink(from: [String]?) throws {
        let name = "originals-\(seed)-\(nextID)"
        names.append(name)
        let isOriginal = from != nil && random.hits(30)
        var from = from
        if random.hits(30) {
            let encoder = id()
            try sketch.add(UnitEncoder.self, encoder, from: from)
            from = nil
            try sketch.add(UnitCheck.self, id(), options: #"{"log": "\#(name)"}"#)
        } else {
            try sketch.add(CoverCheck.self, id(), options: #"{"log": "\#(name)", "marks": \#(marks)}"#, from: from)
        }
        sketch.request.stages[sketch.request.stages.count - 1].isOriginal = isOriginal
        if isOriginal { originals.append(name) }
    }

    private mutating func addMiddle(from: [String]? = nil) throws {
        let onError: OnError? = random.hits(30) ? [.continue, .restart].randomElement(using: &random)! : nil
        switch Int.random(in: 0..<4, using: &random) {
        case 0: try sketch.add(CopyTransform.self, id(), options: #"{"delay": 1}"#, from: from)
        case 1:
            let failsAt = random.hits(30) ? Int.random(in: 5...60, using: &random) : -1
            // It stands for `hide`, or hides something that nobody looks for; `hide-more` it never stands for.
            let hides = random.hits(70) ? #", "hides": "it""# : ""
            try sketch.add(
                Cover.self, id(), options: #"{"failsAt": \#(failsAt)\#(hides)}"#, from: from,
                onError: onError ?? .restart)
        default: try sketch.add(ProbeFilter.self, id(), from: from)
        }
    }

    private mutating func operate(_ driver: RunningChainDriver) throws {
        if random.hits(30) { usleep(UInt32.random(in: 0...3000, using: &random)) }
        let before = sketch
        let stages = sketch.request.stages
        let givers = stages.filter { $0.type.kind != .sink && $0.type.info.id != "unit-encoder" }.map(\.id)
        switch Int.random(in: 0..<9, using: &random) {
        case 0, 1, 2:
            guard stages.count < 14, let at = givers.randomElement(using: &random) else { return }
            if random.hits(60) {
                try addSink(from: [at])
            } else {
                try addMiddle(from: [at])
                try addSink(from: nil)
            }
            finish("attach", driver.change(to: sketch, isRepeating: false), before)
        case 3:
            guard stages.count < 14,
                let place = stages.indices.filter({
                    stages[$0].from.count == 1 && givers.contains(stages[stages[$0].from[0]].id)
                }).randomElement(using: &random)
            else { return }
            try addMiddle(from: [stages[stages[place].from[0]].id])
            put(sketch.request.stages.removeLast(), before: place)
            finish("insert", driver.change(to: sketch, isRepeating: false), before)
        case 4:
            let middle = stages.indices.filter { !stages[$0].from.isEmpty && givers.contains(stages[$0].id) }
            guard let place = middle.randomElement(using: &random) else { return }
            takeOut(place)
            finish("take out", driver.change(to: sketch, isRepeating: false), before)
        case 5:
            guard let cover = stages.filter({ $0.type.info.id == "cover" }).randomElement(using: &random) else {
                return
            }
            // A cover without privacy, or one that hides something else from now on.
            let mark = cover.id == "hide-more" ? 1 : 0
            sketch = try sketch.setting(
                cover.id, #"{"mark": \#(mark), \#(random.hits(70) ? #""guards": false"# : #""hides": "another""#)}"#)
            finish("replace", driver.change(to: sketch, isDraining: random.hits(50), isRepeating: false), before)
        case 6:
            guard let leaf = stages.indices.filter({ stages[$0].type.kind == .sink }).randomElement(using: &random)
            else { return }
            detach(leaf)
            guard sketch.request.stages.contains(where: { $0.type.kind == .sink }) else { return sketch = before }
            finish("detach", driver.change(to: sketch, isRepeating: false), before)
        case 7:
            guard let id = givers.randomElement(using: &random) else { return }
            if !driver.chain.showsOriginals(id), let picture = try? driver.chain.picture(of: id, within: 0.05) {
                tally["picture", default: 0] += 1
                let isCovered = picture.withPlane(0) { plane in (0..<marks).allSatisfy { plane.row(0)[$0] == 255 } }
                if !isCovered, !driver.chain.showsOriginals(id) {
                    fail("a picture of \(id)")
                }
            }
        default:
            guard let id = stages.map(\.id).randomElement(using: &random) else { return }
            let (isResume, drops) = (random.hits(60), random.hits(50))
            let answer = driver.answer(isRepeating: false) { reply in
                if isResume {
                    driver.chain.resume(stage: id, reply: reply)
                } else {
                    driver.chain.pause(stage: id, isDropping: drops, reply: reply)
                }
            }
            finish(isResume ? "resume" : "pause", answer, before)
        }
    }

    private mutating func put(_ new: StageRequest, before place: Int) {
        sketch.request.stages.insert(new, at: place)
        for index in sketch.request.stages.indices where index > place {
            sketch.request.stages[index].from = sketch.request.stages[index].from.map { $0 >= place ? $0 + 1 : $0 }
        }
        sketch.request.stages[place + 1].from = [place]
    }

    private mutating func takeOut(_ place: Int) {
        let giver = sketch.request.stages[place].from[0]
        sketch.request.stages.remove(at: place)
        for index in sketch.request.stages.indices {
            sketch.request.stages[index].from = sketch.request.stages[index].from.map {
                $0 == place ? giver : $0 > place ? $0 - 1 : $0
            }
        }
    }

    /// Takes a sink away, and what feeds only it.
    private mutating func detach(_ leaf: Int) {
        var place = leaf
        while true {
            let before = sketch.request.stages[place].from.first
            sketch.request.stages.remove(at: place)
            for index in sketch.request.stages.indices {
                sketch.request.stages[index].from = sketch.request.stages[index].from.map { $0 > place ? $0 - 1 : $0 }
            }
            guard let before, !sketch.request.stages.contains(where: { $0.from.contains(before) }) else { return }
            place = before
        }
    }

    private mutating func finish(_ name: String, _ answer: RunningChainDriver.Answer, _ before: ChainSketch) {
        log.append("\(name): \(answer.isOK ? "frame \(answer.frame)" : answer.error)")
        tally[answer.isOK ? name : "\(name), refused", default: 0] += 1
        if !answer.isOK { sketch = before }
    }
}

/// Counts access units of a ``UnitEncoder`` with and without the mark of ``Cover``, under the name of ``CoverCheck``.
private final class UnitCheck: Sink {
    static let info = StageInfo(id: "unit-check", summary: "Looks.", input: .encoded(.h264))
    var options: CoverCheck.Options
    init(options: CoverCheck.Options, context: StageContext) { self.options = options }

    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        guard case .accessUnit(let unit) = consume input else { return .dropped(.byStage) }
        CoverCheck.count(options.log, isCovered: unit.withBytes { $0[0] == 255 })
        return .delivered
    }
}
