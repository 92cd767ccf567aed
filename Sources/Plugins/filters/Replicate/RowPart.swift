// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// One copy being painted.
struct Job {
    let copy: CopyPlan
    /// From the output's pixels to the input's.
    let inverse: Affine
    /// Output pixels for one of the input.
    let scale: Double
    let source: Components
    /// The rows of the output that the copy touches.
    let chromaRows: Range<Int>

    /// Whether its samples can go straight to the output.
    var isPlain: Bool { copy.color == nil && isOpaque }
    var isOpaque: Bool { copy.opacity == 256 }
}

/// The part of one row of chroma, and of its two rows of luma, that a copy covers.
struct RowPart {
    /// Rows of luma: 1 at the lower edge of an odd height.
    let lines: Int
    let middle: Place
    private let places: (Place, Place)
    private(set) var chroma: CoveredSpan
    private var spans: (CoveredSpan, CoveredSpan)
    /// Pairs of pixels, each with one sample of chroma, that are touched.
    private(set) var pairs: Range<Int>
    /// The pairs that hide everything below them.
    let hiding: Range<Int>

    init(_ job: Job, _ chromaRow: Int, size: PictureSize, chromaSize: PictureSize, output: VideoFormat) {
        let first = chromaRow * 2
        lines = min(2, output.height - first)
        middle = Place(job.inverse, x: 1, y: Double(first) + 1, step: 2)
        places = (
            Place(job.inverse, x: 0.5, y: Double(first) + 0.5, step: 1),
            Place(job.inverse, x: 0.5, y: Double(first) + 1.5, step: 1)
        )
        chroma = CoveredSpan(middle, chromaSize, reach: 1 / job.scale, within: 0..<(output.width + 1) / 2)
        spans = (
            CoveredSpan(places.0, size, reach: 0.5 / job.scale, within: 0..<output.width),
            CoveredSpan(places.1, size, reach: 0.5 / job.scale, within: 0..<output.width)
        )
        // Where colours change, luma needs chroma and chroma needs luma, so both are needed completely.
        pairs = chroma.outer.joined(with: spans.0.outer.halved).joined(with: lines == 2 ? spans.1.outer.halved : 0..<0)
        var whole = chroma.inner.clamped(to: spans.0.inner.wholePairs(of: output.width))
        if lines == 2 { whole = whole.clamped(to: spans.1.inner.wholePairs(of: output.width)) }
        hiding = job.isOpaque ? whole : 0..<0
    }

    /// A row of luma: where its pixels lie in the input, and which the copy covers.
    func line(_ index: Int) -> (Place, CoveredSpan) { index == 0 ? (places.0, spans.0) : (places.1, spans.1) }

    /// Removes from each part, from `first` on, what later parts hide at one of its ends.
    ///
    /// Only one hidden interval is tracked, the longest that grows from the top. That is enough for copies that overlap
    /// their neighbours.
    static func hide(_ parts: inout [RowPart?], from first: Int) {
        var hidden = 0..<0
        for index in (first..<parts.count).reversed() {
            guard let hiding = parts[index]?.hiding else { continue }
            parts[index]?.leaveOut(hidden)
            if hidden.upperBound >= hiding.lowerBound, hiding.upperBound >= hidden.lowerBound {
                hidden = hidden.joined(with: hiding)
            } else if hiding.count > hidden.count {
                hidden = hiding
            }
        }
    }

    private mutating func leaveOut(_ hidden: Range<Int>) {
        guard hidden.overlaps(pairs) else { return }
        if hidden.lowerBound <= pairs.lowerBound {
            pairs = min(hidden.upperBound, pairs.upperBound)..<pairs.upperBound
        } else if hidden.upperBound >= pairs.upperBound {
            pairs = pairs.lowerBound..<hidden.lowerBound
        } else {
            return
        }
        let pixels = pairs.lowerBound * 2..<pairs.upperBound * 2
        chroma = chroma.clamped(to: pairs)
        spans = (spans.0.clamped(to: pixels), spans.1.clamped(to: pixels))
    }
}

extension Range<Int> {
    /// Both ranges and what lies between. An empty range does not count.
    fileprivate func joined(with other: Range<Int>) -> Range<Int> {
        if isEmpty { return other }
        return other.isEmpty ? self : Swift.min(lowerBound, other.lowerBound)..<Swift.max(upperBound, other.upperBound)
    }

    /// The pairs that have a member in it.
    fileprivate var halved: Range<Int> { isEmpty ? 0..<0 : lowerBound / 2..<(upperBound + 1) / 2 }

    /// The pairs that lie in it wholly; at the end of a row of odd `width`, a pair is one pixel.
    fileprivate func wholePairs(of width: Int) -> Range<Int> {
        let (first, end) = ((lowerBound + 1) / 2, upperBound == width ? (width + 1) / 2 : upperBound / 2)
        return first < end ? first..<end : 0..<0
    }
}
