// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// A finished file being read packet by packet, as any player does.
final class FragmentedFile {
    private var context: UnsafeMutablePointer<AVFormatContext>?
    private var packet: UnsafeMutablePointer<AVPacket>?

    init(_ path: String) throws {
        let opened = avformat_open_input(&context, "file:" + path, nil, nil)
        guard opened >= 0, context != nil else {
            throw Finaliser.fault("the recording cannot be read back: \(MuxerHandle.text(opened))")
        }
        packet = av_packet_alloc()
    }

    deinit {
        av_packet_free(&packet)
        avformat_close_input(&context)
    }

    var streamCount: Int { Int(context!.pointee.nb_streams) }
    func stream(_ index: Int) -> UnsafeMutablePointer<AVStream> { context!.pointee.streams[index]! }
    var metadata: OpaquePointer? { context!.pointee.metadata }

    /// A line of the container's metadata.
    func text(_ key: String) -> String? { av_dict_get(metadata, key, nil, 0).map { String(cString: $0.pointee.value) } }

    /// How much of the file has been read, 0...1.
    var fraction: Double {
        let io = context!.pointee.pb
        return Double(avio_seek(io, 0, SEEK_CUR)) / Double(max(avio_size(io), 1))
    }

    /// The next packet, valid until the call after; nil at the end.
    func next() throws -> UnsafeMutablePointer<AVPacket>? {
        av_packet_unref(packet)
        let result = av_read_frame(context, packet)
        if result == fh_averror_eof { return nil }
        guard result >= 0 else {
            throw Finaliser.fault("the recording cannot be read back: \(MuxerHandle.text(result))")
        }
        return packet
    }

    func summary(_ digests: borrowing PacketDigests) -> FileSummary {
        FileSummary(tracks: (0..<streamCount).map { TrackSummary(stream($0), digests[$0]) })
    }

    /// Reads a whole file; `step` is told how far it is, and may throw to give up.
    static func summary(of path: String, _ step: (Double) throws -> Void) throws -> FileSummary {
        let file = try FragmentedFile(path)
        let digests = PacketDigests(of: file)
        while let packet = try file.next() {
            try step(file.fraction)
            digests.add(packet)
        }
        return file.summary(digests)
    }
}

/// What a file has in it, for comparison: equal summaries, equal pictures at equal times.
struct FileSummary: Equatable {
    var tracks: [TrackSummary]

    /// For people.
    func difference(from other: FileSummary) -> String {
        guard tracks.count == other.tracks.count else {
            return "\(tracks.count) tracks instead of \(other.tracks.count)"
        }
        let odd = zip(tracks, other.tracks).enumerated().first { $0.element.0 != $0.element.1 }
        guard let odd else { return "no difference" }
        let (mine, its) = odd.element
        let what =
            mine.packets.count != its.packets.count
            ? "\(mine.packets.count) packets instead of \(its.packets.count)"
            : mine.packets != its.packets ? "other packet times or bytes" : "another codec description"
        return "track \(odd.offset + 1): \(what)"
    }
}

/// One track of a file.
struct TrackSummary: Equatable {
    /// Codec, size, colour, aspect, rate, channels, tick: in libav's numbers.
    var parameters: [Int64]
    var extradata: [UInt8]
    var matrix: [UInt8]
    var packets: PacketDigest.Value

    init(_ stream: UnsafeMutablePointer<AVStream>, _ packets: PacketDigest.Value) {
        let about = stream.pointee.codecpar.pointee
        parameters = [
            Int64(about.codec_type.rawValue), Int64(about.codec_id.rawValue), Int64(about.width), Int64(about.height),
            Int64(stream.pointee.sample_aspect_ratio.num), Int64(stream.pointee.sample_aspect_ratio.den),
            Int64(about.color_range.rawValue),
            Int64(about.color_space.rawValue), Int64(about.color_primaries.rawValue), Int64(about.color_trc.rawValue),
            Int64(about.sample_rate), Int64(about.ch_layout.nb_channels), Int64(stream.pointee.time_base.num),
            Int64(stream.pointee.time_base.den),
        ]
        extradata = Array(UnsafeBufferPointer(start: about.extradata, count: Int(about.extradata_size)))
        var size = 0
        let data = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, &size)
        matrix = Array(UnsafeBufferPointer(start: data, count: data == nil ? 0 : size))
        self.packets = packets
    }
}
