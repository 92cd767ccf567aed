// SPDX-License-Identifier: Apache-2.0

extension Bool: OptionValue {
    public static func decodeOption(_ node: JSONNode) throws(OptionFault) -> Bool {
        guard let value = node.asBool else {
            throw .wrongType(
                node, "true or false", remedy: node.asString == nil ? "" : "Write true or false, without quotes.")
        }
        return value
    }
    public var optionJSON: JSONNode { JSONNode(.bool(self)) }
    public static var optionTypeName: String { "true or false" }
    public static var optionSchema: JSONNode { ["type": "boolean"] }
}

extension Int: OptionValue {
    public static func decodeOption(_ node: JSONNode) throws(OptionFault) -> Int {
        guard let value = node.asInt else {
            throw .wrongType(
                node, "a whole number",
                remedy: node.unquoted?.asInt != nil ? .unquoted : node.asString == nil ? "" : .plainNumber)
        }
        return value
    }
    public var optionJSON: JSONNode { JSONNode(.number(String(self))) }
    public static var optionTypeName: String { "integer" }
    public static var optionSchema: JSONNode { ["type": "integer"] }
}

extension Double: OptionValue {
    public static func decodeOption(_ node: JSONNode) throws(OptionFault) -> Double {
        guard let value = node.asDouble, value.isFinite else {
            throw .wrongType(
                node, "a number",
                remedy: node.unquoted?.asDouble != nil ? .unquoted : node.asString == nil ? "" : .plainNumber)
        }
        return value
    }
    public var optionJSON: JSONNode {
        if self == rounded(), magnitude < 1e15 { return JSONNode(.number(String(Int(self)))) }
        return JSONNode(.number(String(self)))
    }
    public static var optionTypeName: String { "number" }
    public static var optionSchema: JSONNode { ["type": "number"] }
}

extension String: OptionValue {
    public static func decodeOption(_ node: JSONNode) throws(OptionFault) -> String {
        guard let value = node.asString else {
            throw .wrongType(node, "a string", remedy: node.asDouble == nil ? "" : "Put it in double quotes.")
        }
        return value
    }
    public var optionJSON: JSONNode { JSONNode(.string(self)) }
    public static var optionTypeName: String { "string" }
    public static var optionSchema: JSONNode { ["type": "string"] }
}

extension Optional: OptionValue where Wrapped: OptionValue {
    public static func decodeOption(_ node: JSONNode) throws(OptionFault) -> Wrapped? {
        if node.value == .null { return nil }
        return try Wrapped.decodeOption(node)
    }
    public var optionJSON: JSONNode { self?.optionJSON ?? JSONNode(.null) }
    public static var optionTypeName: String { Wrapped.optionTypeName }
    public static var optionSchema: JSONNode { Wrapped.optionSchema }
    public static var optionMembers: [OptionField] { Wrapped.optionMembers }
}

extension Array: OptionValue where Element: OptionValue {
    public static func decodeOption(_ node: JSONNode) throws(OptionFault) -> [Element] {
        guard let elements = node.asArray else {
            let isOne = node.asObject == nil && node.value != .null
            throw .wrongType(node, "a list", remedy: isOne ? "Put it in brackets, [ ]." : "")
        }
        var result: [Element] = []
        var faults: [OptionFault] = []
        for (index, element) in elements.enumerated() {
            do throws(OptionFault) {
                result.append(try Element.decodeOption(element))
            } catch {
                let found = error.all.map { $0.inside(index, element) }
                // Objects say all of their faults, so a list of them does too.
                guard error.isNamed else { throw found[0] }
                faults += found
            }
        }
        if let fault = OptionFault.joined(faults) { throw fault }
        return result
    }
    public var optionJSON: JSONNode { JSONNode(.array(map(\.optionJSON))) }
    public static var optionTypeName: String { "list of \(Element.optionTypeName)" }
    public static var optionSchema: JSONNode { ["type": "array", "items": Element.optionSchema] }
    public static var optionMembers: [OptionField] { Element.optionMembers }
}

/// An option with a few words to choose from: an enum of strings.
///
/// ```swift
/// enum Mode: String, OptionChoice { case blur, pixelate }
/// ```
public protocol OptionChoice: OptionValue, CaseIterable, RawRepresentable where RawValue == String {}

