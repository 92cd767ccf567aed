// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Shows one of several inputs, and changes to another one on command, or when the current one is lost. Its output
/// keeps its format and rate. docs/design/017-clocked-joins.md.
final class SourceSwitch: Join {
    static let info = StageInfo(
        id: "source-switch",
        summary: "Shows one of several inputs. Switches by command, or when the input shown is lost.",
        input: .video(.i420), output: .video(.i420),
        commands: [
            CommandInfo(
                "switch", "Shows another input: \"arguments\": { \"to\": \"id\" }.",
                arguments: [.string("to", "Id of the input.").required])
        ],
        events: [
            EventDeclaration(
                "input-switched", "Another input is shown.",
                [
                    .string("from", "Id of the previous input."), .string("to", "Id of the input that is shown now."),
                    .string("reason", "Why.", words: ["command", "lost", "back"]),
                ])
        ] + EventDeclaration.ofInputs)

    var options: SourceSwitchOptions
    private let context: StageContext
    private var formats: InputFormats?
    private var placements: [UprightPlacement] = []
    private var background: Paint?
    private var state = SwitchState(shown: 0)
    private var watch: InputWatch
    private var fade: (from: Int, begin: Int64)?
    private var scratch: (ScratchPicture, ScratchPicture)?
    private var hasShown = false
    /// The time of the newest tick where the inputs' times are the clock; nil: the chain clock counts.
    private var now: Int64?
    private var tick = MediaTime.zero
    private let figures = Locked(Figures())

    private struct Figures {
        var active = ""
        var switches = 0
        var missed = 0
        var isGood: [Bool] = []
    }

    /// [control thread] Opens nothing.
    init(options: SourceSwitchOptions, context: StageContext) {
        self.options = options
        self.context = context
        watch = InputWatch(count: 0, patience: 1)
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        guard let formats else { return demand }
        demand.outputRate = formats.output.frameRate
        demand.cost = formats.output.cost(nanosecondsPerPixel: 1)
        // Two pictures that are blended.
        demand.ownBytes = 2 * formats.output.bufferBytes
        return demand
    }

    /// The shown input's pictures are given as they come.
    var activeInput: Int? { state.shown }

    /// [control thread]
    ///
    /// - Throws: ``FrameHostError`` for inputs that it does not take, and an `active` that is not an input.
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat {
        let formats = try InputFormats(
            inputs, size: options.size, rate: options.rate, context, stage: Self.info.id)
        self.formats = formats
        state = SwitchState(shown: try options.active.map { try input($0, "active") } ?? 0)
        return .video(formats.output)
    }

    private func input(_ id: String, _ place: String) throws -> Int {
        if let index = context.inputIDs.firstIndex(of: id) { return index }
        let names = context.inputIDs.map { "'\($0)'" }.joined(separator: ", ")
        throw FrameHostError(
            .invalidConfiguration, place: FaultPlace(place), what: "'\(id)' must be an input of this stage",
            remedy: "Use one of its inputs: \(names).")
    }

    /// [setup thread]
    func start() {
        guard let formats else { return }
        placements = formats.inputs.map {
            UprightPlacement(of: $0, into: formats.whole, options.fit, output: formats.output)
        }
        background = Paint(options.color, for: formats.output)
        watch = InputWatch(count: formats.inputs.count, patience: Int64(options.lostSeconds * 1e9))
        tick = formats.tick
        let (width, height) = (formats.output.width, formats.output.height)
        scratch = (
            ScratchPicture(.i420, width: width, height: height), ScratchPicture(.i420, width: width, height: height)
        )
        let ids = context.inputIDs
        figures.withLock {
            $0.active = ids[state.shown]
            $0.isGood = ids.map { _ in true }
        }
        context.showFigures { [figures] in
            let now = figures.withLock { $0 }
            return [
                "active": .string(now.active), "switches": .number(now.switches), "missed": .number(now.missed),
                "inputs": InputWatch.figures(ids, now.isGood),
            ]
        }
    }

