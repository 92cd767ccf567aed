// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// The areas as samples of one format, size and orientation.
final class MaskPlan {
    private enum Part {
        case fill(Spans, Spans?, Paint)
        case blocks([BlockCover])
    }

    private let pixelFormat: PixelFormat
    private let width: Int
    private let height: Int
    private let color: ColorDescription
    private let orientation: Orientation
    private let parts: [Part]
    /// Whether no pixel is covered.
    let isEmpty: Bool

    init(_ areas: [MaskArea], on format: VideoFormat, lying orientation: Orientation) {
        pixelFormat = format.pixelFormat
        (width, height, color) = (format.width, format.height, format.color)
        self.orientation = orientation
        var isEmpty = true
        parts = areas.compactMap { area in
            let luma = Spans(
                area: area.outline(format, lying: orientation), width: format.width, height: format.height)
            guard !luma.isEmpty else { return nil }
            isEmpty = false
            let unit = PlaneUnit.of(format.pixelFormat, plane: format.pixelFormat.planeCount - 1)
            switch area.with {
            case .color(let color):
                let chroma = unit.yShift > 0 ? luma.shared(xShift: unit.xShift, yShift: unit.yShift) : nil
                return .fill(luma, chroma, Paint(color, for: format))
            case .blur, .pixelate:
                let chroma = unit.xShift > 0 ? luma.shared(xShift: unit.xShift, yShift: unit.yShift) : nil
                return .blocks(
                    Channel.all(of: format.pixelFormat).map { channel in
                        BlockCover(
                            channel.xShift > 0 ? chroma ?? luma : luma, channel, on: format,
                            isSmooth: area.with == .blur)
                    })
            }
        }
        self.isEmpty = isEmpty
    }

    /// Whether the plan is for such a frame.
    func fits(_ format: VideoFormat, lying orientation: Orientation) -> Bool {
        format.pixelFormat == pixelFormat && format.width == width && format.height == height
            && orientation == self.orientation && format.color == color
    }

    /// [stage thread] Covers the areas of a picture that the plan fits, in their order. Allocates nothing.
    func cover(_ canvas: FrameCanvas) {
        for part in parts {
            switch part {
            case .fill(let luma, let chroma, let paint):
                for span in luma.all { canvas.fill(0, row: Int(span.row), span.pixels, paint) }
                guard let chroma else { continue }
                for plane in 1..<pixelFormat.planeCount {
                    for span in chroma.all {
                        canvas.fill(
                            plane, row: Int(span.row), 2 * Int(span.start)..<min(2 * Int(span.end), width), paint)
                    }
                }
            case .blocks(let channels): for channel in channels { channel.cover(canvas) }
            }
        }
    }
}

/// Spans of samples, from top to bottom and from left to right; none touch each other.
final class Spans {
    struct Span: Equatable {
        var row: Int32
        var start: Int32
        var end: Int32

        var pixels: Range<Int> { Int(start)..<Int(end) }
    }

    let all: [Span]
    var isEmpty: Bool { all.isEmpty }

    private init(_ all: [Span]) { self.all = all }

    /// The pixels that an area touches, at least one: of a line exactly between pixels those on both sides of it.
    convenience init(area outline: [PicturePoint], width: Int, height: Int) {
        let touched = Spans(outline, width: width, height: height)
        self.init(touched.isEmpty ? Spans(Self.widened(outline), width: width, height: height).all : touched.all)
    }

    /// A rectangle around all points, half a pixel beyond them.
    private static func widened(_ points: [PicturePoint]) -> [PicturePoint] {
        guard let first = points.first else { return [] }
        var (left, top, right, bottom) = (first.x, first.y, first.x, first.y)
        for point in points {
            (left, right) = (min(left, point.x), max(right, point.x))
            (top, bottom) = (min(top, point.y), max(bottom, point.y))
        }
        return [
            (left - 0.5, top - 0.5), (right + 0.5, top - 0.5), (right + 0.5, bottom + 0.5), (left - 0.5, bottom + 0.5),
        ]
        .map { PicturePoint(x: $0.0, y: $0.1) }
    }

    /// The pixels that a polygon touches.
    private convenience init(_ outline: [PicturePoint], width: Int, height: Int) {
        let scan = PolygonScan(outline, width: width, height: height)
        var all: [Span] = []
        for row in scan.rows {
            scan.spans(ofRow: row) {
                all.append(Span(row: Int32(row), start: Int32($0.lowerBound), end: Int32($0.upperBound)))
            }
        }
        self.init(all)
    }

    /// The samples of which any pixel is covered, where `1 << xShift` pixels of `1 << yShift` rows share one.
    func shared(xShift: Int32, yShift: Int32) -> Spans {
        let last = Int32(1 << xShift) - 1
        let units = all.map { Span(row: $0.row >> yShift, start: $0.start >> xShift, end: ($0.end + last) >> xShift) }
            .sorted { ($0.row, $0.start) < ($1.row, $1.start) }
        var joined: [Span] = []
        for span in units {
            if let before = joined.last, before.row == span.row, span.start <= before.end {
                joined[joined.count - 1].end = max(before.end, span.end)
            } else {
                joined.append(span)
            }
        }
        return Spans(joined)
    }

    func shared(xShift: Int, yShift: Int) -> Spans { shared(xShift: Int32(xShift), yShift: Int32(yShift)) }

    /// The smallest rectangle that has them all: left, top, right, bottom.
    var bounds: (left: Int, top: Int, right: Int, bottom: Int) {
        guard let first = all.first, let last = all.last else { return (0, 0, 0, 0) }
        let left = all.reduce(first.start) { min($0, $1.start) }
        let right = all.reduce(first.end) { max($0, $1.end) }
        return (Int(left), Int(first.row), Int(right), Int(last.row) + 1)
    }
}
