import CFrei0r
import FrameCore
import Glibc

/// An effect at work on pictures of one size; freed in `deinit`. Used by one thread at a time.
final class EffectInstance {
    let library: EffectLibrary
    private let instance: EffectFunctions.Instance
    /// Strings it was given, by parameter: some effects keep the pointer.
    private var strings: [Int: UnsafeMutablePointer<CChar>] = [:]

    /// - Parameters:
    ///   - width: Pixels, a multiple of 8; `height` likewise (frei0r.h, f0r_construct).
    init(_ library: EffectLibrary, width: Int, height: Int) throws {
        self.library = library
        guard let instance = library.functions.construct(UInt32(width), UInt32(height)) else {
            throw FrameHostError(
                .callFailed, place: "effect", what: "\(library.name) refuses pictures of \(width)x\(height) (f0r_construct)",
                remedy: "Use another size or effect.")
        }
        self.instance = instance
    }

    deinit {
        library.functions.destruct(instance)
        for string in strings.values { free(string) }
    }

    func set(_ value: EffectParameter.Value, of parameter: EffectParameter) {
        let set = { [library, instance] (pointer: UnsafeMutableRawPointer) in
            library.functions.setParameter(instance, pointer, Int32(parameter.index))
        }
        switch value {
        case .bool(let flag):
            var number: f0r_param_bool = flag ? 1 : 0
            set(&number)
        case .number(let value):
            var number: f0r_param_double = value
            set(&number)
        case .color(let color):
            var value = f0r_param_color(r: Float(color.red) / 255, g: Float(color.green) / 255, b: Float(color.blue) / 255)
            set(&value)
        case .position(let x, let y):
            var value = f0r_param_position(x: x, y: y)
            set(&value)
        case .string(let text):
            var string = strdup(text)
            set(&string)
            free(strings[parameter.index])
            strings[parameter.index] = string
        }
    }

    /// One line for each parameter: `Blur: 0...1, 0.5 by default. Blur of the glow`.
    func list() -> String {
        library.parameters.map { parameter in
            "\(parameter.name): \(parameter.typeName)\(present(parameter))\(parameter.explanation.isEmpty ? "" : ". \(parameter.explanation)")"
        }.joined(separator: "\n")
    }

    /// Its present value, for the kinds where frei0r leaves no doubt who owns it.
    private func present(_ parameter: EffectParameter) -> String {
        switch parameter.kind {
        case .bool, .number:
            var number = 0.0
            library.functions.getParameter(instance, &number, Int32(parameter.index))
            guard number.isFinite else { return "" }
            let rounded = (number * 1000).rounded() / 1000
            return ", \(parameter.kind == .bool ? String(number >= 0.5) : rounded.optionJSON.text()) by default"
        case .color, .position, .string: return ""
        }
    }

    /// [stage thread] One picture of the effect's colour model, rows without padding.
    ///
    /// - Parameter time: Seconds.
    func update(time: Double, _ input: EffectFunctions.Pixels, into output: UnsafeMutablePointer<UInt32>) {
        if let update = library.functions.update {
            update(instance, time, input, output)
        } else {
            library.functions.update2!(instance, time, input, nil, nil, output)
        }
    }

    /// [stage thread] As above, from two pictures. Only for effects that have `f0r_update2`.
    func mix(
        time: Double, _ first: EffectFunctions.Pixels, _ second: EffectFunctions.Pixels, into output: UnsafeMutablePointer<UInt32>
    ) {
        library.functions.update2!(instance, time, first, second, nil, output)
    }
}