    /// [stage thread] One tick: one picture of the shown input. Only waits for a free buffer; allocates nothing.
    func merge(_ inputs: JoinInputs, _ output: Output) throws {
        let now = inputs.time.nanoseconds
        let instant = inputs.followsTimes ? context.clock.now() : now
        // At the end of the run the inputs end one after the other. None of them is lost.
        if !context.isEnded { lookAtInputs(inputs, now) }
        self.now = inputs.followsTimes ? now : nil
        let shown = state.shown
        // Before there is a picture nothing is given, but only for as long as an input may be silent.
        guard
            hasShown || inputs.followsTimes || watch.inputs[shown].hasPicture || inputs.isNew(shown)
                || watch.isLost(shown, now: now)
        else {
            return output.drop(.byStage)
        }
        hasShown = true
        guard var result = try output.makeFrame() else { return }
        let isNew = inputs.isNew(shown)
        var share = 0
        if let fade {
            let length = Int64(options.fadeSeconds * 1e9)
            // The time of a tick may be before the command.
            let past = max(now &- fade.begin, 0)
            if length > 0, past < length {
                share = 255 - Int(255 * Double(past) / Double(length))
            } else {
                self.fade = nil
            }
        }
        if let fade = self.fade, share > 0, let scratch, case .frame(let former)? = inputs.take(fade.from) {
            draw(former, of: fade.from, into: scratch.0.picture)
            if case .frame(let frame)? = inputs.take(shown) {
                draw(frame, of: shown, into: scratch.1.picture)
                result.capturedAt = isNew ? frame.capturedAt : instant
                result.isMirroredInPreviews = frame.isMirroredInPreviews
            } else {
                clear(scratch.1.picture)
                result.capturedAt = instant
            }
            result.withMutablePicture { $0.blend(scratch.1.picture, scratch.0.picture, share: share) }
        } else if case .frame(let frame)? = inputs.take(shown) {
            // Faces and other findings only keep their place where the picture is unchanged.
            if placements[shown].usual.isWhole, frame.orientation == .up { result.copyProperties(from: frame) }
            result.isMirroredInPreviews = frame.isMirroredInPreviews
            result.capturedAt = isNew ? frame.capturedAt : instant
            result.withMutablePicture { draw(frame, of: shown, into: $0) }
        } else {
            result.capturedAt = instant
            result.withMutablePicture { clear($0) }
        }
        result.pts = inputs.time
        result.duration = tick
        result.isDiscontinuity = false
        try output.emit(result)
    }

    private func draw(_ frame: borrowing Frame, of input: Int, into target: Picture) {
        let orientation = frame.orientation
        let area = placements[input].area(orientation)
        if (area.width, area.height) != (target.width, target.height) { clear(target) }
        frame.withPicture { placements[input].draw($0, orientation, into: target) }
    }

    private func clear(_ target: Picture) {
        guard let background else { return }
        target.fill(x: 0, y: 0, width: target.width, height: target.height, background)
    }

    private func lookAtInputs(_ inputs: JoinInputs, _ now: Int64) {
        for index in 0..<inputs.count {
            guard let isLost = watch.note(index, of: inputs, now: now) else { continue }
            context.say(input: index, isLost: isLost)
            figures.withLock { $0.isGood[index] = !isLost }
        }
        if inputs.missed > 0 { figures.withLock { $0.missed += inputs.missed } }
        let change = state.tick(
            watch, now: now, takesNext: options.whenLost == .next,
            backAfter: options.goBack ? Int64(options.backSeconds * 1e9) : nil)
        if let change { show(change, now) }
    }

    private func show(_ change: SwitchState.Change, _ now: Int64) {
        let (from, to) = (context.inputIDs[change.from], context.inputIDs[change.to])
        fade = options.fadeSeconds > 0 ? (change.from, now) : nil
        figures.withLock {
            $0.active = to
            $0.switches += 1
        }
        let why =
            switch change.reason {
            case .command: "by command"
            case .lost: "'\(from)' is lost"
            case .back: "'\(to)' is back"
            }
        context.post(
            "input-switched", level: change.reason == .lost ? .warning : .info,
            text: "The output shows '\(to)' instead of '\(from)': \(why).",
            details: ["from": .string(from), "to": .string(to), "reason": .string(change.reason.rawValue)])
    }

    /// [stage thread] Shows another input from the next picture on.
    ///
    /// - Throws: ``FrameHostError`` for an id that is not an input, for an input that has not given a picture of its
    ///   own, and for a lost one that the next tick would replace.
    func command(_ name: String, arguments: JSONNode) throws {
        guard let id = arguments["to"]?.asString else {
            let given = arguments["to"].map { "is \($0.text())" } ?? "is missing"
            throw FrameHostError(
                .invalidConfiguration, place: "arguments.to", what: "'to' must be the id of an input, but \(given)",
                remedy: "Write \"arguments\": { \"to\": \"\(context.inputIDs[0])\" }.")
        }
        try choose(try input(id, "arguments.to"), "arguments.to")
    }

    private func choose(_ index: Int, _ place: String) throws {
        guard !hasShown || watch.inputs[index].hasPicture else {
            throw FrameHostError(
                .unavailable, place: FaultPlace(place),
                what: "'\(context.inputIDs[index])' has not given a picture of its own yet",
                remedy: "Switch to it when it gives its own pictures.")
        }
        guard options.whenLost == .stay || !watch.wouldBeLeft(index, now: now ?? context.clock.now()) else {
            throw FrameHostError(
                .unavailable, place: FaultPlace(place),
                what:
                    "'\(context.inputIDs[index])' is lost, so \"whenLost\": \"next\" would show another input immediately",
                remedy:
                    "Switch to it when it is back (event 'input-back'). Set \"whenLost\": \"stay\" in the chain file if its last picture should be shown meanwhile."
            )
        }
        if let change = state.choose(index) { show(change, now ?? context.clock.now()) }
    }

    /// [stage thread] `active` and `fadeSeconds` take effect with the next picture.
    ///
    /// - Throws: as ``command(_:arguments:)``.
    func optionsChanged() throws {
        guard let active = options.active else { return }
        let index = try input(active, "active")
        if index != state.chosen { try choose(index, "active") }
    }

    /// [stage thread]
    func stop() {
        scratch = nil
        placements = []
    }
}
