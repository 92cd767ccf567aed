// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import RTSPSink

@Suite struct RTPTests {
    // MARK: Header

    @Test func readsAndWritesHeaders() {
        let vectors: [([UInt8], RTPHeader)] = [
            (
                [0x80, 0xe0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3],
                RTPHeader(marker: true, payloadType: 96, sequenceNumber: 1, timestamp: 2, ssrc: 3)
            ),
            (
                [0x80, 0x60, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x12, 0x34, 0x56, 0x78],
                RTPHeader(payloadType: 96, sequenceNumber: 0xffff, timestamp: 0xffff_fffe, ssrc: 0x1234_5678)
            ),
        ]
        for (bytes, header) in vectors {
            #expect(header.bytes == bytes)
            #expect(RTPHeader(bytes) == header)
        }
        #expect(RTPHeader([0x80, 0x60, 0]) == nil)
        #expect(RTPHeader([UInt8](repeating: 0x40, count: 12)) == nil)
    }

    // MARK: Clock

    @Test func mapsHoursWithoutDrift() {
        let clock = RTPClock(start: 0xffff_0000)
        // 30000/1001 pictures a second for 30 hours, each time rounded to the nanosecond as sources give it.
        for number in stride(from: Int64(0), to: 3_240_000, by: 997) {
            let exact = number * 3003
            let nanoseconds = (number * 1_001_000_000_000 + 15_000) / 30_000
            #expect(clock.timestamp(ofPTS: nanoseconds) == 0xffff_0000 &+ UInt32(truncatingIfNeeded: exact))
        }
        for ticks in [Int64(0), 1, -1, 89_999, 90_000, 1 << 40, -(1 << 40), 7_777_777_777] {
            #expect(RTPClock.ticks(ofNanoseconds: RTPClock.nanoseconds(ofTicks: ticks)) == ticks)
        }
        #expect(RTPClock.ticks(ofNanoseconds: 5_555) == 0)
        #expect(RTPClock.ticks(ofNanoseconds: 5_556) == 1)
        #expect(RTPClock.ticks(ofNanoseconds: -5_556) == -1)
    }

    @Test func writesNTPToTheTick() {
        // 2026-01-01T00:00:00Z and half a second.
        #expect(
            NTPTime(unixNanoseconds: 1_767_225_600_500_000_000).value == UInt64(1_767_225_600 + 2_208_988_800) << 32 | 1
                << 31)
        for nanoseconds in [Int64(0), 1, 999_999_999, 1_767_225_600_123_456_789] {
            #expect(abs(NTPTime(unixNanoseconds: nanoseconds).unixNanoseconds - nanoseconds) <= 1)
        }
    }

    // MARK: RTCP

    static let report = SenderReport(
        ssrc: 0x0102_0304, ntp: NTPTime(value: 0x0506_0708_090a_0b0c), rtpTime: 13, packetCount: 14, byteCount: 15)
    static let block = ReceptionReport(
        ssrc: 7, fractionLost: 128, packetsLost: -2, highestSequenceNumber: 0x1_0005, jitter: 90)
    static let compounds: [(name: String, packets: [RTCPPacket], bytes: [UInt8])] = [
        (
            "the first of a sender", [.senderReport(report, []), .canonicalName(ssrc: 0x0102_0304, "ab")],
            [0x80, 200, 0, 6, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 13, 0, 0, 0, 14, 0, 0, 0, 15]
                + [0x81, 202, 0, 3, 1, 2, 3, 4, 1, 2, 0x61, 0x62, 0, 0, 0, 0]
        ),
        (
            "a receiver's", [.receiverReport(ssrc: 9, [block])],
            [0x81, 201, 0, 7, 0, 0, 0, 9, 0, 0, 0, 7, 128, 0xff, 0xff, 0xfe, 0, 1, 0, 5, 0, 0, 0, 90]
                + [UInt8](repeating: 0, count: 8)
        ),
        (
            "the end", [.receiverReport(ssrc: 9, []), .bye([9])],
            [0x80, 201, 0, 1, 0, 0, 0, 9, 0x81, 203, 0, 1, 0, 0, 0, 9]
        ),
    ]

    @Test(arguments: compounds.indices) func readsAndWritesRTCP(index: Int) {
        #expect(RTCP.bytes(Self.compounds[index].packets) == Self.compounds[index].bytes)
        #expect(RTCP.parse(Self.compounds[index].bytes) == Self.compounds[index].packets)
    }

    @Test func passesOverWhatItDoesNotKnow() {
        #expect(RTCP.parse([]) == [])
        #expect(RTCP.parse([0x80, 205, 0, 1, 1, 2, 3, 4]) == [.other(type: 205)])
        // Padding, and a source description without a name.
        #expect(RTCP.parse([0xa0, 201, 0, 2, 0, 0, 0, 9, 0, 0, 0, 4]) == [.receiverReport(ssrc: 9, [])])
        #expect(RTCP.parse([0x81, 202, 0, 2, 0, 0, 0, 9, 8, 1, 1, 0]) == [.other(type: 202)])
        // A name that is not UTF-8.
        #expect(RTCP.parse([0x81, 202, 0, 2, 0, 0, 0, 9, 1, 1, 0xc9, 0]) == [.other(type: 202)])
    }

    @Test func cutsALongNameBetweenCharacters() {
        let written = RTCP.bytes([.canonicalName(ssrc: 9, String(repeating: "é", count: 200))])
        #expect(RTCP.parse(written) == [.canonicalName(ssrc: 9, String(repeating: "é", count: 127))])
    }

    @Test(
        arguments: [
            [0x80], [0x40, 201, 0, 1, 0, 0, 0, 9], [0x80, 201, 0, 9, 0, 0, 0, 9], [0x81, 201, 0, 1, 0, 0, 0, 9],
            [0x80, 200, 0, 1, 0, 0, 0, 9],
            [0xa0, 201, 0, 1, 0, 0, 0, 9], [0xa0, 201, 0, 0], [0x82, 203, 0, 1, 0, 0, 0, 9], [0x81, 202, 0, 0],
        ] as [[UInt8]]) func refusesRTCPOfWrongSize(bytes: [UInt8])
    { #expect(RTCP.parse(bytes) == nil) }

    /// A stage behind another chain clock, or a clip's: the sender report's times follow any of them.
    @Test func aSenderReportHasATimeWhateverTheAnchor() {
        // Both ends, and what is near them, near 0 and near the end of the timeline.
        let times: [Int64] = [
            .min, .min + 1, -0x4000_0000_0000_0000, -0x2000_0000_0000_0001, -0x2000_0000_0000_0000, -1, 0, 1,
            0x2000_0000_0000_0000, 0x2000_0000_0000_0001, 0x4000_0000_0000_0000, .max - 1, .max,
        ]
        for captured in times {
            for pts in times {
                for now in times {
                    let hub = StreamHub(
                        path: "/a", ssrc: 1, clock: RTPClock(start: .max), canonicalName: "a",
                        queueLimits: .init(mostAge: 1, mostBytes: 1, mostStillness: 1), requestKeyframe: {},
                        now: { now }, unixTime: { $0 })
                    hub.setAnchor(captured: MediaTime(nanoseconds: captured), pts: MediaTime(nanoseconds: pts))
                    #expect(RTCP.parse(hub.senderReport())?.count == 2)
                }
            }
        }
    }
}
