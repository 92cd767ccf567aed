// SPDX-License-Identifier: Apache-2.0

import FrameSupport
import Glibc
import Synchronization
import Testing

@testable import FrameCore

private func comm() -> String {
    var bytes = [UInt8](repeating: 0, count: 64)
    let file = open("/proc/thread-self/comm", O_RDONLY | O_CLOEXEC)
    defer { close(file) }
    return String(decoding: bytes[..<max(read(file, &bytes, bytes.count), 0)], as: UTF8.self)
}

@Suite struct NamedThreadTests {
    private final class Held: Sendable {}

    @Test func hasItsNameAndIsWaitedFor() throws {
        let (gate, name) = (WaitableFlag(), Locked(""))
        let thread = try NamedThread("a name of 20 bytes..") {
            name.set(comm())
            gate.wait()
        }
        #expect(!thread.end.wait(milliseconds: 1))
        gate.raise()
        thread.join()
        thread.join()
        #expect(thread.end.isRaised)
        #expect(name.now == "a name of 20 by\n")
    }

    /// What a thread held is gone once it counts as ended.
    @Test func letsGoOfWhatItHeldBeforeItsEnd() throws {
        var held: Held? = Held()
        weak let weakly = held
        let thread = try NamedThread("held") { [held] in _ = held }
        held = nil
        #expect(thread.end.wait(milliseconds: 120_000))
        #expect(weakly == nil)
    }

    @Test func blocksSignalsInTheNewThreadOnly() throws {
        func blocked() -> Bool {
            var mask = sigset_t()
            pthread_sigmask(SIG_BLOCK, nil, &mask)
            return sigismember(&mask, SIGWINCH) == 1
        }
        let (own, other, end) = (blocked(), Locked(false), WaitableFlag())
        try NamedThread.start("signals", blocking: [SIGWINCH], ended: { end.raise() }) { other.set(blocked()) }
        #expect(end.wait(milliseconds: 120_000))
        #expect(other.now)
        #expect(blocked() == own)
    }
}

@Suite struct WaitableFlagTests {
    @Test func endsEveryWaitOnceItIsRaised() throws {
        let flag = WaitableFlag()
        #expect(!flag.wait(milliseconds: 1))
        #expect(!flag.wait(milliseconds: -1))
        let waiters = try (0..<3).map { _ in try NamedThread("waiter") { flag.wait() } }
        #expect(!flag.isRaised)
        flag.raise()
        flag.raise()
        for waiter in waiters { #expect(waiter.end.wait(milliseconds: 120_000)) }
        #expect(flag.isRaised)
        #expect(flag.wait(until: 0))
    }

    @Test func looksUntilItIsSoOrTheTimeIsOver() {
        var looks = 0
        let isSo = MonotonicTime.wait(milliseconds: 120_000, lookingEvery: 1) {
            looks += 1
            return looks == 3
        }
        #expect(isSo)
        #expect(looks == 3)
        #expect(!MonotonicTime.wait(milliseconds: 120_000, until: 0) { false })
        #expect(!MonotonicTime.wait(milliseconds: 0) { false })
        #expect(MonotonicTime.wait(milliseconds: 0) { true })
    }

    @Test func sleepsNoLessThanItWasTold() {
        let begin = MonotonicTime.now()
        MonotonicTime.sleep(seconds: 0.01)
        #expect(MonotonicTime.now() - begin >= 10_000_000)
        MonotonicTime.sleep(seconds: -1)
    }
}

@Suite struct TransferTests {
    private let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    @Test func movesMoreThanOneCallTakes() throws {
        let ends = PipeEnds()
        let (sent, code) = (bytes, Locked<Int32>(-1))
        let writer = try NamedThread("writer") {
            code.set(sent.withUnsafeBytes { Transfer.write($0, to: ends.write) })
            close(ends.write)
        }
        var taken = [UInt8](repeating: 0, count: bytes.count + 10)
        let result = taken.withUnsafeMutableBytes { Transfer.read(into: $0, from: ends.read) }
        writer.join()
        close(ends.read)
        #expect(result.count == bytes.count)
        #expect(result.code == 0)
        #expect(code.now == 0)
        #expect(Array(taken[..<bytes.count]) == bytes)
    }

