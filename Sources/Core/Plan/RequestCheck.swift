// SPDX-License-Identifier: Apache-2.0

/// Checks what can be checked in a request without making a stage: options, and which stage takes from which.
struct RequestCheck {
    private let request: ChainRequest
    private(set) var faults: PlanFaults

    init(_ request: ChainRequest) {
        self.request = request
        faults = PlanFaults(request)
        checkOptions()
        checkMedia()
    }

    private mutating func checkOptions() {
        for stage in request.stages {
            do {
                try stage.checkOptions(file: request.file)
            } catch let found as FrameHostErrors {
                for fault in found.errors { faults.add(fault) }
            } catch {
                faults.add(.wrap(error, place: stage.place(file: request.file, of: "")))
            }
        }
    }

    private mutating func checkMedia() {
        let given = givenMedia()
        let before = faults.found.count
        // A circle is a fault of its own, which says what to do.
        let circles = StageOrder(request).circles.map(Set.init)
        for (index, stage) in request.stages.enumerated() {
            checkInputs(of: stage)
            checkIsolation(of: stage)
            guard stage.type.info.input != .none else { continue }
            for producer in stage.from where !circles.contains(where: { $0.isSuperset(of: [index, producer]) }) {
                checkMedia(of: stage, from: producer, gives: given[producer])
            }
        }
        // A wrong `from` also leaves some other stage without a consumer. That is not reported a second time.
        if faults.found.count == before, circles.isEmpty { checkReaders() }
        checkBypass()
    }

    private mutating func checkIsolation(of stage: StageRequest) {
        let (info, kind) = (stage.type.info, stage.type.kind)
        guard stage.isolation != nil else { return }
        var what: String?
        if kind != .filter {
            what = "is a \(kind.rawValue), and only filters can have a process of their own yet"
        } else if info.furtherInputs != .none {
            what = "takes several inputs, and only filters with one can have a process of their own yet"
        } else {
            what = CarriedMetadata.refusal(of: info.metadata)
        }
        guard let what else { return }
        faults.add(stage, "isolate", "'\(stage.id)' (\(info.id)) \(what)", "Leave 'isolate' out.")
    }

    private mutating func checkInputs(of stage: StageRequest) {
        let info = stage.type.info
        if stage.join != nil, stage.type.kind != .join {
            faults.add(
                stage, "join", "'\(stage.id)' (\(info.id)) is not a join",
                "Leave 'join' out.")
        }
        if info.input == .none, !stage.from.isEmpty {
            faults.add(
                stage, "from", "'\(stage.id)' is a source (\(info.id)) and takes no input",
                stage.beginsBranch
                    ? "Begin the branch with a stage that takes an input."
                    : "Leave 'from' out.")
        } else if info.input != .none, stage.from.isEmpty {
            faults.add(
                stage, "", "'\(stage.id)' (\(info.id)) has no input",
                "Put a source before it, or name one with 'from'.")
        } else if stage.from.count > 1, stage.type.kind != .join, info.furtherInputs == .none {
            faults.add(
                stage, "from",
                "'\(stage.id)' (\(info.id)) takes one input, but \(stage.from.count) are named",
                "Name one stage.")
        } else if stage.type.kind == .join, stage.from.count < 2 {
            let first = stage.beginsBranch ? stage.from.first.map { request.stages[$0].id } : nil
            let names = first.map { "[\"\($0)\", \"…\"]" } ?? "[\"a\", \"b\"]"
            faults.add(
                stage, "from", "'\(stage.id)' (\(info.id)) joins several inputs, but only one is named",
                "Name two or more: \"from\": \(names).")
        }
    }

