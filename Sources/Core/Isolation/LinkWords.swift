// SPDX-License-Identifier: Apache-2.0

/// What is said on the socket between the host and the process of a stage, as JSON. Both sides are of one build.
enum LinkWords {
    // MARK: Formats

    static func words(_ format: VideoFormat) -> JSONNode {
        [
            "pixelFormat": .string(format.pixelFormat.rawValue), "width": .number(format.width),
            "height": .number(format.height),
            "frameRate": [.number(format.frameRate.numerator), .number(format.frameRate.denominator)],
            "timeBase": [.number(format.timeBase.numerator), .number(format.timeBase.denominator)],
            "range": .string(format.color.range.rawValue), "matrix": .number(format.color.matrix),
            "primaries": .number(format.color.primaries), "transfer": .number(format.color.transfer),
            "chromaSiting": .number(format.color.chromaSiting),
            "sampleAspectRatio": [
                .number(format.sampleAspectRatio.numerator), .number(format.sampleAspectRatio.denominator),
            ],
            "orientation": .number(format.orientation.rawValue),
        ]
    }

    static func format(_ words: JSONNode) -> VideoFormat? {
        func pair(_ key: String) -> (Int32, Int32)? {
            let numbers = (words[key]?.asArray ?? []).compactMap { $0.asInt.flatMap(Int32.init(exactly:)) }
            return numbers.count == 2 && numbers[1] > 0 ? (numbers[0], numbers[1]) : nil
        }
        func byte(_ key: String) -> UInt8? { words[key]?.asInt.flatMap(UInt8.init(exactly:)) }
        guard let pixels = words["pixelFormat"]?.asString.flatMap(PixelFormat.init(rawValue:)),
            let width = words["width"]?.asInt, let height = words["height"]?.asInt,
            let rate = pair("frameRate"), let base = pair("timeBase"), base.0 > 0,
            let range = words["range"]?.asString.flatMap(ColorRange.init(rawValue:)),
            let matrix = byte("matrix"), let primaries = byte("primaries"), let transfer = byte("transfer"),
            let siting = byte("chromaSiting"), let aspect = pair("sampleAspectRatio"),
            let orientation = byte("orientation").flatMap(Orientation.init(rawValue:))
        else { return nil }
        let format = VideoFormat(
            pixels, width: width, height: height, frameRate: Rational(rate.0, rate.1),
            timeBase: TimeBase(base.0, base.1),
            color: ColorDescription(
                range: range, matrix: matrix, primaries: primaries, transfer: transfer, chromaSiting: siting),
            sampleAspectRatio: Rational(aspect.0, aspect.1), orientation: orientation)
        return format.impossibility == nil ? format : nil
    }

    // MARK: Demands

    static func words(_ demand: StageDemand) -> JSONNode {
        [
            "modifies": .bool(demand.access == .modify), "hold": .number(demand.hold),
            "delay": .number(demand.delay), "mustNotBePassed": .bool(demand.mustNotBePassed),
            "writesPictures": .bool(demand.writesPictures), "cost": .number(demand.cost.nanoseconds),
            "ownBytes": .number(demand.ownBytes), "readsFiles": .array(demand.readsFiles.map { .string($0) }),
            "writesFiles": .array(demand.writesFiles.map { .string($0) }),
            "hides": demand.hides.map { .string($0) } ?? .null,
            "claims": .array(demand.claims.map(words)), "lookAhead": demand.lookAhead.map { .number($0) } ?? .null,
            "warmUp": demand.warmUp.map(words) ?? .null,
        ]
    }

    private static func words(_ claim: StageDemand.Claim) -> JSONNode {
        [
            "name": .string(claim.name), "terms": claim.terms.map { .string($0) } ?? .null,
            "option": .string(claim.option), "what": .string(claim.what), "remedy": .string(claim.remedy),
            "remedyBetweenChains": claim.remedyBetweenChains.map { .string($0) } ?? .null,
        ]
    }

    private static func claim(_ words: JSONNode) -> StageDemand.Claim? {
        guard let name = words["name"]?.asString, let option = words["option"]?.asString,
            let what = words["what"]?.asString, let remedy = words["remedy"]?.asString
        else { return nil }
        return StageDemand.Claim(
            name, terms: words["terms"]?.asString, option: option, what: what, remedy: remedy,
            remedyBetweenChains: words["remedyBetweenChains"]?.asString)
    }

    private static func words(_ warmUp: WarmUp) -> JSONNode {
        [
            "frames": .number(warmUp.frames), "time": .number(warmUp.time.nanoseconds),
            "obstacle": warmUp.obstacle.map { .string($0) } ?? .null,
        ]
    }