    private static let interruptions = Atomic<Int>(0)

    /// Without `SA_RESTART` the kernel ends the call with EINTR (signal(7)).
    @Test func goesOnAfterASignal() throws {
        var (action, before) = (sigaction(), sigaction())
        action.__sigaction_handler.sa_handler = { _ in Self.interruptions.add(1, ordering: .relaxed) }
        sigaction(SIGURG, &action, &before)
        defer { sigaction(SIGURG, &before, nil) }
        let ends = PipeEnds()
        let (number, own) = (Locked<Int32>(0), Locked<pthread_t>(0))
        let taken = Locked<[UInt8]>([])
        let reader = try NamedThread("reader") {
            // Threads of the pool that tests run on block signals.
            var mask = sigset_t()
            sigemptyset(&mask)
            sigaddset(&mask, SIGURG)
            pthread_sigmask(SIG_UNBLOCK, &mask, nil)
            own.set(pthread_self())
            number.set(KernelThread.currentNumber)
            var four = [UInt8](repeating: 0, count: 4)
            let result = four.withUnsafeMutableBytes { Transfer.read(into: $0, from: ends.read) }
            taken.set(Array(four[..<result.count]) + [UInt8(result.code)])
        }
        for byte in 1...4 as ClosedRange<UInt8> {
            let seen = Self.interruptions.load(ordering: .relaxed)
            try #require(eventually { number.now != 0 })
            try #require(eventually { KernelThread.isAsleep(number.now) })
            pthread_kill(own.now, SIGURG)
            try #require(eventually { Self.interruptions.load(ordering: .relaxed) > seen })
            #expect(Transfer.write([byte], to: ends.write) == 0)
        }
        #expect(reader.end.wait(milliseconds: 120_000))
        reader.join()
        ends.close()
        #expect(taken.now == [1, 2, 3, 4, 0])
    }

    @Test func aPipeIsClosedInOtherPrograms() {
        let (ends, quick) = (PipeEnds(), PipeEnds(blocks: false))
        defer { for pipe in [ends, quick] { pipe.close() } }
        #expect(ends.isOpen)
        #expect([ends.read, ends.write, quick.read, quick.write].allSatisfy { fcntl($0, F_GETFD) == FD_CLOEXEC })
        #expect([ends.read, ends.write].allSatisfy { fcntl($0, F_GETFL) & O_NONBLOCK == 0 })
        #expect([quick.read, quick.write].allSatisfy { fcntl($0, F_GETFL) & O_NONBLOCK != 0 })
    }

    @Test func waitsForRoomNoLongerThanItsPatience() {
        let ends = PipeEnds(blocks: false)
        defer { ends.close() }
        var written = 0
        let code = bytes.withUnsafeBytes {
            Transfer.write($0, to: ends.write, patience: 2_000_000) { written = $0 }
        }
        #expect(code == ETIMEDOUT)
        #expect(written > 0 && written < bytes.count)
    }

    @Test func writesAndReadsInTheMiddleOfAFile() {
        let file = fileno(tmpfile())
        defer { close(file) }
        #expect(Transfer.write([1, 2, 3, 4], to: file) == 0)
        #expect(([8, 9] as [UInt8]).withUnsafeBytes { Transfer.write($0, to: file, at: 1) } == 0)
        var four = [UInt8](repeating: 0, count: 4)
        let result = four.withUnsafeMutableBytes { Transfer.read(into: $0, from: file, at: 0) }
        #expect(result.count == 4)
        #expect(four[1...2] == [8, 9])
        let end = four.withUnsafeMutableBytes { Transfer.read(into: $0, from: file, at: 1 << 20) }
        #expect(end.count == 0)
        #expect(end.code == 0)
    }

    @Test func saysWhyItFailed() {
        var byte: [UInt8] = [0]
        #expect(byte.withUnsafeMutableBytes { Transfer.read(into: $0, from: -1).code } == EBADF)
        #expect(Transfer.write(byte, to: -1) == EBADF)
    }
}
