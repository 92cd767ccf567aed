// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A rectangle in whole pixels.
struct Rectangle: Equatable {
    var x: Int
    var y: Int
    var width: Int
    var height: Int
}

extension Orientation {
    /// Where `rectangle` of the shown picture of `size` lies in the stored one.
    func stored(_ rectangle: Rectangle, shown size: (width: Int, height: Int)) -> Rectangle {
        var result = rectangle
        var (width, height) = size
        // One quarter turn clockwise takes the stored (x, y) to (storedHeight - 1 - y, x).
        for _ in 0..<quarterTurns {
            result = Rectangle(
                x: result.y, y: width - result.x - result.width, width: result.height, height: result.width)
            swap(&width, &height)
        }
        if isMirrored { result.x = width - result.x - result.width }
        return result
    }

    /// This orientation, then turned clockwise, then mirrored.
    func turned(_ quarterTurns: Int, thenMirrored isMirrored: Bool) -> Orientation {
        let turns = self.quarterTurns + quarterTurns
        // Mirroring last equals mirroring first and turning the other way.
        return isMirrored
            ? Orientation(quarterTurns: -turns, mirrored: !self.isMirrored)
            : Orientation(quarterTurns: turns, mirrored: self.isMirrored)
    }
}

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
        let whole = Rectangle(x: 0, y: 0, width: format.width, height: format.height)
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
        let lying = lying ?? format.orientation
        let isSubsampled = format.pixelFormat == .i420 || format.pixelFormat == .nv12
        let stored = (width: format.width, height: format.height)
        let upright = lying.swapsSides ? (width: stored.height, height: stored.width) : stored
        let part = try Self.part(options.crop, of: upright, isCut: fixed != nil)
        let cut = lying.stored(part, shown: upright)
        orientation = lying.turned(options.rotate.quarterTurns, thenMirrored: options.mirror)
        let swapsSides = orientation.swapsSides
        let shown = swapsSides ? (width: cut.height, height: cut.width) : (width: cut.width, height: cut.height)
        let ratio = format.sampleAspectRatio
        sampleAspectRatio = swapsSides && !ratio.isZero ? Rational(ratio.denominator, ratio.numerator) : ratio
        // Width of a pixel over its height, as shown.
        let pixel = sampleAspectRatio.isZero ? 1 : sampleAspectRatio.value

        func rounded(_ value: Double, most: Int) -> Int {
            guard isSubsampled else { return min(max(Int(value.rounded()), 1), most) }
            // Even, so that chroma samples are not cut in two.
            return min(max(Int((value / 2).rounded()) * 2, 2), most < 2 ? most : most / 2 * 2)
        }
        /// The largest size of a shape (in pixels of the picture) within `box`; a side that fills the box is left as it
        /// is.
        func within(_ box: (width: Int, height: Int), shape: Double) -> (width: Int, height: Int) {
            if Double(box.width) > Double(box.height) * shape * (1 + 1e-9) {
                return (rounded(Double(box.height) * shape, most: box.width), box.height)
            }
            if Double(box.width) < Double(box.height) * shape * (1 - 1e-9) {
                return (box.width, rounded(Double(box.width) / shape, most: box.height))
            }
            return box
        }

        var used = Rectangle(x: 0, y: 0, width: shown.width, height: shown.height)
        func keepMiddle(_ size: (width: Int, height: Int)) {
            used = Rectangle(
                x: (shown.width - size.width) / 2, y: (shown.height - size.height) / 2, width: size.width,
                height: size.height)
        }
        /// The picture's own shape, in pixels of the output.
        var placed: (width: Int, height: Int)?
        if let size = fixed.map({ PictureSize($0.width, $0.height) }) ?? options.size {
            output = size
            if !sampleAspectRatio.isZero { sampleAspectRatio = fixed?.sampleAspectRatio ?? Rational(1) }
            let pixel = pixel / (sampleAspectRatio.isZero ? 1 : sampleAspectRatio.value)
            switch options.fit {
            case .fill: keepMiddle(within(shown, shape: Double(size.width) / Double(size.height) / pixel))
            case .contain:
                placed = within((size.width, size.height), shape: Double(shown.width) * pixel / Double(shown.height))
            case .stretch: break
            }
        } else if let aspect = options.aspect {
            let shape = Double(aspect.width) / Double(aspect.height) / pixel
            switch options.fit {
            case .fill:
                keepMiddle(within(shown, shape: shape))
                output = PictureSize(used.width, used.height)
            case .stretch:
                let size = within(shown, shape: shape)
                output = PictureSize(size.width, size.height)
            case .contain:
                let isWide = Double(shown.width) > Double(shown.height) * shape
                output =
                    isWide
                    ? PictureSize(shown.width, rounded(Double(shown.width) / shape, most: .max))
                    : PictureSize(rounded(Double(shown.height) * shape, most: .max), shown.height)
                output = PictureSize(max(output.width, shown.width), max(output.height, shown.height))
                placed = shown
            }
        } else {
            output = PictureSize(shown.width, shown.height)
        }
        guard PictureSize.range.contains(output.width), PictureSize.range.contains(output.height) else {
            throw FrameHostError(
                .invalidConfiguration, place: options.aspect == nil ? "size" : "aspect",
                what: "the result would be \(output), but a side must be at most 16384 pixels",
                remedy: options.aspect == nil
                    ? "Set 'size' or 'crop'." : "Set another 'aspect', or set a 'size' of this shape too.")
        }
        let size = placed ?? (output.width, output.height)
        target = Rectangle(
            x: (output.width - size.width) / 2, y: (output.height - size.height) / 2, width: size.width,
            height: size.height)
        source = orientation.stored(used, shown: shown)
        source.x += cut.x
        source.y += cut.y
        if isSubsampled {
            isMoved = source.x % 2 == 1 || source.y % 2 == 1
            source.x -= source.x % 2
            source.y -= source.y % 2
            target.x -= target.x % 2
            target.y -= target.y % 2
        }
    }

    private static func part(_ crop: CropRectangle?, of size: (width: Int, height: Int), isCut: Bool) throws
        -> Rectangle
    {
        guard var crop else { return Rectangle(x: 0, y: 0, width: size.width, height: size.height) }
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
                what: "\(crop) must lie within the picture, which is \(size.width)x\(size.height)",
                remedy: "Choose a part inside it.")
        }
        return Rectangle(x: x, y: y, width: crop.size.width, height: crop.size.height)
    }
}
