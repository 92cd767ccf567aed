// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RTSPSink

@Suite struct SoundPacketizerTests {
    private static func packetizer(_ form: SoundPacketizer.Form, _ mostPacketBytes: Int = 112) -> SoundPacketizer {
        SoundPacketizer(form, mostPacketBytes: mostPacketBytes, payloadType: 97, ssrc: 7, firstSequenceNumber: 0xffff)
    }

    /// The packets of a unit, by their interleaved frames too, which must be those on the channel of sound.
    static func packets(_ packetizer: inout SoundPacketizer, _ unit: [UInt8]) -> [(RTPHeader, [UInt8])] {
        unit.withUnsafeBytes { bytes in
            let plan = packetizer.plan(bytes, isKeyframe: true)
            let target = UnsafeMutableRawBufferPointer.allocate(byteCount: plan.byteCount, alignment: 16)
            defer { target.deallocate() }
            var extents: [NALPacketizer.Extent] = []
            if plan.packetCount > 0 { packetizer.write(bytes, timestamp: 777, to: target, packets: &extents) }
            #expect(extents.count == plan.packetCount && (extents.last?.end ?? 0) == plan.byteCount)
            return extents.map { extent in
                let frame = Array(target[extent.offset - 4..<extent.offset])
                #expect(frame == [0x24, 2, UInt8(extent.byteCount >> 8), UInt8(extent.byteCount & 255)])
                let packet = Array(target[extent.offset..<extent.end])
                return (RTPHeader(packet)!, Array(packet[12...]))
            }
        }
    }

