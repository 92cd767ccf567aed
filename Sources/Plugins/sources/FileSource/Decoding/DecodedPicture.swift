// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// What libavcodec says of the picture in an `AVFrame`. Valid as long as the frame holds that picture.
struct DecodedPicture {
    let frame: UnsafeMutablePointer<AVFrame>

    /// When the picture is shown and for how long, as the file says. Not checked: that is for ``TrackTimes``.
    var givenTick: Int64 { frame.pointee.best_effort_timestamp }
    var givenDuration: Int64 { fh_av_picture_duration(frame) }

    var width: Int { Int(frame.pointee.width) }
    var height: Int { Int(frame.pointee.height) }
    var pixelFormat: AVPixelFormat { AVPixelFormat(rawValue: frame.pointee.format) }
    var isInterlaced: Bool { fh_av_picture_is_interlaced(frame) != 0 }
    /// Whether it can be decoded alone.
    var isKey: Bool { fh_av_picture_is_key(frame) != 0 }
    /// Whether parts of it are guessed or missing.
    var isDamaged: Bool { frame.pointee.flags & AV_FRAME_FLAG_CORRUPT != 0 || frame.pointee.decode_error_flags != 0 }

    var color: ColorDescription {
        ColorDescription(
            libav: frame.pointee.color_range, frame.pointee.colorspace, frame.pointee.color_primaries,
            frame.pointee.color_trc,
            frame.pointee.chroma_location, of: PixelConversion(pixelFormat))
    }

    /// Its closed captions (ATSC A/53). nil where it has none, or more than it may have.
    var captions: ClosedCaptions? {
        var count = 0
        guard let bytes = fh_av_picture_captions(frame, &count) else { return nil }
        return ClosedCaptions(UnsafeRawBufferPointer(start: bytes, count: count))
    }

    /// Copies the planes, row by row, into a frame of the same size and format.
    func copy(to target: inout Frame) {
        for index in 0..<target.planeCount {
            target.withMutablePlane(index) {
                fh_av_copy_plane(frame, Int32(index), $0.baseAddress, $0.strideBytes, $0.rowBytes, Int32($0.height))
            }
        }
    }

    /// The orientation in the bitstream itself; nil where only the container can have one.
    var orientation: (value: Orientation, isExact: Bool)? {
        fh_av_picture_matrix(frame).flatMap {
            Orientation.fromDisplayMatrix(Array(UnsafeBufferPointer(start: $0, count: 9)))
        }
        .map { ($0.orientation, $0.isExact) }
    }
}

extension ColorDescription {
    /// libav's numbers are those of ISO/IEC 23091-2, like ours. 0 and numbers larger than a byte are not assigned
    /// there.
    ///
    /// What is left open follows from the pixels: RGB and grey have full range, as libswscale takes them; luma and chroma
    /// have video range.
    init(
        libav range: AVColorRange, _ matrix: AVColorSpace, _ primaries: AVColorPrimaries,
        _ transfer: AVColorTransferCharacteristic,
        _ siting: AVChromaLocation, of pixels: PixelConversion
    ) {
        func code(_ value: UInt32) -> UInt8 { value == 0 || value > 255 ? 2 : UInt8(value) }
        let isFull =
            range == AVCOL_RANGE_JPEG || pixels.isFullRangeByName || pixels.isRGB
            || range == AVCOL_RANGE_UNSPECIFIED && pixels.isGray
        self.init(
            range: isFull ? .full : .video, matrix: pixels.isRGB ? 0 : code(matrix.rawValue),
            primaries: code(primaries.rawValue),
            transfer: code(transfer.rawValue), chromaSiting: UInt8(clamping: siting.rawValue))
    }
}