extension OptionChoice {
    public static func decodeOption(_ node: JSONNode) throws(OptionFault) -> Self {
        Self(rawValue: try chosenWord(node, of: allCases.map(\.rawValue)))!
    }
    public var optionJSON: JSONNode { JSONNode(.string(rawValue)) }
    public static var optionTypeName: String { allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ") }
    public static var optionSchema: JSONNode {
        ["enum": JSONNode(.array(allCases.map { JSONNode(.string($0.rawValue)) }))]
    }
}

extension PixelFormat: OptionChoice {}

/// The one of `words` that `node` is.
func chosenWord(_ node: JSONNode, of words: [String]) throws(OptionFault) -> String {
    guard let word = node.asString else { throw .wrongType(node, quotedList(words, "or")) }
    guard words.contains(word) else {
        throw OptionFault(
            "'\(word)' must be one of \(quotedList(words, "or"))",
            remedy: Suggestion.nearest(to: word, in: words).map { "Did you mean '\($0)'?" } ?? "")
    }
    return word
}

/// A size in pixels, written `"1280x720"`.
public struct PictureSize: OptionValue, Hashable, CustomStringConvertible {
    /// Width in pixels.
    public var width: Int
    /// Height in pixels.
    public var height: Int
    /// The range of either side, in pixels.
    public static let range = 1...16384

    /// A size of `width` × `height` pixels.
    public init(_ width: Int, _ height: Int) {
        self.width = width
        self.height = height
    }

    public var description: String { "\(width)x\(height)" }

    public static func decodeOption(_ node: JSONNode) throws(OptionFault) -> PictureSize {
        guard let text = node.asString else { throw .wrongType(node, "a size such as \"1280x720\"") }
        let sides = text.split(separator: "x", omittingEmptySubsequences: false).map { wholeNumber($0) }
        guard sides.count == 2, let width = sides[0], let height = sides[1], range.contains(width),
            range.contains(height)
        else {
            throw sides.count == 2 && !sides.contains(nil)
                ? OptionFault(
                    "each side of \(node.text()) must be from 1 to 16384 pixels",
                    remedy: "Write a size such as \"1280x720\".")
                : OptionFault(
                    "\(node.text()) must be a size in pixels",
                    remedy: "Write it as \"1280x720\", with each side from 1 to 16384.")
        }
        return PictureSize(width, height)
    }
    public var optionJSON: JSONNode { JSONNode(.string(description)) }
    public static var optionTypeName: String { "size" }
    public static var optionSchema: JSONNode { ["type": "string", "pattern": "^[1-9][0-9]{0,4}x[1-9][0-9]{0,4}$"] }
}

/// Frames per second: a number, or a fraction `"30000/1001"`.
public struct FrameRate: OptionValue, Hashable, Comparable, CustomStringConvertible {
    /// The rate as a fraction: 30/1, 30000/1001.
    public var rational: Rational

    /// A rate of `numerator` / `denominator` frames per second.
    public init(_ numerator: Int32, _ denominator: Int32 = 1) { rational = Rational(numerator, denominator) }

    public static func < (a: FrameRate, b: FrameRate) -> Bool { a.rational.value < b.rational.value }
    public var description: String { rational.description }

    public static func decodeOption(_ node: JSONNode) throws(OptionFault) -> FrameRate {
        let isNumber = if case .number = node.value { true } else { false }
        let isTooLarge = (node.asDouble ?? .infinity) > 1
        let fault = OptionFault(
            "\(node.text()) must be a frame rate\(isNumber ? isTooLarge ? " of at most 100000 frames per second" : " of at least 0.001 frames per second" : "")",
            remedy: "Use a number such as 30, or a fraction such as \"30000/1001\".")
        if let text = node.asString {
            if node.unquoted?.asDouble != nil {
                throw OptionFault("\(node.text()) is a string", remedy: "Write the number without quotes: \(text).")
            }
            let parts = text.split(separator: "/", omittingEmptySubsequences: false).map {
                wholeNumber($0).flatMap { Int32(exactly: $0) }
            }
            guard parts.count == 2, let top = parts[0], let bottom = parts[1], top > 0, bottom > 0 else { throw fault }
            return FrameRate(top, bottom)
        }
        if let whole = node.asInt, whole > 0, whole <= 100_000 { return FrameRate(Int32(whole)) }
        // Rounded to three places and reduced: 29.97 is 2997/100.
        guard let value = node.asDouble, value >= 0.001, value <= 100_000 else { throw fault }
        let thousandths = Int32((value * 1000).rounded())
        let common = greatestCommonDivisor(thousandths, 1000)
        return FrameRate(thousandths / common, 1000 / common)
    }
    public var optionJSON: JSONNode {
        rational.denominator == 1 ? JSONNode(.number(String(rational.numerator))) : JSONNode(.string(description))
    }
    public static var optionTypeName: String { "frame rate" }
    public static var optionSchema: JSONNode {
        ["anyOf": [["type": "number", "exclusiveMinimum": 0], ["type": "string", "pattern": "^[0-9]+/[0-9]+$"]]]
    }
}

/// A colour, written `"#rrggbb"`, or `"#rgb"` where both digits of each part are equal.
public struct RGBColor: OptionValue, Hashable, CustomStringConvertible {
    /// Red, 0...255.
    public var red: UInt8
    /// Green, 0...255.
    public var green: UInt8
    /// Blue, 0...255.
    public var blue: UInt8

