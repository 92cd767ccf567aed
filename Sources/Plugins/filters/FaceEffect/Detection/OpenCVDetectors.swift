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

    /// The most findings of one picture, sure and unsure.
    static let mostFindings = 512

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
    private let found = UnsafeMutablePointer<fh_cv_face>.allocate(capacity: OpenCV.mostFindings)

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
                Int32(min(buffer.count, OpenCV.mostFindings)), &count, $0, $1)
        }
        for index in 0..<min(Int(count), buffer.count, OpenCV.mostFindings) {
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
/// The network knows faces of 10 to some 300 pixels. A picture that is searched finely is searched coarsely first, so that
/// a face that fills it is found too. ``FindingMerge`` joins what the searches found.
final class YuNetDetector: FaceDetecting {
    let input = DetectorInput.bgr
    let isDependable = true
    /// One for each search of a picture, the coarsest first.
    private let handles: [OpaquePointer]
    private let merge: FindingMerge
    private let found = UnsafeMutablePointer<fh_cv_face>.allocate(capacity: OpenCV.mostFindings)

    /// [control thread] Reads the model for each search.
    ///
    /// - Parameters:
    ///   - searches: The most searches of one picture.
    ///   - threshold: The least confidence of what is given.
    ///   - merge: From which confidence on a finding begins and keeps a face.
    init(path: String, searches: Int, threshold: Double, merge: FindingMerge) throws {
        self.merge = merge
        var handles: [OpaquePointer] = []
        do {
            for _ in 0..<max(searches, 1) {
                var handle: OpaquePointer?
                try OpenCV.call("\(path) cannot be used as a YuNet model") {
                    fh_cv_yunet_open(path, Float(threshold), &handle, $0, $1)
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
        precondition(picture.searches.count <= handles.count, "a picture with more searches than detectors")
        var total = 0
        var isFull = false
        for (handle, size) in zip(handles, picture.searches) {
            var count: Int32 = 0
            try OpenCV.call("YuNet failed") {
                fh_cv_yunet_detect(
                    handle, picture.pixels, Int32(picture.width), Int32(picture.height), picture.width * 3,
                    Int32(size.width), Int32(size.height), found, Int32(OpenCV.mostFindings), &count, $0, $1)
            }
            if Int(count) > OpenCV.mostFindings { isFull = true }
            let coarser = total
            for index in 0..<min(Int(count), OpenCV.mostFindings) {
                let face = Self.detection(found[index], in: picture, searched: size)
                guard Self.isPossible(face.box, in: picture) else {
                    throw FrameHostError(
                        .callFailed,
                        what:
                            "YuNet found a face of impossible size in a picture of \(picture.width)x\(picture.height), searched on \(size.width)x\(size.height)"
                    )
                }
                if !merge.add(face, to: buffer, count: &total, coarser: coarser) { isFull = true }
            }
        }
        return isFull ? max(total, buffer.count) + 1 : total
    }

    /// In very thin pictures the network's numbers overflow. Nothing that it says of such a picture can be relied on.
    private static func isPossible(_ box: FaceRect, in picture: DetectorPicture) -> Bool {
        let most = 4 * Double(max(picture.width, picture.height))
        return box.x.isFinite && box.y.isFinite && box.width >= 0 && box.height >= 0
            && box.width < most && box.height < most
    }

    /// Brings a finding from the size that was searched to the picture. The box is made tight in square pixels of about the
    /// picture's size.
    private static func detection(
        _ face: fh_cv_face, in picture: DetectorPicture, searched: PictureSize
    ) -> Detection {
        let scaleX = Double(picture.width) / Double(searched.width)
        let scaleY = Double(picture.height) / Double(searched.height)
        let square = max(scaleX, scaleY)
        let p = face.landmarks
        func point(_ x: Float, _ y: Float) -> FacePoint { FacePoint(x: Double(x) * square, y: Double(y) * square) }
        let landmarks = Landmarks(
            rightEye: point(p.0, p.1), leftEye: point(p.2, p.3), nose: point(p.4, p.5), rightMouth: point(p.6, p.7),
            leftMouth: point(p.8, p.9))
        let box = FaceRect(x: Double(face.x), y: Double(face.y), width: Double(face.width), height: Double(face.height))
        let tight = YuNetFit.tight(box.scaled(square, square), landmarks)
        let (backX, backY) = (scaleX / square, scaleY / square)
        return Detection(
            box: tight.scaled(backX, backY), confidence: Double(face.score),
            landmarks: landmarks.mapped { FacePoint(x: $0.x * backX, y: $0.y * backY) })
    }
}
