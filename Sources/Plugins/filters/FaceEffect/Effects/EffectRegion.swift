// SPDX-License-Identifier: Apache-2.0

/// The part of the stored picture that one face's effect may change: a rounded box with a soft edge.
///
/// With u and v the distances from the middle as shares of the half sides, r = (u⁴ + v⁴)^¼; the effect counts fully
/// where r ≤ 1 − feather, not at all where r ≥ 1, and falls linearly in between. From a margin of 0.19 on, the
/// corners of the face's own box lie within.
struct EffectRegion: Equatable {
    /// Middle and half sides in stored pixels; whole numbers are the edges of pixels.
    var centerX: Double
    var centerY: Double
    var radiusX: Double
    var radiusY: Double
    var feather: Double
    /// Pixels that may change: even numbers, except at the end of a picture with an odd side.
    private(set) var left: Int
    private(set) var top: Int
    private(set) var right: Int
    private(set) var bottom: Int

    /// - Parameters:
    ///   - face: In stored pixels.
    ///   - keepsFace: Whether the feather lies outside the face, so that the box itself is covered fully (privacy).
    init?(_ face: FaceRect, margin: Double, feather: Double, keepsFace: Bool = false, width: Int, height: Int) {
        let isKnown = face.centerX.isFinite && face.centerY.isFinite && face.width.isFinite && face.height.isFinite
        // Nobody knows where it is: the whole picture.
        let face = isKnown ? face : FaceRect(x: 0, y: 0, width: Double(width), height: Double(height))
        centerX = face.centerX
        centerY = face.centerY
        self.feather = feather
        // The corner of the face has r = 2^¼ / growth, which must not exceed 1 − feather.
        let growth = keepsFace ? max(1 + margin, 1.1893 / (1 - min(feather, 0.5))) : 1 + margin
        if keepsFace { self.feather = min(feather, 0.5) }
        radiusX = max(face.width / 2 * growth, 2)
        radiusY = max(face.height / 2 * growth, 2)
        func even(_ value: Double, up: Bool, _ limit: Int) -> Int {
            let whole = max(min(value, Double(limit)), 0)
            let cut = up ? Int(whole.rounded(.up)) : Int(whole)
            return up ? min((cut + 1) / 2 * 2, limit) : cut / 2 * 2
        }
        left = even(centerX - radiusX, up: false, width)
        top = even(centerY - radiusY, up: false, height)
        right = even(centerX + radiusX, up: true, width)
        bottom = even(centerY + radiusY, up: true, height)
        guard right > left, bottom > top else { return nil }
    }

    /// The whole of a picture.
    init(wholeWidth width: Int, height: Int) {
        centerX = Double(width) / 2
        centerY = Double(height) / 2
        radiusX = centerX
        radiusY = centerY
        feather = 0
        left = 0
        top = 0
        right = width
        bottom = height
    }

    var width: Int { right - left }
    var height: Int { bottom - top }
}

/// How much of the effect each sample of a region gets, 0...255. Memory for a whole picture is taken at the start.
final class RegionMask {
    let luma: UnsafeMutablePointer<UInt8>
    /// For chroma of half the size; its samples count as lying in the middle of their four pixels.
    let chroma: UnsafeMutablePointer<UInt8>
    private let squares: UnsafeMutablePointer<Float>

    init(width: Int, height: Int) {
        luma = .allocate(capacity: (width + 1) * (height + 1))
        chroma = .allocate(capacity: (width / 2 + 1) * (height / 2 + 1))
        squares = .allocate(capacity: width + 2)
    }

    deinit {
        luma.deallocate()
        chroma.deallocate()
        squares.deallocate()
    }

    /// [stage thread] Fills the mask. Rows are as wide as the region; those of chroma half as wide, rounded up.
    func make(_ region: EffectRegion) {
        fill(luma, region, columns: region.width, rows: region.height, step: 1, offset: 0.5)
        fill(chroma, region, columns: (region.width + 1) / 2, rows: (region.height + 1) / 2, step: 2, offset: 1)
    }

    private func fill(
        _ target: UnsafeMutablePointer<UInt8>, _ region: EffectRegion, columns: Int, rows: Int, step: Int,
        offset: Double
    ) {
        for column in 0..<columns {
            let u = Float((Double(region.left + column * step) + offset - region.centerX) / region.radiusX)
            squares[column] = u * u * u * u
        }
        let slope = region.feather > 0 ? Float(255 / region.feather) : 0
        for row in 0..<rows {
            let v = Float((Double(region.top + row * step) + offset - region.centerY) / region.radiusY)
            let v4 = v * v * v * v
            let line = target + row * columns
            if slope == 0 {
                for column in 0..<columns { line[column] = squares[column] + v4 < 1 ? 255 : 0 }
            } else {
                for column in 0..<columns {
                    let r = (squares[column] + v4).squareRoot().squareRoot()
                    line[column] = UInt8(min(max((1 - r) * slope, 0), 255) + 0.5)
                }
            }
        }
    }
}
