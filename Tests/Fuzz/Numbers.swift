// SPDX-License-Identifier: Apache-2.0

/// Random numbers that are the same in each run. Used by one thread: the invariant behind `@unchecked Sendable`.
final class Numbers: @unchecked Sendable {
    private var last: UInt64 = 0

    /// Knuth's MMIX generator: the high half is good enough for ids that must differ.
    func next() -> UInt64 {
        last = last &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return last >> 11
    }
}
