import FrameCore
import Glibc

/// Planes to paint on, in any pixel format: rectangles, rows, text. Clips what lies outside; never allocates.
///
/// Coordinates are pixels from the top left. Where pixels share a chroma sample or a group, give even ones: a unit that is
/// touched is painted whole.
public struct Canvas {
    /// One plane's memory, valid as long as the canvas is.
    struct Layer {
        var base: UnsafeMutableRawPointer
        var strideBytes: Int
        var rowBytes: Int
        var rows: Int
        var unit: PlaneUnit
    }

    public let width: Int
    public let height: Int
    public let planeCount: Int
    private let first: Layer
    private let second: Layer?
    private let third: Layer?

    init(width: Int, height: Int, first: Layer, second: Layer? = nil, third: Layer? = nil) {
        self.width = width
        self.height = height
        self.first = first
        self.second = second
        self.third = third
        planeCount = third != nil ? 3 : second != nil ? 2 : 1
    }

    @inline(__always)
    func layer(_ plane: Int) -> Layer { plane == 0 ? first : plane == 1 ? second.unsafelyUnwrapped : third.unsafelyUnwrapped }

    /// Fills a rectangle.
    public func fill(x: Int, y: Int, width: Int, height: Int, _ paint: Paint) {
        let left = min(max(x, 0), self.width)
        let right = min(max(x + width, 0), self.width)
        let top = min(max(y, 0), self.height)
        let bottom = min(max(y + height, 0), self.height)
        guard left < right, top < bottom else { return }
        for plane in 0..<planeCount {
            let layer = layer(plane)
            let unit = layer.unit
            let from = left >> unit.xShift
            let units = (right + (1 << unit.xShift) - 1) >> unit.xShift - from
            let start = top >> unit.yShift
            let end = (bottom + (1 << unit.yShift) - 1) >> unit.yShift
            let row = layer.base + start * layer.strideBytes + from * unit.bytes
            Self.repeatUnit(paint.unit(plane: plane), bytes: unit.bytes, count: units, at: row)
            for other in 1..<max(end - start, 1) { memcpy(row + other * layer.strideBytes, row, units * unit.bytes) }
        }
    }

    /// Rows `top..<bottom`, each a copy of the first row of `model`, which has the same format and width.
    func copyRows(top: Int, bottom: Int, of model: Canvas) {
        for plane in 0..<planeCount {
            let layer = layer(plane)
            let source = model.layer(plane).base
            let shift = layer.unit.yShift
            for row in (top >> shift)..<min((bottom + (1 << shift) - 1) >> shift, layer.rows) {
                memcpy(layer.base + row * layer.strideBytes, source, layer.rowBytes)
            }
        }
    }

    private static func repeatUnit(_ value: UInt32, bytes: Int, count: Int, at row: UnsafeMutableRawPointer) {
        switch bytes {
        case 1: memset(row, Int32(value), count)
        case 2: row.assumingMemoryBound(to: UInt16.self).update(repeating: UInt16(truncatingIfNeeded: value), count: count)
        case 3:
            let byte = row.assumingMemoryBound(to: UInt8.self)
            for index in 0..<count {
                byte[index * 3] = UInt8(truncatingIfNeeded: value)
                byte[index * 3 + 1] = UInt8(truncatingIfNeeded: value >> 8)
                byte[index * 3 + 2] = UInt8(truncatingIfNeeded: value >> 16)
            }
        default: row.assumingMemoryBound(to: UInt32.self).update(repeating: value, count: count)
        }
    }
}

extension Canvas {
    /// Text of ASCII bytes, `scale` pixels a dot, with a margin of one dot in `ground` around it; see ``BitmapFont``.
    ///
    /// - Returns: False when it does not fit the picture, which is left as it was.
    @discardableResult
    public func draw(_ text: UnsafeBufferPointer<UInt8>, x: Int, y: Int, scale: Int, ink: Paint, ground: Paint) -> Bool {
        let advance = (BitmapFont.width + 1) * scale
        let box = (text.count * advance + scale, (BitmapFont.height + 2) * scale)
        guard x >= 0, y >= 0, x + box.0 <= width, y + box.1 <= height else { return false }
        fill(x: x, y: y, width: box.0, height: box.1, ground)
        for (index, character) in text.enumerated() {
            let left = x + scale + index * advance
            for row in 0..<BitmapFont.height {
                var dots = BitmapFont.row(row, of: character)
                var column = 0
                // Dots that stand side by side are one rectangle.
                while dots != 0 {
                    let gap = dots.leadingZeroBitCount
                    let run = (~(dots << UInt8(gap))).leadingZeroBitCount
                    column += gap
                    fill(
                        x: left + column * scale, y: y + (row + 1) * scale, width: run * scale, height: scale, ink)
                    column += run
                    dots = gap + run >= 8 ? 0 : dots << UInt8(gap + run)
                }
            }
        }
        return true
    }
}

extension Frame {
    /// The frame's planes to paint on, for `body` alone.
    ///
    /// - Precondition: nobody else holds the buffer: the frame was just made, or the stage declares `.modify`.
    public mutating func withCanvas<Result>(_ body: (Canvas) throws -> Result) rethrows -> Result {
        let format = format
        func layer(_ index: Int) -> Canvas.Layer {
            // The address leaves this closure and not the one below: the frame is held, exclusively, until `body` is over.
            withMutablePlane(index) {
                Canvas.Layer(
                    base: UnsafeMutableRawPointer($0.baseAddress), strideBytes: $0.strideBytes, rowBytes: $0.rowBytes, rows: $0.height,
                    unit: .of(format.pixelFormat, plane: index))
            }
        }
        let count = planeCount
        let first = layer(0)
        let second = count > 1 ? layer(1) : nil
        let third = count > 2 ? layer(2) : nil
        return try body(
            Canvas(width: format.width, height: format.height, first: first, second: second, third: third))
    }
}
