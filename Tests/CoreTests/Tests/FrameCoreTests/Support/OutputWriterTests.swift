// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// Nobody waits for a reader, and what a reader takes is whole.
@Suite struct OutputWriterTests {
    private func pipe(nonBlocking: Bool = false) -> (read: Int32, write: Int32) {
        var ends: [Int32] = [-1, -1]
        #expect(Glibc.pipe(&ends) == 0)
        if nonBlocking { _ = fcntl(ends[1], F_SETFL, O_NONBLOCK) }
        return (ends[0], ends[1])
    }

    /// Reads until the end, as a text.
    private func all(_ file: Int32) -> String {
        var (text, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 65536))
        while case let count = read(file, &buffer, buffer.count), count > 0 { text += buffer[..<count] }
        return String(decoding: text, as: UTF8.self)
    }

    private func writer(_ output: Int32, _ log: Int32) throws -> OutputWriter {
        let writer = OutputWriter { $0 == .output ? output : log }
        try writer.begin { "\($1) lost \($0)\n" }
        return writer
    }

    private var milliseconds: Int64 { ChainClock().now() / 1_000_000 }

    @Test func whoDoesNotReadHoldsUpNobody() throws {
        let (output, log) = (pipe(), pipe())
        let writer = try writer(output.write, log.write)
        let line = String(repeating: "x", count: 999) + "\n"
        let begin = milliseconds
        // More than the pipe and the queue take together.
        for _ in 0..<6000 { writer.write(line, to: .output) }
        writer.write("answer\n", to: .output, as: .answer)
        writer.write("said\n", to: .log)
        #expect(milliseconds - begin < 5000 && !writer.hasRoom(for: .output))
        let lost = writer.takeLost()
        #expect(lost.output > 1000 && lost.log == 0 && writer.takeLost() == OutputWriter.Counts())
        let end = milliseconds
        let left = writer.finish()
        // The other stream is read, or its pipe has room.
        #expect(left.output > 5800 && left.output <= 6001 && left.log == 0)
        #expect(milliseconds - end < 5000)
        // Another end takes no time: nothing was read since.
        let again = milliseconds
        writer.hurry()
        #expect(writer.finish() == left && milliseconds - again < 600)
        // Once a chain has ended, all of the program's end shares the time that there is.
        writer.endBegins(within: 0)
        #expect(writer.timeLeft == OutputWriter.grace)
        writer.endBegins(within: 300_000_000)
        #expect(writer.timeLeft > OutputWriter.grace && writer.timeLeft <= 300_000_000)
        close(log.write)
        #expect(all(log.read) == "said\n")
        // Once it is read, nothing is missing without being named.
        let text = Locked("")
        let reader = try TestThread("reader") { text.set(self.all(output.read)) }
        #expect(eventually { writer.finish(longest: 100_000_000) == lost })
        close(output.write)
        reader.join()
        let lines = text.now.split(separator: "\n").map(String.init)
        let gaps = lines.compactMap { $0.hasPrefix("output lost ") ? Int($0.dropFirst(12)) : nil }
        #expect(gaps.reduce(0, +) == lost.output)
        #expect(lines.count { $0.count == 999 } + lost.output == 6000 && lines.last == "answer")
        for file in [output.read, log.read] { close(file) }
    }

    @Test func bothStreamsOfOneFileKeepTheirOrder() throws {
        let ends = pipe(nonBlocking: true)
        let writer = try writer(ends.write, ends.write)
        let text = Locked("")
        let reader = try TestThread("reader") {
            pauseTest(ms: 50)
            text.set(self.all(ends.read))
        }
        // More than the pipe takes, which another program has made non-blocking.
        for number in 0..<20_000 { writer.write("\(number)\n", to: number % 2 == 0 ? .output : .log) }
        #expect(eventually { writer.finish() == OutputWriter.Counts() })
        close(ends.write)
        reader.join()
        #expect(text.now == (0..<20_000).map { "\($0)\n" }.joined())
        #expect(writer.faultOfOutput == nil)
        close(ends.read)
    }

    @Test func beforeTheBeginALineIsWrittenWhereItIsSaid() throws {
        let ends = pipe(nonBlocking: true)
        let writer = OutputWriter { _ in ends.write }
        let text = Locked("")
        let reader = try TestThread("reader") { text.set(self.all(ends.read)) }
        let line = String(repeating: "y", count: 300_000) + "\n"
        writer.write(line, to: .output)
        #expect(writer.hasRoom(for: .output) && writer.finish() == OutputWriter.Counts())
        close(ends.write)
        reader.join()
        #expect(text.now == line)
        close(ends.read)
    }

    @Test func aFullDiskIsAFaultAndAReaderThatHasGoneIsNot() throws {
        let full = open("/dev/full", O_WRONLY)
        let gone = pipe()
        close(gone.read)
        signal(SIGPIPE, SIG_IGN)
        let writer = try writer(full, gone.write)
        writer.write("a\n", to: .log)
        #expect(writer.finish() == OutputWriter.Counts() && writer.faultOfOutput == nil)
        writer.write("b\n", to: .output)
        #expect(writer.finish() == OutputWriter.Counts() && writer.faultOfOutput == ENOSPC)
        for file in [full, gone.write] { close(file) }
    }
}
