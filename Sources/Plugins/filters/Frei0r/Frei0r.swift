// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Runs a frei0r effect on every picture: a filter changes it, and a source replaces it by its own, of the same size
/// and time.
///
/// The effect is loaded at `negotiate`, so that `check` knows its parameters; it runs in this process.
final class Frei0r: Transform {
    static let info = StageInfo(
        id: "frei0r", summary: "Changes pictures with a frei0r effect, or replaces them with the effect's own.",
        input: .video(.bgra), output: .video(.bgra))

    private static let kinds: [EffectLibrary.Kind] = [.filter, .source]

    var options: Frei0rOptions
    private let context: StageContext
    private var effect: EffectInstance?
    private var input: EffectPixels?
    private var output: EffectPixels?
    private var cost = MediaTime.zero

    /// [control thread] Opens nothing.
    init(options: Frei0rOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    /// The cost of effects differs widely. The usual ones pass over the picture a few times.
    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.cost = cost
        demand.readsFiles = EffectFolders().files(of: options.effect, context)
        demand.warmUp = .never("(frei0r) may remember earlier pictures, and effects do not say whether they do")
        return demand
    }

    /// [control thread] Loads the effect and sets its parameters.
    ///
    /// - Throws: ``FrameHostError`` for an effect that is not there, does not load or is a mixer, and for
    ///   parameters that it does not take.
    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        guard let video = input.video else { throw FrameHostError(.broken, what: "frei0r was handed access units") }
        let library = try EffectLibrary(path: EffectFolders().path(of: options.effect, resolve: context.resolve))
        try library.require(Self.kinds, stage: Self.info.id)
        let pixels = EffectPixels(video, colorModel: library.colorModel)
        let effect = try EffectInstance(library, width: pixels.width, height: pixels.height)
        try effect.set(options.parameters)
        self.effect = effect
        self.input = pixels
        cost = video.cost(nanosecondsPerPixel: 5)
        output = EffectPixels(video, colorModel: library.colorModel)
        return input
    }

    /// [stage thread] One frame in, one out. Waits for a free buffer. The time and memory of the effect are not
    /// controlled.
    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame(let frame) = consume input, let effect, let source = self.input, let target = self.output
        else {
            throw FrameHostError(.broken, what: "frei0r was handed access units")
        }
        guard var changed = try output.makeFrame() else { return }
        let time = frame.pts.seconds
        frame.withPicture { from in
            changed.withMutablePicture { to in
                effect.update(
                    time: time, effect.library.kind == .source ? nil : source.load(from), into: target.target(to))
                target.finish(to)
            }
        }
        changed.copyProperties(from: frame)
        try output.emit(changed)
    }

    /// [control thread] The effects that are installed.
    static func topics() throws -> [StageTopic] { EffectTopics.all(kinds) }

    /// [control thread] One effect with its parameters.
    static func topic(_ name: String) throws -> StageTopic? { try EffectTopics.topic(name, of: kinds, stage: info.id) }

    /// [stage thread] Sets the named parameters. Others stay as they were.
    func optionsChanged() throws { try effect?.set(options.parameters) }

    /// [stage thread] Ends the effect.
    func stop() {
        effect = nil
        input = nil
        output = nil
    }
}

extension EffectLibrary {
    /// - Throws: ``FrameHostError`` when it is of another kind than the stage is for.
    func require(_ kinds: [Kind], stage: String) throws {
        guard !kinds.contains(kind) else { return }
        let (what, remedy) =
            switch kind {
            case .filter: ("changes one picture", "Use the stage type 'frei0r'.")
            case .source:
                (
                    "makes its own pictures",
                    "Use the stage type 'frei0r' after a source with the size and rate that you want."
                )
            case .mixer2: ("mixes two pictures", "Use the stage type 'frei0r-mixer', with two stages in 'from'.")
            case .mixer3: ("mixes three pictures", "Use the stage type 'frei0r-mixer', with three stages in 'from'.")
            }
        throw FrameHostError(
            .invalidConfiguration, place: "effect", what: "\(name) \(what), so it does not run in '\(stage)'",
            remedy: remedy)
    }
}

extension EffectInstance {
    /// Sets all or none.
    func set(_ parameters: EffectParameters) throws {
        for (parameter, value) in try parameters.values(for: library.parameters, of: library.name, list: list) {
            set(value, of: parameter)
        }
    }
}
