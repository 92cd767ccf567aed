import FrameCore

/// Runs a frei0r effect that makes one picture of two.
///
/// Takes the pictures of one time from two stages of equal size; the first of `from` is the effect's first input. A picture whose partner
/// was dropped on its way is dropped.
final class Frei0rMixer: Join {
    static let info = StageInfo(
        id: "frei0r-mixer", summary: "Makes one picture of two by a frei0r effect.", input: .video(.bgra), output: .video(.bgra))

    var options: Frei0rOptions
    private let context: StageContext
    private var effect: EffectInstance?
    private var pixels: [EffectPixels] = []

    /// [control thread] Opens nothing.
    init(options: Frei0rOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    /// [control thread] Loads the effect and sets its parameters.
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat {
        let library = try EffectLibrary(path: EffectFolders().path(of: options.effect, resolve: context.resolve))
        try library.require([.mixer2], stage: Self.info.id)
        guard inputs.count == 2, let first = inputs[0].video, let second = inputs[1].video else {
            throw FrameHostError(
                .invalidConfiguration, place: "from", what: "\(library.name) mixes two pictures, and from names \(inputs.count)",
                remedy: "Name two stages: \"from\": [\"a\", \"b\"].")
        }
        guard (first.width, first.height) == (second.width, second.height) else {
            throw FrameHostError(
                .invalidConfiguration, place: "from",
                what: "one picture is \(first.width)x\(first.height), the other \(second.width)x\(second.height)",
                remedy: "Bring both to one size with crop-orient.")
        }
        pixels = (0..<3).map { _ in EffectPixels(first, colorModel: library.colorModel) }
        let effect = try EffectInstance(library, width: pixels[0].width, height: pixels[0].height)
        try effect.set(options.parameters)
        self.effect = effect
        return inputs[0]
    }

    /// [stage thread] Two frames in, one out, with the time of the first.
    func merge(_ inputs: JoinInputs, _ output: Output) throws {
        guard let effect, case .frame(let first)? = inputs.take(0), case .frame(let second)? = inputs.take(1) else {
            return output.drop(.byStage)
        }
        guard var mixed = try output.makeFrame() else { return }
        let time = first.pts.seconds
        first.withPicture { one in
            second.withPicture { other in
                mixed.withMutablePicture { to in
                    effect.mix(time: time, pixels[0].load(one), pixels[1].load(other), into: pixels[2].target(to))
                    pixels[2].finish(to)
                }
            }
        }
        mixed.copyProperties(from: first)
        try output.emit(mixed)
    }

    /// [stage thread] Sets the parameters that are named; others stay as they were.
    func optionsChanged() throws { try effect?.set(options.parameters) }

    /// [stage thread] Ends the effect.
    func stop() {
        effect = nil
        pixels = []
    }
}
