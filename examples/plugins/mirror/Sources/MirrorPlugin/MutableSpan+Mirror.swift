// SPDX-License-Identifier: Apache-2.0

extension MutableSpan<UInt8> {
    /// Swaps first and last sample, second and last but one, and so on.
    mutating func mirror() {
        for left in 0..<count / 2 { swapAt(left, count - 1 - left) }
    }

    /// Swaps pairs of samples (U and V of NV12), each pair in its own order.
    mutating func mirrorPairs() {
        let pairs = count / 2
        for left in 0..<pairs / 2 {
            let right = pairs - 1 - left
            swapAt(2 * left, 2 * right)
            swapAt(2 * left + 1, 2 * right + 1)
        }
    }
}
