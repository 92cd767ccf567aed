// SPDX-License-Identifier: Apache-2.0

/// Which stages show originals: pictures of which a privacy stage (``StageDemand/mustNotBePassed``) hides something, and
/// that no privacy stage has covered yet. Pure; docs/design/047-originals.md.
struct OriginalsProof {
    /// A stage as the proof sees it.
    struct Stage {
        var id: String
        /// Whether it gives pictures, or access units of pictures.
        var givesPictures: Bool
        /// Whether no picture may pass it uncovered.
        var isPrivacy = false
        /// The stages that it takes from, by index; they come before it.
        var from: [Int] = []
        /// The outputs of one source have one scene: `door` of `door` and of `door.units`. Nil if it is no source.
        var scene: String?
    }

    private let stages: [Stage]
    /// By stage, the privacy stage that hides something in what it gives; nil for a stage that is not bare.
    private(set) var hiders: [String?]
    /// By stage, whether the pictures that it gives are original. For a stage that gives none, whether it gets some.
    private(set) var showsOriginals: [Bool]

    /// - Parameters:
    ///   - stages: Producers before their consumers.
    ///   - hidden: What was hidden before a change, which stays hidden: the stages that were bare, with the privacy stage
    ///     of each.
    init(_ stages: [Stage], hidden: [String: String] = [:]) {
        self.stages = stages
        hiders = stages.map { hidden[$0.id] }
        showsOriginals = stages.map { _ in false }
        for (index, stage) in stages.enumerated().reversed() {
            let hider = stage.isPrivacy ? stage.id : hiders[index]
            guard let hider else { continue }
            for producer in stage.from where stages[producer].givesPictures && hiders[producer] == nil {
                hiders[producer] = hider
            }
        }
        shareScenes()
        for (index, stage) in stages.enumerated() {
            let comes = !stage.isPrivacy && producers(of: index).contains { showsOriginals[$0] }
            showsOriginals[index] = stage.givesPictures && hiders[index] != nil || comes
        }
    }

    /// What one output of a source shows, the others show too.
    private mutating func shareScenes() {
        var found: [String: String] = [:]
        for (index, stage) in stages.enumerated() {
            if let scene = stage.scene, let hider = hiders[index], found[scene] == nil { found[scene] = hider }
        }
        for (index, stage) in stages.enumerated() where stage.givesPictures && hiders[index] == nil {
            if let scene = stage.scene { hiders[index] = found[scene] }
        }
    }

    private func producers(of stage: Int) -> [Int] { stages[stage].from.filter { stages[$0].givesPictures } }

    /// The bare stages, each with the privacy stage that hides something in what it gives.
    var hidden: [String: String] {
        var hidden: [String: String] = [:]
        for (stage, hider) in zip(stages, hiders) where stage.givesPictures { hidden[stage.id] = hider }
        return hidden
    }

    /// One way on which `stage` gets originals, from a source to the stage itself, and the privacy stage that hides
    /// something in them; nil where it gets none.
    func way(to stage: Int) -> (stages: [Int], hider: String)? {
        guard showsOriginals[stage] else { return nil }
        var way = [stage]
        var hider = hiders[stage]
        // What comes before a privacy stage is covered by it. Such a stage lacks what the next one hides.
        while !stages[way[0]].isPrivacy,
            let before = producers(of: way[0]).first(where: { showsOriginals[$0] })
        {
            hider = hider ?? hiders[before]
            way.insert(before, at: 0)
        }
        guard let hider else { return nil }
        return (way, hider)
    }
}

extension OriginalsProof {
    /// - Parameter running: What runs, for the plan of a change. Reading the whole chain anew forgets what was hidden.
    init(_ stages: [PlannedStage], after running: RunningChain?) {
        let hidden = running.map { $0.resets == .all ? [:] : $0.hidden } ?? [:]
        self.init(
            stages.map { stage in
                Stage(
                    id: stage.id, givesPictures: stage.output.map { !$0.goesWithPictures } ?? false,
                    isPrivacy: stage.demand.mustNotBePassed, from: stage.request.from,
                    scene: stage.request.type.kind == .source ? Self.scene(of: stage.id) : nil)
            }, hidden: hidden)
    }

