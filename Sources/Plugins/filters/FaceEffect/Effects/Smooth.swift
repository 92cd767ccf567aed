// SPDX-License-Identifier: Apache-2.0

import Shared

/// Smooths skin and keeps edges: each sample of luma moves towards the mean around it, the less the more its
/// surroundings vary.
///
/// With mean m and variance s² of a square window, the result is m + (luma − m) · s² / (s² + e²): flat skin becomes its
/// mean, an eyelid stays. (J.-S. Lee, Digital image enhancement and noise filtering by use of local statistics, 1980.)
/// Chroma stays.
final class Smooth {
    private let sums: UnsafeMutablePointer<UInt32>
    private let squares: UnsafeMutablePointer<UInt32>

    init(width: Int) {
        sums = .allocate(capacity: width + 2)
        squares = .allocate(capacity: width + 2)
    }

    deinit {
        sums.deallocate()
        squares.deallocate()
    }

    /// The e² for a strength from 0 to 1: what varies less than e² is smoothed by more than half.
    static func threshold(_ strength: Double) -> Float {
        let steps = 2 + 22 * strength
        return Float(steps * steps)
    }

    /// [stage thread] Fills the layer's luma for one region.
    ///
    /// - Parameter radius: The window has 2 × radius + 1 pixels a side; beyond the region its edge pixels are
    ///   repeated.
    func render(_ picture: Picture, _ region: EffectRegion, radius: Int, strength: Double, into layer: EffectLayer) {
        let component = Component(picture, 0)
        let columns = region.width
        let rows = region.height
        func line(_ y: Int) -> UnsafeMutablePointer<UInt8> {
            component.row(region.top + min(max(y, 0), rows - 1)) + region.left
        }
        for x in 0..<columns {
            sums[x] = 0
            squares[x] = 0
        }
        for y in -radius...radius { add(line(y), columns) }
        let side = 2 * radius + 1
        let share = 1 / Float(side * side)
        let threshold = Self.threshold(strength)
        for y in 0..<rows {
            var sum: UInt32 = 0
            var square: UInt32 = 0
            for x in -radius...radius {
                let column = min(max(x, 0), columns - 1)
                sum &+= sums[column]
                square &+= squares[column]
            }
            let source = line(y)
            let target = layer[0] + y * columns
            for x in 0..<columns {
                let mean = Float(sum) * share
                let variance = max(Float(square) * share - mean * mean, 0)
                let value = mean + (Float(source[x]) - mean) * variance / (variance + threshold)
                target[x] = UInt8(min(max(value + 0.5, 0), 255))
                let new = min(x + radius + 1, columns - 1)
                let old = max(x - radius, 0)
                sum = sum &+ sums[new] &- sums[old]
                square = square &+ squares[new] &- squares[old]
            }
            add(line(y + radius + 1), columns)
            subtract(line(y - radius), columns)
        }
    }

    private func add(_ line: UnsafeMutablePointer<UInt8>, _ count: Int) {
        for x in 0..<count {
            let value = UInt32(line[x])
            sums[x] &+= value
            squares[x] &+= value &* value
        }
    }

    private func subtract(_ line: UnsafeMutablePointer<UInt8>, _ count: Int) {
        for x in 0..<count {
            let value = UInt32(line[x])
            sums[x] &-= value
            squares[x] &-= value &* value
        }
    }
}
