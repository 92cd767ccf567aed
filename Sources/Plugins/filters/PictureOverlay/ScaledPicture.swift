// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared
import Stills

/// The visible part of a picture in the size that it has on the frames, turned as they lie.
struct ScaledPicture: Sendable {
    let placement: OverlayPlacement
    /// Red, green and blue, each times alpha, and alpha; the whole of each is 65535. Rows of the stored part without padding.
    let pixels: [SIMD4<UInt16>]

    /// Scales by the mean of what falls on each pixel, weighted by a triangle; where the picture becomes larger, that
    /// interpolates between neighbours. In its own size the picture stays as it is.
    ///
    /// What is transparent has no colour: samples are weighted by their alpha.
    /// - Complexity: the pixels of the file that are visible, and those of the frame; a row of memory beside the result.
    init(_ still: StillPicture, at placement: OverlayPlacement) {
        self.placement = placement
        let (whole, visible) = (placement.whole, placement.visible)
        guard !visible.isEmpty else {
            pixels = []
            return
        }
        let columns = ScalingTaps(
            from: still.width, to: whole.width, visible.x - whole.x..<visible.x - whole.x + visible.width)
        let rows = ScalingTaps(
            from: still.height, to: whole.height, visible.y - whole.y..<visible.y - whole.y + visible.height)
        var pixels = [SIMD4<UInt16>](repeating: .zero, count: visible.width * visible.height)
        let orientation = placement.orientation
        let scratch = UnsafeMutablePointer<SIMD4<Float>>.allocate(capacity: columns.read.count)
        defer { scratch.deallocate() }
        still.pixels.withUnsafeBufferPointer { source in
            pixels.withUnsafeMutableBufferPointer { target in
                for y in 0..<visible.height {
                    scratch.initialize(repeating: .zero, count: columns.read.count)
                    rows.forEach(y) { row, weight in
                        let line = source.baseAddress! + (row * still.width + columns.read.lowerBound) * 4
                        Self.add(line, columns.read.count, times: weight, to: scratch)
                    }
                    let (first, step) = orientation.storedRow(y, shown: visible.size)
                    for x in 0..<visible.width {
                        var sum = SIMD4<Float>.zero
                        columns.forEach(x) { column, weight in sum += scratch[column - columns.read.lowerBound] * weight
                        }
                        let value = (sum * 65535 + 0.5).clamped(lowerBound: .zero, upperBound: SIMD4(repeating: 65535))
                        target[first + x * step] = SIMD4<UInt16>(truncatingIfNeeded: SIMD4<UInt32>(value))
                    }
                }
            }
        }
        self.pixels = pixels
    }

    /// Adds a row of the file, in premultiplied form, by its weight.
    private static func add(
        _ line: UnsafePointer<UInt8>, _ count: Int, times weight: Float, to sums: UnsafeMutablePointer<SIMD4<Float>>
    ) {
        for x in 0..<count {
            let alpha = Float(line[4 &* x &+ 3]) * (weight / 255)
            let color = SIMD4(Float(line[4 &* x]), Float(line[4 &* x &+ 1]), Float(line[4 &* x &+ 2]), 255)
            sums[x] += color * (alpha / 255)
        }
    }
}

/// Which samples of a line make each sample of a scaled line, and with what weights.
struct ScalingTaps {
    /// The samples that any of them needs.
    let read: Range<Int>
    private let firsts: [Int]
    private let weights: [Float]
    private let most: Int

    /// - Parameter part: The samples of the scaled line that are made.
    init(from source: Int, to target: Int, _ part: Range<Int>) {
        let scale = Double(source) / Double(target)
        let reach = max(scale, 1)
        most = Int(2 * reach) + 2
        var firsts: [Int] = []
        var weights = [Float](repeating: 0, count: part.count * most)
        var end = 0
        for (index, sample) in part.enumerated() {
            let center = (Double(sample) + 0.5) * scale - 0.5
            let range =
                max(
                    Int((center - reach).rounded(.down)) + 1, 0)...min(
                    Int((center + reach).rounded(.up)) - 1, source - 1)
            let parts = range.map { max(1 - abs(Double($0) - center) / reach, 0) }
            let sum = parts.reduce(0, +)
            for (place, part) in parts.enumerated() { weights[index * most + place] = Float(part / sum) }
            firsts.append(range.lowerBound)
            end = max(end, range.upperBound + 1)
        }
        (self.firsts, self.weights) = (firsts, weights)
        read = (firsts.first ?? 0)..<end
    }

    /// Calls `body` with each sample of the line that belongs to the scaled sample at `index` of the part.
    @inline(__always)
    func forEach(_ index: Int, _ body: (_ sample: Int, _ weight: Float) -> Void) {
        for place in 0..<most {
            let weight = weights[index &* most &+ place]
            if weight > 0 { body(firsts[index] &+ place, weight) }
        }
    }
}
