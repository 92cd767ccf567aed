// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import Audio

@Suite struct GainTests {
    static let format = AudioFormat(sampleRate: 48_000, channelCount: 2)

    private func driver(_ options: String) throws -> StageDriver<Gain> {
        try StageDriver(Gain.self, options: options, input: .audio(Self.format))
    }

    @Test func multipliesFromTheFirstSampleOn() throws {
        let driver = try driver(#"{ "db": -6.0206 }"#)
        let wave = tone(Self.format)
        try driver.sendSound(Self.format, from: 480, total: 480, blocksOf: 480, wave: wave)
        let block = try #require(driver.takeBlocks().first)
        #expect(block.pts == MediaTime(seconds: 0.01))
        #expect(block.duration == MediaTime(seconds: 0.01))
        for moment in 0..<480 {
            #expect(abs(block.samples[2 * moment] - wave(480 + moment) / 2) < 1e-5)
            #expect(block.samples[2 * moment + 1] == block.samples[2 * moment])
        }
    }

    @Test func passesTheSamplesOnUnchangedAt0Decibel() throws {
        let driver = try driver("{}")
        try driver.sendSound(Self.format, total: 4800, blocksOf: 480, wave: tone(Self.format))
        let samples = driver.takeBlocks().flatMap(\.samples)
        #expect(samples == (0..<4800).flatMap { [tone(Self.format)($0), tone(Self.format)($0)] })
    }

    @Test func mutesAndComesBackWithoutAClick() throws {
        let driver = try driver("{}")
        try driver.sendSound(Self.format, total: 480, blocksOf: 240) { _ in 0.8 }
        try driver.set(#"{ "mute": true }"#)
        try driver.sendSound(Self.format, from: 480, total: 960, blocksOf: 240) { _ in 0.8 }
        try driver.set(#"{ "mute": false, "db": -20 }"#)
        try driver.sendSound(Self.format, from: 1440, total: 960, blocksOf: 240) { _ in 0.8 }
        let samples = driver.takeBlocks().flatMap(\.samples)
        let left = stride(from: 0, to: samples.count, by: 2).map { samples[$0] }
        #expect(left[..<480].allSatisfy { $0 == 0.8 })
        // 10 ms down to exactly 0, over the border of two blocks.
        #expect(left[959] == 0 && left[960..<1440].allSatisfy { $0 == 0 })
        #expect(abs(left[719] - 0.4) < 0.001)
        #expect(left[1440..<1919].allSatisfy { $0 > 0 && $0 < 0.08 })
        #expect(left[1919...].allSatisfy { abs($0 - 0.08) < 1e-6 })
        let step = zip(left, left.dropFirst()).map { abs($0 - $1) }.max()!
        #expect(step < 0.8 / 480 + 1e-5)
    }

    @Test func turnsRoundInTheMiddleOfARamp() {
        var ramp = GainRamp(1, rampSamples: 100)
        let ones = [Float](repeating: 1, count: 50)
        var result = [Float](repeating: 0, count: 50)
        func run() {
            ones.withUnsafeBufferPointer { source in
                result.withUnsafeMutableBufferPointer { ramp.apply(source, to: $0, channelCount: 1) }
            }
        }
        ramp.move(to: 0)
        run()
        #expect(abs(result[49] - 0.5) < 1e-5)
        ramp.move(to: 1)
        #expect(ramp.left == 100)
        run()
        #expect(abs(result[0] - 0.505) < 1e-5)
        run()
        #expect(result[49] == 1)
        #expect(ramp.left == 0)
    }
}
