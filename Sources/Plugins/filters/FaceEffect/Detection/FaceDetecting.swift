// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A face as a detector gave it, in pixels of the small picture.
struct Detection: Equatable, Sendable {
    var box: FaceRect
    /// From 0 to 1.
    var confidence: Double
    var landmarks: Landmarks?
}

/// Which samples a detector reads.
enum DetectorInput: Sendable { case gray, bgr }

/// The small upright picture that a detector is given: rows without padding, one or three bytes a pixel.
struct DetectorPicture: @unchecked Sendable {
    let pixels: UnsafePointer<UInt8>
    let width: Int
    let height: Int
    /// The sizes in which YuNet searches it, the coarsest first. They have square pixels, which the picture may not have.
    let searches: [PictureSize]
}

/// Finds faces in one small picture. Used by one thread at a time: first the control thread, then the detector's
/// own.
protocol FaceDetecting: AnyObject {
    var input: DetectorInput { get }
    /// Whether it seldom misses a face: one that it no longer sees has probably left.
    var isDependable: Bool { get }

    /// Writes the faces of `picture` into `buffer`; returns how many there are, which is more than `buffer.count` where
    /// it has no room for all.
    ///
    /// - Throws: ``FrameHostError``.
    func detect(_ picture: DetectorPicture, into buffer: UnsafeMutableBufferPointer<Detection>) throws -> Int
}