    /// What a reader of the plan should see: which sinks have originals, and which are allowed to without need.
    func notes(_ stages: [PlannedStage]) -> [String] {
        stages.indices.compactMap { index in
            guard stages[index].request.isOriginal else { return nil }
            guard let hider = way(to: index)?.hider else {
                return "\(stages[index].id): \"original\" has no effect: no stage hides anything in what it gets"
            }
            return "\(stages[index].id): has originals, in which '\(hider)' hides something elsewhere"
        }
    }

    /// `door` of `door.units`.
    private static func scene(of id: String) -> String { String(id.prefix { $0 != "." }) }
}

extension FrameHostError {
    /// The fault of a picture that is asked for and shows originals.
    static func showingOriginals(of id: String, hiddenBy hider: String, at place: FaultPlace) -> FrameHostError {
        FrameHostError(
            .invalidConfiguration, place: place, what: "'\(hider)' hides something in the pictures of '\(id)'",
            remedy:
                "Name '\(hider)' or a stage behind it. If the original is meant, add \"original\": true to the command.",
            reason: .showsOriginals)
    }
}

extension PlannedStage {
    /// Whether pictures leave the chain here.
    var letsPicturesOut: Bool { request.type.kind == .sink ? !demand.showsNothing : demand.writesPictures }
}

extension PlanFaults {
    /// Adds the faults of sinks that get originals without being meant to, and of stages whose `original` means
    /// nothing.
    mutating func addOriginals(_ stages: [PlannedStage], _ proof: OriginalsProof) {
        for (index, stage) in stages.enumerated() {
            guard stage.letsPicturesOut else {
                guard stage.request.isOriginal, stage.request.type.kind != .sink else { continue }
                add(
                    stage.request, "original",
                    "'\(stage.id)' is no sink and writes no pictures, and 'original' says what such a stage may have",
                    "Set it at the sinks that are meant to have the originals.")
                continue
            }
            guard !stage.request.isOriginal, let way = proof.way(to: index) else { continue }
            let isGone = !stages.contains { $0.id == way.hider }
            add(original(stage, way.stages.map { stages[$0] }, way.hider, isGone: isGone))
        }
    }

    /// Adds the faults of rules that would take a picture of a stage that shows originals.
    mutating func addOriginals(_ rules: [Rule], _ stages: [PlannedStage], _ proof: OriginalsProof) {
        let commands = rules.flatMap { $0.commands + ($0.otherwise?.commands ?? []) }
        for command in commands where command.node["command"]?.asString == "snapshot" {
            guard command.node["original"]?.asBool != true, let id = command.node["stage"]?.asString,
                let index = stages.firstIndex(where: { $0.id == id }), let way = proof.way(to: index)
            else { continue }
            let place = FaultPlace(
                file: file, position: command.node["stage"]?.place, path: "\(command.path).stage")
            add(.showingOriginals(of: id, hiddenBy: way.hider, at: place))
        }
    }

    private func original(
        _ sink: PlannedStage, _ way: [PlannedStage], _ hider: String, isGone: Bool
    ) -> FrameHostError {
        let names = way.filter { !$0.isInserted }.map { "'\($0.id)'" }.joined(separator: " → ")
        return FrameHostError(
            .invalidConfiguration,
            place: sink.request.place(file: file, of: sink.request.takesFromTheOneBefore ? "" : "from"),
            what:
                "'\(sink.id)' would get pictures in which '\(hider)' hides something, and they do not pass it: \(names)",
            remedy: isGone
                ? "Keep '\(hider)' on the way, or change the chain file and reload it. If '\(sink.id)' is meant to have the originals, set its \"original\": true."
                : "Let it take from '\(hider)' or a stage behind it. If it is meant to have the originals, set its \"original\": true.",
            reason: .showsOriginals)
    }
}
