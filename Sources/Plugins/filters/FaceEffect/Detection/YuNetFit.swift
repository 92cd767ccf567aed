// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Makes YuNet's boxes tight: on small pictures they are up to a fifth too large around a tilted head, and too wide
/// around a turned one.
///
/// The correction of the box's middle and sides is linear in three features of box and landmarks. It was fitted by
/// least squares on the labelled clips, where each face and its mirror image have the same weight. How well it does
/// for people left out of the fit: docs/face-effect.md, "Boxes".
enum YuNetFit {
    /// Factors of these features: 1, the sine of the tilt, how wide the box is, how large it is for its landmarks.
    private static let down: SIMD4<Double> = [-0.0074, 0.0632, 0.0106, 0.0326]
    private static let width: SIMD4<Double> = [-0.0388, 0.0467, -0.4671, 0.2440]
    private static let height: SIMD4<Double> = [0.0030, -0.2850, 0.4195, 0.2644]
    /// An upright face's width over its height.
    private static let usualAspect = 0.78
    /// The side of a square as large as the box, over the mean distance of the landmarks.
    private static let usualSize = 2.45
    /// Bounds for landmarks that make no sense: of a feature, and of a change.
    private static let mostFeature = 0.3
    private static let mostChange = 0.25

    static func tight(_ box: FaceRect, _ landmarks: Landmarks) -> FaceRect {
        let eyes = FacePoint(
            x: landmarks.leftEye.x - landmarks.rightEye.x, y: landmarks.leftEye.y - landmarks.rightEye.y)
        let axis = FacePoint(
            x: (landmarks.rightEye.x + landmarks.leftEye.x - landmarks.rightMouth.x - landmarks.leftMouth.x) / 2,
            y: (landmarks.rightEye.y + landmarks.leftEye.y - landmarks.rightMouth.y - landmarks.leftMouth.y) / 2)
        let between = hypot(eyes.x, eyes.y)
        let along = hypot(axis.x, axis.y)
        guard box.width > 1, box.height > 1, between > 0.5, along > 0.5 else { return box }
        let features = SIMD4(
            1, abs(eyes.y) / between, bounded(box.width / box.height - usualAspect, mostFeature),
            bounded(log(usualSize * (between * along).squareRoot() / box.size), mostFeature))
        func change(_ factors: SIMD4<Double>) -> Double { bounded((features * factors).sum(), mostChange) }
        return FaceRect(
            centerX: box.centerX, centerY: box.centerY + change(down) * box.height,
            width: box.width * exp(change(width)),
            height: box.height * exp(change(height)))
    }

    private static func bounded(_ value: Double, _ limit: Double) -> Double { min(max(value, -limit), limit) }
}
