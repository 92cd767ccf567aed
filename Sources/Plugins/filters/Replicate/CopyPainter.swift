// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Paints copies into the output, the lowest first, two rows of luma and one of chroma at a time.
///
/// Where an opaque copy hides one end of a lower copy's row, that part is not painted. Samples go through rows of
/// scratch where colours change or the copy is not opaque, otherwise straight to the output. Edges that lie within a
/// pixel are softened by how much of the pixel the copy covers. Made once; allocates nothing afterwards.
final class CopyPainter {
    private let output: VideoFormat
    /// The size of the input's luma, in its pixels, and of its chroma, which ends at an even pixel.
    private let size: PictureSize
    private let chromaSize: PictureSize
    private let rows: ScratchPicture
    private let alphas: UnsafeMutablePointer<UInt16>
    private var jobs: [Job] = []
    /// The parts of a band's rows; each row has one for every job.
    private var parts: [RowPart?] = []
    /// How many rows of chroma are painted copy by copy: few enough that the output's rows stay in the cache, and
    /// enough that each copy's rows are read in one go (row by row, sixteen frames took a third more time in memcpy).
    private static let bandRows = 8

    init(from input: VideoFormat, to output: VideoFormat) {
        self.output = output
        size = PictureSize(input.width, input.height)
        chromaSize = PictureSize((input.width + 1) / 2 * 2, (input.height + 1) / 2 * 2)
        rows = ScratchPicture(.gray8, width: output.width + 2, height: 7)
        alphas = .allocate(capacity: output.width + 2)
        alphas.initialize(repeating: 0, count: output.width + 2)
        jobs.reserveCapacity(ReplicateOptions.mostCopies)
        parts.reserveCapacity(ReplicateOptions.mostCopies * Self.bandRows)
    }

    deinit { alphas.deallocate() }

    /// Two rows of luma, U and V, U and V for each pixel, mean luma.
    private func row(_ index: Int) -> UnsafeMutablePointer<UInt8> {
        rows.picture[0].base.assumingMemoryBound(to: UInt8.self) + index * rows.picture[0].strideBytes
    }

    /// [stage thread] Adds a copy above the earlier ones.
    ///
    /// - Parameter source: The input, or the input halved; the copy's placement refers to the input. It must stay
    ///   valid until ``paint(into:)`` returns.
    func add(_ copy: CopyPlan, _ source: Picture) {
        guard let covered = copy.rows(of: size, in: output.height) else { return }
        jobs.append(
            Job(
                copy: copy, inverse: copy.placement.inverse, scale: abs(copy.placement.determinant).squareRoot(),
                source: Components(source), chromaRows: covered.lowerBound / 2..<(covered.upperBound + 1) / 2))
    }

    /// [stage thread] Paints the added copies, and removes them.
    func paint(into target: Picture) {
        let target = Components(target)
        let end = (output.height + 1) / 2
        for start in stride(from: 0, to: end, by: Self.bandRows) {
            let band = start..<min(start + Self.bandRows, end)
            parts.removeAll(keepingCapacity: true)
            for row in band {
                for job in jobs {
                    let isTouched = job.chromaRows.contains(row)
                    parts.append(
                        isTouched ? RowPart(job, row, size: size, chromaSize: chromaSize, output: output) : nil)
                }
                RowPart.hide(&parts, from: parts.count - jobs.count)
            }
            for index in jobs.indices {
                for row in band {
                    if let part = parts[(row - start) * jobs.count + index], !part.pairs.isEmpty {
                        paint(part, jobs[index], row, target)
                    }
                }
            }
        }
        jobs.removeAll(keepingCapacity: true)
    }

    /// Paints one row of chroma and the two rows of luma that it covers; only one at the lower edge of an odd height.
    private func paint(_ part: RowPart, _ job: Job, _ chromaRow: Int, _ target: Components) {
        let first = chromaRow * 2
        let pixels = part.pairs.lowerBound * 2..<min(part.pairs.upperBound * 2, output.width)
        let changes = job.copy.color != nil
        for index in 0..<part.lines {
            let (place, span) = part.line(index)
            let (source, isDirect) = (job.source.y, job.isPlain && span.isSharp)
            source.sample(
                place.line(of: source, size), changes ? pixels : span.outer,
                into: isDirect ? target.y.row(first + index) : row(index), targetStep: 1)
        }
        let isDirect = job.isPlain && part.chroma.isSharp
        for index in 1...2 {
            let (source, target) = (job.source[index], target[index])
            source.sample(
                part.middle.line(of: source, chromaSize), changes ? part.pairs : part.chroma.outer,
                into: isDirect ? target.row(chromaRow) : row(1 + index), targetStep: isDirect ? target.step : 1)
        }
        if let color = job.copy.color { change(color, lines: part.lines, pixels: pixels, pairs: part.pairs) }
        for index in 0..<part.lines {
            let (place, span) = part.line(index)
            guard !(job.isPlain && span.isSharp) else { continue }
            fillAlphas(span, place, size, job.scale, job.copy.opacity)
            blend(row(index), span.outer, into: target.y.row(first + index), step: 1)
        }
        guard !isDirect else { return }
        fillAlphas(part.chroma, part.middle, chromaSize, job.scale / 2, job.copy.opacity)
        for index in 1...2 {
            blend(row(1 + index), part.chroma.outer, into: target[index].row(chromaRow), step: target[index].step)
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
            for index in 0..<lines {
                color.applyToLuma(row(index) + start, u: wideU + start, v: wideV + start, count: count)
            }
        } else {
            for index in 0..<lines { color.applyToLuma(row(index) + start, count: count) }
        }
        color.applyToChroma(u + pairs.lowerBound, v + pairs.lowerBound, y: mean + pairs.lowerBound, count: pairs.count)
    }

    /// The weight of the copy at each sample: its opacity, and less at its edges, by how far the sample's middle is
    /// from them.
    ///
    /// - Parameter scale: Samples of the output for a pixel of the input.
    private func fillAlphas(_ span: CoveredSpan, _ place: Place, _ size: PictureSize, _ scale: Double, _ opacity: Int) {
        (alphas + span.inner.lowerBound).update(repeating: UInt16(opacity), count: span.inner.count)
        for x in span.outer where !span.inner.contains(x) {
            alphas[x] = UInt16(min(max(place.distance(x, size) * scale + 0.5, 0), 1) * Double(opacity))
        }
    }

    /// Lays a row of scratch over a row of the output. The loops become vector instructions.
    private func blend(
        _ source: UnsafePointer<UInt8>, _ range: Range<Int>, into line: UnsafeMutablePointer<UInt8>, step: Int
    ) {
        if step == 1 {
            for x in range { line[x] = Self.mean(line[x], source[x], alphas[x]) }
        } else {
            for x in range { line[x &* 2] = Self.mean(line[x &* 2], source[x], alphas[x]) }
        }
    }

    /// Intermediate values are at most 255 · 256 + 128, which fits into 16 bits.
    @inline(__always)
    private static func mean(_ old: UInt8, _ new: UInt8, _ alpha: UInt16) -> UInt8 {
        UInt8(truncatingIfNeeded: (UInt16(old) &* (256 &- alpha) &+ UInt16(new) &* alpha &+ 128) &>> 8)
    }
}
