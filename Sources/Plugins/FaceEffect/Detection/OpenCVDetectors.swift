// SPDX-License-Identifier: Apache-2.0

import COpenCV
import FrameCore

/// OpenCV's version and its threads. Only this file calls OpenCV.
enum OpenCV {
    /// The version of the library that is loaded: `4.6.0`.
    static var version: String { String(cString: fh_cv_version()) }

    /// Whether `FaceDetectorYN` reads the models of 2023: from 4.8 on. Earlier versions read only those of 2022.
    static var readsYuNet2023: Bool {
        let parts = version.split(separator: ".").compactMap { Int($0) }
        guard parts.count >= 2 else { return true }
        return (parts[0], parts[1]) >= (4, 8)
    }

    /// [control thread] Makes OpenCV use one thread in a call: a detector has a thread of its own, beside those of
    /// decoder and encoder.
    static func useOneThread() { fh_cv_set_threads(1) }

    /// The most faces of one picture.
    static let mostFaces = 64

    /// Calls OpenCV with a buffer for its message.
    ///
    /// - Throws: ``FrameHostError`` `.callFailed` with the message.
    fileprivate static func call(_ what: String, _ body: (UnsafeMutablePointer<CChar>, Int) -> Int32) throws {
        try withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { message in
            message[0] = 0
            guard body(message.baseAddress!, message.count) == 0 else {
                throw FrameHostError(
                    .callFailed, what: what, cause: "OpenCV \(version): \(String(cString: message.baseAddress!))")
            }
        }
    }
}

/// `cv::CascadeClassifier` on luma. Its boxes are brought to the shape of YuNet's.
final class CascadeDetector: FaceDetecting {
    struct Settings: Equatable {
        var scaleStep: Double
        var neighbours: Int
        /// Smallest face, as a share of the picture's height.
        var smallest: Double
        /// Whether the histogram is equalized first.
        var equalizes: Bool
    }

    /// Where the face lies in a cascade's square, as shares of its side: measured on four people (docs/face-effect.md,
    /// "Boxes").
    struct Fit {
        var left: Double
        var top: Double
        var width: Double
        var height: Double
        static let haar = Fit(left: 0.063, top: -0.004, width: 0.89, height: 1.07)
        static let lbp = Fit(left: 0.083, top: -0.006, width: 0.85, height: 1.07)
    }

    let input = DetectorInput.gray
    let isDependable = false
    private let handle: OpaquePointer
    private let settings: Settings
    private let fit: Fit
    private let found = UnsafeMutablePointer<fh_cv_face>.allocate(capacity: OpenCV.mostFaces)

    /// [control thread] Reads the cascade.
    ///
    /// - Throws: ``FrameHostError`` `.callFailed` when the file is not a cascade.
    init(path: String, settings: Settings, fit: Fit) throws {
        var handle: OpaquePointer?
        try OpenCV.call("\(path) is not a cascade") { fh_cv_cascade_open(path, &handle, $0, $1) }
        self.handle = handle!
        self.settings = settings
        self.fit = fit
    }

    deinit {
        fh_cv_cascade_close(handle)
        found.deallocate()
    }

    func detect(_ picture: DetectorPicture, into buffer: UnsafeMutableBufferPointer<Detection>) throws -> Int {
        var count: Int32 = 0
        let smallest = max(Int(Double(picture.height) * settings.smallest), 20)
        try OpenCV.call("the cascade failed") {
            fh_cv_cascade_detect(
                handle, picture.pixels, Int32(picture.width), Int32(picture.height), picture.width, settings.scaleStep,
                Int32(settings.neighbours), Int32(smallest), settings.equalizes ? 1 : 0, found,
                Int32(min(buffer.count, OpenCV.mostFaces)), &count, $0, $1)
        }
        for index in 0..<Int(count) {
            let face = found[index]
            let side = Double(face.width)
            buffer[index] = Detection(
                box: FaceRect(
                    x: Double(face.x) + side * fit.left, y: Double(face.y) + side * fit.top, width: side * fit.width,
                    height: side * fit.height),
                // A cascade is as sure as it gets when twelve windows agree.
                confidence: min(Double(face.score) / 12, 1), landmarks: nil)
        }
        return Int(count)
    }
}

/// `cv::FaceDetectorYN`: gives five landmarks, also of turned and tilted heads. ``YuNetFit`` makes its boxes tight.
///
/// The network knows faces of 10 to some 300 pixels. A picture that is searched finely is searched coarsely first,
/// so that a face that fills it is found too. What the fine search sees inside such a face is a part of it.
final class YuNetDetector: FaceDetecting {
    let input = DetectorInput.bgr
    let isDependable = true
    /// One for each size, the coarsest first.
    private let handles: [OpaquePointer]
    private let sure: Double
    private let found = UnsafeMutablePointer<fh_cv_face>.allocate(capacity: OpenCV.mostFaces)

    /// [control thread] Reads the model for each size in which pictures are searched.
    ///
    /// - Parameter sure: The confidence from which a face counts as seen; `threshold` may be lower.
    init(path: String, sizes: [PictureSize], threshold: Double, sure: Double) throws {
        self.sure = threshold < sure ? sure : 0
        var handles: [OpaquePointer] = []
        do {
            for size in sizes {
                var handle: OpaquePointer?
                try OpenCV.call("\(path) cannot be used as a YuNet model") {
                    fh_cv_yunet_open(path, Int32(size.width), Int32(size.height), Float(threshold), &handle, $0, $1)
                }
                handles.append(handle!)
            }
        } catch {
            for handle in handles { fh_cv_yunet_close(handle) }
            throw error
        }
        self.handles = handles
    }

    deinit {
        for handle in handles { fh_cv_yunet_close(handle) }
        found.deallocate()
    }

    func detect(_ picture: DetectorPicture, into buffer: UnsafeMutableBufferPointer<Detection>) throws -> Int {
        var total = 0
        for handle in handles {
            var count: Int32 = 0
            try OpenCV.call("YuNet failed") {
                fh_cv_yunet_detect(
                    handle, picture.pixels, Int32(picture.width), Int32(picture.height), picture.width * 3, found,
                    Int32(min(buffer.count, OpenCV.mostFaces)), &count, $0, $1)
            }
            let coarser = total
            for index in 0..<Int(count) where total < buffer.count {
                let face = Self.detection(found[index])
                // What a coarse search only suspects must not hide what a fine one sees, nor take its place.
                if face.confidence < sure, total >= buffer.count / 3 { continue }
                let least = min(sure, face.confidence)
                let isKnown = buffer[..<coarser].contains { $0.confidence >= least && Self.isSame($0.box, face.box) }
                if isKnown { continue }
                buffer[total] = face
                total += 1
            }
        }
        return total
    }

    /// Whether the boxes overlap enough to be one face, or one lies within the other.
    private static func isSame(_ a: FaceRect, _ b: FaceRect) -> Bool { a.overlap(b) > 0.3 || a.containment(b) > 0.75 }

    private static func detection(_ face: fh_cv_face) -> Detection {
        let p = face.landmarks
        func point(_ x: Float, _ y: Float) -> FacePoint { FacePoint(x: Double(x), y: Double(y)) }
        let landmarks = Landmarks(
            rightEye: point(p.0, p.1), leftEye: point(p.2, p.3), nose: point(p.4, p.5), rightMouth: point(p.6, p.7),
            leftMouth: point(p.8, p.9))
        let box = FaceRect(x: Double(face.x), y: Double(face.y), width: Double(face.width), height: Double(face.height))
        return Detection(box: YuNetFit.tight(box, landmarks), confidence: Double(face.score), landmarks: landmarks)
    }
}
