// SPDX-License-Identifier: Apache-2.0

import CAVFormat

/// The contents of a file, for comparison: equal summaries mean equal pictures at equal times.
struct FileSummary: Equatable {
    var tracks: [TrackSummary]

    /// The first difference, in words.
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
