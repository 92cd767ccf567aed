// SPDX-License-Identifier: Apache-2.0

/// Orders names as people count: successive digits are a number.
enum NaturalOrder {
    /// Whether `a` comes before `b`. Names that differ only in leading zeros are compared byte by byte, so that the
    /// order is total.
    static func precedes(_ a: String, _ b: String) -> Bool {
        let (left, right) = (Array(a.utf8), Array(b.utf8))
        var (i, j) = (0, 0)
        while i < left.count, j < right.count {
            let (one, other) = (left[i], right[j])
            guard isDigit(one), isDigit(other) else {
                if one != other { return one < other }
                (i, j) = (i + 1, j + 1)
                continue
            }
            let (first, second) = (digits(left, &i), digits(right, &j))
            if first.count != second.count { return first.count < second.count }
            if !first.elementsEqual(second) { return first.lexicographicallyPrecedes(second) }
        }
        if left.count - i != right.count - j { return left.count - i < right.count - j }
        return left.lexicographicallyPrecedes(right)
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

    /// The digits from `index` on without leading zeros, of any length; `index` is then after them.
    private static func digits(_ bytes: [UInt8], _ index: inout Int) -> ArraySlice<UInt8> {
        let begin = index
        while index < bytes.count, isDigit(bytes[index]) { index += 1 }
        return bytes[begin..<index].drop { $0 == 48 }
    }
}
