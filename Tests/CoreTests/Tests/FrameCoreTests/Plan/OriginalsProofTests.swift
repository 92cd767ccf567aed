// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// Which stages show what a privacy stage hides. docs/design/047-originals.md.
@Suite struct OriginalsProofTests {
    private typealias Node = OriginalsProof.Stage

    private func sketch(_ middle: (inout ChainSketch) throws -> Void) throws -> ChainSketch {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "cam")
        try sketch.add(Cover.self, "hide")
        try sketch.add(CoverCheck.self, "rec")
        try middle(&sketch)
        return sketch
    }

    private func faults(_ request: ChainRequest) -> [FrameHostError] {
        do {
            _ = try Chain.plan(request)
            return []
        } catch { return (error as? FrameHostErrors)?.errors ?? [FrameHostError.wrap(error)] }
    }

    @Test func plansWhatPassesThePrivacyStage() throws {
        let plan = try Chain.plan(try sketch { _ in }.request)
        #expect(plan.stages.map(\.hiddenBy) == ["hide", nil, nil])
    }

    @Test func refusesABranchBesideIt() throws {
        let sketch = try sketch {
            try $0.add(ProbeFilter.self, "crop", from: ["cam"])
            try $0.add(CoverCheck.self, "raw")
        }
        let found = faults(sketch.request)
        #expect(found.map(\.reason) == [.showsOriginals])
        #expect(
            found.map(\.description) == [
                "test.json: stages[4].from: 'raw' would get pictures in which 'hide' hides something, and they do not pass it: 'cam' → 'crop' → 'raw'. Let it take from 'hide' or a stage behind it. If it is meant to have the originals, set its \"original\": true."
            ])
    }

    @Test func plansABranchThatMayHaveOriginals() throws {
        var sketch = try sketch {
            try $0.add(ProbeFilter.self, "crop", from: ["cam"])
            try $0.add(CoverCheck.self, "raw")
        }
        sketch.request.stages[4].isOriginal = true
        let plan = try Chain.plan(sketch.request)
        #expect(plan.stages.first { $0.id == "crop" }?.hiddenBy == "hide")
        #expect(plan.stages.first { $0.id == "raw" }?.hiddenBy == "hide")
        #expect(plan.notes.contains("raw: has originals, in which 'hide' hides something elsewhere"))
    }

    @Test func saysWhereOriginalMeansNothing() throws {
        var sketch = try sketch { _ in }
        sketch.request.stages[2].isOriginal = true
        let notes = try Chain.plan(sketch.request).notes
        #expect(notes.contains("rec: \"original\" has no effect: no stage hides anything in what it gets"))
        sketch.request.stages[0].isOriginal = true
        #expect(faults(sketch.request).map(\.place.description) == ["test.json: stages[0].original"])
    }

    /// What the first covers is not what the second covers.
    @Test func refusesABranchBetweenTwoPrivacyStages() throws {
        let sketch = try sketch {
            try $0.add(Cover.self, "faces", from: ["hide"])
            try $0.add(CoverCheck.self, "covered")
        }
        let found = faults(sketch.request)
        #expect(found.count == 1 && found.first?.reason == .showsOriginals)
        #expect(found.first?.what.hasSuffix("'faces' hides something, and they do not pass it: 'hide' → 'rec'") == true)
    }

    @Test func knowsThatAccessUnitsArePictures() throws {
        let sketch = try sketch {
            try $0.add(UnitEncoder.self, "h264", from: ["cam"])
            try $0.add(UnitSink.self, "file")
        }
        #expect(faults(sketch.request).map(\.reason) == [.showsOriginals])
    }

    @Test func knowsThatASinkMayShowNothing() throws {
        let sketch = try sketch { try $0.add(BlindSink.self, "count", from: ["cam"]) }
        #expect(faults(sketch.request).isEmpty)
    }

    /// A filter may write pictures of its own beside what it gives.
    @Test func refusesAFilterThatWritesPictures() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "cam")
        try sketch.add(PageFilter.self, "page")
        try sketch.add(Cover.self, "hide")
        try sketch.add(CoverCheck.self, "rec")
        #expect(faults(sketch.request).map(\.place.description) == ["test.json: stages[1].from"])
        sketch.request.stages[1].isOriginal = true
        #expect(faults(sketch.request).isEmpty)
        sketch.request.stages.swapAt(1, 2)
        sketch.request.stages[2].isOriginal = false
        sketch.request.stages[1].from = [0]
        sketch.request.stages[2].from = [1]
        #expect(faults(sketch.request).isEmpty)
    }

    @Test func refusesARuleThatTakesAnOriginal() throws {
        var sketch = try sketch { _ in }
        func rule(_ command: JSONNode) -> Rule {
            Rule(path: "on[0]", event: "state", commands: [RuleCommand(path: "on[0].do", command)])
        }
        sketch.request.rules = [rule(["stage": "cam", "command": "snapshot", "path": "a.jpg"])]
        let found = faults(sketch.request)
        #expect(found.map(\.reason) == [.showsOriginals])
        #expect(found.map(\.place.description) == ["test.json: on[0].do.stage"])
        for command: JSONNode in [
            ["stage": "cam", "command": "snapshot", "path": "a.jpg", "original": true],
            ["stage": "hide", "command": "snapshot", "path": "a.jpg"],
        ] {
            sketch.request.rules = [rule(command)]
            #expect(faults(sketch.request).isEmpty)
        }
    }

    /// All outputs of a source show one scene.
    @Test func takesTheOutputsOfASourceForOneScene() {
        let proof = OriginalsProof([
            Node(id: "door", givesPictures: true, scene: "door"),
            Node(id: "door.units", givesPictures: true, scene: "door"),
            Node(id: "door.audio", givesPictures: false, scene: "door"),
            Node(id: "yard", givesPictures: true, scene: "yard"),
            Node(id: "hide", givesPictures: true, isPrivacy: true, from: [0]),
            Node(id: "rec", givesPictures: false, from: [1, 2]),
            Node(id: "sound", givesPictures: false, from: [2]),
            Node(id: "other", givesPictures: false, from: [3]),
        ])
        #expect(proof.showsOriginals == [true, true, false, false, false, true, false, false])
        #expect(proof.way(to: 5).map(\.stages) == [1, 5])
        #expect(proof.hidden == ["door": "hide", "door.units": "hide"])
    }

    /// A change may not show what was hidden: not even if nothing hides anything any more.
    @Test func keepsHiddenWhatWasHidden() {
        func proof(_ isCovered: Bool) -> OriginalsProof {
            OriginalsProof(
                [
                    Node(id: "cam", givesPictures: true, scene: "cam"),
                    Node(id: "next", givesPictures: true, isPrivacy: isCovered, from: [0]),
                    Node(id: "rec", givesPictures: false, from: [1]),
                ], hidden: ["cam": "hide", "gone": "hide"])
        }
        #expect(proof(false).showsOriginals == [true, true, true])
        #expect(proof(false).way(to: 2)?.hider == "hide")
        #expect(proof(true).showsOriginals == [true, false, false])
    }

    /// Against pixels that are followed one by one: each source gives a picture of its own, and each privacy stage takes
    /// something of its own away from all that comes in.
    @Test func agreesWithPixelsInRandomGraphs() {
        var random = SplitMix(state: 47)
        var shown = 0
        let rounds = getenv("FRAMEHOST_SANITIZED") == nil ? 3000 : 300
        for _ in 0..<rounds {
            var nodes: [Node] = []
            for index in 0..<Int.random(in: 2...9, using: &random) {
                let from =
                    index == 0 || random.hits(20)
                    ? []
                    : (0...Int.random(in: 0...1, using: &random)).map { _ in Int.random(in: 0..<index, using: &random) }
                nodes.append(
                    Node(
                        id: "\(index)", givesPictures: random.hits(85),
                        isPrivacy: !from.isEmpty && random.hits(25), from: from))
                if nodes[index].isPrivacy { nodes[index].givesPictures = true }
            }
            let proof = OriginalsProof(nodes)
            for (index, node) in nodes.enumerated() {
                let expected = Self.getsWhatIsHidden(index, nodes)
                if expected != proof.showsOriginals[index] {
                    Issue.record("\(node.id) of \(nodes): \(expected)")
                }
                #expect(expected == (proof.way(to: index) != nil))
                if expected { shown += 1 }
            }
        }
        #expect(shown > rounds / 3)
    }

    /// Whether what `stage` gives, or gets if it gives nothing, has some pixel that a privacy stage behind its origin takes
    /// away, on a way that does not pass that stage's like.
    private static func getsWhatIsHidden(_ stage: Int, _ nodes: [Node]) -> Bool {
        /// Whether a privacy stage gets pictures of `stage`.
        func isBare(_ stage: Int) -> Bool {
            nodes[stage].givesPictures
                && nodes.indices.contains { nodes[$0].from.contains(stage) && (nodes[$0].isPrivacy || isBare($0)) }
        }
        if isBare(stage) { return true }
        guard !nodes[stage].isPrivacy else { return false }
        return nodes[stage].from.contains { nodes[$0].givesPictures && getsWhatIsHidden($0, nodes) }
    }
}

/// Counts, and shows nothing to anybody.
final class BlindSink: Sink {
    static let info = StageInfo(id: "blind-sink", summary: "Counts.", input: .any)
    typealias Options = NoOptions
    var options: Options
    init(options: Options, context: StageContext) { self.options = options }
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.showsNothing = true
        return demand
    }
    func consume(_ input: consuming Sample) throws -> SinkVerdict { .delivered }
}

/// Says that it writes pictures into a file beside its output.
final class PageFilter: Filter {
    static let info = StageInfo(id: "page-filter", summary: "Writes.", input: .anyVideo, output: .sameAsInput)
    typealias Options = NoOptions
    var options: Options
    init(options: Options, context: StageContext) { self.options = options }
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.writesPictures = true
        return demand
    }
    func process(_ frame: inout Frame) throws -> Verdict { .forward }
}
