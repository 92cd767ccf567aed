// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Numbers that look random and are the same in every run (SplitMix64).
public struct SeededNumbers {
    private var state: UInt64

    public init(_ seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var bits = state
        bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        return bits ^ (bits >> 31)
    }

    /// From 0 to 1.
    public mutating func unit() -> Float { Float(next() >> 40) / 16_777_216 }

    /// From `range.lowerBound` to `range.upperBound`.
    public mutating func value(_ range: ClosedRange<Float>) -> Float {
        range.lowerBound + unit() * (range.upperBound - range.lowerBound)
    }
}

/// A picture of light, one number a pixel: 0 is black, 255 white. Lengths and places are in heights of the picture.
public struct SceneCanvas {
    public let width: Int
    public let height: Int
    public var light: [Float]

    public init(width: Int, height: Int) {
        (self.width, self.height) = (width, height)
        light = [Float](repeating: 0, count: width * height)
    }

    /// The width in heights.
    public var aspect: Float { Float(width) / Float(height) }

    /// Changes each pixel of a rectangle; `body` is handed its place in heights and its light.
    @inline(__always)
    public mutating func change(
        _ left: Float, _ top: Float, _ right: Float, _ bottom: Float, _ body: (Float, Float, Float) -> Float
    ) {
        let unit = 1 / Float(height)
        func pixels(_ from: Float, _ to: Float, _ count: Int) -> Range<Int> {
            let first = min(max(Int(from * Float(height)), 0), count)
            return first..<max(min(Int((to * Float(height)).rounded(.up)), count), first)
        }
        let (columns, rows) = (pixels(left, right, width), pixels(top, bottom, height))
        let columnCount = width
        light.withUnsafeMutableBufferPointer { light in
            for row in rows {
                for column in columns {
                    let index = row * columnCount + column
                    light[index] = body((Float(column) + 0.5) * unit, (Float(row) + 0.5) * unit, light[index])
                }
            }
        }
    }

    /// Changes every pixel.
    @inline(__always)
    public mutating func changeAll(_ body: (Float, Float, Float) -> Float) { change(0, 0, aspect, 1, body) }

    /// Adds noise as a sensor has it, of about the standard deviation `sigma`.
    public mutating func addNoise(_ sigma: Float, seed: UInt64) {
        var numbers = SeededNumbers(seed)
        let factor = sigma / 18_919  // of one of four 16-bit numbers, times two
        light.withUnsafeMutableBufferPointer { light in
            for index in light.indices {
                let bits = numbers.next()
                let sum =
                    Int32(bits & 0xFFFF) + Int32((bits >> 16) & 0xFFFF) + Int32((bits >> 32) & 0xFFFF)
                    + Int32(bits >> 48) - 131_070
                light[index] += Float(sum) * factor * 0.5
            }
        }
    }

    /// Writes the picture as 8-bit luma of limited range: 16 to 235.
    public func write(to luma: UnsafeMutablePointer<UInt8>, strideBytes: Int) {
        light.withUnsafeBufferPointer { light in
            for row in 0..<height {
                let line = luma + row * strideBytes
                for column in 0..<width {
                    let value = min(max(light[row * width + column], 0), 255)
                    line[column] = UInt8(16 + value * (219.0 / 255) + 0.5)
                }
            }
        }
    }

    /// Smooth noise of several sizes, -1 to 1, the same for the same seed.
    public static func texture(_ x: Float, _ y: Float, seed: UInt32, octaves: Int = 3) -> Float {
        var (sum, weight, total, scale): (Float, Float, Float, Float) = (0, 1, 0, 1)
        for octave in 0..<octaves {
            sum += weight * lattice(x * scale, y * scale, seed &+ UInt32(octave) &* 977)
            total += weight
            weight *= 0.6
            scale *= 2.3
        }
        return sum / total
    }

    private static func lattice(_ x: Float, _ y: Float, _ seed: UInt32) -> Float {
        let (left, top) = (x.rounded(.down), y.rounded(.down))
        var (u, v) = (x - left, y - top)
        u = u * u * (3 - 2 * u)
        v = v * v * (3 - 2 * v)
        func corner(_ dx: Int32, _ dy: Int32) -> Float {
            var bits = UInt32(bitPattern: Int32(left) &+ dx) &* 374_761_393
            bits = bits &+ UInt32(bitPattern: Int32(top) &+ dy) &* 668_265_263 &+ seed &* 2_246_822_519
            bits = (bits ^ (bits >> 13)) &* 1_274_126_177
            return Float((bits ^ (bits >> 16)) & 0xFFFF) / 32_768 - 1
        }
        let upper = corner(0, 0) + (corner(1, 0) - corner(0, 0)) * u
        let lower = corner(0, 1) + (corner(1, 1) - corner(0, 1)) * u
        return upper + (lower - upper) * v
    }
}
