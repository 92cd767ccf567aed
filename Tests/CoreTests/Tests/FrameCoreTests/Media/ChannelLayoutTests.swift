// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct ChannelLayoutTests {
    @Test func aNumberOfChannelsHasTheLayoutThatFFmpegGivesIt() {
        let usual = (1...10).map { ChannelLayout(usualFor: $0).description }
        #expect(
            usual == [
                "mono", "stereo", "2.1", "4.0", "5.0", "5.1", "6.1", "7.1", "unknown positions", "unknown positions",
            ])
        #expect(ChannelLayout(usualFor: 16).mask == 0x1_8003_f737)
        #expect(AudioFormat(sampleRate: 48_000, channelCount: 4).layout.mask == 0x107)
    }

    @Test func aNameIsThatOfItsLayout() {
        for name in ChannelLayout.names { #expect(ChannelLayout(name)?.description == name) }
        #expect(ChannelLayout("quadro") == nil)
        #expect(ChannelLayout(mask: 0x33).description == "quad")
        #expect(ChannelLayout(mask: 0x803).description == "FL+FR+TC")
        #expect(ChannelLayout("5.1(side)")?.positions == [0, 1, 2, 3, 9, 10])
    }

    @Test func aFormatSaysItsLayoutWhereItIsNotTheUsualOne() {
        var format = AudioFormat(sampleRate: 48_000, channelCount: 4)
        #expect("\(format)" == "sound 48000 Hz, 4 channels")
        format.layout = ChannelLayout(mask: 0x33)
        #expect("\(format)" == "sound 48000 Hz, 4 channels (quad)")
        #expect(format.impossibility == nil)
        #expect(format != AudioFormat(sampleRate: 48_000, channelCount: 4))
        format.layout = ChannelLayout(mask: 0x3)
        #expect(format.impossibility == "4 channels in a layout of 2 (stereo)")
    }

    @Test func aTrackIsDecodedToItsOwnLayout() {
        func decoded(_ count: Int, _ mask: UInt64) -> String {
            "\(AudioTrackFormat(codec: .aac, timeBase: TimeBase(1, 8000), sampleRate: 8000, channelCount: count, channelMask: mask).decoded)"
        }
        #expect(decoded(3, 0x7) == "sound 8000 Hz, 3 channels (3.0)")
        #expect(decoded(3, 0) == "sound 8000 Hz, 3 channels")
        // A file may contradict itself.
        #expect(decoded(3, 0x3) == "sound 8000 Hz, 3 channels")
    }
}
