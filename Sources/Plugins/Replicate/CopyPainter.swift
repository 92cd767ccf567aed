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
        guard let covered = copy.rows(of: size, in: output.height) else { return }
        let job = Job(
            copy: copy, inverse: copy.placement.inverse, scale: abs(copy.placement.determinant).squareRoot(),
            source: Components(source), target: Components(target))
        for row in covered.lowerBound / 2..<(covered.upperBound + 1) / 2 { paintRows(job, row) }
    }

    /// One copy being painted.
    private struct Job {
        let copy: CopyPlan
        /// From the output's pixels to the input's.
        let inverse: Affine
        /// Output pixels for one of the input.
        let scale: Double
        let source: Components
        let target: Components

        var isPlain: Bool { copy.color == nil && copy.opacity == 256 }
    }

    /// One row of chroma and the two of luma that it covers; one at the lower edge of an odd height.
    private func paintRows(_ job: Job, _ chromaRow: Int) {
        let first = chromaRow * 2
        let count = min(2, output.height - first)
        let middle = Place(job.inverse, x: 1, y: Double(first) + 1, step: 2)
        let places = (
            Place(job.inverse, x: 0.5, y: Double(first) + 0.5, step: 1), Place(job.inverse, x: 0.5, y: Double(first) + 1.5, step: 1)
        )
        let chroma = CoveredSpan(middle, chromaSize, reach: 1 / job.scale, within: 0..<(output.width + 1) / 2)
        let spans = (
            CoveredSpan(places.0, size, reach: 0.5 / job.scale, within: 0..<output.width),
            CoveredSpan(places.1, size, reach: 0.5 / job.scale, within: 0..<output.width)
        )
        // Where colours change, luma needs chroma and chroma luma: all of both.
        let pairs = chroma.outer.joined(with: spans.0.outer.halved).joined(with: count == 2 ? spans.1.outer.halved : 0..<0)
        guard !pairs.isEmpty else { return }
        let pixels = pairs.lowerBound * 2..<min(pairs.upperBound * 2, output.width)
        let changes = job.copy.color != nil
        for index in 0..<count {
            let (place, span) = index == 0 ? (places.0, spans.0) : (places.1, spans.1)
            let (part, isDirect) = (job.source.y, job.isPlain && span.isSharp)
            part.sample(
                place.line(of: part, size), changes ? pixels : span.outer, into: isDirect ? job.target.y.row(first + index) : row(index),
                targetStep: 1)
        }
        let isDirect = job.isPlain && chroma.isSharp
        for index in 1...2 {
            let (part, target) = (job.source[index], job.target[index])
            part.sample(
                middle.line(of: part, chromaSize), changes ? pairs : chroma.outer,
                into: isDirect ? target.row(chromaRow) : row(1 + index), targetStep: isDirect ? target.step : 1)
        }
        if let color = job.copy.color { change(color, lines: count, pixels: pixels, pairs: pairs) }
        for index in 0..<count {
            let (place, span) = index == 0 ? (places.0, spans.0) : (places.1, spans.1)
            guard !(job.isPlain && span.isSharp) else { continue }
            fillAlphas(span, place, size, job.scale, job.copy.opacity)
            blend(row(index), span.outer, into: job.target.y.row(first + index), step: 1)
        }
        guard !isDirect else { return }
        fillAlphas(chroma, middle, chromaSize, job.scale / 2, job.copy.opacity)
        for index in 1...2 {
            blend(row(1 + index), chroma.outer, into: job.target[index].row(chromaRow), step: job.target[index].step)
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

    /// How much the copy counts at each sample: its opacity, less at its edges by how far a sample's middle is from them.
    ///
    /// - Parameter scale: Samples of the output for a pixel of the input.
    private func fillAlphas(_ span: CoveredSpan, _ place: Place, _ size: PictureSize, _ scale: Double, _ opacity: Int) {
        (alphas + span.inner.lowerBound).update(repeating: UInt16(opacity), count: span.inner.count)
        for x in span.outer where !span.inner.contains(x) {
            alphas[x] = UInt16(min(max(place.distance(x, size) * scale + 0.5, 0), 1) * Double(opacity))
        }
    }

    /// Lays a row of scratch over a row of the output. The loops become vector instructions.
    private func blend(_ source: UnsafePointer<UInt8>, _ range: Range<Int>, into line: UnsafeMutablePointer<UInt8>, step: Int) {
        if step == 1 {
            for x in range { line[x] = Self.mean(line[x], source[x], alphas[x]) }
        } else {
            for x in range { line[x &* 2] = Self.mean(line[x &* 2], source[x], alphas[x]) }
        }
    }

    /// At most 255 · 256 + 128 in between: fits.
    @inline(__always)
    private static func mean(_ old: UInt8, _ new: UInt8, _ alpha: UInt16) -> UInt8 {
        UInt8(truncatingIfNeeded: (UInt16(old) &* (256 &- alpha) &+ UInt16(new) &* alpha &+ 128) &>> 8)
    }
}

extension Range<Int> {
    /// Both and what lies between; an empty one does not count.
    fileprivate func joined(with other: Range<Int>) -> Range<Int> {
        if isEmpty { return other }
        return other.isEmpty ? self : Swift.min(lowerBound, other.lowerBound)..<Swift.max(upperBound, other.upperBound)
    }

    /// The pairs that have a member in it.
    fileprivate var halved: Range<Int> { isEmpty ? 0..<0 : lowerBound / 2..<(upperBound + 1) / 2 }
}