    private static func warmUp(_ words: JSONNode) -> WarmUp? {
        guard let frames = words["frames"]?.asInt, let time = words["time"]?.asInt else { return nil }
        var warmUp = WarmUp(frames: frames, time: MediaTime(nanoseconds: Int64(time)))
        warmUp.obstacle = words["obstacle"]?.asString
        return warmUp
    }

    static func demand(_ words: JSONNode) -> StageDemand? {
        func number(_ key: String) -> Int? { words[key]?.asInt.flatMap { $0 >= 0 ? $0 : nil } }
        guard let modifies = words["modifies"]?.asBool, let hold = number("hold"), let delay = number("delay"),
            let mustNotBePassed = words["mustNotBePassed"]?.asBool,
            let writesPictures = words["writesPictures"]?.asBool, let cost = number("cost"),
            let ownBytes = number("ownBytes"), let reads = words["readsFiles"]?.asArray,
            let writes = words["writesFiles"]?.asArray
        else { return nil }
        var demand = StageDemand()
        demand.access = modifies ? .modify : .read
        (demand.hold, demand.delay, demand.ownBytes) = (hold, delay, ownBytes)
        (demand.mustNotBePassed, demand.writesPictures) = (mustNotBePassed, writesPictures)
        demand.cost = MediaTime(nanoseconds: Int64(cost))
        demand.outputBuffers = .sameAsInput
        demand.readsFiles = reads.compactMap(\.asString)
        demand.writesFiles = writes.compactMap(\.asString)
        demand.hides = words["hides"]?.asString
        demand.claims = (words["claims"]?.asArray ?? []).compactMap(claim)
        demand.lookAhead = words["lookAhead"]?.asInt.flatMap { $0 >= 0 ? $0 : nil }
        // As long as the stage is in this process, what it keeps of the past is known by its `hold`.
        demand.warmUp = words["warmUp"].flatMap(warmUp) ?? WarmUp(frames: AvailableMemory.sum(hold, delay))
        return demand
    }

    /// What a program asks for: what it has declared.
    static func demand(of info: StageInfo, _ program: StageProgram) -> StageDemand {
        var demand = StageDemand()
        demand.access = info.access
        demand.outputBuffers = .sameAsInput
        demand.readsFiles = program.files
        return demand
    }

    // MARK: Faults

    static func words(_ error: any Error) -> JSONNode {
        let faults = (error as? FrameHostErrors)?.errors ?? [.wrap(error)]
        return [
            "faults": .array(
                faults.map {
                    [
                        "code": .string($0.code.rawValue), "place": .string($0.place.description),
                        "what": .string($0.what), "remedy": .string($0.remedy), "cause": .string($0.cause),
                        "option": $0.option.map { .string($0) } ?? .null,
                        "reason": $0.reason.map { .string($0.rawValue) } ?? .null,
                    ]
                })
        ]
    }

    /// The faults that are told; one that says so where none is.
    static func faults(_ words: JSONNode?) -> FrameHostErrors {
        let faults = (words?["faults"]?.asArray ?? []).prefix(100).map { fault in
            let option = fault["option"]?.asString
            return FrameHostError(
                fault["code"]?.asString.flatMap(FrameHostError.Code.init(rawValue:)) ?? .broken,
                place: FaultPlace(fault["place"]?.asString ?? ""),
                what: fault["what"]?.asString ?? "a fault without a text", remedy: fault["remedy"]?.asString ?? "",
                cause: fault["cause"]?.asString ?? "",
                reason: fault["reason"]?.asString.flatMap(FrameHostError.Reason.init(rawValue:)), option: option)
        }
        return FrameHostErrors(
            faults.isEmpty ? [FrameHostError(.broken, what: "the stage's process refuses without a reason")] : faults)
    }

    // MARK: Events

    static func words(_ event: Event) -> JSONNode {
        [
            "event": .string(event.name), "level": .string(event.level.rawValue), "text": .string(event.text),
            "details": event.details, "frame": event.frame.map { .number($0) } ?? .null,
            "pts": event.pts.map { .number($0.nanoseconds) } ?? .null,
        ]
    }

    static func event(_ words: JSONNode, stage: String, time: Int64) -> Event? {
        guard let name = words["event"]?.asString, let text = words["text"]?.asString,
            let level = words["level"]?.asString.flatMap(Event.Level.init(rawValue:)), let details = words["details"],
            details.asObject != nil
        else { return nil }
        return Event(
            name: name, stage: stage, level: level, text: text, details: details, time: time,
            frame: words["frame"]?.asInt.flatMap(UInt64.init(exactly:)),
            pts: words["pts"]?.asInt.map { MediaTime(nanoseconds: Int64($0)) })
    }
}
