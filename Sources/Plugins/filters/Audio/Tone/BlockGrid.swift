// SPDX-License-Identifier: Apache-2.0

/// Cuts a count of samples into blocks of a fixed time. Where the time is not a whole number of samples, blocks
/// differ by one sample, and no error adds up.
struct BlockGrid {
    let sampleRate: Int64
    let blockMs: Int64

    /// The number of the first sample of block `index`.
    func start(of index: Int64) -> Int64 { index * sampleRate * blockMs / 1000 }

    /// The block that sample `number` lies in.
    func block(at number: Int64) -> Int64 {
        var index = number * 1000 / (sampleRate * blockMs)
        while start(of: index + 1) <= number { index += 1 }
        return index
    }
}
