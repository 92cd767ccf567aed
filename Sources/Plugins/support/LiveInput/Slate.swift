// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Lettering
import Shared
import Stills

/// The slate that replaces a source's pictures: a colour, on it a picture, and a text on both.
package struct Slate {
    private let color: RGBColor
    private let picture: StillPicture?
    private let text: String

    /// [control thread] Reads the picture and looks for the font.
    ///
    /// - Parameters:
    ///   - picturePath: The resolved path of a PNG or JPEG file. Shown undistorted, as large as possible.
    ///   - text: Lines in the middle, as large as possible; none for an empty text.
    /// - Throws: ``FrameHostError`` at `slatePicture` or `slateText`.
    package init(color: RGBColor, picturePath: String? = nil, text: String? = nil) throws {
        self.color = color
        picture = try picturePath.map { try StillPicture($0, option: "slatePicture") }
        self.text = text ?? ""
        if !self.text.isEmpty { try Self.withFont { _ in } }
    }

    /// A slate of one colour.
    package init(color: RGBColor) {
        self.color = color
        picture = nil
        text = ""
    }

    /// Opens the font. The stages with a slate have no option for it, which a remedy may name.
    private static func withFont(_ body: (FontFace) throws -> Void) throws {
        do { try body(FontFace(path: FontFile.path(nil))) } catch {
            var fault = FrameHostError.wrap(error)
            fault.place = FaultPlace("slateText")
            fault.remedy =
                fault.code == .unavailable
                ? "Install fonts-dejavu-core, or leave 'slateText' out."
                : "Install this font again, or leave 'slateText' out."
            throw fault
        }
    }

    /// [setup thread] Draws the slate once, in the samples of a format.
    ///
    /// - Throws: ``FrameHostError`` for a font that cannot be used.
    func drawn(for format: VideoFormat) throws -> ScratchPicture {
        let result = ScratchPicture(format.pixelFormat, width: format.width, height: format.height)
        guard picture != nil || !text.isEmpty else {
            result.picture.fill(x: 0, y: 0, width: format.width, height: format.height, Paint(color, for: format))
            return result
        }
        // First in red, green and blue: text and picture are blended there for every format.
        let canvas = ScratchPicture(.rgb24, width: format.width, height: format.height)
        let rgb = VideoFormat(.rgb24, width: format.width, height: format.height)
        canvas.picture.fill(x: 0, y: 0, width: format.width, height: format.height, Paint(color, for: rgb))
        picture?.draw(into: canvas.picture, aspect: format.sampleAspectRatio)
        if !text.isEmpty { try Self.withFont { try write(in: $0, into: canvas.picture, rgb) } }
        result.picture.fill(from: canvas.picture, format)
        return result
    }

    /// The text is a tenth of the picture's height, smaller where a line would be longer than nine tenths of the width,
    /// or where there are many lines.
    private func write(in font: FontFace, into canvas: Picture, _ format: VideoFormat) throws {
        let layout = TextLayout(font) { _ in }
        let room = PictureSize(max(canvas.width * 9 / 10, 1), max(canvas.height * 9 / 10, 1))
        let lines = Array(text.utf8)
        var size = max(canvas.height / 10, 6)
        // Letters have whole sizes, so the largest that fits is found in few steps.
        for _ in 0..<4 {
            try layout.set(size: size, outline: max(Double(size) / 16, 1))
            try layout.lay(lines, align: .center)
            guard layout.width > room.width || layout.height > room.height else { break }
            let share = min(
                Double(room.width) / Double(layout.width), Double(room.height) / Double(layout.height))
            size = max(min(Int(Double(size) * share), size - 1), 4)
        }
        let box = Rectangle(width: canvas.width, height: canvas.height)
            .middle(PictureSize(layout.width, layout.height))
        let visible = box.clipped(to: PictureSize(canvas.width, canvas.height))
        guard !visible.isEmpty else { return }
        let mask = CoverageMask()
        mask.reset(width: visible.width, height: visible.height)
        mask.draw(layout.placed, x: box.x - visible.x, y: box.y - visible.y)
        let black = Paint(RGBColor(red: 0, green: 0, blue: 0), for: format)
        let white = Paint(RGBColor(red: 235, green: 235, blue: 235), for: format)
        let overlay = Overlay(format)
        overlay.set(
            mask, part: visible,
            style: Overlay.Style(box: black, edge: black, ink: white, boxOpacity: 0, inkOpacity: 1))
        overlay.blend(onto: canvas)
    }
}

