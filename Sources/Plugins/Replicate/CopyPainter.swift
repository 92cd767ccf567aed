import FrameCore

/// Paints a copy into the output, two rows of luma and one of chroma at a time.
///
/// Samples go through rows of scratch where colours change or the copy is not opaque, else straight to the output. Edges that do not fall on
/// pixels are softened by how much of the pixel the copy covers. Made once; allocates nothing afterwards.
final class CopyPainter {
    private let output: VideoFormat
    private let input: VideoFormat
    /// Of the input's luma, in its pixels; and of its chroma, which ends at an even pixel.
    private let size: PictureSize
    private let chromaSize: PictureSize
    private let rows: ScratchPicture
    private let alphas: UnsafeMutablePointer<UInt16>

    init(from input: VideoFormat, to output: VideoFormat) {
        (self.input, self.output) = (input, output)
        size = PictureSize(input.width, input.height)
        chromaSize = PictureSize((input.width + 1) / 2 * 2, (input.height + 1) / 2 * 2)
        rows = ScratchPicture(.gray8, width: output.width + 2, height: 7)
        alphas = .allocate(capacity: output.width + 2)
        alphas.initialize(repeating: 0, count: output.width + 2)
    }

    deinit { alphas.deallocate() }

    /// Two rows of luma, U and V, U and V for each pixel, mean luma.
    private func row(_ index: Int) -> UnsafeMutablePointer<UInt8> {
        rows.picture[0].base.assumingMemoryBound(to: UInt8.self) + index * rows.picture[0].strideBytes
    }

    /// [stage thread]
    ///
    /// - Parameter source: The input, or the input halved; the copy's placement speaks of the input.
    func paint(_ copy: CopyPlan, _ source: Picture, into target: Picture) {
        let inverse = copy.placement.inverse
        let corners = [(0.0, 0.0), (1, 0), (0, 1), (1, 1)].map {
            copy.placement($0.0 * Double(input.width), $0.1 * Double(input.height)).y
        }
        let top = max(Int(max(corners.min()!, 0)) - 1, 0) / 2
        let bottom = min(Int(min(corners.max()!, Double(output.height))) + 2, output.height)
        let scale = abs(copy.placement.determinant).squareRoot()
        let parts = (0..<3).map { Component(source, $0) }
        let targets = (0..<3).map { Component(target, $0) }
        // From the input's pixels to the source's samples.
        let lumaRatio = (x: Double(parts[0].width) / Double(input.width), y: Double(parts[0].height) / Double(input.height))
        let chromaRatio = (
            x: Double(parts[1].width) / Double(chromaSize.width), y: Double(parts[1].height) / Double(chromaSize.height)
        )
        guard top * 2 < bottom else { return }
        for chromaRow in top..<(bottom + 1) / 2 {
            let lines = chromaRow * 2..<min(chromaRow * 2 + 2, output.height)
            let middle = Double(chromaRow) * 2 + 1
            paintRows(
                lines, chromaRow, copy: copy, parts: (parts[0], parts[1], parts[2]), targets: (targets[0], targets[1], targets[2]),
                places: lines.map { Place(inverse, x: 0.5, y: Double($0) + 0.5, step: 1) },
                chromaPlace: Place(inverse, x: 1, y: middle, step: 2), lumaRatio: lumaRatio, chromaRatio: chromaRatio, scale: scale)
        }
    }

    private func paintRows(
        _ lines: Range<Int>, _ chromaRow: Int, copy: CopyPlan, parts: (Component, Component, Component),
        targets: (Component, Component, Component), places: [Place], chromaPlace: Place, lumaRatio: (x: Double, y: Double),
        chromaRatio: (x: Double, y: Double), scale: Double
    ) {
        let columns = (output.width + 1) / 2
        let chroma = CoveredSpan(chromaPlace, chromaSize, reach: 1 / scale, within: 0..<columns)
        let luma = places.map { CoveredSpan($0, size, reach: 0.5 / scale, within: 0..<output.width) }
        let isPlain = copy.color == nil && copy.opacity == 256
        // Luma of each row, and the range that colours need of all.
        var needed = chroma.outer
        for span in luma where !span.outer.isEmpty {
            let pairs = span.outer.lowerBound / 2..<(span.outer.upperBound + 1) / 2
            needed = needed.isEmpty ? pairs : min(needed.lowerBound, pairs.lowerBound)..<max(needed.upperBound, pairs.upperBound)
        }
        guard !needed.isEmpty else { return }
        let pixels = needed.lowerBound * 2..<min(needed.upperBound * 2, output.width)
        for (index, y) in lines.enumerated() {
            let line = places[index].line(ratio: lumaRatio)
            let span = luma[index]
            if isPlain, span.inner == span.outer {
                parts.0.sample(line, span.outer, into: targets.0.base + y * targets.0.strideBytes, targetStep: 1)
            } else {
                parts.0.sample(line, copy.color == nil ? span.outer : pixels, into: row(index), targetStep: 1)
            }
        }
        let chromaLine = chromaPlace.line(ratio: chromaRatio)
        let isDirect = isPlain && chroma.inner == chroma.outer
        for (index, part, target) in [(2, parts.1, targets.1), (3, parts.2, targets.2)] {
            if isDirect {
                part.sample(
                    chromaLine, chroma.outer, into: target.base + chromaRow * target.strideBytes, targetStep: target.step)
            } else {
                part.sample(chromaLine, copy.color == nil ? chroma.outer : needed, into: row(index), targetStep: 1)
            }
        }
        if let color = copy.color { change(color, lines: lines.count, pixels: pixels, pairs: needed) }
        for (index, y) in lines.enumerated() where !(isPlain && luma[index].inner == luma[index].outer) {
            blend(row(index), luma[index], places[index], scale, copy.opacity, into: targets.0, row: y, softness: 1)
        }
        if !isDirect {
            blend(row(2), chroma, chromaPlace, scale, copy.opacity, into: targets.1, row: chromaRow, softness: 2)
            blend(row(3), chroma, chromaPlace, scale, copy.opacity, into: targets.2, row: chromaRow, softness: 2)
        }
    }

