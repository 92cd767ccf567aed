// SPDX-License-Identifier: Apache-2.0

/// A reader whose packets are datagrams. [network loop]
final class UDPReader {
    let order: PlayOrder
    let media: SocketAddressStorage
    let control: SocketAddressStorage
    var awaitsKeyframe = true
    var nextIndex: UInt64 = 0
    /// False once a message of several packets was refused on the way to it; see ``DatagramSender``.
    var takesRuns = true
    /// Datagrams for which the socket had no room.
    var refusedCount = 0
    var lastReport: ReceptionReport?

    init(order: PlayOrder, media: SocketAddressStorage, control: SocketAddressStorage) {
        self.order = order
        self.media = media
        self.control = control
    }

    /// Units that it did not get after it had begun.
    private var droppedUnits = 0
    private var hasBegun = false

    /// How it catches up in the kept group. Datagrams have no backpressure, so they must be paced.
    struct Pace {
        /// Bytes of media in a step of ``LoopFan``, or `hurry` times the stream's own rate where that is more. A client
        /// may read and decode on one thread, and the kernel keeps 208 KiB for it.
        static let leastBytes = 8 << 10
        static let hurry = 8
        var index: UInt64
        let bytesPerStep: Int
        /// Less than 0 after a large unit.
        var allowance = 0
    }
    var pace: Pace?

    /// Whether it gets this block.
    func admits(_ block: MediaBlock) -> Bool {
        guard block.index >= nextIndex else { return false }
        nextIndex = block.index + 1
        if block.isKeyframe {
            awaitsKeyframe = false
            hasBegun = true
        }
        if awaitsKeyframe, hasBegun { droppedUnits += 1 }
        return !awaitsKeyframe
    }

    /// Units were lost before they came here: drops units up to the next keyframe.
    func missed(_ count: Int) {
        // A reader that catches up takes nothing from the mailbox.
        guard pace == nil else { return }
        leftOut(count)
    }

    /// `count` units before the next one were left out.
    func leftOut(_ count: Int) {
        awaitsKeyframe = true
        if hasBegun { droppedUnits += count }
    }

    var figures: ReaderFigures {
        ReaderFigures(
            sessionID: order.sessionID, peer: order.peer, transport: order.transport.name, user: order.user,
            droppedUnits: droppedUnits,
            refusedPackets: refusedCount, packetsLost: lastReport?.packetsLost ?? 0,
            fractionLost: lastReport?.fractionLost ?? 0)
    }
}
