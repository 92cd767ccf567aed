// SPDX-License-Identifier: Apache-2.0

import CodedVideo

/// Which units after an entry cannot be decoded where decoding begins there: the leading pictures of an open one that
/// refer to pictures before it (H.265: RASL).
struct LeadingPictures {
    /// How many units were left out.
    private(set) var leftOut = 0
    private var follows = false

    /// Whether a unit is left out.
    ///
    /// - Parameter begins: Whether decoding begins with it.
    mutating func leavesOut(_ unit: UnitOutline, begins: Bool) -> Bool {
        if begins {
            follows = unit.entry == .open
            return false
        }
        guard follows else { return false }
        if unit.place == .skippedLeading {
            leftOut += 1
            return true
        }
        // The first picture that is not a leading one ends them.
        if unit.place == .shown { follows = false }
        return false
    }
}
