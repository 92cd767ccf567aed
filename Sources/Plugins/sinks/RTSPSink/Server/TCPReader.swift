// SPDX-License-Identifier: Apache-2.0

import FrameNetwork

/// A reader whose packets flow on its RTSP connection. [network loop]
final class TCPReader {
    let order: PlayOrder
    /// Its position in the kept group, while it catches up.
    private struct Backlog {
        let hub: StreamHub
        var index: UInt64
        /// How many units of sound there are before `index`.
        var sounds: UInt64
        let block = MediaBlock()
        /// When the socket last took something.
        var lastTaken: Int64
    }

    /// Of each medium that is set up.
    private let channels: PerMedium<TransportSpec.Pair<UInt8>?>
    private let channel: any Channel
    private var queue: ReaderQueue<MediaBlock>
    private var nextIndex: UInt64 = 0
    private var backlog: Backlog?
    private var gate: SoundGate
    /// The hub whose reports it must get before its first block; nil once it has them.
    private var reportsOwed: StreamHub?
    private var lastReports = PerMedium<ReceptionReport?>(nil)

    init(order: PlayOrder, channel: any Channel, limits: ReaderQueue<MediaBlock>.Limits) {
        self.order = order
        channels = order.transports.channels
        self.channel = channel
        gate = SoundGate(order.transports)
        queue = ReaderQueue(limits: limits, awaitsKeyframe: order.transports[.pictures] != nil)
    }

    func begin(_ entry: StreamHub.Entry, of hub: StreamHub, now: Int64) {
        if let reports = hub.firstReports(of: entry) { sendControl(reports) } else { reportsOwed = hub }
        backlog = entry.backlog.map {
            Backlog(hub: hub, index: $0.keyframe.index + 1, sounds: $0.keyframe.soundsBefore, lastTaken: now)
        }
        for block in entry.kept where admits(block) { _ = queue.add(block, now: now) }
        // The keyframe alone exceeds the queue's limits.
        if queue.awaitsKeyframe { backlog = nil }
        nextIndex = entry.nextIndex
        pump(now: now)
    }

    func offer(_ block: MediaBlock, now: Int64) {
        // A reader that catches up takes this block from the kept group.
        guard backlog == nil, block.index >= nextIndex else { return }
        nextIndex = block.index + 1
        if channels[block.medium] == nil, reportsOwed == nil { sendReports(of: block) }
        guard admits(block) else { return }
        if let hub = reportsOwed {
            reportsOwed = nil
            sendControl(hub.senderReports())
        }
        _ = queue.add(block, now: now)
    }

    /// Reports of both media come with a unit of either. A reader of one medium gets its reports even with units that
    /// it does not get.
    private func sendReports(of block: MediaBlock) {
        for medium in Medium.allCases {
            guard let pair = channels[medium], let report = block.interleavedReport(of: medium, on: pair.rtcp) else {
                continue
            }
            channel.writeAndFlush(report, promise: nil)
        }
    }

    private func admits(_ block: MediaBlock) -> Bool {
        gate.admits(block.medium, isKeyframe: block.isKeyframe, time: block.pictureTime)
    }

    /// - Parameter lost: How many units were lost before they came here.
    func missed(_ lost: PerMedium<Int>) {
        // A reader that catches up takes nothing from the mailbox.
        if backlog == nil { drop(lost) }
    }

    /// Drops units up to the next keyframe. Of the lost units, only those that the reader would have got are counted.
    private func drop(_ lost: PerMedium<Int>) {
        queue.missed(
            channels.pictures == nil ? 0 : lost.pictures, alone: channels.sound == nil ? 0 : lost.sound)
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
            switch place.hub.catchUp(place.index, sounds: place.sounds, into: place.block) {
            case .unit(let leftOut, let sounds):
                if leftOut + sounds > 0 {
                    drop(PerMedium(pictures: leftOut, sound: sounds))
                    queue.begin()
                }
                backlog?.index = place.block.index + 1
                backlog?.sounds = place.block.soundsBefore + (place.block.medium == .sound ? 1 : 0)
                guard admits(place.block) else { continue }
                channel.write(place.block.interleaved(on: channels), promise: nil)
                hasWritten = true
                backlog?.lastTaken = now
            case .done(let index):
                nextIndex = index
                backlog = nil
            case .lost(let leftOut, let sounds, let index):
                drop(PerMedium(pictures: leftOut, sound: sounds))
                nextIndex = index
                backlog = nil
            }
        }
        return hasWritten
    }

    /// Sends a compound RTCP packet for each medium that is set up.
    func sendControl(_ packets: PerMedium<[UInt8]>) {
        for medium in Medium.allCases {
            guard let pair = channels[medium] else { continue }
            let bytes = packets[medium]
            var buffer = channel.allocator.buffer(capacity: bytes.count + NALPacketizer.interleavingBytes)
            buffer.writeMultipleIntegers(UInt8(0x24), pair.rtcp, UInt16(bytes.count))
            buffer.writeBytes(bytes)
            channel.write(buffer, promise: nil)
        }
        channel.flush()
    }

    func receive(on channel: UInt8, _ payload: [UInt8]) {
        guard let medium = Medium.allCases.first(where: { channels[$0]?.rtcp == channel }),
            let report = RTCP.receptionReport(payload)
        else { return }
        lastReports[medium] = report
    }

    func isStuck(now: Int64) -> Bool {
        guard let backlog else { return queue.isStuck(now: now) }
        return now - backlog.lastTaken > queue.limits.mostStillness
    }

    func figures(now: Int64) -> ReaderFigures {
        var figures = ReaderFigures(order)
        figures.queueMs = Int(queue.age(now: now) / 1_000_000)
        figures.droppedUnits = queue.droppedCount
        figures.sound?.droppedUnits = queue.droppedAloneCount
        figures.note(lastReports)
        return figures
    }
}
