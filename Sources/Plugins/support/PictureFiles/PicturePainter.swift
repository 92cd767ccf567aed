// SPDX-License-Identifier: Apache-2.0

import Conversion
import FrameCore
import Shared

/// Carries out a plan: from a stored picture of any format to the file's pixels, packed as blue, green, red and an
/// unused byte, in full range.
///
/// Where the region begins at whole chroma samples, luma and chroma are scaled as they are, and converted to RGB
/// afterwards. Everything else is converted to RGB first. Colours are those of the conversions of `convert`.
final class PicturePainter {
    private let canvas = GrowingMemory()
    /// The picture that is turned into the canvas.
    private let flat = GrowingMemory()
    /// A region with one more column or row, for one that begins between two pixels that share their chroma.
    private let wider = GrowingMemory()
    /// A region's pixels, before they are split into planes.
    private let unsplit = GrowingMemory()
    /// The planes of these pixels, where the picture has none of its own.
    private let split = GrowingMemory()
    /// Planes after scaling.
    private let scaledPlanes = GrowingMemory()
    private let scaler = PlaneReducer()

    private var memories: [GrowingMemory] { [canvas, flat, wider, unsplit, split, scaledPlanes] }
    var byteCount: Int { memories.reduce(scaler.byteCount) { $0 + $1.byteCount } }
    func trim() {
        for memory in memories { memory.trim() }
        scaler.trim()
    }

    /// The file's pixels, which stay until the next call.
    ///
    /// - Parameter format: The format of `picture`. Its matrix and range define the conversion to RGB.
    /// - Throws: ``FrameHostError`` `.exhausted`.
    func paint(_ picture: Picture, _ format: VideoFormat, _ plan: PicturePlan) throws -> Picture {
        let painted = try Self.packed(plan.size, in: canvas)
        if !plan.fillsAll { PixelCalls.fill(painted, grey: 128) }
        let place = painted.part(
            x: plan.place.x, y: plan.place.y, width: plan.place.width, height: plan.place.height)
        guard plan.orientation != .up else {
            try fill(place, from: picture, format, plan.region)
            return painted
        }
        let turned = try Self.packed(plan.scaled, in: flat)
        try fill(turned, from: picture, format, plan.region)
        PixelCalls.turn(turned, plan.orientation, into: place)
        return painted
    }

    /// Fills `target` from a region: cropped, scaled, and converted to RGB.
    private func fill(_ target: Picture, from picture: Picture, _ format: VideoFormat, _ region: Rectangle) throws {
        let color = Self.color(format)
        if target.width == region.width && target.height == region.height {
            return try convert(picture, color, region, into: target)
        }
        guard region.width <= PlaneReducer.most, region.height <= PlaneReducer.most else {
            throw FrameHostError(
                .exhausted,
                what:
                    "a picture of \(region.width)x\(region.height) cannot be scaled: each side must be at most \(PlaneReducer.most) pixels",
                remedy: "Name a stage with smaller pictures.")
        }
        let unit = Self.unit(of: picture.pixelFormat)
        if region.x % unit.x == 0, region.y % unit.y == 0, let planes = try planes(of: picture, region) {
            try fill(target, luma: planes, picture.pixelFormat, color)
        } else {
            try fill(target, packed: picture, color, region)
        }
    }

    // MARK: Luma and chroma

    /// A region's planes of luma and chroma, 8 bit; nil for a format without such planes.
    private func planes(of picture: Picture, _ region: Rectangle) throws -> [PixelPlane]? {
        let part = picture.part(x: region.x, y: region.y, width: region.width, height: region.height)
        let chroma = PictureSize((region.width + 1) / 2, (region.height + 1) / 2)
        switch picture.pixelFormat {
        case .gray8: return [PixelPlane(part[0], region.width, region.height)]
        case .i420:
            return [
                PixelPlane(part[0], region.width, region.height), PixelPlane(part[1], chroma.width, chroma.height),
                PixelPlane(part[2], chroma.width, chroma.height),
            ]
        case .nv12:
            let halves = try Self.planes([chroma, chroma], in: split)
            PixelCalls.splitChroma(PixelPlane(part[1], chroma.width, chroma.height), into: halves)
            return [PixelPlane(part[0], region.width, region.height)] + halves
        case .yuyv:
            let tall = PictureSize(chroma.width, region.height)
            let planes = try Self.planes([PictureSize(region.width, region.height), tall, tall], in: split)
            PixelCalls.split422(PixelPlane(part[0], region.width, region.height), into: planes)
            return planes
        case .bgra, .rgb24, .i010, .p010: return nil
        }
    }

