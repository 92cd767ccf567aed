// SPDX-License-Identifier: Apache-2.0

/// Which stages show originals: pictures of which a privacy stage (``StageDemand/mustNotBePassed``) hides something, and
/// that no stage which hides the same has covered yet. Pure; docs/design/047-originals.md.
struct OriginalsProof {
    /// A stage as the proof sees it.
    struct Stage {
        var id: String
        /// Whether it gives pictures, or access units of pictures.
        var givesPictures: Bool
        /// Whether no picture may pass it uncovered.
        var isPrivacy = false
        /// Of a privacy stage, what it hides (``StageDemand/hides``).
        var hides: String?
        /// The stages that it takes from, by index; they come before it.
        var from: [Int] = []
        /// Of a source, words for what it shows: two sources that have one of them in common show the same.
        var scenes: Set<String> = []
    }

    /// What one privacy stage hides.
    struct Hidden: Sendable, Equatable {
        /// As ``StageDemand/hides``.
        var hides: String?
        /// Ids of the stages in whose pictures it can be seen, until a stage covers it.
        var bare: Set<String>
    }

    /// The proof for what one privacy stage hides. Each is made without regard to the others.
    private struct Part {
        /// The privacy stage: the first of those that hide the same.
        var hider: String
        /// Whether there is such a stage now, or only was before a change.
        var isHidden: Bool
        var hides: String?
        /// By stage, whether it covers what the hider hides.
        var covers: [Bool]
        /// By stage, whether a stage that covers it can be reached by pictures.
        var bare: [Bool]
        /// By stage, whether it can be seen in what the stage gives. For a stage that gives no pictures, in what it gets.
        var shows: [Bool]
    }

    private let stages: [Stage]
    /// In the order of the privacy stages; those that were before a change come last.
    private var parts: [Part] = []

    /// - Parameters:
    ///   - stages: Producers before their consumers.
    ///   - hidden: What was hidden before a change, which stays hidden, by the id of the privacy stage.
    init(_ stages: [Stage], hidden: [String: Hidden] = [:]) {
        self.stages = stages
        var done: Set<String> = []
        for stage in stages where stage.isPrivacy {
            if let hides = stage.hides, !done.insert(hides).inserted { continue }
            addPart(stage.id, hides: stage.hides, bare: [])
        }
        for (hider, before) in hidden.sorted(by: { $0.key < $1.key }) {
            addPart(hider, hides: before.hides, bare: before.bare)
        }
    }

    private mutating func addPart(_ hider: String, hides: String?, bare: Set<String>) {
        let covers = stages.map { $0.isPrivacy && ($0.id == hider || hides != nil && $0.hides == hides) }
        var part = Part(
            hider: hider, isHidden: covers.contains(true), hides: hides, covers: covers,
            bare: stages.map { $0.givesPictures && bare.contains($0.id) }, shows: stages.map { _ in false })
        for (index, stage) in stages.enumerated().reversed() where covers[index] || part.bare[index] {
            for producer in stage.from where stages[producer].givesPictures { part.bare[producer] = true }
        }
        // What one output of a source shows, the others show too, and so do other sources of the same file.
        var open = stages.indices.filter { part.bare[$0] }
        while let next = open.popLast() {
            for (index, stage) in stages.enumerated() where stage.givesPictures && !part.bare[index] {
                guard !stage.scenes.isDisjoint(with: stages[next].scenes) else { continue }
                part.bare[index] = true
                open.append(index)
            }
        }
        for (index, stage) in stages.enumerated() {
            let comes = !covers[index] && producers(of: index).contains { part.shows[$0] }
            part.shows[index] = stage.givesPictures && part.bare[index] || comes
        }
        parts.append(part)
    }

    private func producers(of stage: Int) -> [Int] { stages[stage].from.filter { stages[$0].givesPictures } }

    /// Whether the pictures that `stage` gives are original. For a stage that gives none, whether it gets some.
    func showsOriginals(_ stage: Int) -> Bool { parts.contains { $0.shows[stage] } }

    /// What is hidden, by the id of the privacy stage: what a change of this chain has to keep hidden.
    var hidden: [String: Hidden] {
        var hidden: [String: Hidden] = [:]
        for part in parts {
            let bare = Set(stages.indices.filter { part.bare[$0] }.map { stages[$0].id })
            guard !bare.isEmpty else { continue }
            // What the stage hides now comes first, and what it has hidden stays so.
            hidden[part.hider, default: Hidden(hides: part.hides, bare: [])].bare.formUnion(bare)
        }
        return hidden
    }

