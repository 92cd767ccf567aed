// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Converts pictures of one format into another of equal size, by libyuv's direct conversions or two or three of them in a
/// row. Pixel format, range and matrix become those of the target.
///
/// HLG and PQ in 10 bits become 8 bits for ordinary screens first (``ToneMap``).
///
/// Where several are needed the picture is converted in bands of 16 rows. The intermediate results then stay in the
/// processor's cache, and need memory for only one band.
package final class PictureConverter {
    static let bandRows = 16

    private let kernels: YUVKernels
    private let height: Int
    /// Formats between source and target; empty where one conversion does it.
    private let between: [ScratchPicture]
    /// Nil where the kernels make the range and matrix of the target.
    private let colors: YUVToYUV?
    private let toneMap: (map: ToneMap, scratch: ScratchPicture, next: PictureConverter?)?

    package init(from source: VideoFormat, to target: VideoFormat) {
        if let map = ToneMap(from: source, to: target) {
            var mapped = source
            mapped.pixelFormat = source.pixelFormat == .p010 ? .nv12 : .i420
            toneMap = (
                map, ScratchPicture(mapped.pixelFormat, width: source.width, height: Self.bandRows),
                mapped.pixelFormat == target.pixelFormat || target.pixelFormat == .gray8
                    ? nil : PictureConverter(from: mapped, to: target)
            )
        } else {
            toneMap = nil
        }
        kernels = YUVKernels(from: source, to: target)
        height = source.height
        var made = target
        // From RGB the kernels make video range; between luma and chroma they change nothing.
        made.color =
            source.pixelFormat.isRGB
            ? ColorDescription(matrix: target.assumedMatrix)
            : ColorDescription(range: source.color.range, matrix: source.assumedMatrix)
        colors = YUVToYUV(from: made, to: target)
        between = Self.between(source.pixelFormat, target.pixelFormat).map {
            ScratchPicture($0, width: source.width, height: Self.bandRows)
        }
    }

    /// The formats to go through where libyuv has no direct conversion.
    static func between(_ source: PixelFormat, _ target: PixelFormat) -> [PixelFormat] {
        switch (source, target) {
        case (.nv12, .yuyv), (.gray8, .yuyv), (.i010, .nv12), (.i010, .yuyv): [.i420]
        case (.p010, .i420): [.nv12]
        case (.p010, .yuyv): [.nv12, .i420]
        default: []
        }
    }

    /// Converts a picture of the one format into one of the other. Allocates nothing.
    package func convert(_ source: Picture, into target: Picture) {
        if let toneMap { mapTones(source, into: target, toneMap) } else { convertPixels(source, into: target) }
        colors?.convert(target)
    }

    private func mapTones(
        _ source: Picture, into target: Picture,
        _ tone: (map: ToneMap, scratch: ScratchPicture, next: PictureConverter?)
    ) {
        guard let next = tone.next else { return tone.map.convert(source, into: target) }
        for top in stride(from: 0, to: height, by: Self.bandRows) {
            let rows = min(Self.bandRows, height - top)
            let band = tone.scratch.picture.part(x: 0, y: 0, width: source.width, height: rows)
            tone.map.convert(source.part(x: 0, y: top, width: source.width, height: rows), into: band)
            next.convertPixels(band, into: target.part(x: 0, y: top, width: source.width, height: rows))
        }
    }

    private func convertPixels(_ source: Picture, into target: Picture) {
        guard !between.isEmpty else { return kernels.convert(source, into: target) }
        for top in stride(from: 0, to: source.height, by: Self.bandRows) {
            let rows = min(Self.bandRows, source.height - top)
            var band = source.part(x: 0, y: top, width: source.width, height: rows)
            for scratch in between {
                let next = scratch.picture.part(x: 0, y: 0, width: source.width, height: rows)
                kernels.convert(band, into: next)
                band = next
            }
            kernels.convert(band, into: target.part(x: 0, y: top, width: source.width, height: rows))
        }
    }
}