    /// A colour of three parts, each 0...255.
    public init(red: UInt8, green: UInt8, blue: UInt8) {
        self.red = red
        self.green = green
        self.blue = blue
    }

    public var description: String {
        "#" + [red, green, blue].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    public static func decodeOption(_ node: JSONNode) throws(OptionFault) -> RGBColor {
        guard let text = node.asString else { throw .wrongType(node, "a colour such as \"#20a0ff\"") }
        let digits = text.utf8.dropFirst()
        let isHex = digits.allSatisfy { (48...57).contains($0) || (65...70).contains($0) || (97...102).contains($0) }
        let full = digits.count == 3 ? text.dropFirst().map { "\($0)\($0)" }.joined() : String(text.dropFirst())
        guard text.hasPrefix("#"), [3, 6].contains(digits.count), isHex, let value = UInt32(full, radix: 16) else {
            throw OptionFault(
                "\(node.text()) must be a colour in the form \"#rrggbb\"",
                remedy: "Write two hex digits each for red, green and blue, such as \"#20a0ff\".")
        }
        return RGBColor(
            red: UInt8(truncatingIfNeeded: value >> 16), green: UInt8(truncatingIfNeeded: value >> 8),
            blue: UInt8(truncatingIfNeeded: value))
    }
    public var optionJSON: JSONNode { JSONNode(.string(description)) }
    public static var optionTypeName: String { "colour" }
    public static var optionSchema: JSONNode { ["type": "string", "pattern": "^#([0-9A-Fa-f]{3}){1,2}$"] }
}

extension OptionFault {
    /// - Parameters:
    ///   - expected: The rule, which also says what to write: `a whole number`.
    ///   - remedy: How to write the same value as that type, where that is possible.
    static func wrongType(_ node: JSONNode, _ expected: String, remedy: String = "") -> OptionFault {
        guard case .number(let text) = node.value else {
            return OptionFault("expected \(expected), found \(node.kindName)", remedy: remedy)
        }
        // 2^63: nothing that is counted or measured reaches it.
        if let value = Double(text), abs(value) >= 0x1p63, expected.hasSuffix("number") {
            return OptionFault(
                "\(text) is too \(value < 0 ? "small" : "large")", remedy: "Write \(expected) nearer to 0.")
        }
        return OptionFault("expected \(expected), found \(text)", remedy: remedy)
    }
}

extension String {
    fileprivate static let unquoted = "Write it without quotes."
    fileprivate static let plainNumber = "Write only a number, without quotes and without a unit."
}

extension JSONNode {
    /// The text of a string as a number. Only what JSON can write can be read as one: neither `nan` nor `+5`.
    fileprivate var unquoted: JSONNode? { asString.map { JSONNode(.number($0)) } }
}

/// Decimal digits and nothing else: no sign.
private func wholeNumber(_ text: Substring) -> Int? {
    text.utf8.allSatisfy { (48...57).contains($0) } ? Int(text) : nil
}

func greatestCommonDivisor<Number: BinaryInteger>(_ a: Number, _ b: Number) -> Number {
    b == 0 ? a : greatestCommonDivisor(b, a % b)
}

/// `'a', 'b' or 'c'`.
///
/// - Parameter last: The word before the last one: `or` among alternatives, `and` for what there is.
func quotedList(_ words: [String], _ last: String) -> String {
    let quoted = words.map { "'\($0)'" }
    guard quoted.count > 1 else { return quoted.first ?? "nothing" }
    return quoted.dropLast().joined(separator: ", ") + " \(last) " + quoted.last!
}
