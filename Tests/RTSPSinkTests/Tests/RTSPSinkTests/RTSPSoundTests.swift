// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Testing

@testable import RTSPSink

/// The stage with pictures and sound, before clients over plain sockets.
@Suite(.serialized) struct RTSPSoundTests {
    static let aac = sound(.aac, samples: 1024, extradata: [0x11, 0x90, 0x56, 0xe5, 0x00])

    static func sound(_ codec: Codec, samples: Int, extradata: [UInt8]) -> MediaFormat {
        .encoded(
            EncodedFormat(
                codec: codec,
                audio: AudioTrackFormat(
                    codec: codec, timeBase: TimeBase(1, 48_000), sampleRate: 48_000, channelCount: 2,
                    samplesPerPacket: samples, initialPadding: samples, extradata: extradata)))
    }

    /// A stage with two inputs on a free port, whose clock stands still.
    private final class Stage {
        let clock = ManualClock(at: 5_000_000_000)
        let driver: StageDriver<RTSPSink>
        let port = RTSPSinkTests.freePort()
        let url: String
        private var pictureCount = 0
        private var soundCount = -1

        init(_ options: String = "", sound: MediaFormat = aac, makesKeyframes: Bool = true) throws {
            url = "rtsp://127.0.0.1:\(port)/live"
            driver = try StageDriver(
                RTSPSink.self, options: #"{ "port": \#(port) \#(options.isEmpty ? "" : ", " + options) }"#,
                inputs: [RTSPSinkTests.format, sound], makesKeyframes: makesKeyframes, clock: clock)
        }

        deinit { try? driver.stop() }

        /// A picture of 1/25 s.
        @discardableResult
        func sendPicture(isKeyframe: Bool = false, byteCount: Int = 3000, isDiscontinuity: Bool = false) throws
            -> [UInt8]
        {
            let unit: [UInt8] =
                [isKeyframe ? 0x65 : 0x41, UInt8(pictureCount & 0x7f) | 0x80]
                + H264PacketizerTests.unit(1, byteCount - 2)
            let made = try driver.makeAccessUnit(
                H264PacketizerTests.annexB([unit]), pts: MediaTime(nanoseconds: Int64(pictureCount) * 40_000_000),
                isKeyframe: isKeyframe)
            made.isDiscontinuity = isDiscontinuity
            try driver.send(made, from: 0)
            pictureCount += 1
            return unit
        }

        /// A unit of 1024 samples. The first is priming, before time 0. Two of 700 bytes do not fit into one packet.
        @discardableResult
        func sendSound(byteCount: Int = 700) throws -> [UInt8] {
            let unit = [UInt8(truncatingIfNeeded: soundCount)] + SoundPacketizerTests.unit(byteCount - 1)
            let pts = MediaTime(nanoseconds: (Int64(soundCount) * 1024 * 1_000_000_000 + 24_000) / 48_000)
            let made = try driver.makeAccessUnit(unit, pts: pts, isKeyframe: true, input: 1)
            made.duration = MediaTime(nanoseconds: 21_333_333)
            try driver.send(made, from: 1)
            soundCount += 1
            return unit
        }

        /// A unit is missing.
        func skipSound() { soundCount += 1 }

        func event(_ name: String) -> Event? {
            for _ in 0..<6000 {
                if let event = driver.takeEvents().first(where: { $0.name == name }) { return event }
                usleep(10_000)
            }
            return nil
        }
    }

    /// SETUP of these tracks in one session, and PLAY; its RTP-Info.
    @discardableResult
    private static func play(_ client: RTSPTestClient, _ url: String, _ transports: [(track: Int, transport: String)])
        throws -> [RTPInfo]
    {
        for (track, transport) in transports {
            let answer = try client.say("SETUP", "\(url)/trackID=\(track)", [("Transport", transport)])
            #expect(answer.status == 200)
            client.session = answer.headers["Session"].flatMap { SessionHeader($0)?.id } ?? ""
        }
        let answer = try client.say("PLAY", url)
        #expect(answer.status == 200)
        return (answer.headers["RTP-Info"] ?? "").split(separator: ",").compactMap { RTPInfo(String($0)) }
    }

    private static let both = [
        (track: 0, transport: "RTP/AVP/TCP;unicast;interleaved=0-1"),
        (track: 1, transport: "RTP/AVP/TCP;unicast;interleaved=2-3"),
    ]

