// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Testing

@testable import FileSource

@Suite struct LatePacketTests {
    private static let second: Int64 = 1_000_000_000

    /// Whether each packet of (time in seconds, nil: none; arrival in seconds; overdue) is held; one that is held is taken at
    /// the next.
    private static func held(_ packets: [(time: Double?, at: Double, isOverdue: Bool)]) -> [Bool] {
        var late = LatePacket(TimeBase(1, 90_000))
        var packet = av_packet_alloc()
        defer { av_packet_free(&packet) }
        return packets.map { item in
            packet!.pointee.pts = item.time.map { Int64($0 * 90_000) } ?? fh_av_no_pts
            packet!.pointee.dts = packet!.pointee.pts
            let isHeld = late.holds(packet!, now: Int64(item.at * 1e9), isOverdue: item.isOverdue)
            if !isHeld { _ = late.take() }
            #expect(late.isHeld == isHeld)
            return isHeld
        }
    }

    @Test func holdsWhatComesMuchLaterThanItsTimeSays() {
        #expect(
            Self.held([(10, 0, false), (10.04, 0.04, false), (10.08, 3, false), (10.12, 3.01, false)]) == [
                false, false, true, false,
            ])
    }

    @Test func holdsWhatIsOverdueWhateverItsTimeSays() {
        #expect(Self.held([(10, 0, false), (10.04, 0.3, true), (10.08, 0.31, false)]) == [false, true, false])
    }

    @Test func holdsNothingOfASlowStreamABurstOrAStreamWithoutTimes() {
        #expect(Self.held([(10, 0, false), (15, 5, false), (20, 10, false)]) == [false, false, false])
        #expect(
            Self.held([(10, 0, false), (10.04, 0, false), (18, 0, false), (18.04, 0.9, false)]) == [
                false, false, false, false,
            ])
        #expect(
            Self.held([(nil, 0, false), (nil, 5, false), (5, 10, false), (nil, 20, false)]) == [
                false, false, false, false,
            ])
    }

    /// Nothing was there before it that could be dead.
    @Test func holdsNoFirstPacket() { #expect(Self.held([(10, 9, true)]) == [false]) }

    /// A stream that went on after a pause of its sender: one packet is held, and goes with the next one.
    @Test func holdsOnePacketAtATime() {
        #expect(
            Self.held([(10, 0, false), (10.04, 5, false), (10.08, 10, false), (10.12, 15, false)])
                == [false, true, false, true])
    }
}
