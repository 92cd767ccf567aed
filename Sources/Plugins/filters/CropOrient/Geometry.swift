// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// All steps of the options as one: a part of the stored picture, its orientation, and the part of the output that it
/// is scaled into.
struct Geometry: Equatable {
    /// In the stored picture.
    var source: Rectangle
    /// From the stored to the shown picture.
    var orientation: Orientation
    /// In the output; smaller than it where there are bars.
    var target: Rectangle
    var output: PictureSize
    var sampleAspectRatio: Rational
    /// Whether the part begins up to one pixel before the requested one, since two pixels share a chroma sample.
    var isMoved = false

    /// Whether the output equals the input.
    func isIdentity(of format: VideoFormat) -> Bool {
        let whole = Rectangle(width: format.width, height: format.height)
        return orientation == .up && source == whole && target == whole
            && output == PictureSize(format.width, format.height)
    }

    /// - Parameters:
    ///   - lying: The picture's orientation; nil: the link's.
    ///   - fixed: The output format, where it is fixed already: the picture is fitted to its size by `fit`, and `crop`
    ///     is clipped to the picture.
    /// - Throws: ``FrameHostError`` when `crop` reaches outside the picture, or the output would be too large.
    init(
        _ options: CropOrientOptions, of format: VideoFormat, lying: Orientation? = nil, into fixed: VideoFormat? = nil
    ) throws {
        let step = format.pixelFormat == .i420 || format.pixelFormat == .nv12 ? 2 : 1
        var picture = PictureGeometry(format, lying: lying ?? format.orientation)
        let upright = picture.upright.size
        let cut = picture.orientation.stored(
            try Self.part(options.crop, of: upright, isCut: fixed != nil), shown: upright)
        picture.size = cut.size
        picture.orientation = picture.orientation.then(options.rotate.orientation)
            .then(options.mirror ? .upMirrored : .up)
        orientation = picture.orientation
        let shown = picture.upright
        let pixel = shown.pixelAspect
        sampleAspectRatio = shown.sampleAspectRatio
        let whole = Rectangle(shown.size)
        var placement = PicturePlacement(whole, pixelAspect: pixel, into: whole, .stretch, step: step)
        output = shown.size
        if let size = fixed.map({ PictureSize($0.width, $0.height) }) ?? options.size {
            output = size
            if !sampleAspectRatio.isZero { sampleAspectRatio = fixed?.sampleAspectRatio ?? Rational(1) }
            let ratio = pixel / PictureGeometry(size, sampleAspectRatio: sampleAspectRatio).pixelAspect
            placement = PicturePlacement(whole, pixelAspect: ratio, into: Rectangle(size), options.fit, step: step)
        } else if let aspect = options.aspect {
            let shape = Double(aspect.width) / Double(aspect.height) / pixel
            switch options.fit {
            case .fill:
                placement.source = whole.largest(shape: shape, step: step)
                output = placement.source.size
                placement.target = Rectangle(output)
            case .stretch:
                output = whole.largest(shape: shape, step: step).size
                placement.target = Rectangle(output)
            case .contain:
                let (long, high) = (Double(shown.size.width), Double(shown.size.height))
                func side(_ length: Double, _ least: Int) -> Int {
                    max(Rectangle.side(length, step: step, most: .max), least)
                }
                output =
                    long > high * shape
                    ? PictureSize(shown.size.width, side(long / shape, shown.size.height))
                    : PictureSize(side(high * shape, shown.size.width), shown.size.height)
                placement.target = Rectangle(output).middle(shown.size).aligned(to: step)
            }
        }
        guard PictureSize.range.contains(output.width), PictureSize.range.contains(output.height) else {
            throw FrameHostError(
                .invalidConfiguration, place: options.aspect == nil ? "size" : "aspect",
                what: "the result would be \(output), but a side must be at most 16384 pixels",
                remedy: options.aspect == nil
                    ? "Set 'size' or 'crop'." : "Set another 'aspect', or set a 'size' of this shape too.")
        }
        target = placement.target
        let part = orientation.stored(placement.source, shown: shown.size)
        let wanted = Rectangle(x: part.x + cut.x, y: part.y + cut.y, width: part.width, height: part.height)
        source = wanted.aligned(to: step)
        isMoved = source != wanted
    }

    private static func part(_ crop: CropRectangle?, of size: PictureSize, isCut: Bool) throws -> Rectangle {
        guard var crop else { return Rectangle(size) }
        if isCut {
            crop.size = PictureSize(min(crop.size.width, size.width), min(crop.size.height, size.height))
            crop.origin = crop.origin.map {
                (min($0.x, size.width - crop.size.width), min($0.y, size.height - crop.size.height))
            }
        }
        let x = crop.origin?.x ?? max(size.width - crop.size.width, 0) / 2
        let y = crop.origin?.y ?? max(size.height - crop.size.height, 0) / 2
        guard x + crop.size.width <= size.width, y + crop.size.height <= size.height else {
            throw FrameHostError(
                .invalidConfiguration, place: "crop",
                what: "\(crop) must lie within the picture, which is \(size)",
                remedy: "Choose a part inside it.")
        }
        return Rectangle(x: x, y: y, width: crop.size.width, height: crop.size.height)
    }
}
