// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// Reads the pictures of a YUV4MPEG2 file straight into frames of the chain.
///
/// libavformat reads each picture into memory of its own, from which it must be copied. Here a packet has no bytes: it tells
/// where those of its picture lie, and they are read once the chain has a frame for them. Used by one thread at a time.
final class RawPictures {
    /// Bytes of a picture in the file: its planes one behind the other, without padding.
    private let byteCount: Int
    /// Where the first picture's header lies.
    private let begin: Int64
    private let track: Int32
    private let parameters: AVCodecParameters
    /// Where the next header lies; nil: where libavformat went.
    private var next: Int64?
    /// What was sent and not received yet.
    private var sent: AVPacket?
    /// Where the bytes of the picture that was received last lie.
    private var place: Int64 = 0

    fileprivate static let magic = Array("FRAME".utf8)
    /// Longer headers are no headers: libavformat's limit.
    private static let mostHeaderBytes = 80

    /// [control thread] nil if the file is another one, or if its pictures are not as the chain's.
    init?(_ file: MediaFile, _ track: VideoTrack, to target: VideoFormat) {
        let parameters = file.parameters(track.index)
        guard file.formatName == "yuv4mpegpipe", parameters.codec_id == AV_CODEC_ID_RAWVIDEO,
            parameters.field_order.rawValue <= AV_FIELD_PROGRESSIVE.rawValue,
            ScalingConverter(to: target).copies(track.shape), let begin = file.bytes?.endOfLine(from: 0)
        else { return nil }
        let pixels = target.pixelFormat
        byteCount = (0..<pixels.planeCount).reduce(0) {
            $0 + pixels.rowBytes(plane: $1, width: target.width) * pixels.rows(plane: $1, height: target.height)
        }
        let known = av_image_get_buffer_size(track.shape.pixels, parameters.width, parameters.height, 1)
        guard byteCount == Int(known) else { return nil }
        (self.begin, self.track, self.parameters) = (begin, Int32(track.index), parameters)
        next = begin
    }

    // MARK: In place of the demuxer

    /// Goes on at the first picture. libavformat has looked at some.
    func goToBegin() { next = begin }

    /// Goes on where libavformat went.
    func goOn() { next = nil }

    /// The next packet; AVERROR_EOF also if the file ends within a picture.
    func read(_ io: UnsafeMutablePointer<AVIOContext>, into packet: UnsafeMutablePointer<AVPacket>) -> Int32 {
        if let next, avio_seek(io, next, SEEK_SET) < 0 { return fh_averror_invalid_data }
        let header = avio_seek(io, 0, SEEK_CUR)
        var count = 0
        while true {
            let byte = UInt8(truncatingIfNeeded: avio_r8(io))
            if avio_feof(io) != 0 { return io.pointee.error < 0 ? io.pointee.error : fh_averror_eof }
            if count < Self.magic.count, byte != Self.magic[count] { return fh_averror_invalid_data }
            if byte == 10 { break }
            count += 1
            guard count < Self.mostHeaderBytes else { return fh_averror_invalid_data }
        }
        let place = avio_seek(io, 0, SEEK_CUR)
        let end = place + Int64(byteCount)
        guard end <= avio_size(io) else { return fh_averror_eof }
        next = end
        av_packet_unref(packet)
        packet.pointee.stream_index = track
        packet.pointee.pts = (header - begin) / (Int64(byteCount) + Int64(Self.magic.count) + 1)
        packet.pointee.dts = packet.pointee.pts
        packet.pointee.duration = 1
        packet.pointee.flags = AV_PKT_FLAG_KEY
        packet.pointee.pos = place
        return 0
    }

    // MARK: In place of the decoder

    func send(_ packet: UnsafeMutablePointer<AVPacket>) { sent = packet.pointee }

    /// Describes the next picture, which has no memory; false if none was sent.
    func receive(into picture: UnsafeMutablePointer<AVFrame>) -> Bool {
        guard var packet = sent else { return false }
        sent = nil
        place = packet.pos
        av_frame_unref(picture)
        fh_av_describe_still(picture, &packet)
        picture.pointee.width = parameters.width
        picture.pointee.height = parameters.height
        picture.pointee.format = parameters.format
        picture.pointee.sample_aspect_ratio = parameters.sample_aspect_ratio
        picture.pointee.color_range = parameters.color_range
        picture.pointee.colorspace = parameters.color_space
        picture.pointee.color_primaries = parameters.color_primaries
        picture.pointee.color_trc = parameters.color_trc
        picture.pointee.chroma_location = parameters.chroma_location
        return true
    }

    /// Drops what was sent.
    func flush() { sent = nil }

    /// Reads the picture that was received last.
    ///
    /// - Returns: 0, or an AVERROR.
    func copy(from io: UnsafeMutablePointer<AVIOContext>, into frame: inout Frame) -> Int32 {
        guard avio_seek(io, place, SEEK_SET) >= 0 else { return fh_averror_invalid_data }
        for index in 0..<frame.planeCount {
            let result = frame.withMutablePlane(index) { plane -> Int32 in
                let isWhole = plane.strideBytes == plane.rowBytes
                let (rows, count) = isWhole ? (1, plane.rowBytes * plane.height) : (plane.height, plane.rowBytes)
                for row in 0..<rows {
                    let read = avio_read(io, plane.baseAddress + row * plane.strideBytes, Int32(count))
                    guard read == Int32(count) else { return read < 0 ? read : fh_averror_eof }
                }
                return 0
            }
            guard result == 0 else { return result }
        }
        return 0
    }
}

extension FileBytes {
    /// Where the line that begins at `offset` ends, behind its line feed; nil if it is longer than any header.
    fileprivate func endOfLine(from offset: Int64) -> Int64? {
        read(at: offset, most: 4096).firstIndex(of: 10).map { offset + Int64($0) + 1 }
    }
}

extension MediaFile {
    /// The bytes that a YUV4MPEG2 file lacks of its last picture; 0 if its headers differ in length, since the place of the
    /// last one is not known then.
    func missingOfLastPicture(_ track: Int) -> Int64 {
        guard formatName == "yuv4mpegpipe", let bytes, let begin = bytes.endOfLine(from: 0),
            let first = bytes.endOfLine(from: begin)
        else { return 0 }
        let shape = parameters(track)
        let picture = av_image_get_buffer_size(AVPixelFormat(shape.format), shape.width, shape.height, 1)
        guard picture > 0 else { return 0 }
        let step = first - begin + Int64(picture)
        let rest = (bytes.count - begin) % step
        let head = bytes.read(at: bytes.count - rest, most: RawPictures.magic.count)
        return rest > 0 && RawPictures.magic.starts(with: head) ? step - rest : 0
    }
}
