// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Runs a frei0r effect that makes one picture of two or three.
///
/// Takes the pictures that belong together from stages of equal size, in the order of `from`. A picture without a
/// partner is dropped.
final class Frei0rMixer: Join {
    static let info = StageInfo(
        id: "frei0r-mixer", summary: "Mixes two or three pictures into one with a frei0r effect.", input: .video(.bgra),
        output: .video(.bgra), events: [OrientationWatch.event])
    private static let kinds: [EffectLibrary.Kind] = [.mixer2, .mixer3]

    var options: Frei0rOptions
    private let context: StageContext
    private var effect: EffectInstance?
    private var inputs: [EffectPixels] = []
    private var output: EffectPixels?
    private var lying = OrientationWatch(.up)

    /// [control thread] Opens nothing.
    init(options: Frei0rOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.readsFiles = EffectFolders().files(of: options.effect, context)
        return demand
    }

    /// [control thread] Loads the effect and sets its parameters.
    ///
    /// - Throws: ``FrameHostError`` for an effect that is not there, does not load or is not a mixer, for a wrong
    ///   number of inputs, for different orientations or sizes, and for parameters that it does not take.
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat {
        let library = try EffectLibrary(path: EffectFolders().path(of: options.effect, resolve: context.resolve))
        try library.require(Self.kinds, stage: Self.info.id)
        let formats = inputs.compactMap(\.video)
        let count = library.kind == .mixer2 ? 2 : 3
        guard formats.count == count, inputs.count == count else {
            throw FrameHostError(
                .invalidConfiguration, place: "from",
                what: "\(library.name) needs \(count == 2 ? "two" : "three") inputs, but 'from' has \(inputs.count)",
                remedy:
                    "Name \(count == 2 ? "two stages: \"from\": [\"a\", \"b\"]" : "three stages: \"from\": [\"a\", \"b\", \"c\"]")."
            )
        }
        let (first, ids) = (formats[0], context.inputIDs)
        if let other = formats.firstIndex(where: { $0.orientation != first.orientation }) {
            let turned = first.orientation == .up ? other : 0
            throw FrameHostError(
                .invalidConfiguration, place: "from",
                what:
                    "all inputs must have the same orientation, but '\(ids[0])' is stored \(first.orientation) and '\(ids[other])' \(formats[other].orientation)",
                remedy: "Put a 'crop-orient' between '\(ids[turned])' and this stage: it turns pictures upright.")
        }
        if let index = formats.firstIndex(where: { ($0.width, $0.height) != (first.width, first.height) }) {
            let other = formats[index]
            throw FrameHostError(
                .invalidConfiguration, place: "from",
                what:
                    "all inputs must have the same size, but '\(ids[0])' is \(first.width)x\(first.height) and '\(ids[index])' is \(other.width)x\(other.height)",
                remedy:
                    "Put a 'crop-orient' with \"size\": \"\(first.width)x\(first.height)\" between '\(ids[index])' and this stage."
            )
        }
        lying = OrientationWatch(first.orientation)
        if let top = Self.top(of: library.name) {
            context.note(
                "\(library.name) shows '\(ids[top])' over '\(ids[1 - top])', which is seen only where '\(ids[top])' is transparent; the order in 'from' decides"
            )
        }
        self.inputs = formats.map { _ in EffectPixels(first, colorModel: library.colorModel) }
        let output = EffectPixels(first, colorModel: library.colorModel)
        self.output = output
        let effect = try EffectInstance(library, width: output.width, height: output.height)
        try effect.set(options.parameters)
        self.effect = effect
        return inputs[0]
    }

    /// Which of two inputs lies on top, of effects where the other one is seen only through it; nil for those that mix
    /// both everywhere. Their own texts do not say it: measured with frei0r-plugins 1.8.0.
    private static func top(of effect: String) -> Int? {
        switch effect.lowercased() {
        case "alphaover", "alphaatop", "alphain": 0
        case "cairoblend", "cairoaffineblend", "composition": 1
        default: nil
        }
    }

    /// [stage thread] One frame of each input in, one out, with the time and the metadata of the leading input.
    func merge(_ inputs: JoinInputs, _ output: Output) throws {
        guard case .frame(let first)? = inputs.take(0), case .frame(let second)? = inputs.take(1) else {
            return output.drop(.byStage)
        }
        look(at: first, second)
        guard self.inputs.count == 3 else {
            guard var mixed = try output.makeFrame() else { return }
            try mix(inputs.time, first, second, nil, into: &mixed)
            if inputs.lead == 0 { mixed.copyProperties(from: first) } else { mixed.copyProperties(from: second) }
            return try output.emit(mixed)
        }
        guard case .frame(let third)? = inputs.take(2) else { return output.drop(.byStage) }
        look(at: first, third)
        guard var mixed = try output.makeFrame() else { return }
        try third.withPicture { try mix(inputs.time, first, second, self.inputs[2].load($0), into: &mixed) }
        switch inputs.lead {
        case 0: mixed.copyProperties(from: first)
        case 1: mixed.copyProperties(from: second)
        default: mixed.copyProperties(from: third)
        }
        try output.emit(mixed)
    }

    /// Says once that inputs lie differently, since they are mixed as they are stored.
    private func look(at first: borrowing Frame, _ other: borrowing Frame) {
        guard first.orientation != other.orientation else { return }
        guard let notice = lying.notice(first) ?? lying.notice(other) else { return }
        context.post(
            "orientation-not-carried", level: .warning,
            text:
                "\(notice) The pictures of another input are not, and this stage mixes them as they are stored. To have all pictures upright, put a 'crop-orient' with a 'size' before this stage at each input."
        )
    }

    private func mix(
        _ time: MediaTime, _ first: borrowing Frame, _ second: borrowing Frame, _ third: EffectFunctions.Pixels?,
        into mixed: inout Frame
    ) throws {
        guard let effect, let pixels = self.output else {
            throw FrameHostError(.broken, what: "frei0r-mixer was not negotiated")
        }
        first.withPicture { one in
            second.withPicture { other in
                mixed.withMutablePicture { to in
                    effect.mix(
                        time: time.seconds, inputs[0].load(one), inputs[1].load(other), third, into: pixels.target(to))
                    pixels.finish(to)
                }
            }
        }
    }

    /// [control thread] The effects that are installed.
    static func topics() throws -> [StageTopic] { EffectTopics.all(kinds) }

    /// [control thread] One effect with its parameters.
    static func topic(_ name: String) throws -> StageTopic? { try EffectTopics.topic(name, of: kinds, stage: info.id) }

    /// [stage thread] Sets the parameters that are named; others stay as they were.
    func optionsChanged() throws { try effect?.set(options.parameters) }

    /// [stage thread] Ends the effect.
    func stop() {
        effect = nil
        inputs = []
        output = nil
    }
}
