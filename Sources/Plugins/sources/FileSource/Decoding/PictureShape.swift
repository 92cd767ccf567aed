// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Shared

/// The full description of a decoded picture, as ``ScalingConverter`` is asked with it: what pictures of a track have in
/// common until the file changes it.
struct PictureShape: Equatable {
    var pixels: AVPixelFormat
    var width: Int
    var height: Int
    /// The aspect ratio of the samples; 0 when unknown.
    var aspect: Rational
    var color: ColorDescription

    /// The shape by the file's header, or by what libavformat has found out instead.
    init(_ file: MediaFile, track: Int) {
        self.init(file.parameters(track), aspect: file.sampleAspectRatio(track))
    }

    init(_ parameters: AVCodecParameters, aspect: Rational) {
        pixels = AVPixelFormat(rawValue: parameters.format)
        width = Int(parameters.width)
        height = Int(parameters.height)
        self.aspect = aspect
        color = ColorDescription(
            libav: parameters.color_range, parameters.color_space, parameters.color_primaries, parameters.color_trc,
            parameters.chroma_location, of: PixelConversion(pixels))
    }

    init(_ picture: DecodedPicture, aspect: Rational) {
        pixels = picture.pixelFormat
        width = picture.width
        height = picture.height
        self.aspect = aspect
        color = picture.color
    }

    /// The pixels, whatever their name says of the range.
    var plainPixels: AVPixelFormat { PixelConversion(pixels).plainSource }
    var geometry: PictureGeometry { PictureGeometry(PictureSize(width, height), sampleAspectRatio: aspect) }

    /// Whether samples mean the same as those of `format`: the same range, and where there is chroma the same matrix.
    func hasSamples(of format: VideoFormat) -> Bool {
        let pixels = PixelConversion(pixels)
        guard !pixels.isRGB, !format.pixelFormat.isRGB else { return pixels.isRGB == format.pixelFormat.isRGB }
        let hasMatrix = pixels.hasMatrix && format.pixelFormat != .gray8
        return color.range == format.color.range
            && (!hasMatrix || color.assumedMatrix(height: height) == format.assumedMatrix)
    }

    /// [control thread] The shape of the first picture that can be decoded, and what it says of its brightness; nil when
    /// there is none. Afterwards the file is at its start.
    static func ofFirstPicture(in file: MediaFile, track: Int) throws -> (shape: PictureShape, hdr: HDRMetadata?)? {
        var packet = av_packet_alloc()
        var frame = av_frame_alloc()
        defer {
            av_frame_free(&frame)
            av_packet_free(&packet)
        }
        guard let packet, let frame else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a decoder",
                remedy: "Free some memory, and start the chain again.")
        }
        let picture = DecodedPicture(frame: frame)
        let isThere = try firstPicture(file, track, packet, picture)
        var hdr = fh_av_hdr()
        fh_av_take_stream_hdr(&hdr, file.stream(track))
        if isThere { fh_av_take_picture_hdr(&hdr, frame) }
        let shape = isThere ? PictureShape(picture, aspect: file.sampleAspectRatio(track, of: frame)) : nil
        try file.reopen()
        return shape.map { ($0, HDRMetadata(hdr)) }
    }

    private static func firstPicture(
        _ file: MediaFile, _ track: Int, _ packet: UnsafeMutablePointer<AVPacket>, _ picture: DecodedPicture
    ) throws -> Bool {
        let decoder = try PictureDecoder(file, track: track, threads: 1, loans: nil)
        while true {
            switch decoder.receive(into: picture.frame) {
            case .picture: return true
            case .ended: return false
            case .damaged: continue
            case .hungry:
                let result = file.read(into: packet)
                guard result >= 0 || result == fh_averror_again else {
                    _ = try decoder.send(nil)
                    continue
                }
                if result >= 0, packet.pointee.stream_index == track { _ = try decoder.send(packet) }
                av_packet_unref(packet)
            }
        }
    }
}
