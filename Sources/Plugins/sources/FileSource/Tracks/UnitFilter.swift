// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import CodedVideo
import FrameCore

/// Access units as the chain has them, by libavcodec's bitstream filters `h264_mp4toannexb` and `hevc_mp4toannexb`:
/// length-prefixed access units in, start codes out, with the parameter sets in front of each keyframe that has none. MJPEG
/// and AV1 pass unchanged (`null`). The only place that calls bitstream filters.
///
/// Units that have start codes already pass unchanged. Used by one thread at a time.
final class UnitFilter {
    enum Step {
        /// An access unit is in the packet that was handed over.
        case unit
        /// The filter needs a packet first.
        case hungry
        /// A packet was damaged and is left out.
        case damaged
        case ended
    }

    private var context: UnsafeMutablePointer<AVBSFContext>?

    /// [any thread] For a file's track.
    convenience init(_ file: MediaFile, track: Int) throws {
        let stream = file.stream(track)
        try self.init(stream.pointee.codecpar, timeBase: stream.pointee.time_base, of: file.path)
    }

    /// [any thread]
    ///
    /// - Parameter name: The input's name in messages.
    init(_ parameters: UnsafePointer<AVCodecParameters>, timeBase: AVRational, of name: String) throws {
        let wanted =
            switch UnitCoding(parameters.pointee.codec_id) {
            case .nal(.h264): "h264_mp4toannexb"
            case .nal(.h265): "hevc_mp4toannexb"
            case .jpeg, .av1, nil: "null"
            }
        guard let filter = av_bsf_get_by_name(wanted) else {
            throw FrameHostError(
                .unavailable, what: "this libavcodec has no bitstream filter \(wanted)",
                remedy: "Install a libavcodec that has this filter, such as the one from your distribution.")
        }
        guard av_bsf_alloc(filter, &context) >= 0, let context else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a bitstream filter",
                remedy: "Free some memory.")
        }
        context.pointee.time_base_in = timeBase
        let copied = avcodec_parameters_copy(context.pointee.par_in, parameters)
        let begun = copied < 0 ? copied : av_bsf_init(context)
        guard begun >= 0 else {
            av_bsf_free(&self.context)
            throw FileFault.unreadableParameterSets(name, cause: LibavText.of(begun))
        }
    }

    deinit { av_bsf_free(&context) }

    /// The container's parameter sets, those of NAL units with start codes, and whatever else its extradata holds.
    var extradata: UnsafeRawBufferPointer {
        guard let parameters = context?.pointee.par_out, parameters.pointee.extradata_size > 0 else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return UnsafeRawBufferPointer(
            start: parameters.pointee.extradata, count: Int(parameters.pointee.extradata_size))
    }

    /// [any thread] Whether the parameter sets of a track are as the standard has them, by libavcodec's reader of
    /// bitstreams: its decoders take nearly anything.
    static func areSetsReadable(_ parameters: UnsafePointer<AVCodecParameters>) -> Bool {
        let name = parameters.pointee.codec_id == AV_CODEC_ID_HEVC ? "hevc_metadata" : "h264_metadata"
        var context: UnsafeMutablePointer<AVBSFContext>?
        defer { av_bsf_free(&context) }
        // Where there is no such filter, nothing is known against them.
        guard let filter = av_bsf_get_by_name(name) else { return true }
        guard av_bsf_alloc(filter, &context) >= 0, let context,
            avcodec_parameters_copy(context.pointee.par_in, parameters) >= 0
        else { return false }
        return LibavText.during { av_bsf_init(context) }.0 >= 0
    }

    /// [stage thread] Takes the next access unit that is ready.
    func receive(into packet: UnsafeMutablePointer<AVPacket>?) -> Step {
        switch av_bsf_receive_packet(context, packet) {
        case 0: .unit
        case fh_averror_again: .hungry
        case fh_averror_eof: .ended
        default: .damaged
        }
    }

    /// [stage thread] Hands over a packet, which is empty afterwards; nil says that no packet follows. A packet without bytes,
    /// as AVI has them where a picture stays, is left out: it would end the stream.
    func send(_ packet: UnsafeMutablePointer<AVPacket>?) {
        if let packet, packet.pointee.size <= 0 { return av_packet_unref(packet) }
        _ = av_bsf_send_packet(context, packet)
    }

    /// [stage thread] Drops what it holds, so that reading can go on at another place.
    func flush() { av_bsf_flush(context) }
}