    private mutating func checkMedia(of stage: StageRequest, from index: Int, gives: StageInfo.Media) {
        let takes = media(of: stage, from: index)
        let producer = request.stages[index]
        // Nobody finds a `from` that is not written.
        let key = stage.takesFromTheOneBefore ? "" : "from"
        let giver = "'\(producer.id)'\(stage.takesFromTheOneBefore ? ", the stage before it," : "")"
        func mismatch(_ taken: String, _ given: String, _ remedy: String) {
            faults.add(stage, key, "'\(stage.id)' takes \(taken), but \(giver) gives \(given)", remedy)
        }
        switch (gives, takes) {
        case (.none, _):
            let other = self.giver(before: index).map { request.stages[$0].id }
            let what = "'\(producer.id)' (\(producer.type.info.id)) has no output"
            faults.add(
                stage, key,
                stage.takesFromTheOneBefore
                    ? "'\(stage.id)' takes its input from the stage before it, but \(what)" : what,
                remedy(for: stage, after: producer, other))
        case (.encoded(let codecs), .video):
            let option = producer.type.info.optionOfOtherOutput(producer.options)
            mismatch(
                "\(takes.kinds) (\(takes.listed))", codecs.map(\.description).joined(separator: " or "),
                option.map { "Leave '\($0)' out at '\(producer.id)'." }
                    ?? remedy(for: stage, after: producer, takes: takes, gives: gives))
        case (.video, .encoded),
            (.video, .several) where !takes.takes(gives):
            mismatch(
                takes.concerning(gives).listed, gives.kinds,
                producer.isReplacement || stage.isReplacement
                    ? remedy(for: stage, after: producer, takes: takes, gives: gives)
                    : stage.takesOnlyItsBranch
                        ? "Put an encoder between them, or attach the branch to one."
                        : "Put an encoder between them, or name one in 'from'.")
        case (.encoded(let codecs), .encoded(let taken)) where Set(codecs).isDisjoint(with: taken):
            mismatch(
                takes.concerning(gives).listed, gives.listed,
                taken.contains(where: \.isSound) || !codecs.contains(where: \.isSound)
                    || stage.type.info.furtherInputs == .none
                    ? remedy(for: stage, after: producer, takes: takes, gives: gives)
                    : "In 'from', first name a stage that gives \(takes.kinds): \"from\": [\"…\", \"\(producer.id)\"].")
        case (.audio, _) where !takes.takes(gives):
            mismatch(
                takes.concerning(gives).kinds, "sound",
                takes.isSound && !producer.isReplacement && !stage.isReplacement
                    ? "Put an encoder of sound between them: \"use\": \"audio-encoder\"."
                    : remedy(for: stage, after: producer, takes: takes, gives: gives))
        case _ where !takes.takes(gives):
            mismatch(
                takes.kinds, gives.kinds, remedy(for: stage, after: producer, takes: takes, gives: gives))
        default: break
        }
    }

    /// The remedy where `stage` cannot take what `producer` gives.
    private func remedy(
        for stage: StageRequest, after producer: StageRequest, takes: StageInfo.Media, gives: StageInfo.Media
    ) -> String {
        if producer.isReplacement { return "Replace '\(producer.id)' with a stage that gives \(takes.kinds)." }
        if stage.isReplacement { return "Replace '\(stage.id)' with a stage that takes \(gives.kinds)." }
        if stage.takesOnlyItsBranch { return "Attach the branch to a stage that gives \(takes.kinds)." }
        if case .encoded = gives, stage.takesFromTheOneBefore {
            return
                "Put '\(stage.id)' before '\(producer.id)', or name in 'from' a stage that gives \(takes.kinds)."
        }
        return "In 'from', name a stage that gives \(takes.kinds)."
    }

    /// - Parameters:
    ///   - producer: The stage without an output that `stage` names.
    ///   - giver: A stage that has an output; nil where none was found.
    private func remedy(for stage: StageRequest, after producer: StageRequest, _ giver: String?) -> String {
        if producer.isReplacement { return "Replace '\(producer.id)' with a stage that has an output." }
        guard stage.takesOnlyItsBranch else {
            return giver.map { "Name the stage whose output '\(stage.id)' takes: \"from\": \"\($0)\"." }
                ?? (stage.takesFromTheOneBefore
                    ? "Put '\(stage.id)' after a stage that has an output, or name such a stage in 'from'."
                    : "In 'from', name a stage that has an output.")
        }
        return "Attach the branch to a stage that has an output" + (giver.map { ", such as '\($0)'." } ?? ".")
    }

