// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Mosaic or blur of an area in one component.
///
/// Both begin with the means of square blocks over the covered samples alone, and write only these, so that what they
/// write depends on nothing else. For a blur the blocks are small; three box filters go over them, which weigh each by its
/// number of covered samples, and what lies between their middles is interpolated. All memory is taken when it is made.
final class BlockCover {
    private let spans: Spans
    private let channel: Channel
    private let isSmooth: Bool
    /// Sides of a block in samples.
    private let side: (x: Int, y: Int)
    /// The first sample of the first block.
    private let left: Int
    private let top: Int
    private let columns: Int
    private let rows: Int
    /// How many blocks the boxes reach to each side.
    private let radius: Int
    private let sums: UnsafeMutablePointer<UInt32>
    /// Covered samples of each block; of a blur, after the boxes.
    private let weights: UnsafeMutablePointer<Float>
    private let values: UnsafeMutablePointer<Float>
    private let spare: UnsafeMutablePointer<Float>
    private let line: UnsafeMutablePointer<Float>

    /// Sides of a mosaic's blocks, in pixels: a thirtieth of the picture's shorter side, an even number from 8 to 256.
    static func blockSide(_ format: VideoFormat) -> Int {
        min(max(min(format.width, format.height) / 30, 8), 256) / 2 * 2
    }

    init(_ spans: Spans, _ channel: Channel, on format: VideoFormat, isSmooth: Bool) {
        (self.spans, self.channel, self.isSmooth) = (spans, channel, isSmooth)
        let block = Self.blockSide(format)
        // The deviation of a blur is as large as a mosaic's block; blocks of a third of that add little to its square.
        let pixels = isSmooth ? max(block / 3 / 2 * 2, 2) : block
        let spread = Double(block) / Double(pixels)
        // Three boxes of 2r + 1 blocks have the variance r (r + 1).
        radius = isSmooth ? max(Int(((spread * spread + 0.25).squareRoot() - 0.5).rounded()), 1) : 0
        side = (pixels >> channel.xShift, pixels >> channel.yShift)
        let bounds = spans.bounds
        // Blocks of all components lie over each other.
        left = bounds.left << channel.xShift / 2 * 2 >> channel.xShift
        top = bounds.top << channel.yShift / 2 * 2 >> channel.yShift
        columns = max((bounds.right - left + side.x - 1) / side.x, 1)
        rows = max((bounds.bottom - top + side.y - 1) / side.y, 1)
        let count = columns * rows
        sums = .allocate(capacity: count)
        (weights, values, spare) = (.allocate(capacity: count), .allocate(capacity: count), .allocate(capacity: count))
        line = .allocate(capacity: columns + 1)
        weights.initialize(repeating: 0, count: count)
        for span in spans.all {
            let row = (Int(span.row) - top) / side.y * columns
            for x in span.pixels { weights[row + (x - left) / side.x] += 1 }
        }
        if isSmooth { smooth(weights) }
    }

    deinit {
        sums.deallocate()
        for memory in [weights, values, spare, line] { memory.deallocate() }
    }

    /// [stage thread] Covers the component of a picture.
    func cover(_ canvas: FrameCanvas) {
        let plane = canvas.memory(ofPlane: channel.plane)
        let base = plane.base + channel.offset
        if channel.wide > 0 {
            let samples = Wide(shift: UInt16(channel.wide - 1))
            run(
                base.assumingMemoryBound(to: UInt16.self), stride: plane.strideBytes / 2, step: channel.step / 2,
                samples)
        } else if channel.step == 1 {
            run(base.assumingMemoryBound(to: UInt8.self), stride: plane.strideBytes, step: 1, Narrow())
        } else {
            run(base.assumingMemoryBound(to: UInt8.self), stride: plane.strideBytes, step: channel.step, Narrow())
        }
    }

    @inline(__always)
    private func run<Form: SampleForm>(
        _ base: UnsafeMutablePointer<Form.Sample>, stride: Int, step: Int, _ form: Form
    ) {
        measure(base, stride: stride, step: step, form)
        let count = columns * rows
        for index in 0..<count { values[index] = Float(sums[index]) }
        if isSmooth { smooth(values) }
        for index in 0..<count where weights[index] > 0 { values[index] /= weights[index] }
        if isSmooth {
            interpolate(base, stride: stride, step: step, form)
        } else {
            paint(base, stride: stride, step: step, form)
        }
    }

    /// Sums the covered samples of each block.
    @inline(__always)
    private func measure<Form: SampleForm>(
        _ base: UnsafeMutablePointer<Form.Sample>, stride: Int, step: Int, _ form: Form
    ) {
        sums.update(repeating: 0, count: columns * rows)
        for span in spans.all {
            let samples = base + Int(span.row) * stride
            let target = sums + (Int(span.row) - top) / side.y * columns
            forBlocks(span) { block, range in
                var sum: UInt32 = 0
                for x in range { sum &+= form.read(samples[x &* step]) }
                target[block] &+= sum
            }
        }
    }

