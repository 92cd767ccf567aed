// SPDX-License-Identifier: Apache-2.0

import CSWResample
import FrameCore

/// libswresample between a card's samples and the chain's: rate, channels, 32-bit floats, and the stretch that
/// keeps them on the chain's clock. The only file of this plugin that calls it. [stage thread]
///
/// Frame n of the output is frame n of the input at equal rates; the last 16 frames or so stay inside until more comes.
final class DriftResampler {
    /// Interleaved floats of the newest ``convert(_:frames:)``.
    private let buffer: UnsafeMutableBufferPointer<Float>
    private let outputRate: Int
    private let outputChannels: Int
    private var context: OpaquePointer?

    /// [setup thread]
    ///
    /// - Parameters:
    ///   - card: What goes in.
    ///   - format: What comes out.
    ///   - mostFrames: The most frames of one call's input.
    init(_ card: CardFormat, to format: AudioFormat, mostFrames: Int) throws {
        outputRate = format.sampleRate
        outputChannels = format.channelCount
        // Half as much again for the stretch, for what was held inside, and for the filter.
        let room = (mostFrames * format.sampleRate / card.rate + 64) * 3 / 2
        buffer = .allocate(capacity: room * format.channelCount)
        buffer.initialize(repeating: 0)
        var (input, output) = (AVChannelLayout(), AVChannelLayout())
        av_channel_layout_default(&input, Int32(card.channels))
        av_channel_layout_default(&output, Int32(format.channelCount))
        let code = swr_alloc_set_opts2(
            &context, &output, AV_SAMPLE_FMT_FLT, Int32(format.sampleRate), &input, card.samples.libraryFormat,
            Int32(card.rate), 0, nil)
        guard code >= 0, let context else { throw Self.refused(card, code) }
        // Set from the start: otherwise the first correction would start the resampler again, with a gap.
        av_opt_set_int(UnsafeMutableRawPointer(context), "flags", Int64(SWR_FLAG_RESAMPLE), 0)
        if card.channels == 1, format.channelCount > 1 {
            // One microphone sounds at its own level in every channel, where the library's mix takes 3 dB away.
            let code = swr_set_matrix(context, [Double](repeating: 1, count: format.channelCount), 1)
            guard code >= 0 else { throw Self.refused(card, code) }
        }
        try begin(card)
    }

    deinit {
        swr_free(&context)
        buffer.deallocate()
    }

    private func begin(_ card: CardFormat) throws {
        let code = swr_init(context)
        guard code >= 0 else { throw Self.refused(card, code) }
    }

    private static func refused(_ card: CardFormat, _ code: Int32) -> FrameHostError {
        FrameHostError(
            .callFailed, what: "libswresample cannot convert the card's sound (\(card)): error \(code)",
            remedy: "Use another number of 'channels' or another 'sampleRate'.", option: "channels")
    }

    /// Forgets what is inside: the next frame in is the next one out.
    func restart(_ card: CardFormat) throws {
        swr_close(context)
        try begin(card)
    }

    /// Frames of output that are still inside.
    var held: Double { Double(swr_get_delay(context, Int64(outputRate) * 1000)) / 1000 }

    /// - Throws: ``FrameHostError`` where the library refuses.
    func stretch(by frames: Int, over distance: Int) throws {
        let code = swr_set_compensation(context, Int32(frames), Int32(distance))
        guard code >= 0 else {
            throw FrameHostError(
                .callFailed,
                what: "libswresample refuses to stretch \(distance) samples of sound by \(frames) (error \(code))",
                remedy: "Set \"onError\": \"restart\" to start this stage again when it fails.")
        }
    }

    /// - Parameters:
    ///   - bytes: Interleaved samples of the card.
    ///   - frames: How many of each channel; at most `mostFrames`.
    /// - Returns: Interleaved samples; valid until the next call.
    func convert(_ bytes: UnsafeRawPointer, frames: Int) throws -> UnsafeBufferPointer<Float> {
        var input: UnsafePointer<UInt8>? = bytes.assumingMemoryBound(to: UInt8.self)
        let count = buffer.withMemoryRebound(to: UInt8.self) { room in
            var output = room.baseAddress
            return swr_convert(
                context, &output, Int32(room.count / MemoryLayout<Float>.stride / outputChannels), &input, Int32(frames)
            )
        }
        guard count >= 0 else {
            throw FrameHostError(
                .callFailed, what: "libswresample fails to convert \(frames) samples of sound (error \(count))",
                remedy: "Set \"onError\": \"restart\" to start this stage again when it fails.")
        }
        return UnsafeBufferPointer(rebasing: buffer[..<(Int(count) * outputChannels)])
    }
}

extension CardSamples {
    fileprivate var libraryFormat: AVSampleFormat {
        switch self {
        case .s16: AV_SAMPLE_FMT_S16
        case .s32: AV_SAMPLE_FMT_S32
        case .float: AV_SAMPLE_FMT_FLT
        }
    }
}
