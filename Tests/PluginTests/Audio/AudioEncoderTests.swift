// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import Audio

@Suite struct AudioEncoderTests {
    static let format = AudioFormat(sampleRate: 48_000, channelCount: 2)

    private func driver(_ options: String, _ format: AudioFormat = format) throws -> StageDriver<AudioEncoder> {
        try StageDriver(AudioEncoder.self, options: options, input: .audio(format))
    }

    private func ticks(_ packets: [HeardPacket], _ format: AudioFormat = format) -> [Int64] {
        packets.map { format.timeBase.ticks(of: $0.pts) }
    }

    @Test func knowsTheTrackBeforeTheFirstBlock() throws {
        let aac = try #require(try driver("{}").outputFormat?.encoded)
        let track = try #require(aac.audio)
        #expect(aac.codec == .aac)
        #expect(aac.bitrateKbps == 128)
        #expect(track.timeBase == TimeBase(1, 48_000))
        #expect(track.samplesPerPacket == 1024 && track.initialPadding == 1024)
        #expect(track.channelMask == 3 && track.profile == 1)
        // AudioSpecificConfig: AAC-LC, 48 kHz, stereo (ISO/IEC 14496-3, 1.6.2.1).
        #expect(track.extradata.starts(with: [0x11, 0x90]))
        let opus = try #require(try driver(#"{ "codec": "opus" }"#).outputFormat?.encoded)
        let other = try #require(opus.audio)
        #expect(opus.codec == .opus)
        #expect(opus.bitrateKbps == 96)
        #expect(other.samplesPerPacket == 960 && other.initialPadding == 312 && other.seekPreroll == 3840)
        #expect(other.extradata.starts(with: Array("OpusHead".utf8)) && other.extradata.count == 19)
    }

