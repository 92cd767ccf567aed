// SPDX-License-Identifier: Apache-2.0

/// Tells which lines of a segment are the spool's own by their numbers. Pure.
package enum SpoolOrder {
    /// Numbers within one segment are never further apart: while a disk takes nothing, numbers go on.
    static let mostSpan: UInt64 = 1 << 32

    /// Marks the longest rising sequence: a number that somebody has changed or added costs its own line, whether it
    /// is too large or too small.
    ///
    /// - Complexity: O(n log n); O(n) where all numbers rise.
    package static func rising(_ numbers: [UInt64]) -> [Bool] {
        if zip(numbers, numbers.dropFirst()).allSatisfy({ $0 < $1 }) {
            return [Bool](repeating: true, count: numbers.count)
        }
        // `ends[n]`: the place of the least number that ends a rising sequence of n + 1.
        var ends: [Int] = []
        var before = [Int](repeating: -1, count: numbers.count)
        for (place, number) in numbers.enumerated() {
            var (low, high) = (0, ends.count)
            while low < high {
                let middle = (low + high) / 2
                if numbers[ends[middle]] < number { low = middle + 1 } else { high = middle }
            }
            before[place] = low > 0 ? ends[low - 1] : -1
            if low == ends.count { ends.append(place) } else { ends[low] = place }
        }
        var result = [Bool](repeating: false, count: numbers.count)
        var place = ends.last ?? -1
        while place >= 0 {
            result[place] = true
            place = before[place]
        }
        return result
    }
}
