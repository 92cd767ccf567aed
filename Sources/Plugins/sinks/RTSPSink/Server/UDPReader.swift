// SPDX-License-Identifier: Apache-2.0

/// A reader whose packets are datagrams. [network loop]
final class UDPReader {
    let order: PlayOrder
    /// Of each medium that is set up.
    struct Addresses {
        var media: SocketAddressStorage
        var control: SocketAddressStorage
    }

    let addresses: PerMedium<Addresses?>
    var awaitsKeyframe: Bool
    var nextIndex: UInt64 = 0
    /// False once a message of several packets was refused on the way to it; see ``DatagramSender``.
    var takesRuns = true
    /// Datagrams for which the socket had no room.
    var refusedCount = 0

    init(order: PlayOrder, addresses: PerMedium<Addresses?>) {
        self.order = order
        self.addresses = addresses
        awaitsKeyframe = addresses.pictures != nil
        gate = SoundGate(order.transports)
    }

    /// Units that it did not get after it had begun.
    private var droppedUnits = PerMedium(0)
    private var hasBegun = false
    private var gate: SoundGate

    /// How it catches up in the kept group. Datagrams have no backpressure, so they must be paced.
    struct Pace {
        /// Bytes of media in a step of ``LoopFan``, or `hurry` times the stream's own rate where that is more. A client
        /// may read and decode on one thread, and the kernel keeps 208 KiB for it.
        static let leastBytes = 8 << 10
        static let hurry = 8
        var index: UInt64
        /// How many units of sound there are before `index`.
        var sounds: UInt64
        let bytesPerStep: Int
        /// Less than 0 after a large unit.
        var allowance = 0
    }
    var pace: Pace?

    /// Whether it gets this block.
    func admits(_ block: MediaBlock) -> Bool {
        guard block.index >= nextIndex else { return false }
        nextIndex = block.index + 1
        guard gate.admits(block.medium, isKeyframe: block.isKeyframe, time: block.pictureTime) else { return false }
        if block.standsAlone { return true }
        if block.isKeyframe {
            awaitsKeyframe = false
            hasBegun = true
        }
        if awaitsKeyframe, hasBegun { droppedUnits.pictures += 1 }
        return !awaitsKeyframe
    }

    /// Units were lost before they came here: drops units up to the next keyframe.
    func missed(_ lost: PerMedium<Int>) {
        // A reader that catches up takes nothing from the mailbox.
        guard pace == nil else { return }
        leftOut(lost)
    }

    /// Notes units before the next one that were left out.
    func leftOut(_ lost: PerMedium<Int>) {
        guard addresses.pictures != nil else {
            droppedUnits.sound += lost.sound
            return
        }
        awaitsKeyframe = true
        guard hasBegun else { return }
        droppedUnits.pictures += lost.pictures
        if addresses.sound != nil { droppedUnits.sound += lost.sound }
    }

    /// Without the losses that it has reported: those datagrams come to the server, which notes them.
    var figures: ReaderFigures {
        var figures = ReaderFigures(order)
        figures.droppedUnits = droppedUnits.pictures
        figures.sound?.droppedUnits = droppedUnits.sound
        figures.refusedPackets = refusedCount
        return figures
    }
}