    /// One way on which a stage gets originals, from a source to the stage itself.
    struct Way: Equatable {
        var stages: [Int]
        /// Where in ``stages`` it leaves the way to the last of ``hiders``.
        var turn: Int
        /// The privacy stages that hide something in them and are not passed, in their order.
        var hiders: [String]
        /// One of them that covers nothing any more: it is gone, or has no privacy after a change.
        var gone: String?
    }

    /// Nil for a stage that gets no originals.
    func way(to stage: Int) -> Way? {
        let shown = parts.filter { $0.shows[stage] }
        let gone = shown.first { !$0.isHidden }
        guard let part = gone ?? shown.last else { return nil }
        var way = [stage]
        // What comes before a stage that covers is covered by it.
        while !part.covers[way[0]], let before = producers(of: way[0]).first(where: { part.shows[$0] }) {
            way.insert(before, at: 0)
        }
        var hiders: [String] = []
        for part in shown where !hiders.contains(part.hider) { hiders.append(part.hider) }
        let turn = way.lastIndex { part.bare[$0] }.map { $0 + 1 } ?? 0
        return Way(stages: way, turn: min(turn, way.count - 1), hiders: hiders, gone: gone?.hider)
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
                    isPrivacy: stage.demand.mustNotBePassed, hides: stage.demand.hides, from: stage.request.from,
                    scenes: stage.request.type.kind == .source ? Self.scenes(of: stage) : [])
            }, hidden: hidden)
    }

    /// What a reader of the plan should see: which sinks have originals, and which are allowed to without need.
    func notes(_ stages: [PlannedStage]) -> [String] {
        stages.indices.compactMap { index in
            guard stages[index].request.isOriginal else { return nil }
            guard let hiders = way(to: index)?.hiders else {
                return "\(stages[index].id): \"original\" has no effect: no stage hides anything in what it gets"
            }
            return
                "\(stages[index].id): has originals, in which \(quotedList(hiders, "and")) \(hiders.count == 1 ? "hides" : "hide") something elsewhere"
        }
    }

    /// `door` of `door.units`, and what the source reads: files, and the device or address that its options name.
    private static func scenes(of stage: PlannedStage) -> Set<String> {
        let named = stage.request.options.filter { ["device", "path", "url"].contains($0.key) }
        return Set(
            ["stage \(stage.id.prefix { $0 != "." })"] + stage.demand.readsFiles.map { "file \($0)" }
                + named.compactMap { member in
                    member.value.asString.map { "\(stage.request.type.info.id) \(member.key) \($0)" }
                })
    }
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
            add(original(stage, way.stages.map { stages[$0] }, way))
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
            add(.showingOriginals(of: id, hiddenBy: way.hiders[0], at: place))
        }
    }

    private func original(_ sink: PlannedStage, _ way: [PlannedStage], _ found: OriginalsProof.Way) -> FrameHostError {
        let names = way.filter { !$0.isInserted }.map { "'\($0.id)'" }.joined(separator: " → ")
        let (hiders, last) = (quotedList(found.hiders, "and"), found.hiders[found.hiders.count - 1])
        // The first that passes the hider by is the one to move.
        let first = way[found.turn...].first { !$0.isInserted }?.id ?? sink.id
        let it = first == sink.id ? "it" : "'\(first)'"
        return FrameHostError(
            .invalidConfiguration,
            place: sink.request.place(file: file, of: sink.request.takesFromTheOneBefore ? "" : "from"),
            what: found.gone.map {
                "'\(sink.id)' would get pictures in which '\($0)' has hidden something, and nothing on their way hides it any more: \(names)"
            }
                ?? "'\(sink.id)' would get pictures in which \(hiders) \(found.hiders.count == 1 ? "hides" : "hide") something, and they do not pass \(found.hiders.count == 1 ? "it" : "them"): \(names)",
            remedy: found.gone.map {
                "Keep '\($0)' and its privacy on the way, or change the chain file and reload it. If '\(sink.id)' is meant to have the originals, set its \"original\": true."
            }
                ?? "Let \(it) take from '\(last)' or a stage behind it. If '\(sink.id)' is meant to have the originals, set its \"original\": true.",
            reason: .showsOriginals)
    }
}
