// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

@Suite struct SlabStateTests {
    @Test func givesTheLowestHoleThatIsLargeEnough() {
        var state = SlabState(byteCount: 640, mostBlocks: 8)
        #expect((0..<4).map { _ in state.take(100) } == [0, 128, 256, 384])
        state.giveBack(start: 0, count: 100)
        state.giveBack(start: 256, count: 100)
        #expect(state.take(200) == nil, "256 bytes in a row are free nowhere")
        #expect(state.take(64) == 0)
        #expect(state.take(128) == 256)
        #expect(state.take(128) == 512)
    }

    @Test func roundsUpToWholeLinesAndGivesOneForNothing() {
        #expect([0, 1, 64, 65, 128].map(SlabState.rounded) == [64, 64, 64, 128, 128])
        var state = SlabState(byteCount: 128, mostBlocks: 2)
        #expect([state.take(0), state.take(1), state.take(1)] == [0, 64, nil])
        #expect(state.usedBytes == 128)
    }

    @Test func joinsNeighboursOnEitherSide() {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            var state = SlabState(byteCount: 192, mostBlocks: 3)
            for _ in 0..<3 { _ = state.take(64) }
            for index in order { state.giveBack(start: index * 64, count: 64) }
            #expect(state.take(192) == 0, "given back in the order \(order)")
        }
    }

    /// Random blocks beside a map of lines: nothing overlaps, the first fit is found, and in the end one hole is left.
    @Test(arguments: [UInt64(1), 2, 3])
    func agreesWithANaiveMap(seed: UInt64) {
        var dice = SplitMix(state: seed)
        let lines = 200
        var state = SlabState(byteCount: lines * 64, mostBlocks: 64)
        var isUsed = [Bool](repeating: false, count: lines)
        var blocks: [(start: Int, count: Int)] = []
        // Arithmetic on one thread, which the sanitizers make slow.
        for step in 0..<(getenv("FRAMEHOST_SANITIZED") == nil ? 20_000 : 2_000) {
            if dice.hits(55), blocks.count < 64 {
                let count = dice.hits(10) ? dice.next(in: 0...6000) : dice.next(in: 1...900)
                let size = SlabState.rounded(count) / 64
                let fit = (0...lines).first { start in
                    start + size <= lines && !isUsed[start..<start + size].contains(true)
                }
                let start = state.take(count)
                guard start == fit.map({ $0 * 64 }) else {
                    Issue.record("step \(step): \(count) bytes at \(start ?? -1), not at line \(fit ?? -1)")
                    return
                }
                guard let start else { continue }
                for line in start / 64..<start / 64 + size { isUsed[line] = true }
                blocks.append((start, count))
            } else if !blocks.isEmpty {
                let block = blocks.remove(at: dice.next(in: 0...blocks.count - 1))
                state.giveBack(start: block.start, count: block.count)
                let size = SlabState.rounded(block.count) / 64
                for line in block.start / 64..<block.start / 64 + size { isUsed[line] = false }
            }
            if state.usedBytes != isUsed.count(where: { $0 }) * 64 {
                Issue.record("step \(step): \(state.usedBytes)")
                return
            }
        }
        blocks.shuffle(using: &dice)
        for block in blocks { state.giveBack(start: block.start, count: block.count) }
        #expect(state.usedBytes == 0)
        #expect(state.take(lines * 64) == 0, "one hole")
    }
}