    @Test(
        arguments: ["aac", "opus"], [1, 100, 480, 1024, 5000])
    func givesEverySampleOnceInBlocksOfAnySize(codec: String, size: Int) throws {
        let driver = try driver("{ \"codec\": \"\(codec)\" }")
        let total = 10_007
        try driver.sendSound(Self.format, total: total, blocksOf: size, wave: tone(Self.format))
        #expect(driver.stage.held <= driver.stage.demand.delay)
        #expect(driver.stage.held > 0)
        #expect(driver.keptBuffers == 0)
        try driver.drain()
        #expect(driver.stage.held == 0)
        let packets = driver.takePackets()
        let padding = codec == "aac" ? 1024 : 312
        let frame = codec == "aac" ? 1024 : 960
        let times = ticks(packets)
        #expect(times == packets.indices.map { Int64($0 * frame - padding) })
        for (index, packet) in packets.enumerated() {
            #expect(packet.dts == packet.pts)
            #expect(packet.isKeyframe && !packet.isDiscontinuity)
            #expect(packet.number == UInt64(index))
            #expect(!packet.bytes.isEmpty)
        }
        for (packet, next) in zip(packets, packets.dropFirst()) { #expect(packet.pts + packet.duration == next.pts) }
        // The last one ends where the sound does.
        let last = try #require(packets.last)
        #expect(Self.format.timeBase.ticks(of: last.pts + last.duration) == Int64(total))
    }

    @Test func startsAtTheTimeOfTheFirstBlock() throws {
        let driver = try driver("{}")
        let start = 48_000 * 12_345 + 17
        try driver.sendSound(Self.format, from: start, total: 4800, blocksOf: 480, wave: tone(Self.format))
        #expect(ticks(driver.takePackets()).first == Int64(start - 1024))
    }

    /// A recorder that goes on has the times before the first block already.
    @Test(arguments: [("aac", 0), ("opus", -312)])
    func leavesOutPrimingAloneWhereItReplacesAnEncoderThatRan(codec: String, first: Int64) throws {
        let driver = try StageDriver(
            AudioEncoder.self, options: "{ \"codec\": \"\(codec)\" }", input: .audio(Self.format), replacesRunning: true
        )
        let start: Int64 = 480_000
        try driver.sendSound(Self.format, from: Int(start), total: 10_007, blocksOf: 480, wave: tone(Self.format))
        try driver.drain()
        #expect(driver.stage.held == 0)
        let packets = driver.takePackets()
        #expect(packets.map(\.number) == packets.indices.map { UInt64($0) })
        #expect(ticks(packets).first == start + first)
        let last = try #require(packets.last)
        #expect(Self.format.timeBase.ticks(of: last.pts + last.duration) == start + 10_007)
    }

    @Test func saysWhenTheFirstSampleOfAPacketWasCaptured() throws {
        let driver = try driver("{}")
        for index in 0..<20 {
            let block = try driver.makeAudioBlock(
                [Float](repeating: 0, count: 960), pts: Self.format.timeBase.time(ofTicks: Int64(index * 480)))
            block.capturedAt = 1_000_000 + Int64(index)
            try driver.send(block)
        }
        try driver.drain()
        // Packet n begins with sample (n - 1) · 1024, which lies in block (n - 1) · 1024 / 480.
        let packets = driver.takePackets()
        #expect(packets.count == 11)
        for (index, packet) in packets.enumerated() {
            #expect(packet.capturedAt == 1_000_000 + Int64(max(index - 1, 0) * 1024 / 480))
        }
    }

    @Test func fillsASmallGapWithSilenceAndSaysSo() throws {
        let driver = try driver("{}")
        try driver.sendSound(Self.format, total: 9600, blocksOf: 480, wave: tone(Self.format))
        // 50 ms are missing.
        try driver.sendSound(Self.format, from: 12_000, total: 9600, blocksOf: 480, wave: tone(Self.format))
        let event = try #require(driver.takeEvents().first { $0.name == "sound-gap" })
        #expect(event.text == "50 ms of sound is missing and replaced by silence.")
        #expect(event.details["isFilled"]?.asBool == true)
        try driver.drain()
        let packets = driver.takePackets()
        #expect(ticks(packets) == packets.indices.map { Int64($0 * 1024 - 1024) })
        #expect(Self.format.timeBase.ticks(of: packets.last!.pts + packets.last!.duration) == 21_600)
        #expect(packets.allSatisfy { !$0.isDiscontinuity })
    }

    @Test func forgivesAMillisecondUnlessSomethingWasLost() throws {
        let driver = try driver("{}")
        try driver.sendSound(Self.format, total: 4800, blocksOf: 480, wave: tone(Self.format))
        try driver.sendSound(Self.format, from: 4840, total: 4800, blocksOf: 480, wave: tone(Self.format))
        #expect(driver.takeEvents().allSatisfy { $0.name != "sound-gap" })
        try driver.sendSound(
            Self.format, from: 9645, total: 4800, blocksOf: 480, isDiscontinuity: true, wave: tone(Self.format))
        #expect(driver.takeEvents().filter { $0.name == "sound-gap" }.count == 1)
        try driver.drain()
        let last = try #require(driver.takePackets().last)
        #expect(Self.format.timeBase.ticks(of: last.pts + last.duration) == 9645 + 4800)
    }

    @Test(arguments: ["aac", "opus"]) func jumpsOverALongGap(codec: String) throws {
        let driver = try driver("{ \"codec\": \"\(codec)\", \"maxGapSeconds\": 1 }")
        try driver.sendSound(Self.format, total: 5000, blocksOf: 480, wave: tone(Self.format))
        try driver.sendSound(Self.format, from: 480_000, total: 5000, blocksOf: 480, wave: tone(Self.format))
        let event = try #require(driver.takeEvents().first { $0.name == "sound-gap" })
        #expect(
            event.text
                == "9896 ms of sound is missing and not replaced by silence, since it is more than 'maxGapSeconds': the times jump. To fill such gaps, raise 'maxGapSeconds'."
        )
        try driver.drain()
        let packets = driver.takePackets()
        let marked = packets.filter(\.isDiscontinuity)
        #expect(marked.count == 1)
        let frame: Int64 = codec == "aac" ? 1024 : 960
        // One frame of silence leads over, at whose end the new sound has its own time.
        let padding: Int64 = codec == "aac" ? 0 : 312
        #expect(ticks(marked) == [480_000 - frame + (frame - padding) % frame])
        for (packet, next) in zip(packets, packets.dropFirst()) { #expect(packet.pts + packet.duration <= next.pts) }
        #expect(Self.format.timeBase.ticks(of: packets.last!.pts + packets.last!.duration) == 485_000)
        #expect(packets.count < 16)
    }

    @Test func saysAtTheEndWhatWasNotSaid() throws {
        let driver = try StageDriver(
            AudioEncoder.self, options: "{}", input: .audio(Self.format), clock: ManualClock(at: 1_000_000_000))
        for first in [0, 12_000, 24_000] {
            try driver.sendSound(Self.format, from: first, total: 9600, blocksOf: 480, wave: tone(Self.format))
        }
        try driver.drain()
        try driver.stop()
        #expect(
            driver.takeEvents().filter { $0.name == "sound-gap" }.map { $0.details["milliseconds"]?.asInt } == [50, 50])
    }