    /// What comes, by channel: RTP's header and payload, or RTCP.
    private enum Heard {
        case picture(RTPHeader)
        case sound(RTPHeader, [UInt8])
        case report(Medium, SenderReport, name: String)
    }

    private static func next(_ client: RTSPTestClient, pictures: UInt8 = 0, sound: UInt8 = 2) throws -> Heard {
        let (channel, payload) = try client.frame()
        switch channel {
        case pictures: return .picture(try #require(RTPHeader(payload)))
        case sound: return .sound(try #require(RTPHeader(payload)), Array(payload[16...]))
        default:
            let packets = RTCP.parse(payload) ?? []
            guard case .senderReport(let report, _) = packets.first, case .canonicalName(_, let name) = packets.last
            else { throw RTSPTestClient.Fault(what: "no report on \(channel)") }
            return .report(channel == sound + 1 ? .sound : .pictures, report, name: name)
        }
    }

    // MARK: Playing

    @Test(arguments: [(0, 2), (2, 0), (6, 10)]) func playsBothOverTheConnection(pictures: Int, sound: Int) throws {
        let stage = try Stage()
        try stage.sendPicture(isKeyframe: true, byteCount: 500)
        let first = try stage.sendSound()
        let second = try stage.sendSound()
        let client = try RTSPTestClient(port: stage.port)
        let info = try Self.play(
            client, stage.url,
            [
                (0, "RTP/AVP/TCP;unicast;interleaved=\(pictures)-\(pictures + 1)"),
                (1, "RTP/AVP/TCP;unicast;interleaved=\(sound)-\(sound + 1)"),
            ])
        #expect(info.map(\.url) == ["\(stage.url)/trackID=0", "\(stage.url)/trackID=1"])
        let third = try stage.sendSound(byteCount: 2000)
        try stage.sendPicture(byteCount: 500)
        var reports: [Medium: SenderReport] = [:]
        var names: Set<String> = []
        var units: [[UInt8]] = [[]]
        var soundTimes: [UInt32] = []
        var soundNumbers: [UInt16] = []
        var pictureHeaders: [RTPHeader] = []
        while pictureHeaders.count < 2 {
            switch try Self.next(client, pictures: UInt8(pictures), sound: UInt8(sound)) {
            case .report(let medium, let report, let name):
                #expect(pictureHeaders.isEmpty && soundTimes.isEmpty, "a report after the first packet")
                reports[medium] = report
                names.insert(name)
            case .picture(let header): pictureHeaders.append(header)
            case .sound(let header, let payload):
                units[units.count - 1] += payload
                if header.marker { units.append([]) }
                soundTimes.append(header.timestamp)
                soundNumbers.append(header.sequenceNumber)
            }
        }
        // The priming is heard before the first picture is shown.
        #expect(!units.contains(first))
        #expect(units == [second, third, []])
        #expect(soundTimes.map { $0 &- soundTimes[0] } == [0, 1024, 1024])
        #expect(info.map(\.sequenceNumber) == [pictureHeaders[0].sequenceNumber, soundNumbers[0]])
        #expect(info.map(\.rtpTime) == [pictureHeaders[0].timestamp, soundTimes[0]])
        #expect(names.count == 1)
        // Both reports say when time 0 was: the same moment to a tick of 90 kHz.
        let zero = try [(Medium.pictures, pictureHeaders[0].timestamp, 90_000.0), (.sound, soundTimes[0], 48_000)].map {
            medium, timestamp, rate in
            let report = try #require(reports[medium])
            return Double(report.ntp.unixNanoseconds) - Double(Int32(bitPattern: report.rtpTime &- timestamp)) / rate
                * 1e9
        }
        #expect(abs(zero[0] - zero[1]) < 25_000)
        #expect(reports[.pictures]?.ssrc != reports[.sound]?.ssrc)
    }

    /// RFC 3640, 3.2.1: one header for each unit, and the time of the first.
    @Test func smallUnitsGoTwoByTwo() throws {
        let stage = try Stage()
        let client = try RTSPTestClient(port: stage.port)
        try Self.play(client, stage.url, [(1, "RTP/AVP/TCP;unicast;interleaved=0-1")])
        let units = try [300, 41, 300, 1200, 5, 6, 7].map { try stage.sendSound(byteCount: $0) }
        func packet() throws -> (header: RTPHeader, payload: [UInt8]) {
            while true {
                let (channel, bytes) = try client.frame()
                if channel == 0 { return (try #require(RTPHeader(bytes)), Array(bytes[12...])) }
            }
        }
        func size(_ count: Int) -> [UInt8] { [UInt8(count >> 5), UInt8(truncatingIfNeeded: count << 3)] }
        let first = try packet()
        #expect(first.payload == [0, 32] + size(300) + size(41) + units[0] + units[1])
        // The next one is too large to wait, so that the one before goes alone.
        let second = try packet()
        #expect(second.payload == [0, 16] + size(300) + units[2])
        #expect(second.header.timestamp &- first.header.timestamp == 2048)
        #expect(try packet().payload == [0, 16] + size(1200) + units[3])
        #expect(try packet().payload == [0, 32] + size(5) + size(6) + units[4] + units[5])
        // The last one waits for another until there is none.
        try stage.driver.drain()
        let last = try packet()
        #expect(last.payload == [0, 16] + size(7) + units[6])
        #expect(last.header.timestamp &- first.header.timestamp == 6 * 1024)
        #expect(last.header.sequenceNumber &- first.header.sequenceNumber == 4)
        #expect(first.header.marker && last.header.marker)
    }

    @Test func unitsWithAGapBetweenThemGoAlone() throws {
        let stage = try Stage()
        let client = try RTSPTestClient(port: stage.port)
        try Self.play(client, stage.url, [(1, "RTP/AVP/TCP;unicast;interleaved=0-1")])
        let before = try stage.sendSound(byteCount: 20)
        stage.skipSound()
        let behind = try stage.sendSound(byteCount: 20)
        try stage.driver.drain()
        var payloads: [[UInt8]] = []
        var times: [UInt32] = []
        while payloads.count < 2 {
            let (channel, bytes) = try client.frame()
            guard channel == 0 else { continue }
            payloads.append(Array(bytes[16...]))
            times.append(try #require(RTPHeader(bytes)).timestamp)
        }
        #expect(payloads == [before, behind])
        #expect(times[1] &- times[0] == 2048)
    }

    @Test func playsBothOverDatagrams() throws {
        let stage = try Stage()
        let receivers = [try DatagramReceiver(), try DatagramReceiver()]
        let client = try RTSPTestClient(port: stage.port)
        let key = try stage.sendPicture(isKeyframe: true)
        try Self.play(
            client, stage.url,
            receivers.enumerated().map {
                ($0.offset, "RTP/AVP;unicast;client_port=\($0.element.port)-\($0.element.port + 1)")
            })
        try stage.sendSound()
        let sounds = try (0..<5).map { _ in try stage.sendSound(byteCount: 3000) }
        let other = try stage.sendPicture()
        #expect(try receivers[0].units(2) == [RTSPSinkTests.sets + [key], [other]])
        #expect(try receivers[1].soundUnits(5) == sounds)
    }

    @Test func eitherCanBePlayedAlone() throws {
        let stage = try Stage()
        let (deaf, blind) = (try RTSPTestClient(port: stage.port), try RTSPTestClient(port: stage.port))
        try Self.play(deaf, stage.url, [Self.both[0]])
        // It needs no keyframe, and asks for none.
        #expect(try Self.play(blind, stage.url, [(1, "RTP/AVP/TCP;unicast;interleaved=0-1")]).count == 1)
        let priming = try stage.sendSound()
        let sound = try stage.sendSound()
        try stage.sendPicture(isKeyframe: true, byteCount: 300)
        try stage.sendPicture(byteCount: 300)
        var units: [[UInt8]] = []
        while units.count < 2 {
            if case .sound(_, let payload) = try Self.next(blind, pictures: 9, sound: 0) { units.append(payload) }
        }
        #expect(units == [priming, sound])
        var channels: [UInt8] = []
        while channels.filter({ $0 == 0 }).count < 2 { channels.append(try deaf.frame().channel) }
        #expect(channels == [1, 1, 0, 0] || channels == [1, 0, 0], "\(channels)")
        // Two joined over TCP with one medium each.
        try stage.driver.command("readers")
        let readers = stage.event("readers")?.details["readers"]?.asArray ?? []
        #expect(readers.count == 2)
        #expect(readers.count { $0["sound"] != nil } == 1)
    }

    @Test func joinersHaveTheSoundSinceTheLastKeyframe() throws {
        let stage = try Stage(makesKeyframes: false)
        try stage.sendSound()
        try stage.sendSound()
        try stage.sendPicture(isKeyframe: true, byteCount: 500)
        var sounds: [[UInt8]] = []
        for _ in 0..<50 {
            for _ in 0..<2 { sounds.append(try stage.sendSound()) }
            try stage.sendPicture(byteCount: 500)
        }
        let client = try RTSPTestClient(port: stage.port)
        let info = try Self.play(client, stage.url, Self.both)
        #expect(info.count == 2 && info.allSatisfy { $0.sequenceNumber != nil && $0.rtpTime != nil })
        sounds.append(try stage.sendSound())
        var units: [[UInt8]] = []
        var pictureCount = 0
        var firstSound: RTPHeader?
        while units.count < sounds.count {
            switch try Self.next(client) {
            case .sound(let header, let payload):
                if firstSound == nil { firstSound = header }
                units.append(payload)
            case .picture: pictureCount += 1
            case .report: #expect(units.isEmpty && pictureCount == 0)
            }
        }
        #expect(units == sounds)
        #expect(pictureCount == 51)
        #expect(firstSound?.sequenceNumber == info[1].sequenceNumber && firstSound?.timestamp == info[1].rtpTime)
    }

    /// A reader that came before the stream has reports of the times that there are then, before its first packets.
    @Test func theFirstReportsComeWithTheFirstUnits() throws {
        let stage = try Stage()
        let client = try RTSPTestClient(port: stage.port)
        let info = try Self.play(client, stage.url, Self.both)
        #expect(info.allSatisfy { $0.sequenceNumber == nil })
        try stage.sendSound()
        try stage.sendPicture(isKeyframe: true, byteCount: 300)
        try stage.sendSound()
        var reported: Set<Medium> = []
        for _ in 0..<20 {
            switch try Self.next(client) {
            case .report(let medium, let report, _):
                reported.insert(medium)
                // The first unit's time was 5 s of the chain's clock, which stands still. It was sound, and what the
                // first picture says is so near to that that the mapping stays.
                #expect((4990...5010).contains(report.ntp.unixNanoseconds / 1_000_000))
            case .picture: #expect(reported == [.pictures, .sound])
            case .sound:
                #expect(reported == [.pictures, .sound])
                return
            }
        }
        Issue.record("no sound came")
    }

    /// Where pictures are missing, the wall clock of a reader does not step by what the first sound and the first picture
    /// were apart.
    @Test func aGapLeavesTheMapping() throws {
        let stage = try Stage()
        let client = try RTSPTestClient(port: stage.port)
        try Self.play(client, stage.url, Self.both)
        try stage.sendSound()
        try stage.sendPicture(isKeyframe: true, byteCount: 300)
        try stage.sendSound()
        var mappings: [Int64] = []
        var first: UInt32?
        func collect(_ count: Int) throws {
            for _ in 0..<40 where mappings.count < count {
                guard case .report(.pictures, let report, _) = try Self.next(client) else { continue }
                if first == nil { first = report.rtpTime }
                let ticks = Int64(Int32(bitPattern: report.rtpTime &- first!))
                mappings.append(report.ntp.unixNanoseconds - ticks * 100_000 / 9)
            }
        }
        try collect(1)
        for step in 1...3 {
            stage.clock.advance(to: 5_000_000_000 + Int64(step) * 40_000_000)
            try stage.sendPicture(byteCount: 300, isDiscontinuity: step == 2)
        }
        stage.clock.advance(to: 12_000_000_000)
        try stage.sendPicture(byteCount: 300)
        try collect(2)
        #expect(mappings.count == 2 && abs(mappings[1] - mappings[0]) < 1_000_000, "\(mappings)")
    }

    /// RTP has no word for where more than two channels of Opus are heard.
    @Test func refusesOpusOfMoreThanTwoChannels() throws {
        let track = AudioTrackFormat(
            codec: .opus, timeBase: TimeBase(1, 48_000), sampleRate: 48_000, channelCount: 4, samplesPerPacket: 960)
        let error = #expect(throws: FrameHostError.self) {
            try SoundTrack(EncodedFormat(codec: .opus, audio: track))
        }
        #expect(
            error?.what == "RTP carries Opus of 1 or 2 channels (RFC 7587), but this has 4",
            "\(String(describing: error))")
    }

    /// The name of G.726 says its bit rate: by the bits of a code, or else by the track's bit rate.
    @Test(arguments: [(4, 0, "32"), (0, 24_000, "24"), (2, 16_000, "16"), (5, 0, "40")]) func namesTheBitRateOfG726(
        bits: Int, bitRate: Int, name: String
    ) throws {
        let track = AudioTrackFormat(
            codec: .g726, timeBase: TimeBase(1, 8000), sampleRate: 8000, channelCount: 1, bitRate: bitRate,
            bitsPerSample: bits)
        let lines = try SoundTrack(EncodedFormat(codec: .g726, audio: track)).description.lines
        #expect(lines.contains("a=rtpmap:97 G726-\(name)/8000"), "\(lines)")
    }

    @Test(arguments: [
        (16_000, 1, 4, "RTP carries G.726 of 8000 Hz and 1 channel (RFC 3551), but this has 16000 Hz and 1"),
        (8000, 2, 4, "RTP carries G.726 of 8000 Hz and 1 channel (RFC 3551), but this has 8000 Hz and 2"),
        (8000, 1, 0, "nothing says whether the G.726 has 16, 24, 32 or 40 kbit/s, and clients need that to decode it"),
    ]) func refusesG726ThatRTPCannotCarry(rate: Int, channels: Int, bits: Int, what: String) {
        let track = AudioTrackFormat(
            codec: .g726, timeBase: TimeBase(1, 8000), sampleRate: rate, channelCount: channels, bitsPerSample: bits)
        let error = #expect(throws: FrameHostError.self) {
            try SoundTrack(EncodedFormat(codec: .g726, audio: track))
        }
        #expect(error?.what == what && error?.remedy.contains("audio-encoder") == true, "\(String(describing: error))")
    }

    @Test func opusGoesWithoutHeader() throws {
        let stage = try Stage(sound: Self.sound(.opus, samples: 960, extradata: Array("OpusHead".utf8)))
        try stage.sendPicture(isKeyframe: true, byteCount: 300)
        let client = try RTSPTestClient(port: stage.port)
        let description = String(decoding: try client.say("DESCRIBE", stage.url).body, as: UTF8.self)
        #expect(description.contains("a=rtpmap:97 opus/48000/2\r\na=fmtp:97 sprop-stereo=1\r\n"))
        try Self.play(client, stage.url, Self.both)
        try stage.sendSound()
        let sound = try stage.sendSound()
        while true {
            let (channel, payload) = try client.frame()
            guard channel == 2 else { continue }
            #expect(Array(payload[12...]) == sound)
            break
        }
    }

    // MARK: Life

    @Test func countsTheReportsOfEachMedium() throws {
        let stage = try Stage()
        try stage.sendPicture(isKeyframe: true, byteCount: 300)
        let client = try RTSPTestClient(port: stage.port)
        try Self.play(client, stage.url, Self.both)
        for (channel, lost) in [(UInt8(1), Int32(3)), (3, 50)] {
            let report = RTCP.bytes([
                .receiverReport(
                    ssrc: 9,
                    [
                        ReceptionReport(
                            ssrc: 7, fractionLost: 128, packetsLost: lost, highestSequenceNumber: 0, jitter: 0)
                    ])
            ])
            client.write([0x24, channel, 0, UInt8(report.count)] + report)
        }
        #expect(try client.say("GET_PARAMETER", stage.url).status == 200)
        try stage.driver.command("readers")
        let reader = stage.event("readers")?.details["readers"]?.asArray?.first
        #expect(reader?["packetsLost"]?.asInt == 3)
        #expect(reader?["sound"]?["packetsLost"]?.asInt == 50)
        #expect(reader?["sound"]?["lossPercent"]?.asDouble == 50)
        #expect(try client.say("PAUSE", stage.url).status == 200)
        #expect(try client.say("PLAY", stage.url).status == 200)
        #expect(try client.say("TEARDOWN", stage.url).status == 200)
        let left = stage.event("client-left")
        #expect(left?.details["sound"]?["droppedUnits"]?.asInt == 0)
    }

    @Test func aSlowReaderLosesWholeGroupsAndItsSoundOnlyThen() throws {
        // Nine megabytes are more than the queue takes, however short the time.
        let stage = try Stage(#""queueSeconds": 10, "stuckSeconds": 300"#)
        try stage.sendPicture(isKeyframe: true, byteCount: 300)
        let client = try RTSPTestClient(port: stage.port, receiveBuffer: 4096)
        try Self.play(client, stage.url, Self.both)
        for number in 1...300 {
            try stage.sendPicture(isKeyframe: number % 25 == 0, byteCount: 30_000)
            try stage.sendSound()
            usleep(3000)
        }
        var last: UInt16?
        var gaps = 0
        var pictures: [(RTPHeader, [UInt8])] = []
        let end = try stage.sendSound(byteCount: 777)
        reading: while true {
            let (channel, payload) = try client.frame()
            let header = try #require(RTPHeader(payload))
            switch channel {
            case 0: pictures.append((header, Array(payload[12...])))
            case 2 where payload.count == 16 + 777:
                #expect(Array(payload[16...]) == end)
                break reading
            default: continue
            }
        }
        // Whole pictures, and after each gap a keyframe: its parameter sets come first.
        for (header, payload) in pictures {
            if let last, header.sequenceNumber != last &+ 1 {
                gaps += 1
                #expect(payload[0] & 31 == 24, "a gap that no keyframe ends")
            }
            last = header.sequenceNumber
        }
        #expect(gaps > 0)
        try stage.driver.command("readers")
        let reader = stage.event("readers")?.details["readers"]?.asArray?.first
        #expect(reader?["droppedUnits"]?.asInt ?? 0 > 0)
        #expect(reader?["sound"]?["droppedUnits"]?.asInt ?? 0 > 0)
    }

    @Test func saysByeOfBoth() throws {
        let stage = try Stage()
        try stage.sendPicture(isKeyframe: true, byteCount: 300)
        let client = try RTSPTestClient(port: stage.port)
        try Self.play(client, stage.url, Self.both)
        try stage.driver.stop()
        var channels: Set<UInt8> = []
        while let (channel, payload) = try? client.frame() {
            if case .bye = RTCP.parse(payload)?.last { channels.insert(channel) }
        }
        #expect(channels == [1, 3])
    }

    // MARK: Faults

    @Test func saysWhichInputsItCannotServe() {
        func fault(_ inputs: [MediaFormat]) -> FrameHostError? {
            #expect(throws: FrameHostError.self) { try StageDriver(RTSPSink.self, options: "{}", inputs: inputs) }
        }
        #expect(
            fault([RTSPSinkTests.format, RTSPSinkTests.format])?.what
                == "'from' must name at most one input with pictures and at most one with sound, but names 2 with pictures and 0 with sound"
        )
        #expect(
            fault([RTSPSinkTests.format, Self.aac, Self.aac])?.what
                == "'from' must name at most one input with pictures and at most one with sound, but names 1 with pictures and 2 with sound"
        )
        let bare = fault([RTSPSinkTests.format, Self.sound(.aac, samples: 1024, extradata: [])])
        #expect(
            bare?.what
                == "the AAC has no AudioSpecificConfig that can be read, and clients need one to decode the sound")
        #expect(
            bare?.remedy
                == "Add a second source of the same stream or file without \"decode\": false, encode its sound with 'audio-encoder', and name that encoder in 'from' in place of this sound."
        )
    }

    @Test func theInputsMayComeInAnyOrder() throws {
        let port = RTSPSinkTests.freePort()
        let driver = try StageDriver(
            RTSPSink.self, options: #"{ "port": \#(port) }"#, inputs: [Self.aac, RTSPSinkTests.format])
        let client = try RTSPTestClient(port: port)
        try Self.play(client, "rtsp://127.0.0.1:\(port)/live", Self.both)
        let key = H264PacketizerTests.annexB([[0x65] + H264PacketizerTests.unit(1, 100)])
        try driver.send(driver.makeAccessUnit(key, pts: .zero, isKeyframe: true, input: 1), from: 1)
        try driver.send(driver.makeAccessUnit([1, 2, 3], pts: .zero, isKeyframe: true, input: 0), from: 0)
        try driver.drain()
        var channels: [UInt8] = []
        while channels.last != 2 { channels.append(try client.frame().channel) }
        #expect(channels.filter { $0 % 2 == 0 } == [0, 2])
        try driver.stop()
    }
}