    /// What `stage` takes on its input from the stage at `index`. The order of a sink's inputs is free.
    private func media(of stage: StageRequest, from index: Int) -> StageInfo.Media {
        let info = stage.type.info
        guard stage.from.count > 1, info.furtherInputs != .none else { return info.input }
        guard stage.type.kind != .sink else { return info.input.joined(info.furtherInputs) }
        return stage.from.first == index ? info.input : info.furtherInputs
    }

    /// The nearest stage upstream of `index` that has an output; nil where there is none.
    private func giver(before index: Int) -> Int? {
        var passed: Set<Int> = [index]
        var stage = request.stages[index].from.first
        while let next = stage, passed.insert(next).inserted {
            if request.stages[next].type.info.output != .none { return next }
            stage = request.stages[next].from.first
        }
        return nil
    }

    /// What each stage gives as far as its kind says; `.any` when that depends on an input that nothing feeds.
    private func givenMedia() -> [StageInfo.Media] {
        var given: [StageInfo.Media?] = request.stages.map {
            $0.type.info.output == .sameAsInput ? nil : $0.type.info.output(with: $0.options)
        }
        var isOnWay = [Bool](repeating: false, count: given.count)
        for start in given.indices {
            // Goes upstream to a stage whose output is known, or to one met before (a circle, which is a fault of
            // its own).
            var way: [Int] = []
            var stage: Int? = start
            while let next = stage, given[next] == nil, !isOnWay[next] {
                isOnWay[next] = true
                way.append(next)
                stage = request.stages[next].from.first
            }
            // A stage that passes its input on has an output even where its input has none. That fault is reported
            // there.
            let found = stage.flatMap { given[$0] } ?? .any
            var media = found == .none ? .any : found
            for passed in way.reversed() {
                // Nor is a stage that cannot take its input at fault for what the next one would get.
                if !request.stages[passed].type.info.input.takes(media) { media = .any }
                given[passed] = media
            }
        }
        return given.map { $0 ?? .any }
    }

    /// Frames can pass by a filter. Any other stage makes its output itself.
    private mutating func checkBypass() {
        for stage in request.stages where stage.onError == .bypass && stage.type.kind != .filter {
            faults.add(
                stage, "onError",
                "'bypass' is only for filters, and '\(stage.id)' (\(stage.type.info.id)) is a \(stage.type.kind.rawValue)",
                "Use \"stop\", \"continue\" or \"restart\".")
        }
    }

    /// Checks that a stage takes what each stage gives, unless the chain file says that none does.
    private mutating func checkReaders() {
        var reader: [Int: Int] = [:]
        for (index, stage) in request.stages.enumerated() { for producer in stage.from { reader[producer] = index } }
        for (index, stage) in request.stages.enumerated() {
            let info = stage.type.info
            if stage.isUnread, info.output == .none || reader[index] != nil {
                let why =
                    reader[index].map { "'\(request.stages[$0].id)' takes what '\(stage.id)' gives" }
                    ?? "'\(stage.id)' (\(info.id)) has no output"
                faults.add(stage, "unread", why, "Leave 'unread' out.")
            } else if !stage.isUnread, info.output != .none, reader[index] == nil {
                faults.add(
                    stage, "", "no stage takes what '\(stage.id)' (\(info.id)) gives",
                    "Name it in a later stage (\"from\": \"\(stage.id)\"), put a sink after it, or write \"unread\": true if it ends here on purpose."
                )
            }
        }
    }
}

extension StageRequest {
    /// Whether its only input is the one that the command of its branch names.
    fileprivate var takesOnlyItsBranch: Bool { beginsBranch && from.count == 1 }

    /// Whether it has no `from` in the chain file's text, so that its input is the stage before it.
    var takesFromTheOneBefore: Bool { place.line > 0 && ownPlaces["from"] == nil && !beginsBranch }
}