    /// Gives every covered sample its block's mean.
    @inline(__always)
    private func paint<Form: SampleForm>(
        _ base: UnsafeMutablePointer<Form.Sample>, stride: Int, step: Int, _ form: Form
    ) {
        for span in spans.all {
            let samples = base + Int(span.row) * stride
            let means = values + (Int(span.row) - top) / side.y * columns
            forBlocks(span) { block, range in
                let value = form.write(means[block])
                for x in range { samples[x &* step] = value }
            }
        }
    }

    /// Gives every covered sample what lies between the four blocks around it.
    @inline(__always)
    private func interpolate<Form: SampleForm>(
        _ base: UnsafeMutablePointer<Form.Sample>, stride: Int, step: Int, _ form: Form
    ) {
        var have = -1
        let scale = 1 / Float(side.x)
        for span in spans.all {
            let row = Int(span.row)
            if row != have { prepareLine(row) }
            have = row
            let samples = base + row * stride
            var x = Int(span.start)
            while x < Int(span.end) {
                // In halves of samples, so that the middle of a block is a whole number.
                let place = 2 * (x - left) + 1 - side.x
                let block = place < 0 ? -1 : place / (2 * side.x)
                let next = min(left + ((2 * side.x) * (block + 1) + side.x) / 2, Int(span.end))
                let a = line[max(block, 0)]
                let slope = (line[min(block + 1, columns - 1)] - a) * scale
                let first = a + slope * (Float(place) / 2 - Float(block * side.x))
                // With sixteen bits behind the point; 1023 is the most before it.
                var value = Int32(first * 65_536 + 32_768)
                let change = Int32(slope * 65_536)
                let end = max(next, x + 1)
                for place in x..<end {
                    samples[place &* step] = form.write(fixed: max(value, 0))
                    value &+= change
                }
                x = end
            }
        }
    }

    /// The blocks' values at the height of a row.
    private func prepareLine(_ row: Int) {
        let place = 2 * (row - top) + 1 - side.y
        let block = place < 0 ? -1 : place / (2 * side.y)
        let share = Float(place - 2 * side.y * block) / Float(2 * side.y)
        let upper = values + max(block, 0) * columns
        let lower = values + min(block + 1, rows - 1) * columns
        for column in 0..<columns { line[column] = upper[column] + (lower[column] - upper[column]) * share }
    }

    /// Calls `body` with the samples of each block that a span meets.
    @inline(__always)
    private func forBlocks(_ span: Spans.Span, _ body: (_ block: Int, _ samples: Range<Int>) -> Void) {
        var x = Int(span.start)
        var block = (x - left) / side.x
        while x < Int(span.end) {
            let end = min(left + (block + 1) * side.x, Int(span.end))
            body(block, x..<end)
            (x, block) = (end, block + 1)
        }
    }

    // MARK: Boxes

    /// Three box filters in each direction. Beyond the blocks there is nothing: their weight is 0.
    private func smooth(_ blocks: UnsafeMutablePointer<Float>) {
        for _ in 0..<3 {
            for row in 0..<rows { box(blocks + row * columns, spare + row * columns, count: columns, step: 1) }
            for column in 0..<columns { box(spare + column, blocks + column, count: rows, step: columns) }
        }
    }

    /// A running sum of 2 × radius + 1 values, divided by their number.
    private func box(
        _ source: UnsafeMutablePointer<Float>, _ target: UnsafeMutablePointer<Float>, count: Int, step: Int
    ) {
        let share = 1 / Float(2 * radius + 1)
        for index in 0..<count {
            var sum: Float = 0
            for other in max(index - radius, 0)...min(index + radius, count - 1) { sum += source[other * step] }
            target[index * step] = sum * share
        }
    }
}

/// How a component's samples are read and written.
private protocol SampleForm {
    associatedtype Sample
    func read(_ sample: Sample) -> UInt32
    /// Rounds to the nearest.
    func write(_ value: Float) -> Sample
    /// Takes a value with sixteen bits behind the point, without rounding.
    func write(fixed value: Int32) -> Sample
}

private struct Narrow: SampleForm {
    @inline(__always) func read(_ sample: UInt8) -> UInt32 { UInt32(sample) }
    @inline(__always) func write(_ value: Float) -> UInt8 {
        UInt8(truncatingIfNeeded: Int32(min(max(value + 0.5, 0), 255)))
    }
    @inline(__always) func write(fixed value: Int32) -> UInt8 { UInt8(truncatingIfNeeded: value >> 16) }
}

private struct Wide: SampleForm {
    let shift: UInt16
    @inline(__always) func read(_ sample: UInt16) -> UInt32 { UInt32(sample >> shift) }
    @inline(__always) func write(_ value: Float) -> UInt16 {
        UInt16(truncatingIfNeeded: Int32(min(max(value + 0.5, 0), 1023))) << shift
    }
    @inline(__always) func write(fixed value: Int32) -> UInt16 { UInt16(truncatingIfNeeded: value >> 16) << shift }
}
