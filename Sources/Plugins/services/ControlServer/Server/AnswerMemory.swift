// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameHTTP
import FrameSupport

/// The memory of what the clients of a server have not read yet: pictures, access units and long answers, of all clients
/// together.
///
/// What several clients get is there once, as a ``Piece`` that they share, and goes when the last one has it. Where there
/// is no room for another piece, nobody gets that picture, and clients that have taken nothing for
/// ``patience`` lose their connections. The plan counts ``usual`` bytes for it.
final class AnswerMemory: Sendable {
    static let usual = 64 << 20
    /// Nanoseconds.
    static let patience: Int64 = 2_000_000_000
    /// Shorter answers are not counted: faults must always get through.
    static let leastBytes = 4 << 10

    /// Bytes for clients, of which there is one copy.
    final class Piece: Sendable, Equatable {
        let buffer: ByteBuffer
        private let memory: AnswerMemory?

        var count: Int { buffer.readableBytes }
        var bytes: [UInt8] { Array(buffer.readableBytesView) }

        /// - Parameter memory: Where it is counted; nil where it is not.
        init(_ bytes: [UInt8], in memory: AnswerMemory? = nil) {
            buffer = ByteBuffer(bytes: bytes)
            self.memory = memory
        }

        deinit { memory?.giveBack(count) }

        static func == (one: Piece, other: Piece) -> Bool { one.buffer == other.buffer }
    }

    /// A client that something is being written to.
    final class Reader: Sendable {
        fileprivate let number: Int
        private let memory: AnswerMemory

        fileprivate init(_ number: Int, _ memory: AnswerMemory) { (self.number, self.memory) = (number, memory) }
        deinit { memory.forget(number) }

        /// It has taken something.
        ///
        /// - Parameter holds: The bytes that wait for it now.
        func progressed(holds: Int) { memory.note(number, holds) }
    }

    private struct Entry {
        var since: Int64
        var bytes: Int
        let drop: @Sendable () -> Void
    }

    private struct State {
        var used = 0
        var readers: [Int: Entry] = [:]
        var next = 0
    }

    private let most: Int
    private let now: @Sendable () -> Int64
    private let state = Locked(State())

    init(most: Int = usual, now: @escaping @Sendable () -> Int64 = { MonotonicTime.now() }) {
        (self.most, self.now) = (most, now)
    }

    /// Bytes of all pieces.
    var used: Int { state.withLock { $0.used } }

    /// [any thread] A piece for clients; nil where there is no room. One alone always has room.
    func piece(_ bytes: [UInt8]) -> Piece? {
        let now = now()
        let (hasRoom, dropped) = state.withLock { state -> (Bool, [Entry]) in
            guard state.used > 0, state.used + bytes.count > most else {
                state.used += bytes.count
                return (true, [])
            }
            var (dropped, missing): ([Entry], Int) = ([], state.used + bytes.count - most)
            let slow = state.readers.filter { now - $0.value.since >= Self.patience && $0.value.bytes > 0 }
            for (number, reader) in slow.sorted(by: { $0.value.since < $1.value.since }) where missing > 0 {
                missing -= reader.bytes
                state.readers[number] = nil
                dropped.append(reader)
            }
            return (false, dropped)
        }
        for reader in dropped { reader.drop() }
        return hasRoom ? Piece(bytes, in: self) : nil
    }

    /// [any thread] Notes a client.
    ///
    /// - Parameter drop: Closes its connection.
    func reader(holds: Int = 0, drop: @escaping @Sendable () -> Void) -> Reader {
        let now = now()
        let number = state.withLock { state in
            state.next += 1
            state.readers[state.next] = Entry(since: now, bytes: holds, drop: drop)
            return state.next
        }
        return Reader(number, self)
    }

    private func note(_ number: Int, _ bytes: Int) {
        let now = now()
        state.withLock { state in
            state.readers[number]?.since = now
            state.readers[number]?.bytes = bytes
        }
    }

    private func forget(_ number: Int) { state.withLock { $0.readers[number] = nil } }
    private func giveBack(_ count: Int) { state.withLock { $0.used -= count } }

    /// Why something could not be sent.
    static func full(_ what: String) -> Refusal {
        Refusal(
            503, "exhausted", place: "connections",
            "\(what): what clients have not read yet takes up all \(usual >> 20) MB that the server may use for it",
            "Read answers and pictures completely, or ask for smaller ones, and try again later.")
    }
}
