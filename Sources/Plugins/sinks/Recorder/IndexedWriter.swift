// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Glibc

/// Writes a plain MP4 or MOV file with its index in front.
final class IndexedWriter {
    private let file: OutputFile
    private let container: Container
    private var context: UnsafeMutablePointer<AVFormatContext>?
    private var io: UnsafeMutablePointer<AVIOContext>?
    private let sourceBases: [AVRational]
    private let ends: [TrackEnd]
    /// The latest packet of each track. It is written once it is known whether it is the last.
    private var waiting: [UnsafeMutablePointer<AVPacket>?]
    private let isReserved: Bool
    private let hasMotion: Bool

    /// - Parameters:
    ///   - file: Empty.
    ///   - like: The file whose tracks and metadata it gets.
    ///   - ends: How that file's tracks end.
    ///   - indexBytes: Room for the index; nil to write it at the end and then move it to the front.
    ///   - tags: The chapters of that file, and how it keeps its tags.
    ///   - origin: The time of the chapters that is 0 in that file.
    init(
        file: OutputFile, container: Container, like reader: RecordingReader, ends: [TrackEnd], indexBytes: Int?,
        tags: RecordedTags, origin: MediaTime
    ) throws {
        self.file = file
        self.container = container
        isReserved = indexBytes != nil
        let streams = (0..<reader.streamCount).map { reader.stream($0) }
        sourceBases = streams.map(\.pointee.time_base)
        hasMotion = streams.contains { $0.pointee.codecpar.pointee.codec_type == AVMEDIA_TYPE_DATA }
        guard ends.count == streams.count else {
            throw Finaliser.fault("the number of tracks in the file is \(streams.count), but must be \(ends.count)")
        }
        self.ends = ends
        waiting = streams.map { _ in nil }
        guard avformat_alloc_output_context2(&context, nil, container.rawValue, "file:" + file.path) >= 0, let context
        else {
            throw Finaliser.fault("there is not enough memory for a copy")
        }
        context.pointee.avoid_negative_ts = AVFMT_AVOID_NEG_TS_DISABLED
        context.pointee.flags |= AVFMT_FLAG_CUSTOM_IO
        context.pointee.strict_std_compliance = TrackDescriptions.compliance
        io = file.makeIO()
        context.pointee.pb = io
        av_dict_copy(&context.pointee.metadata, reader.metadata, 0)
        // The container's own, which it writes anew, and which would else become tags.
        for key in ["major_brand", "minor_version", "compatible_brands", "encoder"] {
            av_dict_set(&context.pointee.metadata, key, nil, 0)
        }
        for source in streams { try Self.addStream(to: context, like: source) }
        tags.addChapters(to: context, origin: origin)
        try begin(context, indexBytes, tags)
    }

    deinit {
        for var packet in waiting { av_packet_free(&packet) }
        avformat_free_context(context)
        OutputFile.freeIO(&io)
    }

    private static func addStream(
        to context: UnsafeMutablePointer<AVFormatContext>, like source: UnsafeMutablePointer<AVStream>
    ) throws {
        guard let stream = avformat_new_stream(context, nil),
            avcodec_parameters_copy(stream.pointee.codecpar, source.pointee.codecpar) >= 0
        else { throw Finaliser.fault("there is not enough memory for a copy") }
        let isMotion = source.pointee.codecpar.pointee.codec_type == AVMEDIA_TYPE_DATA
        if isMotion { TrackDescriptions.nameMotion(stream.pointee.codecpar) }
        stream.pointee.time_base = source.pointee.time_base
        // A reader that does not decode sets it only for the stream. The writer needs it in both places.
        stream.pointee.sample_aspect_ratio = source.pointee.sample_aspect_ratio
        stream.pointee.codecpar.pointee.sample_aspect_ratio = source.pointee.sample_aspect_ratio
        stream.pointee.disposition = source.pointee.disposition
        av_dict_copy(&stream.pointee.metadata, source.pointee.metadata, 0)
        var hdr = fh_av_hdr()
        fh_av_take_stream_hdr(&hdr, source)
        guard fh_av_set_stream_hdr(stream, &hdr) >= 0 else {
            throw Finaliser.fault("there is not enough memory for a copy")
        }
        var size = 0
        guard let matrix = av_stream_get_side_data(source, AV_PKT_DATA_DISPLAYMATRIX, &size) else { return }
        guard let data = av_stream_new_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, size) else {
            throw Finaliser.fault("there is not enough memory for a copy")
        }
        data.update(from: matrix, count: size)
    }

    private func begin(
        _ context: UnsafeMutablePointer<AVFormatContext>, _ indexBytes: Int?, _ tags: RecordedTags
    ) throws {
        var settings: OpaquePointer?
        defer { av_dict_free(&settings) }
        let bases = sourceBases.map { Int64($0.den) }
        av_dict_set_int(&settings, "movie_timescale", MovieTicks.common(bases), 0)
        av_dict_set_int(&settings, "video_track_timescale", bases[0], 0)
        if let indexBytes {
            av_dict_set_int(&settings, "moov_size", Int64(indexBytes), 0)
        } else {
            av_dict_set(&settings, "movflags", "faststart", 0)
        }
        tags.set(&settings, container)
        try check(avformat_write_header(context, &settings))
    }

    /// Takes over a packet, which is empty afterwards.
    func write(_ packet: UnsafeMutablePointer<AVPacket>) throws {
        let index = Int(packet.pointee.stream_index)
        if waiting[index] == nil { waiting[index] = av_packet_alloc() } else { try writeWaiting(index, isLast: false) }
        guard let place = waiting[index] else { throw Finaliser.fault("there is not enough memory for a copy") }
        av_packet_move_ref(place, packet)
    }

    private func writeWaiting(_ index: Int, isLast: Bool) throws {
        guard let packet = waiting[index] else { return }
        packet.pointee.duration = ends[index].duration(pts: packet.pointee.pts, isLast: isLast)
        packet.pointee.pos = -1
        av_packet_rescale_ts(packet, sourceBases[index], context!.pointee.streams[index]!.pointee.time_base)
        try check(av_interleaved_write_frame(context, packet))
    }

    /// Writes the index; false when there was too little room for it.
    func finish() throws -> Bool {
        for index in waiting.indices { try writeWaiting(index, isLast: true) }
        let result = av_write_trailer(context)
        avio_flush(io)
        if result < 0, isReserved, file.failure == 0 { return false }
        try check(result)
        if hasMotion {
            do { try MotionTrackName.set(in: file) } catch {
                throw Finaliser.fault("the copy cannot be written: \(String(cString: strerror(error.code)))")
            }
        }
        return true
    }

    private func check(_ result: Int32) throws {
        guard result < 0 || file.failure != 0 else { return }
        let reason = file.failure != 0 ? String(cString: strerror(file.failure)) : MuxerHandle.text(result)
        throw Finaliser.fault("the copy cannot be written: \(reason)")
    }
}
