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
                "test.json: stages[4].from: 'raw' would get pictures in which 'hide' hides something, and they do not pass it: 'cam' → 'crop' → 'raw'. Let 'crop' take from 'hide' or a stage behind it. If 'raw' is meant to have the originals, set its \"original\": true."
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
        #expect(
            found.first?.what.hasSuffix("'faces' hides something, and they do not pass it: 'cam' → 'hide' → 'rec'")
                == true)
        #expect(found.first?.remedy.hasPrefix("Let it take from 'faces' or a stage behind it.") == true)
    }

    /// A mask covers no face. What two stages hide alike, either covers.
    @Test(arguments: [nil, "faces"] as [String?])
    func knowsWhatEachPrivacyStageHides(hides: String?) throws {
        let options = hides.map { #"{"hides": "\#($0)"}"# } ?? "{}"
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "cam")
        try sketch.add(Cover.self, "hide", options: options)
        try sketch.add(CoverCheck.self, "rec")
        try sketch.add(Cover.self, "other", options: options, from: ["cam"])
        try sketch.add(CopyTransform.self, "copy")
        try sketch.add(CoverCheck.self, "past")
        let found = faults(sketch.request)
        guard hides == nil else {
            #expect(found.isEmpty)
            let plan = try Chain.plan(sketch.request)
            return #expect(plan.stages.map(\.hiddenBy) == ["hide", nil, nil, nil, nil, nil])
        }
        #expect(found.map(\.reason) == [.showsOriginals, .showsOriginals])
        #expect(
            found.map(\.what) == [
                "'rec' would get pictures in which 'other' hides something, and they do not pass it: 'cam' → 'hide' → 'rec'",
                "'past' would get pictures in which 'hide' hides something, and they do not pass it: 'cam' → 'other' → 'copy' → 'past'",
            ])
        #expect(found.last?.remedy.hasPrefix("Let 'other' take from 'hide' or a stage behind it.") == true)
        sketch.request.stages[2].isOriginal = true
        sketch.request.stages[5].isOriginal = true
        #expect(faults(sketch.request).isEmpty)
    }

    @Test func namesAllThatHideSomething() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "cam")
        try sketch.add(Cover.self, "hide")
        try sketch.add(Cover.self, "faces")
        try sketch.add(CoverCheck.self, "rec")
        try sketch.add(CopyTransform.self, "copy", from: ["cam"])
        try sketch.add(CoverCheck.self, "past")
        #expect(
            faults(sketch.request).map { "\($0.what). \($0.remedy)" } == [
                "'past' would get pictures in which 'hide' and 'faces' hide something, and they do not pass them: 'cam' → 'copy' → 'past'. Let 'copy' take from 'faces' or a stage behind it. If 'past' is meant to have the originals, set its \"original\": true."
            ])
        sketch.request.stages[5].isOriginal = true
        let notes = try Chain.plan(sketch.request).notes
        #expect(notes.contains("past: has originals, in which 'hide' and 'faces' hide something elsewhere"))
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
    @Test func takesTheSourcesOfOneFileForOneScene() {
        let proof = OriginalsProof([
            Node(id: "door", givesPictures: true, scenes: ["door", "clip.mp4"]),
            Node(id: "again", givesPictures: true, scenes: ["again", "clip.mp4"]),
            Node(id: "again.units", givesPictures: true, scenes: ["again"]),
            Node(id: "hide", givesPictures: true, isPrivacy: true, from: [0]),
            Node(id: "rec", givesPictures: false, from: [2]),
        ])
        #expect(proof.way(to: 4)?.hiders == ["hide"])
    }

    @Test func takesTheOutputsOfASourceForOneScene() {
        let proof = OriginalsProof([
            Node(id: "door", givesPictures: true, scenes: ["door"]),
            Node(id: "door.units", givesPictures: true, scenes: ["door"]),
            Node(id: "door.audio", givesPictures: false, scenes: ["door"]),
            Node(id: "yard", givesPictures: true, scenes: ["yard", "/dev/video1"]),
            Node(id: "hide", givesPictures: true, isPrivacy: true, from: [0]),
            Node(id: "rec", givesPictures: false, from: [1, 2]),
            Node(id: "sound", givesPictures: false, from: [2]),
            Node(id: "other", givesPictures: false, from: [3]),
        ])
        #expect((0..<8).map(proof.showsOriginals) == [true, true, false, false, false, true, false, false])
        #expect(proof.way(to: 5).map(\.stages) == [1, 5])
        #expect(proof.hidden == ["hide": OriginalsProof.Hidden(bare: ["door", "door.units"])])
    }

    /// A change may not show what was hidden: not even if nothing hides anything any more.
    @Test func keepsHiddenWhatWasHidden() {
        func proof(_ hides: String?) -> OriginalsProof {
            OriginalsProof(
                [
                    Node(id: "cam", givesPictures: true, scenes: ["cam"]),
                    Node(id: "next", givesPictures: true, isPrivacy: hides != nil, hides: hides, from: [0]),
                    Node(id: "rec", givesPictures: false, from: [1]),
                ], hidden: ["hide": OriginalsProof.Hidden(hides: "faces", bare: ["cam", "gone"])])
        }
        #expect((0..<3).map(proof(nil).showsOriginals) == [true, true, true])
        #expect(
            proof(nil).way(to: 2) == OriginalsProof.Way(stages: [0, 1, 2], turn: 1, hiders: ["hide"], gone: "hide"))
        #expect((0..<3).map(proof("faces").showsOriginals) == [true, false, false])
        // A stage that hides something else is no cover.
        #expect((0..<3).map(proof("signs").showsOriginals) == [true, true, true])
        #expect(proof("faces").hidden["hide"] == OriginalsProof.Hidden(hides: "faces", bare: ["cam"]))
    }

    /// A person who sets other areas of the same mask has seen them. A mask without privacy hides nothing.
    @Test func aStageMayHideSomethingElseInItsPlace() {
        func proof(isPrivacy: Bool) -> OriginalsProof {
            OriginalsProof(
                [
                    Node(id: "cam", givesPictures: true, scenes: ["cam"]),
                    Node(id: "hide", givesPictures: true, isPrivacy: isPrivacy, hides: "other areas", from: [0]),
                    Node(id: "faces", givesPictures: true, isPrivacy: true, hides: "faces", from: [1]),
                    Node(id: "rec", givesPictures: false, from: [2]),
                ], hidden: ["hide": OriginalsProof.Hidden(hides: "areas", bare: ["cam"])])
        }
        #expect(proof(isPrivacy: true).way(to: 3) == nil)
        #expect(proof(isPrivacy: false).way(to: 3)?.gone == "hide")
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
                        isPrivacy: !from.isEmpty && random.hits(25),
                        hides: ["a", "b", nil].randomElement(using: &random)!, from: from))
                if nodes[index].isPrivacy { nodes[index].givesPictures = true }
            }
            let proof = OriginalsProof(nodes)
            for (index, node) in nodes.enumerated() {
                let expected = Self.getsWhatIsHidden(index, nodes)
                if expected != proof.showsOriginals(index) {
                    Issue.record("\(node.id) of \(nodes): \(expected)")
                }
                #expect(expected == (proof.way(to: index) != nil))
                if expected { shown += 1 }
            }
        }
        #expect(shown > rounds / 3)
    }

    /// Whether what `stage` gives, or gets if it gives nothing, has some pixel that a privacy stage behind its origin takes
    /// away, on a way that passes no stage which takes the same away.
    private static func getsWhatIsHidden(_ stage: Int, _ nodes: [Node]) -> Bool {
        nodes.contains { hider in
            guard hider.isPrivacy else { return false }
            func takesAway(_ node: Node) -> Bool {
                node.isPrivacy && (node.id == hider.id || hider.hides != nil && node.hides == hider.hides)
            }
            func isBare(_ stage: Int) -> Bool {
                nodes[stage].givesPictures
                    && nodes.indices.contains {
                        nodes[$0].from.contains(stage) && (takesAway(nodes[$0]) || isBare($0))
                    }
            }
            func gets(_ stage: Int) -> Bool {
                if isBare(stage) { return true }
                guard !takesAway(nodes[stage]) else { return false }
                return nodes[stage].from.contains { nodes[$0].givesPictures && gets($0) }
            }
            return gets(stage)
        }
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
