// SPDX-License-Identifier: Apache-2.0

/// A number taken apart by the grammar of RFC 8259 §6.
struct JSONNumber {
    private let isNegative: Bool
    private let whole: ArraySlice<UInt8>
    private let fraction: ArraySlice<UInt8>
    private let exponent: Int

    /// Nil where `text` is not wholly one number.
    init?(_ text: ArraySlice<UInt8>) {
        var rest = text
        isNegative = rest.first == UInt8(ascii: "-")
        if isNegative { rest.removeFirst() }
        whole = rest.prefix(while: \.isDigit)
        guard let first = whole.first, first != UInt8(ascii: "0") || whole.count == 1 else { return nil }
        rest = rest[whole.endIndex...]
        if rest.first == UInt8(ascii: ".") {
            fraction = rest.dropFirst().prefix(while: \.isDigit)
            guard !fraction.isEmpty else { return nil }
            rest = rest[fraction.endIndex...]
        } else {
            fraction = []
        }
        if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
            rest.removeFirst()
            let sign = rest.first == UInt8(ascii: "-") ? -1 : 1
            if sign < 0 || rest.first == UInt8(ascii: "+") { rest.removeFirst() }
            guard !rest.isEmpty, rest.allSatisfy(\.isDigit) else { return nil }
            // Beyond 2^40 more digits change nothing: no text is long enough to make up for such an exponent.
            exponent = sign * rest.reduce(0) { $0 > 1 << 40 ? $0 : $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        } else {
            exponent = 0
            guard rest.isEmpty else { return nil }
        }
    }

    /// The number where it is whole and fits, however it was written.
    var exactInt: Int? {
        let zero = UInt8(ascii: "0")
        var digits = (whole + fraction).drop { $0 == zero }
        var scale = exponent - fraction.count
        while digits.last == zero {
            digits.removeLast()
            scale += 1
        }
        guard !digits.isEmpty else { return 0 }
        guard scale >= 0, digits.count + scale <= 19 else { return nil }
        var value = 0
        for digit in digits + Array(repeating: zero, count: scale) {
            let (product, productOverflow) = value.multipliedReportingOverflow(by: 10)
            // Built downwards for negative numbers: Int.min has no positive twin.
            let step = isNegative ? -Int(digit - zero) : Int(digit - zero)
            let (sum, sumOverflow) = product.addingReportingOverflow(step)
            if productOverflow || sumOverflow { return nil }
            value = sum
        }
        return value
    }
}
