// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Shared

/// What is known of the track to be played before its first picture is decoded.
struct VideoTrack {
    /// Its number from 0 among all tracks.
    let index: Int
    /// The format of the frames.
    let format: VideoFormat
    /// The shape of the file's pictures.
    let shape: PictureShape
    let conversion: PixelConversion
    /// The file's pixel format where the decoder itself gives another one of it; nil elsewhere.
    let converted: String?
    /// Whether the file's matrix does not turn by a multiple of 90°, so that the nearest orientation is used.
    let hasOddRotation: Bool
    /// What its first picture says of its brightness, with what the container says.
    let hdr: HDRMetadata?
    /// Where it begins, in ticks.
    let origin: Int64

    /// [control thread]
    ///
    /// - Parameter number: From 1 among the video tracks; nil: the first usable one.
    init(_ file: MediaFile, number: Int?) throws {
        let index = try file.chooseVideoTrack(number: number)
        self.index = index
        let known = PictureShape(file, track: index)
        // Of Motion JPEG in 4:2:2 libjpeg-turbo's decoder gives 4:2:0.
        let isJPEG = file.parameters(index).codec_id == AV_CODEC_ID_MJPEG
        let mayDiffer =
            isJPEG || file.isHeaderless
            || (known.color.matrix == 2 && Self.isColorLeftOut(file.parameters(index).codec_id))
            // How bright they are may be said beside the pictures only.
            || known.color.isHDR
        let first = try mayDiffer ? PictureShape.ofFirstPicture(in: file, track: index) : nil
        shape = first?.shape ?? known
        hdr = first?.hdr
        conversion = PixelConversion(shape.pixels)
        let coded = PixelConversion(known.pixels)
        converted = isJPEG && coded.isConverted && shape.pixels != known.pixels ? coded.name : nil
        guard shape.width > 0, shape.height > 0, shape.pixels != AV_PIX_FMT_NONE else {
            throw FileFault.noPicture(file.path)
        }
        guard VideoFormat.sides.contains(shape.width), VideoFormat.sides.contains(shape.height) else {
            throw FileFault.tooLarge(file.path, width: shape.width, height: shape.height)
        }
        guard !conversion.isConverted || ScalingConverter.canConvert(conversion.source) else {
            throw FileFault.unconvertible(conversion.name, width: shape.width, height: shape.height)
        }
        let (orientation, isExact) = Self.orientation(file.stream(index))
        format = VideoFormat(
            conversion.target, width: shape.width, height: shape.height,
            frameRate: Self.constantRate(file.stream(index)),
            timeBase: file.timeBase(index), color: conversion.color(shape.color), sampleAspectRatio: shape.aspect,
            orientation: orientation)
        hasOddRotation = !isExact
        origin = file.origin(index)
    }

    /// Whether libavformat may have left the pictures' own colour description undecoded. It decodes the description
    /// together with the pixel format, which it must always find for the codecs that are listed here.
    private static func isColorLeftOut(_ codec: AVCodecID) -> Bool {
        ![AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_VP9, AV_CODEC_ID_AV1, AV_CODEC_ID_PRORES].contains(codec)
    }

    /// The frame rate where it is constant: then libavformat's lowest rate that fits all time stamps agrees with the
    /// average, except for the rounding of time stamps and of the file's length.
    private static func constantRate(_ stream: UnsafeMutablePointer<AVStream>) -> Rational {
        let (average, base) = (stream.pointee.avg_frame_rate, stream.pointee.r_frame_rate)
        guard average.num > 0, average.den > 0, base.num > 0, base.den > 0 else { return Rational(0) }
        let difference = (av_q2d(average) / av_q2d(base) - 1).magnitude
        let rate = Rational(base.num, base.den)
        return difference < 0.005 && VideoFormat.frameRates.contains(rate.value) ? rate : Rational(0)
    }

    static func orientation(_ stream: UnsafeMutablePointer<AVStream>) -> (Orientation, isExact: Bool) {
        guard let matrix = fh_av_stream_matrix(stream) else { return (.up, true) }
        return Orientation.fromDisplayMatrix(Array(UnsafeBufferPointer(start: matrix, count: 9))) ?? (.up, false)
    }
}
