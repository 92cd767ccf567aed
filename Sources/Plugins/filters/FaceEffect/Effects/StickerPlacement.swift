// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Where a sticker goes on a face.
enum StickerPlacement {
    /// Where eyes and mouth lie in a box without landmarks, as shares of its height: YuNet's points on average.
    private static let eyeLine = 0.4
    private static let mouthLine = 0.78

    /// - Parameters:
    ///   - scale: Width in widths of the face.
    ///   - aspect: Height over width of the image.
    static func of(
        _ box: FaceRect, _ landmarks: Landmarks?, anchor: StickerAnchor, scale: Double, aspect: Double, map: UprightMap
    ) -> ImagePlacement {
        var eyes = FacePoint(x: box.centerX, y: box.y + box.height * eyeLine)
        var mouth = FacePoint(x: box.centerX, y: box.y + box.height * mouthLine)
        var angle = 0.0
        if let landmarks {
            eyes = middle(landmarks.rightEye, landmarks.leftEye)
            mouth = middle(landmarks.rightMouth, landmarks.leftMouth)
            // The person's right eye is at the left of the picture.
            angle = atan2(landmarks.leftEye.y - landmarks.rightEye.y, landmarks.leftEye.x - landmarks.rightEye.x)
        }
        let center =
            switch anchor {
            case .eyes: eyes
            case .mouth: mouth
            case .face: middle(eyes, mouth)
            case .forehead: FacePoint(x: eyes.x + (eyes.x - mouth.x) * 0.9, y: eyes.y + (eyes.y - mouth.y) * 0.9)
            }
        return placement(center, halfWidth: box.width * scale / 2, aspect: aspect, angle: angle, map: map)
    }

    /// An image stretched over a region's box.
    static func over(_ box: FaceRect, map: UprightMap) -> ImagePlacement {
        let center = FacePoint(x: box.centerX, y: box.centerY)
        return placed(
            center, right: FacePoint(x: box.width / 2, y: 0), down: FacePoint(x: 0, y: box.height / 2), map: map)
    }

    private static func placement(
        _ center: FacePoint, halfWidth: Double, aspect: Double, angle: Double, map: UprightMap
    ) -> ImagePlacement {
        let (c, s) = (cos(angle), sin(angle))
        return placed(
            center, right: FacePoint(x: c * halfWidth, y: s * halfWidth),
            down: FacePoint(x: -s * halfWidth * aspect, y: c * halfWidth * aspect), map: map)
    }

    /// Maps a placement from the upright picture to the stored one.
    private static func placed(_ center: FacePoint, right: FacePoint, down: FacePoint, map: UprightMap)
        -> ImagePlacement
    {
        let middle = map.stored(center)
        func arm(_ offset: FacePoint) -> FacePoint {
            let end = map.stored(FacePoint(x: center.x + offset.x, y: center.y + offset.y))
            return FacePoint(x: end.x - middle.x, y: end.y - middle.y)
        }
        return ImagePlacement(center: middle, right: arm(right), down: arm(down))
    }

    private static func middle(_ a: FacePoint, _ b: FacePoint) -> FacePoint {
        FacePoint(x: (a.x + b.x) / 2, y: (a.y + b.y) / 2)
    }
}
