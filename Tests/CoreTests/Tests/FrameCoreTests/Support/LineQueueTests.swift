// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Lines wait for a reader within a bound, and each that is left out is named at its place.
@Suite struct LineQueueTests {
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    /// Everything that waits, a gap as `(3 output)`.
    private func all(_ queue: inout LineQueue) -> [String] {
        var found: [String] = []
        while let next = queue.take() {
            switch next {
            case .text(let text, _): found.append(String(decoding: text, as: UTF8.self))
            case .gap(let count, let stream): found.append("(\(count) \(stream))")
            }
        }
        return found
    }

    @Test func keepsTheOrderOfBothStreams() {
        var queue = LineQueue(mostBytes: 100)
        queue.offer(bytes("a"), .output, .line)
        queue.offer(bytes("b"), .log, .line)
        queue.offer(bytes("c"), .output, .answer)
        #expect(queue.unwritten.output == 2 && queue.unwritten.log == 1)
        #expect(all(&queue) == ["a", "b", "c"] && queue.isEmpty)
        #expect(queue.lost == OutputWriter.Counts())
    }

    @Test func namesAGapWhereTheLinesAreMissing() {
        var queue = LineQueue(mostBytes: 4)
        for text in ["1", "2", "3", "4", "5", "6"] { queue.offer(bytes(text), .output, .line) }
        queue.offer(bytes("7"), .log, .line)
        #expect(queue.lost.output == 2 && queue.lost.log == 1 && queue.unwritten.output == 4)
        // A line that would fit again does not come before half of the room is free.
        #expect(queue.take() == .text(bytes("1"), .output))
        queue.offer(bytes("8"), .output, .line)
        #expect(queue.lost.output == 3 && !queue.hasRoom)
        #expect(queue.take() == .text(bytes("2"), .output))
        #expect(queue.hasRoom)
        queue.offer(bytes("9"), .output, .line)
        #expect(all(&queue) == ["3", "4", "(3 output)", "(1 log)", "9"])
    }

    @Test func namesAGapBehindWhichNothingComes() {
        var queue = LineQueue(mostBytes: 1)
        queue.offer(bytes("a"), .log, .line)
        queue.offer(bytes("b"), .log, .line)
        #expect(queue.take() == .text(bytes("a"), .log))
        #expect(!queue.isEmpty && queue.unwritten.log == 0 && queue.lost.log == 1)
        #expect(all(&queue) == ["(1 log)"] && queue.isEmpty)
    }

    @Test func answersAreKeptAndProgressIsReplaced() {
        var queue = LineQueue(mostBytes: 4)
        queue.offer(bytes("line"), .output, .line)
        queue.offer(bytes("answer"), .output, .answer)
        queue.offer(bytes("left out"), .output, .line)
        queue.offer(bytes("progress"), .log, .progress)
        #expect(!queue.hasRoom && queue.lost.output == 1 && queue.lost.log == 0)
        #expect(all(&queue) == ["line", "answer", "(1 output)"])
        queue.offer(bytes("10"), .log, .progress)
        queue.offer(bytes("20"), .log, .progress)
        #expect(queue.unwritten.log == 0 && all(&queue) == ["20"])
    }

    @Test func takesATextThatIsLargerThanTheRoom() {
        var queue = LineQueue(mostBytes: 4)
        queue.offer(bytes("larger than that"), .output, .line)
        queue.offer(bytes("a"), .output, .line)
        #expect(all(&queue) == ["larger than that", "(1 output)"])
    }

    @Test func manyLinesGoThroughIt() {
        var queue = LineQueue(mostBytes: 1 << 20)
        var (next, seen) = (0, 0)
        for round in 0..<5000 {
            for _ in 0..<round % 7 {
                queue.offer(bytes("\(next)"), .output, .line)
                next += 1
            }
            for _ in 0..<3 {
                guard case .text(let text, _)? = queue.take() else { break }
                #expect(String(decoding: text, as: UTF8.self) == "\(seen)")
                seen += 1
            }
        }
        #expect(all(&queue).count == next - seen)
    }
}
