// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameHTTP

/// The body of one request. Only the request's task reads it.
final class BodyReader {
    /// How long a body may take.
    private static let limit = TimeAmount.seconds(30)
    private static let mostDrained = 4 << 20
    private var iterator: RequestBody.AsyncIterator?
    private let body: RequestBody
    private let channel: any Channel
    private(set) var isAtEnd = false

    init(_ body: RequestBody, _ channel: any Channel) {
        self.body = body
        self.channel = channel
    }

    private func next() async throws -> ByteBuffer? {
        var iterator = self.iterator ?? body.makeAsyncIterator()
        let next = try await iterator.next()
        self.iterator = iterator
        if next == nil { isAtEnd = true }
        return next
    }

    /// - Throws: ``Refusal`` for a body of more than `most` bytes.
    func all(_ most: Int) async throws -> [UInt8] {
        let timer = channel.closing(in: Self.limit)
        defer { timer.cancel() }
        var bytes: [UInt8] = []
        while let part = try await next() {
            guard bytes.count + part.readableBytes <= most else { throw ControlAPI.tooLarge }
            bytes += part.readableBytesView
        }
        return bytes
    }

    /// Reads the rest of the body, within limits: a client whose connection is closed while it writes may lose the
    /// answer.
    func drain() async {
        let timer = channel.closing(in: .seconds(2))
        defer { timer.cancel() }
        var count = 0
        while count < Self.mostDrained, let part = try? await next() { count += part.readableBytes }
    }
}