    /// Changes the colours of the rows of scratch.
    private func change(_ color: ColorMatrix, lines: Int, pixels: Range<Int>, pairs: Range<Int>) {
        let (first, second) = (row(0), row(lines - 1))
        let (u, v, wideU, wideV, mean) = (row(2), row(3), row(4), row(5), row(6))
        for pair in pairs {
            let (left, right) = (2 &* pair, min(2 &* pair &+ 1, pixels.upperBound &- 1))
            let sum = Int(first[left]) &+ Int(first[right]) &+ Int(second[left]) &+ Int(second[right])
            mean[pair] = UInt8(truncatingIfNeeded: (sum &+ 2) &>> 2)
        }
        let (start, count) = (pixels.lowerBound, pixels.count)
        if color.mixesChroma {
            for pair in pairs {
                (wideU[2 &* pair], wideU[2 &* pair &+ 1]) = (u[pair], u[pair])
                (wideV[2 &* pair], wideV[2 &* pair &+ 1]) = (v[pair], v[pair])
            }
            for index in 0..<lines { color.applyToLuma(row(index) + start, u: wideU + start, v: wideV + start, count: count) }
        } else {
            for index in 0..<lines { color.applyToLuma(row(index) + start, count: count) }
        }
        color.applyToChroma(u + pairs.lowerBound, v + pairs.lowerBound, y: mean + pairs.lowerBound, count: pairs.count)
    }

    /// Lays a row of scratch over a row of the output.
    private func blend(
        _ source: UnsafePointer<UInt8>, _ span: CoveredSpan, _ place: Place, _ scale: Double, _ opacity: Int, into target: Component,
        row: Int, softness: Double
    ) {
        let size = softness == 1 ? size : chromaSize
        let line = target.base + row * target.strideBytes
        (alphas + span.inner.lowerBound).update(repeating: UInt16(opacity), count: span.inner.count)
        for x in span.outer where !span.inner.contains(x) {
            let distance = place.distance(x, size) * scale / softness
            alphas[x] = UInt16(min(max(distance + 0.5, 0), 1) * Double(opacity))
        }
        if target.step == 1 {
            for x in span.outer {
                let (old, new, alpha) = (UInt16(line[x]), UInt16(source[x]), alphas[x])
                // At most 255 · 256 + 128: fits.
                line[x] = UInt8(truncatingIfNeeded: (old &* (256 &- alpha) &+ new &* alpha &+ 128) &>> 8)
            }
        } else {
            for x in span.outer {
                let (old, new, alpha) = (UInt16(line[x &* 2]), UInt16(source[x]), alphas[x])
                line[x &* 2] = UInt8(truncatingIfNeeded: (old &* (256 &- alpha) &+ new &* alpha &+ 128) &>> 8)
            }
        }
    }
}

/// Where the pixels of a row of the output lie in the input, in its pixels.
struct Place {
    let u: Double
    let v: Double
    let du: Double
    let dv: Double

    /// - Parameters:
    ///   - x: Middle of the row's first sample in the output; `y` likewise.
    ///   - step: Pixels from one sample to the next.
    init(_ inverse: Affine, x: Double, y: Double, step: Double) {
        (u, v) = inverse(x, y)
        (du, dv) = (inverse.a * step, inverse.c * step)
    }

    /// As samples of a component whose size is `ratio` times the input's.
    func line(ratio: (x: Double, y: Double)) -> SampleLine {
        SampleLine(u: u * ratio.x - 0.5, v: v * ratio.y - 0.5, du: du * ratio.x, dv: dv * ratio.y)
    }

    /// Input pixels from sample `x` to the nearest edge of the input; below 0 outside.
    func distance(_ x: Int, _ input: PictureSize) -> Double {
        let (atU, atV) = (u + Double(x) * du, v + Double(x) * dv)
        return min(min(atU, Double(input.width) - atU), min(atV, Double(input.height) - atV))
    }
}

/// The samples of a row that a copy covers, wholly or in part.
struct CoveredSpan {
    /// Covered at least in part.
    let outer: Range<Int>
    /// Covered wholly: a part of `outer`.
    let inner: Range<Int>

    /// - Parameter reach: Half a sample of the output, in pixels of the input.
    init(_ place: Place, _ input: PictureSize, reach: Double, within range: Range<Int>) {
        let line = SampleLine(u: place.u, v: place.v, du: place.du, dv: place.dv)
        let (width, height) = (Double(input.width), Double(input.height))
        // What is covered by a thousandth is not.
        let edge = reach * 0.998
        outer = line.span(range, us: -edge...width + edge, vs: -edge...height + edge)
        guard !outer.isEmpty, width > 2 * edge, height > 2 * edge else {
            inner = outer.lowerBound..<outer.lowerBound
            return
        }
        let whole = line.span(outer, us: edge...width - edge, vs: edge...height - edge)
        inner = whole.isEmpty ? outer.lowerBound..<outer.lowerBound : whole
    }
}