    @Test func leavesOutWhatOverlaps() throws {
        let driver = try driver("{}")
        try driver.sendSound(Self.format, total: 4800, blocksOf: 480, wave: tone(Self.format))
        try driver.sendSound(Self.format, from: 4000, total: 4800, blocksOf: 480, wave: tone(Self.format))
        let event = try #require(driver.takeEvents().first { $0.name == "sound-overlap" })
        #expect(event.text == "10 ms of sound overlaps earlier sound, and is left out.")
        try driver.drain()
        let last = try #require(driver.takePackets().last)
        #expect(Self.format.timeBase.ticks(of: last.pts + last.duration) == 8800)
    }

    @Test(arguments: ["aac", "opus"]) func staysWellWithNumbersThatAreNoSound(codec: String) throws {
        let driver = try driver("{ \"codec\": \"\(codec)\" }")
        let odd: [Float] = [.nan, .infinity, -.infinity, 1e30, .signalingNaN, -1e-40]
        try driver.sendSound(Self.format, total: 9600, blocksOf: 480) { odd[$0 % odd.count] }
        try driver.drain()
        #expect(driver.takePackets().count > 9)
    }

    @Test func refusesWhatTheCodecCannotDoWithTheRemedy() {
        func refusal(_ options: String, _ format: AudioFormat) -> String {
            do {
                _ = try driver(options, format)
                return "accepted"
            } catch { return "\(error)" }
        }
        let cd = AudioFormat(sampleRate: 44_100, channelCount: 2)
        #expect(
            refusal(#"{ "codec": "opus" }"#, cd).contains(
                "the sound has a sample rate of 44100 Hz, but Opus takes only 48000, 24000, 16000, 12000, 8000 Hz. Put an 'audio-resample' with \"sampleRate\": 48000 before this stage."
            ))
        #expect(refusal("{}", cd) == "accepted")
        #expect(
            refusal("{}", AudioFormat(sampleRate: 18_000, channelCount: 1)).contains("\"sampleRate\": 22050 before"))
        #expect(
            refusal(#"{ "codec": "opus" }"#, AudioFormat(sampleRate: 48_000, channelCount: 3)).contains(
                "the sound has 3 channels in the layout 2.1, but Opus takes only mono, stereo, 3.0, quad, 5.1, 7.1. Put an 'audio-resample' with \"layout\": \"3.0\" before this stage."
            ))
        let seven = AudioFormat(sampleRate: 48_000, channelCount: 7)
        #expect(
            refusal("{}", seven).contains(
                "in the layout 6.1, but AAC takes only mono, stereo, 2.1, 3.0, 3.0(back), 4.0,"))
        #expect(refusal("{}", seven).contains("\"layout\": \"7.1\" before this stage."))
        #expect(
            refusal("{}", AudioFormat(sampleRate: 48_000, channelCount: 9)).contains(
                "9 channels in the layout unknown positions, but AAC takes only"))
        #expect(
            refusal(#"{ "bitrateKbps": 700 }"#, cd).contains(
                "'bitrateKbps' must be at most 529 for AAC with 44100 Hz and 2 channels, but is 700. Use 529 or less, or leave 'bitrateKbps' out."
            ))
    }

    @Test(arguments: [8000, 12_000, 16_000, 24_000, 48_000], SoundCodec.opus.layouts)
    func opusTakesItsRatesAndLayouts(rate: Int, layout: ChannelLayout) throws {
        let format = AudioFormat(sampleRate: rate, channelCount: layout.channelCount, layout: layout)
        let driver = try driver(#"{ "codec": "opus" }"#, format)
        try driver.sendSound(format, total: rate / 5, blocksOf: rate / 100, wave: tone(format))
        try driver.drain()
        let packets = driver.takePackets()
        let padding = try #require(driver.outputFormat?.encoded?.audio?.initialPadding)
        #expect(ticks(packets, format).first == Int64(-padding))
        #expect(format.timeBase.ticks(of: packets.last!.pts + packets.last!.duration) == Int64(rate / 5))
    }

    @Test(arguments: SoundCodec.aac.sampleRates, SoundCodec.aac.layouts)
    func aacTakesItsRatesAndLayouts(rate: Int, layout: ChannelLayout) throws {
        let format = AudioFormat(sampleRate: rate, channelCount: layout.channelCount, layout: layout)
        let driver = try driver("{}", format)
        try driver.sendSound(format, total: rate / 5, blocksOf: rate / 100, wave: tone(format))
        try driver.drain()
        let packets = driver.takePackets()
        #expect(ticks(packets, format).first == -1024)
        #expect(format.timeBase.ticks(of: packets.last!.pts + packets.last!.duration) == Int64(rate / 5))
        #expect(driver.outputFormat?.encoded?.audio?.channelMask == layout.mask)
    }

    /// Codecs do not tell loudspeakers beside the listener from those behind: the channels stay as they are.
    @Test(arguments: [("5.1(side)", "5.1"), ("5.0(side)", "5.0"), ("quad(side)", "quad(side)")])
    func namesSideChannelsAsTheCodecDoes(given: String, coded: String) throws {
        let layout = try #require(ChannelLayout(given))
        let driver = try driver(
            "{}", AudioFormat(sampleRate: 48_000, channelCount: layout.channelCount, layout: layout))
        #expect(driver.outputFormat?.encoded?.audio?.channelMask == ChannelLayout(coded)?.mask)
    }
}

