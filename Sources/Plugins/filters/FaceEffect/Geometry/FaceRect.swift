// SPDX-License-Identifier: Apache-2.0

/// A rectangle in pixels of the stored picture in full size, unless said otherwise. Edges may lie outside the picture.
struct FaceRect: Equatable, Sendable, Codable {
    var x: Double
    var y: Double
    var width: Double
    var height: Double

    var centerX: Double { x + width / 2 }
    var centerY: Double { y + height / 2 }
    var right: Double { x + width }
    var bottom: Double { y + height }
    var area: Double { width * height }
    /// The side of a square of the same area.
    var size: Double { area.squareRoot() }

    init(x: Double, y: Double, width: Double, height: Double) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
    }

    init(centerX: Double, centerY: Double, width: Double, height: Double) {
        self.init(x: centerX - width / 2, y: centerY - height / 2, width: width, height: height)
    }

    /// The rectangle between two opposite corners.
    init(_ corner: FacePoint, _ other: FacePoint) {
        self.init(
            x: min(corner.x, other.x), y: min(corner.y, other.y), width: abs(corner.x - other.x),
            height: abs(corner.y - other.y))
    }

    /// The smallest rectangle that holds both.
    func union(_ other: FaceRect) -> FaceRect { reaching(other, share: 0) }

    /// Scales each coordinate by its own factor.
    func scaled(_ horizontal: Double, _ vertical: Double) -> FaceRect {
        FaceRect(x: x * horizontal, y: y * vertical, width: width * horizontal, height: height * vertical)
    }

    func moved(_ dx: Double, _ dy: Double) -> FaceRect { FaceRect(x: x + dx, y: y + dy, width: width, height: height) }

    /// The rectangle with the same centre whose sides are longer by `share` of themselves.
    func grown(_ share: Double) -> FaceRect {
        FaceRect(centerX: centerX, centerY: centerY, width: width * (1 + share), height: height * (1 + share))
    }

    /// A part of the way to `other`: its place by `place`, its size by `size`, both 0...1.
    func approaching(_ other: FaceRect, place: Double, size: Double) -> FaceRect {
        FaceRect(
            centerX: centerX + (other.centerX - centerX) * place, centerY: centerY + (other.centerY - centerY) * place,
            width: width + (other.width - width) * size, height: height + (other.height - height) * size)
    }

    /// The part that lies within a picture of this size; nil when none does.
    func clipped(width limitX: Double, height limitY: Double) -> FaceRect? {
        let left = max(x, 0)
        let top = max(y, 0)
        let width = min(right, limitX) - left
        let height = min(bottom, limitY) - top
        return width > 0 && height > 0 ? FaceRect(x: left, y: top, width: width, height: height) : nil
    }

    /// The common area over the area of the smaller rectangle, 0...1.
    func containment(_ other: FaceRect) -> Double {
        let width = min(right, other.right) - max(x, other.x)
        let height = min(bottom, other.bottom) - max(y, other.y)
        return width > 0 && height > 0 ? width * height / min(area, other.area) : 0
    }

    /// Moves each edge: at once to that of `other` where that lies further out, else `share` of the way.
    func reaching(_ other: FaceRect, share: Double) -> FaceRect {
        let left = min(other.x, x + (other.x - x) * share)
        let top = min(other.y, y + (other.y - y) * share)
        let right = max(other.right, right + (other.right - right) * share)
        let bottom = max(other.bottom, bottom + (other.bottom - bottom) * share)
        return FaceRect(x: left, y: top, width: right - left, height: bottom - top)
    }

    /// The common area over the area that both cover together, 0...1.
    func overlap(_ other: FaceRect) -> Double {
        let width = min(right, other.right) - max(x, other.x)
        let height = min(bottom, other.bottom) - max(y, other.y)
        guard width > 0, height > 0 else { return 0 }
        return width * height / (area + other.area - width * height)
    }
}

/// A point in the same coordinates.
struct FacePoint: Equatable, Sendable, Codable {
    var x: Double
    var y: Double
}

/// Eyes, nose and corners of the mouth as YuNet gives them; right and left are the person's.
struct Landmarks: Equatable, Sendable, Codable {
    var rightEye: FacePoint
    var leftEye: FacePoint
    var nose: FacePoint
    var rightMouth: FacePoint
    var leftMouth: FacePoint

    /// Applies `change` to each point.
    func mapped(_ change: (FacePoint) -> FacePoint) -> Landmarks {
        Landmarks(
            rightEye: change(rightEye), leftEye: change(leftEye), nose: change(nose), rightMouth: change(rightMouth),
            leftMouth: change(leftMouth))
    }

    /// A part of the way to `other`, 0...1.
    func approaching(_ other: Landmarks, _ share: Double) -> Landmarks {
        func mix(_ a: FacePoint, _ b: FacePoint) -> FacePoint {
            FacePoint(x: a.x + (b.x - a.x) * share, y: a.y + (b.y - a.y) * share)
        }
        return Landmarks(
            rightEye: mix(rightEye, other.rightEye), leftEye: mix(leftEye, other.leftEye), nose: mix(nose, other.nose),
            rightMouth: mix(rightMouth, other.rightMouth), leftMouth: mix(leftMouth, other.leftMouth))
    }
}