    private func fill(
        _ target: Picture, luma planes: [PixelPlane], _ pixelFormat: PixelFormat, _ color: ColorDescription
    ) throws {
        let chroma = PictureSize((target.width + 1) / 2, (target.height + 1) / 2)
        let sizes = [PictureSize(target.width, target.height), chroma, chroma].prefix(planes.count)
        let scaled = try Self.planes(Array(sizes), in: scaledPlanes)
        for (from, to) in zip(planes, scaled) { try scaler.scale(from, into: to) }
        let small = Picture(planes.count == 1 ? .gray8 : .i420, width: target.width, height: target.height) {
            (UnsafeMutableRawPointer(scaled[$0].base), scaled[$0].strideBytes)
        }
        convert(small, color, into: target)
    }

    // MARK: RGB

    private func fill(
        _ target: Picture, packed picture: Picture, _ color: ColorDescription, _ region: Rectangle
    ) throws {
        let size = PictureSize(region.width, region.height)
        let planes = try Self.planes([size, size, size], in: split)
        if picture.pixelFormat.isRGB {
            PixelCalls.splitRGB(
                picture.part(x: region.x, y: region.y, width: region.width, height: region.height), into: planes)
        } else {
            let whole = try Self.packed(size, in: unsplit)
            try convert(picture, color, region, into: whole)
            PixelCalls.splitRGB(whole, into: planes)
        }
        let small = PictureSize(target.width, target.height)
        let scaled = try Self.planes([small, small, small], in: scaledPlanes)
        for (from, to) in zip(planes, scaled) { try scaler.scale(from, into: to) }
        PixelCalls.mergeRGB(scaled, into: target)
    }

    // MARK: Conversion

    /// A region in its own size. It may begin between two pixels that share their chroma.
    private func convert(
        _ picture: Picture, _ color: ColorDescription, _ region: Rectangle, into target: Picture
    ) throws {
        let unit = Self.unit(of: picture.pixelFormat)
        let (left, above) = (region.x % unit.x, region.y % unit.y)
        let part = picture.part(
            x: region.x - left, y: region.y - above, width: region.width + left, height: region.height + above)
        guard left > 0 || above > 0 else { return convert(part, color, into: target) }
        let all = try Self.packed(PictureSize(part.width, part.height), in: wider)
        convert(part, color, into: all)
        PixelCalls.copy(all.part(x: left, y: above, width: region.width, height: region.height), into: target)
    }

    private func convert(_ picture: Picture, _ color: ColorDescription, into target: Picture) {
        guard picture.pixelFormat != .bgra else { return PixelCalls.copy(picture, into: target) }
        var format = VideoFormat(picture.pixelFormat, width: picture.width, height: picture.height)
        format.color = color
        var packed = format
        packed.pixelFormat = .bgra
        PictureConverter(from: format, to: packed).convert(picture, into: target)
    }

    /// The colour description of a picture whose height may change. Where no matrix is named, the height decides.
    static func color(_ format: VideoFormat) -> ColorDescription {
        var color = format.color
        color.matrix = format.assumedMatrix
        return color
    }

    // MARK: Memory

    /// Pixels of a row and rows that share a sample or a group.
    private static func unit(of format: PixelFormat) -> (x: Int, y: Int) {
        switch format {
        case .i420, .nv12, .i010, .p010: (2, 2)
        case .yuyv: (2, 1)
        case .bgra, .rgb24, .gray8: (1, 1)
        }
    }

    private static func aligned(_ count: Int) -> Int { (count + 63) / 64 * 64 }

    private static func packed(_ size: PictureSize, in memory: GrowingMemory) throws -> Picture {
        let stride = aligned(size.width * 4)
        let base = try memory.bytes(stride * size.height)
        return Picture(.bgra, width: size.width, height: size.height) { _ in (UnsafeMutableRawPointer(base), stride) }
    }

    /// Planes of bytes, one after the other.
    private static func planes(_ sizes: [PictureSize], in memory: GrowingMemory) throws -> [PixelPlane] {
        let counts = sizes.map { aligned($0.width) * $0.height }
        var next = try memory.bytes(counts.reduce(0, +))
        return zip(sizes, counts).map { size, count in
            defer { next += count }
            return PixelPlane(base: next, strideBytes: aligned(size.width), width: size.width, height: size.height)
        }
    }
}
