// SPDX-License-Identifier: Apache-2.0

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
                .callFailed, place: "effect",
                what: "\(library.name) could not be started for pictures of \(width)x\(height) (f0r_construct)",
                remedy:
                    "Use another effect, or change the size of the pictures with a 'crop-orient' before this stage.")
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
            var value = f0r_param_color(
                r: Float(color.red) / 255, g: Float(color.green) / 255, b: Float(color.blue) / 255)
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
            let value = present(parameter).map { ", \($0.text()) by default" } ?? ""
            return
                "\(parameter.name): \(parameter.typeName)\(value)\(parameter.explanation.isEmpty ? "" : ". \(parameter.explanation)")"
        }.joined(separator: "\n")
    }

    /// A parameter's present value as a chain file has it, numbers to three decimals; nil where the effect gives
    /// none.
    func present(_ parameter: EffectParameter) -> JSONNode? {
        let get = { [library, instance] (pointer: UnsafeMutableRawPointer) in
            library.functions.getParameter(instance, pointer, Int32(parameter.index))
        }
        func rounded(_ number: Double) -> JSONNode { ((number * 1000).rounded() / 1000).optionJSON }
        switch parameter.kind {
        case .bool, .number:
            var number = Double.nan
            get(&number)
            guard number.isFinite else { return nil }
            return parameter.kind == .bool ? JSONNode(.bool(number >= 0.5)) : rounded(number)
        case .color:
            var color = f0r_param_color(r: .nan, g: .nan, b: .nan)
            get(&color)
            guard color.r.isFinite, color.g.isFinite, color.b.isFinite else { return nil }
            func byte(_ share: Float) -> UInt8 { UInt8((min(max(share, 0), 1) * 255).rounded()) }
            return RGBColor(red: byte(color.r), green: byte(color.g), blue: byte(color.b)).optionJSON
        case .position:
            var place = f0r_param_position(x: .nan, y: .nan)
            get(&place)
            guard place.x.isFinite, place.y.isFinite else { return nil }
            return .array([rounded(place.x), rounded(place.y)])
        case .string:
            // The effect's own memory: copied at once, not freed.
            var text: UnsafeMutablePointer<CChar>?
            get(&text)
            return text.map { .string(String(cString: $0)) }
        }
    }

    /// [stage thread] Makes one picture of the effect's colour model, rows without padding.
    ///
    /// - Parameters:
    ///   - time: Seconds.
    ///   - input: Nil for a source.
    func update(time: Double, _ input: EffectFunctions.Pixels?, into output: UnsafeMutablePointer<UInt32>) {
        if let update = library.functions.update {
            update(instance, time, input, output)
        } else {
            library.functions.update2!(instance, time, input, nil, nil, output)
        }
    }

    /// [stage thread] Like ``update(time:_:into:)``, from two or three pictures. Only for effects that have
    /// `f0r_update2`.
    func mix(
        time: Double, _ first: EffectFunctions.Pixels, _ second: EffectFunctions.Pixels,
        _ third: EffectFunctions.Pixels?,
        into output: UnsafeMutablePointer<UInt32>
    ) {
        library.functions.update2!(instance, time, first, second, third, output)
    }
}
