// SPDX-License-Identifier: Apache-2.0

import CAudio
import FrameCore

/// One resampler of libswresample; the only place of this plugin that calls the library.
///
/// Used by one thread at a time. The first sample that comes out stands for the first that came in; some
/// milliseconds of the input stay inside until more comes or ``flush()``.
final class ResampleHandle {
    /// Samples of each channel that are handed over at once.
    private static let chunk = 4096

    private var context: OpaquePointer
    private let scratch: UnsafeMutableBufferPointer<Float>
    private let source: AudioFormat
    private let target: AudioFormat

    /// [control thread] Opens a resampler (`swr_init`).
    ///
    /// Where channels are mixed, each output is scaled so that full scale in all inputs gives full scale.
    init(from source: AudioFormat, to target: AudioFormat) throws {
        av_log_set_level(AV_LOG_QUIET)
        var from = AVChannelLayout()
        var to = AVChannelLayout()
        source.set(&from)
        target.set(&to)
        defer {
            av_channel_layout_uninit(&from)
            av_channel_layout_uninit(&to)
        }
        var made: OpaquePointer?
        var code = swr_alloc_set_opts2(
            &made, &to, AV_SAMPLE_FMT_FLT, Int32(target.sampleRate), &from, AV_SAMPLE_FMT_FLT,
            Int32(source.sampleRate), 0, nil)
        if code >= 0, let made {
            av_opt_set_double(UnsafeMutableRawPointer(made), "rematrix_maxval", 1, 0)
            code = swr_init(made)
        }
        guard code >= 0, let context = made else {
            swr_free(&made)
            throw FrameHostError(
                .invalidConfiguration, what: "libswresample cannot convert \(source) to \(target)",
                remedy: "Use 1 to 8 channels in a usual 'layout', and a 'sampleRate' nearer to that of the input.",
                cause: audioErrorText(code), option: "layout")
        }
        self.context = context
        self.source = source
        self.target = target
        let most = Int(swr_get_out_samples(context, Int32(Self.chunk))) + 256
        scratch = .allocate(capacity: most * target.channelCount)
        scratch.initialize(repeating: 0)
    }

    deinit {
        var context: OpaquePointer? = context
        swr_free(&context)
        scratch.deallocate()
    }

    /// Resamples a part of `samples`, interleaved, from the moment `first` on.
    ///
    /// - Returns: How many moments of `samples` were taken, and what came out: interleaved, valid until the next call.
    func convert(_ samples: UnsafeBufferPointer<Float>, from first: Int) throws -> (
        taken: Int, result: UnsafeBufferPointer<Float>
    ) {
        let count = min(Self.chunk, samples.count / source.channelCount - first)
        let begin = samples.baseAddress! + first * source.channelCount
        return (count, try call(UnsafeRawPointer(begin).assumingMemoryBound(to: UInt8.self), count))
    }

    /// What is still inside, as far as there is room; empty when nothing is left.
    func flush() throws -> UnsafeBufferPointer<Float> { try call(nil, 0) }

    /// Starts again, after ``flush()``: what comes next has nothing to do with what came before.
    func restart() throws {
        swr_close(context)
        let code = swr_init(context)
        guard code >= 0 else { throw failure(code) }
    }

    private func call(_ input: UnsafePointer<UInt8>?, _ count: Int) throws -> UnsafeBufferPointer<Float> {
        var inputs = input
        var outputs: UnsafeMutablePointer<UInt8>? = UnsafeMutableRawPointer(scratch.baseAddress!)
            .assumingMemoryBound(to: UInt8.self)
        let room = Int32(scratch.count / target.channelCount)
        let given =
            input == nil
            ? swr_convert(context, &outputs, room, nil, 0)
            : withUnsafeMutablePointer(to: &inputs) { swr_convert(context, &outputs, room, $0, Int32(count)) }
        guard given >= 0 else { throw failure(given) }
        return UnsafeBufferPointer(rebasing: scratch[..<(Int(given) * target.channelCount)])
    }

    private func failure(_ code: Int32) -> FrameHostError {
        FrameHostError(
            .callFailed, what: "libswresample could not convert the sound",
            remedy: "Free some memory if it has run out, and start the chain again.", cause: audioErrorText(code))
    }
}
