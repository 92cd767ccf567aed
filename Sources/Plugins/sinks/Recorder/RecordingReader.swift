// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// Reads a finished file packet by packet, as any player does: fragmented, or with its index in front.
final class RecordingReader {
    private var context: UnsafeMutablePointer<AVFormatContext>?
    private var packet: UnsafeMutablePointer<AVPacket>?

    init(_ path: String) throws {
        let opened = avformat_open_input(&context, "file:" + path, nil, nil)
        guard opened >= 0, context != nil else {
            throw Finaliser.unreadable(MuxerHandle.text(opened))
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

    /// A value of the container's metadata.
    func text(_ key: String) -> String? { av_dict_get(metadata, key, nil, 0).map { String(cString: $0.pointee.value) } }

    /// How much of the file has been read, 0...1.
    var fraction: Double {
        let io = context!.pointee.pb
        return Double(avio_seek(io, 0, SEEK_CUR)) / Double(max(avio_size(io), 1))
    }

    /// The next packet, valid until the next call; nil at the end.
    func next() throws -> UnsafeMutablePointer<AVPacket>? {
        av_packet_unref(packet)
        let result = av_read_frame(context, packet)
        if result == fh_averror_eof { return nil }
        guard result >= 0 else {
            throw Finaliser.unreadable(MuxerHandle.text(result))
        }
        return packet
    }

    func summary(_ digests: borrowing PacketDigests) -> FileSummary {
        let tracks = (0..<streamCount).map { TrackSummary(stream($0), digests[$0]) }
        // A track without packets is not written to a file with its index in front.
        return FileSummary(tracks: tracks.filter { $0.packets.count > 0 })
    }

    /// Reads a whole file. `step` is told how far it is, and may throw to stop.
    static func summary(of path: String, _ step: (Double) throws -> Void) throws -> FileSummary {
        let file = try RecordingReader(path)
        let digests = PacketDigests(of: file)
        while let packet = try file.next() {
            try step(file.fraction)
            digests.add(packet)
        }
        return file.summary(digests)
    }
}
