// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// Holds a packet that comes much later than the stream's times say, until another one follows or the stream is lost.
///
/// libavformat knows the end of a picture by the begin of the next one, and gives up the last picture of a stream that has
/// stopped only when the connection is given up: that picture would say that a dead stream is back. One thread uses it.
struct LatePacket: ~Copyable {
    /// How much later than its time says, nanoseconds.
    private static let most: Int64 = 1_000_000_000

    private let timeBase: TimeBase
    private var last: (time: Int64, at: Int64)?
    private var held: UnsafeMutablePointer<AVPacket>?
    /// Given out by ``take()``.
    private var given: UnsafeMutablePointer<AVPacket>?

    init(_ timeBase: TimeBase) { self.timeBase = timeBase }

    deinit {
        var (held, given) = (held, given)
        av_packet_free(&held)
        av_packet_free(&given)
    }

    var isHeld: Bool { held != nil }

    /// Whether the packet is held, and then empty.
    ///
    /// - Parameter isOverdue: Whether the stream has been silent for longer than it may be.
    mutating func holds(_ packet: UnsafeMutablePointer<AVPacket>, now: Int64, isOverdue: Bool) -> Bool {
        let tick = packet.pointee.dts == fh_av_no_pts ? packet.pointee.pts : packet.pointee.dts
        let time = tick == fh_av_no_pts ? nil : timeBase.possibleTime(ofTicks: tick)?.nanoseconds
        let before = last
        last = time.map { ($0, now) }
        guard held == nil, let before else { return false }
        // Times lie within ±2^61.
        let isLate = time.map { now - before.at - max($0 - before.time, 0) > Self.most } ?? false
        guard isLate || isOverdue, let own = av_packet_alloc() else { return false }
        av_packet_move_ref(own, packet)
        held = own
        return true
    }

    /// The packet that was held; nil where none was. Valid until the next call.
    mutating func take() -> UnsafeMutablePointer<AVPacket>? {
        guard let taken = held else { return nil }
        av_packet_free(&given)
        (given, held) = (taken, nil)
        return taken
    }
}
