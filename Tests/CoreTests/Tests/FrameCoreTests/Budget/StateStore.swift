// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The states seen so far, each once, in the order they were found.
final class StateStore {
    let stride: Int
    private(set) var count = 0
    private let wordCount: Int
    private var capacity = 1 << 12
    private var bytes: UnsafeMutablePointer<UInt8>
    /// Open addressing; −1 is empty.
    private var table: UnsafeMutablePointer<Int32>
    private var mask = (1 << 14) - 1

    init(stride: Int) {
        self.stride = stride
        wordCount = stride / 8
        bytes = .allocate(capacity: capacity * stride)
        table = .allocate(capacity: mask + 1)
        table.initialize(repeating: -1, count: mask + 1)
    }

    func free() {
        bytes.deallocate()
        table.deallocate()
    }

    subscript(_ index: Int) -> UnsafeMutablePointer<UInt8> { bytes + index * stride }

    /// Its number, and whether it is new.
    func insert(_ state: UnsafeMutablePointer<UInt8>) -> (index: Int, isNew: Bool) {
        var slot = hash(state) & mask
        while table[slot] >= 0 {
            let index = Int(table[slot])
            if memcmp(bytes + index * stride, state, stride) == 0 { return (index, false) }
            slot = (slot + 1) & mask
        }
        if count == capacity { growStates() }
        memcpy(bytes + count * stride, state, stride)
        table[slot] = Int32(count)
        count += 1
        if count * 2 > mask { growTable() }
        return (count - 1, true)
    }

    /// `stride` is a multiple of 8.
    private func hash(_ state: UnsafeMutablePointer<UInt8>) -> Int {
        let words = UnsafeMutableRawPointer(state).assumingMemoryBound(to: UInt64.self)
        var value: UInt64 = 0x9E37_79B9_7F4A_7C15
        var index = 0
        while index < wordCount {
            value = (value ^ words[index]) &* 0xFF51_AFD7_ED55_8CCD
            value ^= value &>> 32
            index &+= 1
        }
        return Int(truncatingIfNeeded: value & 0x7FFF_FFFF_FFFF_FFFF)
    }

    private func growStates() {
        let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity * 2 * stride)
        memcpy(larger, bytes, count * stride)
        bytes.deallocate()
        bytes = larger
        capacity *= 2
    }

    private func growTable() {
        table.deallocate()
        mask = mask * 2 + 1
        table = .allocate(capacity: mask + 1)
        table.initialize(repeating: -1, count: mask + 1)
        for index in 0..<count {
            var slot = hash(bytes + index * stride) & mask
            while table[slot] >= 0 { slot = (slot + 1) & mask }
            table[slot] = Int32(index)
        }
    }
}
