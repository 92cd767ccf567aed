// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared
import Stills

/// Draws the effects into a frame's own planes. All memory is taken at the start.
final class EffectPainter {
    /// A face as the effects need it: in pixels of the stored picture in full size.
    struct Target {
        var box: FaceRect
        var landmarks: Landmarks?
    }

    private let format: VideoFormat
    private let image: ImagePainter?
    private let mask: RegionMask
    private let layer: EffectLayer
    private let means: BlockMeans
    private let blur: Blur
    private let smooth: Smooth

    init(_ format: VideoFormat, image: PNGFile?) {
        self.format = format
        self.image = image.map { ImagePainter($0, for: format) }
        mask = RegionMask(width: format.width, height: format.height)
        layer = EffectLayer(width: format.width, height: format.height)
        means = BlockMeans(width: format.width, height: format.height)
        blur = Blur(width: format.width, height: format.height)
        smooth = Smooth(width: format.width)
    }

    /// [stage thread] Draws the effect for one face.
    ///
    /// - Parameter map: How the frame lies, which a picture that is drawn must follow.
    func draw(_ target: Target, on picture: Picture, _ map: UprightMap, _ options: FaceEffectOptions) {
        let box = target.box
        switch options.effect {
        case .box: outline(box, on: picture, options.color)
        case .sticker:
            guard let image else { return }
            let placement = StickerPlacement.of(
                map.upright(box), target.landmarks?.mapped(map.upright), anchor: options.anchor, scale: options.scale,
                aspect: image.aspect, map: map)
            for index in 0..<3 {
                image.paint(placement, on: canvas(of: picture, index), component: index)
            }
        default:
            guard
                let region = EffectRegion(
                    box, margin: options.margin, feather: options.feather, keepsFace: options.privacy,
                    width: format.width,
                    height: format.height)
            else { return }
            fill(region, face: box, on: picture, map, options)
            mask.make(region)
            layer.blend(into: picture, region, mask, components: options.effect == .smooth ? 0..<1 : 0..<3)
        }
    }

    /// [stage thread] Covers the whole picture, with blocks of an eighth of its shorter side or with the colour.
    func coverAll(_ picture: Picture, _ options: FaceEffectOptions) {
        let region = EffectRegion(wholeWidth: format.width, height: format.height)
        if options.effect == .replace {
            paint(options.color, region)
        } else {
            Pixelate.render(
                picture, region, blockSide: max(min(format.width, format.height) / 8, 4), means, into: layer)
        }
        layer.copy(into: picture, region)
    }

    /// Fills the layer with the effect for one region.
    private func fill(
        _ region: EffectRegion, face: FaceRect, on picture: Picture, _ map: UprightMap, _ options: FaceEffectOptions
    ) {
        switch options.effect {
        case .blur:
            blur.render(picture, region, sigma: max(face.size * 0.3 * options.strength, 2), means, into: layer)
        case .smooth:
            smooth.render(
                picture, region, radius: min(max(Int(face.width / 24), 2), 24), strength: options.strength, into: layer)
        case .replace:
            paint(options.color, region)
            guard let image else { return }
            let whole = FaceRect(
                centerX: region.centerX, centerY: region.centerY, width: 2 * region.radiusX, height: 2 * region.radiusY)
            let placement = placement(over: whole, map)
            for index in 0..<3 {
                let area = region.area(of: index)
                let component = Component(base: layer[index], strideBytes: area.columns)
                image.paint(
                    placement,
                    on: Canvas(
                        component: component, left: area.left, top: area.top, columns: area.columns, rows: area.rows),
                    component: index)
            }
        default:
            Pixelate.render(
                picture, region, blockSide: Int((face.width / Double(options.blocks)).rounded()), means, into: layer)
        }
    }

    /// The image stretched over a rectangle of the stored picture, upright as the picture is shown.
    private func placement(over whole: FaceRect, _ map: UprightMap) -> ImagePlacement {
        let swaps = map.orientation.swapsSides
        let upright = FaceRect(
            centerX: 0, centerY: 0, width: swaps ? whole.height : whole.width,
            height: swaps ? whole.width : whole.height)
        var placement = StickerPlacement.over(upright, map: map)
        placement.center = FacePoint(x: whole.centerX, y: whole.centerY)
        return placement
    }

    private func paint(_ color: RGBColor, _ region: EffectRegion) {
        let paint = Paint(color, for: format)
        for index in 0..<3 {
            let area = region.area(of: index)
            let unit = paint.unit(plane: format.pixelFormat == .nv12 && index > 0 ? 1 : index)
            let value = UInt8(truncatingIfNeeded: format.pixelFormat == .nv12 && index == 2 ? unit >> 8 : unit)
            layer[index].update(repeating: value, count: area.columns * area.rows)
        }
    }

    private func canvas(of picture: Picture, _ index: Int) -> Canvas {
        Canvas(
            component: Component(picture, index), left: 0, top: 0,
            columns: index == 0 ? format.width : (format.width + 1) / 2,
            rows: index == 0 ? format.height : (format.height + 1) / 2)
    }

    /// Draws an outline around the box, as far as it lies in the picture. The thickness is an even number of
    /// pixels.
    private func outline(_ box: FaceRect, on picture: Picture, _ color: RGBColor) {
        let paint = Paint(color, for: format)
        let thickness = max(min(format.width, format.height) / 240 / 2 * 2, 2)
        func even(_ value: Double) -> Int { Int((value / 2).rounded()) * 2 }
        let (left, top, right, bottom) = (even(box.x), even(box.y), even(box.right), even(box.bottom))
        picture.canvas.outline(
            x: left, y: top, width: right - left, height: bottom - top, thickness: thickness, paint)
    }
}

extension Component {
    /// Samples side by side, in our own memory.
    init(base: UnsafeMutablePointer<UInt8>, strideBytes: Int) {
        self.base = base
        self.strideBytes = strideBytes
        step = 1
    }
}
