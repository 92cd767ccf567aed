// SPDX-License-Identifier: Apache-2.0

import FrameNetwork

/// A reader whose packets flow on its RTSP connection. [network loop]
final class TCPReader {
    let order: PlayOrder
    /// Its position in the kept group, while it catches up.
    private struct Backlog {
        let hub: StreamHub
        var index: UInt64
        let block = MediaBlock()
        /// When the socket last took something.
        var lastTaken: Int64
    }

    private let channels: TransportSpec.Pair<UInt8>
    private let channel: any Channel
    private var queue: ReaderQueue<MediaBlock>
    private var nextIndex: UInt64 = 0
    private var backlog: Backlog?
    var lastReport: ReceptionReport?

    init(
        order: PlayOrder, channels: TransportSpec.Pair<UInt8>, channel: any Channel,
        limits: ReaderQueue<MediaBlock>.Limits
    ) {
        self.order = order
        self.channels = channels
        self.channel = channel
        queue = ReaderQueue(limits: limits)
    }

    func begin(_ entry: StreamHub.Entry, of hub: StreamHub, report: [UInt8], now: Int64) {
        sendControl(report)
        backlog = entry.backlog.map { Backlog(hub: hub, index: $0.keyframe.index + 1, lastTaken: now) }
        for block in entry.kept { _ = queue.add(block, now: now) }
        // The keyframe is already more than the queue holds.
        if queue.awaitsKeyframe { backlog = nil }
        nextIndex = entry.nextIndex
        pump(now: now)
    }

    func offer(_ block: MediaBlock, now: Int64) {
        // A reader that catches up takes this block from the kept group.
        guard backlog == nil, block.index >= nextIndex else { return }
        nextIndex = block.index + 1
        _ = queue.add(block, now: now)
    }

    /// - Parameter count: How many units were lost before they came here.
    func missed(_ count: Int) {
        // A reader that catches up takes nothing from the mailbox.
        if backlog == nil { queue.missed(count) }
    }

    /// Hands the socket as much as it takes. The rest waits in the queue, where it can still be dropped.
    func pump(now: Int64) {
        var hasWritten = false
        while channel.isWritable, let block = queue.take(now: now) {
            channel.write(block.interleaved(on: channels), promise: nil)
            hasWritten = true
        }
        // While the reader catches up, nothing enters the queue.
        if backlog != nil, catchUp(now: now) { hasWritten = true }
        if hasWritten { channel.flush() }
    }

    /// Sends unit after unit of the kept group, as long as the socket takes them; true when it took any.
    private func catchUp(now: Int64) -> Bool {
        var hasWritten = false
        while channel.isWritable, let place = backlog {
            switch place.hub.catchUp(place.index, into: place.block) {
            case .unit(let leftOut):
                if leftOut > 0 {
                    queue.missed(leftOut)
                    queue.begin()
                }
                channel.write(place.block.interleaved(on: channels), promise: nil)
                hasWritten = true
                backlog?.index = place.block.index + 1
                backlog?.lastTaken = now
            case .done(let index):
                nextIndex = index
                backlog = nil
            case .lost(let leftOut, let index):
                queue.missed(leftOut)
                nextIndex = index
                backlog = nil
            }
        }
        return hasWritten
    }

    /// Sends a compound RTCP packet.
    func sendControl(_ bytes: [UInt8]) {
        var buffer = channel.allocator.buffer(capacity: bytes.count + H264Packetizer.interleavingBytes)
        buffer.writeMultipleIntegers(UInt8(0x24), channels.rtcp, UInt16(bytes.count))
        buffer.writeBytes(bytes)
        channel.writeAndFlush(buffer, promise: nil)
    }

    func receive(on channel: UInt8, _ payload: [UInt8]) {
        guard channel == channels.rtcp, let report = RTCP.receptionReport(payload) else { return }
        lastReport = report
    }

    func isStuck(now: Int64) -> Bool {
        guard let backlog else { return queue.isStuck(now: now) }
        return now - backlog.lastTaken > queue.limits.mostStillness
    }

    func figures(now: Int64) -> ReaderFigures {
        ReaderFigures(
            sessionID: order.sessionID, peer: order.peer, transport: order.transport.name, user: order.user,
            queueMs: Int(queue.age(now: now) / 1_000_000), droppedUnits: queue.droppedCount,
            packetsLost: lastReport?.packetsLost ?? 0,
            fractionLost: lastReport?.fractionLost ?? 0)
    }
}