@Suite struct PendingBlocksTests {
    @Test func finishesWhatEndedAndJoinsWhatHasNoRoom() {
        var blocks = PendingBlocks(capacity: 2)
        #expect(blocks.oldestCapture == nil)
        let isAlone = (1...3).map { blocks.add(end: Int64($0) * 10, capturedAt: Int64($0)) }
        #expect(isAlone == [true, true, false])
        #expect(blocks.count == 2)
        let finished = [9, 25].map { blocks.finish(upTo: $0) }
        #expect(finished == [0, 1])
        #expect(blocks.oldestCapture == 2)
        _ = blocks.add(end: 40, capturedAt: 4)
        let last = blocks.finish(upTo: 40)
        #expect(last == 2)
        #expect(blocks.count == 0)
    }
}

@Suite struct SampleTimelineTests {
    private let format = AudioFormat(sampleRate: 44_100, channelCount: 1)

    @Test func countsForHoursWithoutAGap() {
        var timeline = SampleTimeline(format)
        var samples: Int64 = 0
        for _ in 0..<1_000_000 {
            let step = timeline.step(to: format.timeBase.time(ofTicks: samples), isDiscontinuity: true)
            guard step == .follows else {
                Issue.record("\(step) after \(samples) samples")
                return
            }
            timeline.advance(441)
            samples += 441
        }
    }

    @Test func measuresGapsAndOverlapsInSamples() {
        var timeline = SampleTimeline(format)
        func step(_ seconds: Double, _ isDiscontinuity: Bool = false) -> SampleTimeline.Step {
            timeline.step(to: MediaTime(seconds: seconds), isDiscontinuity: isDiscontinuity)
        }
        #expect(step(5) == .follows)
        timeline.advance(44_100)
        #expect(step(6.0009) == .follows)
        #expect(step(6.01) == .gap(441))
        #expect(step(5.99) == .overlap(441))
        #expect(step(6.0005, true) == .gap(22))
        timeline.restart(at: MediaTime(seconds: 9))
        #expect(timeline.next == Int64(9 * 44_100))
    }
}
