// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameHTTP

/// Writes a stream, or a large answer, as fast as the client reads it.
struct ChannelWriter: StreamWriter {
    private let channel: any Channel
    private let memory: AnswerMemory
    private let progress: TimeAmount

    /// How much must be read within ``progress``. A large picture is sent in such slices.
    private static let slice = 64 << 10
    /// How often a stream looks for memory again, and how long it waits in between.
    private static let (attempts, pause) = (20, TimeAmount.milliseconds(100))

    init(_ channel: any Channel, _ memory: AnswerMemory, progress: TimeAmount = .seconds(10)) {
        (self.channel, self.memory, self.progress) = (channel, memory, progress)
    }

    func write(_ bytes: [UInt8]) async throws {
        guard bytes.count >= AnswerMemory.leastBytes else {
            return try await write(AnswerMemory.Piece(bytes), stalls: progress)
        }
        for _ in 0..<Self.attempts {
            if let piece = memory.piece(bytes) { return try await write(piece, stalls: progress) }
            try await channel.eventLoop.scheduleTask(in: Self.pause) {}.futureResult.get()
        }
        throw AnswerMemory.full("there is no room for more of the stream")
    }

    func write(_ head: [UInt8], _ piece: AnswerMemory.Piece, _ tail: [UInt8]) async throws {
        channel.write(HTTPResponsePart.body(ByteBuffer(bytes: head)), promise: nil)
        try await write(piece, stalls: progress, then: tail)
    }

    /// Slices share the piece's memory.
    ///
    /// - Parameter limit: How long the client may take for a slice.
    func write(_ piece: AnswerMemory.Piece, stalls limit: TimeAmount, then tail: [UInt8] = []) async throws {
        let channel = channel
        let reader = memory.reader(holds: piece.count) { channel.close(promise: nil) }
        var rest = piece.buffer
        while let slice = rest.readSlice(length: min(rest.readableBytes, Self.slice)), slice.readableBytes > 0 {
            let timer = channel.closing(in: limit)
            defer { timer.cancel() }
            if rest.readableBytes == 0, !tail.isEmpty {
                channel.write(HTTPResponsePart.body(slice), promise: nil)
                try await channel.writeAndFlush(HTTPResponsePart.body(ByteBuffer(bytes: tail))).get()
            } else {
                try await channel.writeAndFlush(HTTPResponsePart.body(slice)).get()
            }
            reader.progressed(holds: rest.readableBytes)
        }
    }

    func whenHalfClosed(_ action: @escaping @Sendable () -> Void) {
        MessageRules.whenHalfClosed(channel, action)
    }

    func whenClosed(_ action: @escaping @Sendable () -> Void) {
        channel.closeFuture.whenComplete { _ in action() }
    }
}

extension Channel {
    /// Closes the connection unless it is cancelled in time.
    func closing(in time: TimeAmount) -> Scheduled<Void> {
        eventLoop.scheduleTask(in: time) { self.close(promise: nil) }
    }
}
