// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

@testable import Audio

/// What a test looks at of a block of sound.
struct HeardBlock {
    var pts: MediaTime
    var duration: MediaTime
    var capturedAt: Int64
    var number: UInt64
    var isDiscontinuity: Bool
    /// Interleaved.
    var samples: [Float]
}

/// What a test looks at of a packet.
struct HeardPacket {
    var pts: MediaTime
    var dts: MediaTime
    var duration: MediaTime
    var capturedAt: Int64
    var number: UInt64
    var isKeyframe: Bool
    var isDiscontinuity: Bool
    var bytes: [UInt8]
}

extension StageDriver {
    /// All blocks that wait in the driver.
    func takeBlocks() -> [HeardBlock] {
        var blocks: [HeardBlock] = []
        while let block = takeAudioBlock() {
            blocks.append(
                HeardBlock(
                    pts: block.pts, duration: block.duration, capturedAt: block.capturedAt,
                    number: block.sequenceNumber, isDiscontinuity: block.isDiscontinuity,
                    samples: block.withSamples { Array($0) }))
        }
        return blocks
    }

    /// All packets that wait in the driver.
    func takePackets() -> [HeardPacket] {
        var packets: [HeardPacket] = []
        while let unit = takeAccessUnit() {
            packets.append(
                HeardPacket(
                    pts: unit.pts, dts: unit.dts, duration: unit.duration, capturedAt: unit.capturedAt,
                    number: unit.sequenceNumber, isKeyframe: unit.isKeyframe, isDiscontinuity: unit.isDiscontinuity,
                    bytes: unit.withBytes { Array($0) }))
        }
        return packets
    }

    /// Sends blocks of `count` samples, so that `total` samples of each channel come, which begin with sample `first`.
    ///
    /// - Parameters:
    ///   - wave: The value of a sample by its number.
    ///   - isKept: Whether what comes out stays in the driver, which has room for 256 blocks that are passed on.
    func sendSound(
        _ format: AudioFormat, from first: Int = 0, total: Int, blocksOf count: Int, isDiscontinuity: Bool = false,
        isKept: Bool = true, wave: (Int) -> Float
    ) throws {
        var number = first
        while number < first + total {
            let end = min(number + count, first + total)
            let samples = (number..<end).flatMap { Array(repeating: wave($0), count: format.channelCount) }
            let block = try makeAudioBlock(samples, pts: format.timeBase.time(ofTicks: Int64(number)))
            block.isDiscontinuity = isDiscontinuity && number == first
            try send(block)
            if !isKept { while takeAudioBlock() != nil {} }
            number = end
        }
    }
}

/// A tone of 1 kHz, as a function of a sample's number.
func tone(_ format: AudioFormat, level: Double = -20, frequency: Double = 1000) -> (Int) -> Float {
    let amplitude = pow(10, level / 20)
    return { Float(amplitude * sin(2 * .pi * frequency * Double($0) / Double(format.sampleRate))) }
}
