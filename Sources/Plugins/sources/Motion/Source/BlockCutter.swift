// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Cuts samples into blocks of at most 20 ms. Takes its memory once.
struct BlockCutter {
    /// The samples of the current block.
    private(set) var samples: [MotionSample] = []

    /// The longest block: a picture waits this long for its motion.
    static let longest = MediaTime(nanoseconds: 20_000_000)
    /// The most samples of a block.
    static let most = 2048

    init() { samples.reserveCapacity(Self.most) }

    /// Whether `sample` begins the next block, so that this one has to be given first.
    func isFull(before sample: MotionSample) -> Bool {
        guard let first = samples.first else { return false }
        return samples.count >= Self.most || sample.time - first.time >= Self.longest
    }

    mutating func add(_ sample: MotionSample) { samples.append(sample) }

    /// The samples, of which there is at least one, as a block.
    func makeBlock(_ output: Output) throws -> MotionBlock { try output.makeMotionBlock(samples.span) }

    /// Starts a new block, after this one was given.
    mutating func clear() { samples.removeAll(keepingCapacity: true) }
}