    static func unit(_ byteCount: Int) -> [UInt8] { (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 7) } }

    struct Case: CustomTestStringConvertible {
        var name: String
        var form: SoundPacketizer.Form
        var byteCount: Int
        /// Of each packet: what is before the unit's bytes, and how many of these.
        var packets: [([UInt8], Int)]
        var testDescription: String { name }
    }

    /// Packets of at most 112 bytes: 100 without RTP's header.
    static let cases = [
        // 16 bits of headers; 13 bits of size: 5 << 3 is 0x0028.
        Case(name: "a small AU", form: .aac, byteCount: 5, packets: [([0, 16, 0, 0x28], 5)]),
        Case(name: "one that fits exactly", form: .aac, byteCount: 96, packets: [([0, 16, 0x03, 0x00], 96)]),
        // Each fragment says how large the whole is: 97 << 3 is 0x0308.
        Case(
            name: "one byte too many", form: .aac, byteCount: 97,
            packets: [([0, 16, 0x03, 0x08], 96), ([0, 16, 0x03, 0x08], 1)]),
        Case(
            name: "three fragments", form: .aac, byteCount: 288,
            packets: [([0, 16, 0x09, 0x00], 96), ([0, 16, 0x09, 0x00], 96), ([0, 16, 0x09, 0x00], 96)]),
        Case(name: "nothing", form: .aac, byteCount: 0, packets: []),
        Case(name: "more than 13 bits can say", form: .aac, byteCount: 8192, packets: []),
        Case(name: "a packet of Opus", form: .opus, byteCount: 80, packets: [([], 80)]),
        Case(name: "a large packet of Opus stays whole", form: .opus, byteCount: 1275, packets: [([], 1275)]),
        Case(name: "no packet of Opus", form: .opus, byteCount: 0, packets: []),
        Case(name: "more than Opus can have", form: .opus, byteCount: 61_251, packets: []),
        // Where the packet lies in the frame (RFC 2250, 3.5).
        Case(name: "a frame of MP3", form: .mp3, byteCount: 96, packets: [([0, 0, 0, 0], 96)]),
        Case(
            name: "a large frame of MP3", form: .mp3, byteCount: 200,
            packets: [([0, 0, 0, 0], 96), ([0, 0, 0, 96], 96), ([0, 0, 0, 192], 8)]),
        Case(name: "no frame of MP3", form: .mp3, byteCount: 0, packets: []),
        Case(name: "20 ms of G.711", form: .g711(bytesPerTick: 1), byteCount: 100, packets: [([], 100)]),
    ]

    @Test(arguments: cases) func packsAsTheRFCsSay(test: Case) {
        var packetizer = Self.packetizer(test.form)
        let unit = Self.unit(test.byteCount)
        let packets = Self.packets(&packetizer, unit)
        #expect(packets.count == test.packets.count)
        var whole: [UInt8] = []
        for (index, ((header, payload), expected)) in zip(packets, test.packets).enumerated() {
            let isEnd = index == packets.count - 1
            #expect(
                header
                    == RTPHeader(
                        marker: test.form == .aac && isEnd, payloadType: 97, sequenceNumber: 0xffff &+ UInt16(index),
                        timestamp: 777, ssrc: 7))
            #expect(Array(payload.prefix(expected.0.count)) == expected.0)
            #expect(payload.count == expected.0.count + expected.1)
            whole += payload.dropFirst(expected.0.count)
        }
        #expect(whole == (packets.isEmpty ? [] : unit))
        #expect(packetizer.sequenceNumber == 0xffff &+ UInt16(packets.count))
    }

    /// Samples are whole, and each packet has the time of its first one.
    @Test func cutsG711BetweenSamples() {
        var mono = Self.packetizer(.g711(bytesPerTick: 1))
        let packets = Self.packets(&mono, Self.unit(250))
        #expect(packets.map(\.1.count) == [100, 100, 50])
        #expect(packets.map(\.0.timestamp) == [777, 877, 977])
        #expect(packets.flatMap(\.1) == Self.unit(250))
        var three = Self.packetizer(.g711(bytesPerTick: 3))
        let ofThree = Self.packets(&three, Self.unit(198))
        #expect(ofThree.map(\.1.count) == [99, 99])
        #expect(ofThree.map(\.0.timestamp) == [777, 810])
    }

    /// Eight codes are whole bytes; a packet has 40 ms at most, or what there is room for.
    @Test(arguments: [
        (2, 112, 80), (3, 112, 99), (4, 112, 100), (5, 112, 100), (3, 1400, 120), (4, 1400, 160), (5, 1400, 200),
    ])
    func cutsG726BetweenSamples(bits: Int, mostPacketBytes: Int, most: Int) {
        var packetizer = Self.packetizer(.g726(bits: bits), mostPacketBytes)
        let unit = Self.unit(bits * 123)
        let packets = Self.packets(&packetizer, unit)
        #expect(packets.count == (unit.count + most - 1) / most)
        #expect(packets.dropLast().allSatisfy { $0.1.count == most && !$0.0.marker })
        #expect(packets.flatMap(\.1) == unit)
        #expect(packets.map(\.0.timestamp) == packets.indices.map { 777 + UInt32($0 * most / bits * 8) })
    }

    @Test func twoUnitsHaveAHeaderEach() {
        var packetizer = Self.packetizer(.aac)
        packetizer.firstBytes = 5
        let packets = Self.packets(&packetizer, Self.unit(12))
        #expect(packets.count == 1 && packets[0].0.marker)
        #expect(packets[0].1 == [0, 32, 0, 0x28, 0, 0x38] + Self.unit(12))
        #expect(packetizer.fits(47, and: 47) && !packetizer.fits(47, and: 48) && !packetizer.fits(0, and: 5))
        #expect(!Self.packetizer(.opus).fits(5, and: 5))
    }

    @Test func theLargestAUHasAllThirteenBits() {
        var packetizer = Self.packetizer(.aac, 1400)
        let packets = Self.packets(&packetizer, Self.unit(8191))
        #expect(packets.count == 6)
        #expect(packets.allSatisfy { Array($0.1.prefix(4)) == [0, 16, 0xff, 0xf8] })
    }

    // MARK: Config

    @Test(
        arguments: [
            // LC, 48 kHz, stereo: alone, and with what libavcodec puts behind it.
            ([0x11, 0x90], [0x11, 0x90]), ([0x11, 0x90, 0x56, 0xe5, 0x00], [0x11, 0x90]),
            // LC, 44.1 kHz, mono.
            ([0x12, 0x08, 0x56, 0xe5, 0x00], [0x12, 0x08]),
            // The rate as a number of 24 bits: 5 + 4 + 24 + 4 + 3 bits.
            ([0x17, 0x80, 0x5d, 0xc0, 0x10, 0x56], [0x17, 0x80, 0x5d, 0xc0, 0x10]),
            // A core coder with its delay: 14 bits more.
            ([0x11, 0x92, 0, 0, 0x77], [0x11, 0x92, 0, 0]),
            // SBR by its own object type, and channels by an element: taken whole.
            ([0x2b, 0x11, 0x88, 0], [0x2b, 0x11, 0x88, 0]), ([0x11, 0x80, 4, 0xc8], [0x11, 0x80, 4, 0xc8]),
            // Nothing, too short, object type 0, a reserved rate, cut within the rate.
            ([], nil), ([0x11], nil), ([0x01, 0x90], nil), ([0x16, 0x90], nil), ([0x17, 0x80], nil),
            ([UInt8](repeating: 0x11, count: 257), nil),
        ] as [([UInt8], [UInt8]?)]) func findsWhereTheConfigEnds(extradata: [UInt8], config: [UInt8]?)
    {
        #expect(AudioSpecificConfig.bytes(in: extradata) == config)
    }

    // MARK: Clock

    /// Units of 1024 samples, each time rounded to the nanosecond, the priming before 0 included.
    @Test(arguments: [8000, 22_050, 44_100, 48_000, 96_000] as [Int64])
    func aUnitsTimeIsItsSampleWhateverTheRate(rate: Int64) {
        let clock = RTPClock(start: 0xffff_ff00, ticksPerSecond: rate)
        for number in [-1, 0, 1, 2, 3, 1000, 999_983, 7_777_777] as [Int64] {
            let samples = number * 1024
            let nanoseconds = Int64((Double(samples) / Double(rate) * 1e9).rounded())
            #expect(clock.timestamp(ofPTS: nanoseconds) == 0xffff_ff00 &+ UInt32(truncatingIfNeeded: samples))
            #expect(clock.ticks(ofNanoseconds: clock.nanoseconds(ofTicks: samples)) == samples)
        }
    }

    // MARK: Description

    @Test func describesSoundAlone() {
        var description = SessionDescription(sessionID: 42, address: "192.168.1.5", name: "radio", sps: [], pps: [])
        description.hasPictures = false
        description.bitrateKbps = 128
        description.sound = SoundDescription(codec: .opus(isStereo: true))
        #expect(
            description.text
                == [
                    "v=0", "o=- 42 1 IN IP4 192.168.1.5", "s=radio", "c=IN IP4 0.0.0.0", "t=0 0", "a=tool:framehost",
                    "a=control:*", "a=range:npt=now-", "m=audio 0 RTP/AVP 97", "a=rtpmap:97 opus/48000/2",
                    "a=fmtp:97 sprop-stereo=1", "a=control:trackID=1", "",
                ].joined(separator: "\r\n"))
    }

    /// Static types have their meaning by RFC 3551, 6; other rates and several channels have none.
    @Test(
        arguments: [
            (.g711(isMuLaw: true, sampleRate: 8000, channelCount: 1), ["m=audio 0 RTP/AVP 0", "a=rtpmap:0 PCMU/8000"]),
            (
                .g711(isMuLaw: false, sampleRate: 8000, channelCount: 1),
                ["m=audio 0 RTP/AVP 8", "a=rtpmap:8 PCMA/8000"]
            ),
            (
                .g711(isMuLaw: false, sampleRate: 16_000, channelCount: 2),
                ["m=audio 0 RTP/AVP 97", "a=rtpmap:97 PCMA/16000/2"]
            ),
            (.g726(bits: 2), ["m=audio 0 RTP/AVP 97", "a=rtpmap:97 G726-16/8000"]),
            (.g726(bits: 5), ["m=audio 0 RTP/AVP 97", "a=rtpmap:97 G726-40/8000"]),
            (.mp3, ["m=audio 0 RTP/AVP 14", "a=rtpmap:14 MPA/90000"]),
        ] as [(SoundDescription.Codec, [String])]) func describesWhatHasATypeOfItsOwn(
            codec: SoundDescription.Codec, lines: [String]
        )
    { #expect(SoundDescription(codec: codec).lines == lines + ["a=control:trackID=1"]) }

    @Test func describesTheSoundBehindThePictures() {
        var description = SessionDescription(
            sessionID: 42, address: "192.168.1.5", name: "live", sps: RTSPHeaderTests.sps, pps: RTSPHeaderTests.pps)
        let pictures = description.text
        description.sound = SoundDescription(
            codec: .aac(config: [0x11, 0x90], sampleRate: 48_000, channelCount: 2), bitrateKbps: 128)
        #expect(
            description.text
                == pictures
                + [
                    "m=audio 0 RTP/AVP 97", "b=AS:128", "a=rtpmap:97 MPEG4-GENERIC/48000/2",
                    "a=fmtp:97 streamtype=5; profile-level-id=1; mode=AAC-hbr; sizelength=13; indexlength=3; indexdeltalength=3; config=1190",
                    "a=control:trackID=1", "",
                ].joined(separator: "\r\n"))
        description.sound = SoundDescription(codec: .opus(isStereo: true))
        #expect(
            description.text
                == pictures
                + [
                    "m=audio 0 RTP/AVP 97", "a=rtpmap:97 opus/48000/2", "a=fmtp:97 sprop-stereo=1",
                    "a=control:trackID=1", "",
                ].joined(separator: "\r\n"))
        description.sound = SoundDescription(codec: .opus(isStereo: false))
        #expect(
            description.text
                == pictures
                + ["m=audio 0 RTP/AVP 97", "a=rtpmap:97 opus/48000/2", "a=control:trackID=1", ""]
                .joined(separator: "\r\n"))
    }
}