extension StillPicture {
    /// Draws it in the middle of a picture of red, green and blue, as large as possible, mixed by its alpha. Each
    /// pixel is the mean of those that fall on it.
    ///
    /// - Parameter aspect: Width of a sample of the result over its height; 0 for square ones.
    fileprivate func draw(into canvas: Picture, aspect: Rational) {
        let pixel = PictureGeometry(PictureSize(canvas.width, canvas.height), sampleAspectRatio: aspect).pixelAspect
        let place = PicturePlacement(
            Rectangle(width: width, height: height), pixelAspect: 1 / pixel,
            into: Rectangle(width: canvas.width, height: canvas.height), .contain
        ).target
        let (left, top, wide, high) = (place.x, place.y, place.width, place.height)
        let layer = canvas[0]
        pixels.withUnsafeBufferPointer { pixels in
            for y in 0..<high {
                let row = (layer.base + (top + y) * layer.strideBytes).assumingMemoryBound(to: UInt8.self) + 3 * left
                let rows = y * height / high..<max((y + 1) * height / high, y * height / high + 1)
                for x in 0..<wide {
                    let columns = x * width / wide..<max((x + 1) * width / wide, x * width / wide + 1)
                    var (red, green, blue, alpha) = (0, 0, 0, 0)
                    for sourceRow in rows {
                        for column in columns {
                            let at = 4 * (sourceRow * width + column)
                            let weight = Int(pixels[at + 3])
                            red += Int(pixels[at]) * weight
                            green += Int(pixels[at + 1]) * weight
                            blue += Int(pixels[at + 2]) * weight
                            alpha += weight
                        }
                    }
                    let whole = 255 * rows.count * columns.count
                    func lay(_ sum: Int, over byte: Int) {
                        let under = Int(row[byte]) * (whole - alpha)
                        row[byte] = UInt8((sum + under + whole / 2) / whole)
                    }
                    lay(red, over: 3 * x)
                    lay(green, over: 3 * x + 1)
                    lay(blue, over: 3 * x + 2)
                }
            }
        }
    }
}

extension Picture {
    /// Fills the picture from a canvas of red, green and blue of the same size. Where pixels share a sample, it is
    /// their mean.
    fileprivate func fill(from canvas: Picture, _ format: VideoFormat) {
        // Most neighbours have one colour.
        var last = (
            color: RGBColor(red: 0, green: 0, blue: 0), paint: Paint(RGBColor(red: 0, green: 0, blue: 0), for: format)
        )
        func paint(_ columns: Range<Int>, _ rows: Range<Int>) -> Paint {
            let color = canvas.mean(columns, rows)
            if color != last.color { last = (color, Paint(color, for: format)) }
            return last.paint
        }
        for plane in 0..<planeCount {
            let layer = self[plane]
            let unit = layer.unit
            for row in 0..<layer.rows {
                let rows = row << unit.yShift..<min((row + 1) << unit.yShift, height)
                for column in 0..<(width + 1 << unit.xShift - 1) >> unit.xShift {
                    let columns = column << unit.xShift..<min((column + 1) << unit.xShift, width)
                    var value = paint(columns, rows).unit(plane: plane)
                    if pixelFormat == .yuyv, columns.count == 2 {
                        // A group has a luma for each of its two pixels.
                        let left = paint(columns.lowerBound..<columns.lowerBound + 1, rows).first & 0xFF
                        let right = paint(columns.lowerBound + 1..<columns.upperBound, rows).first & 0xFF
                        value = value & 0xFF00_FF00 | left | right << 16
                    }
                    let target = layer.base + row * layer.strideBytes + column * unit.bytes
                    for byte in 0..<unit.bytes {
                        target.storeBytes(
                            of: UInt8(truncatingIfNeeded: value >> UInt32(8 * byte)), toByteOffset: byte, as: UInt8.self
                        )
                    }
                }
            }
        }
    }

    /// The mean colour of a part of a canvas of red, green and blue.
    private func mean(_ columns: Range<Int>, _ rows: Range<Int>) -> RGBColor {
        let layer = self[0]
        var sums = (0, 0, 0)
        for y in rows {
            let row = (layer.base + y * layer.strideBytes).assumingMemoryBound(to: UInt8.self)
            for x in columns {
                sums.0 += Int(row[3 * x])
                sums.1 += Int(row[3 * x + 1])
                sums.2 += Int(row[3 * x + 2])
            }
        }
        let count = max(columns.count * rows.count, 1)
        return RGBColor(
            red: UInt8((sums.0 + count / 2) / count), green: UInt8((sums.1 + count / 2) / count),
            blue: UInt8((sums.2 + count / 2) / count))
    }
}
