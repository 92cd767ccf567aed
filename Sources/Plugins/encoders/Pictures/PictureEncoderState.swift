// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Memory and handles to make one picture at a time.
///
/// It is kept from picture to picture: a second picture of the same form only needs memory for the file's bytes.
final class PictureEncoderState {
    private let painter = PicturePainter()
    private let jpeg: JPEGWriter
    private let png = PNGWriter()

    /// - Throws: ``FrameHostError`` `.exhausted`.
    init() throws { jpeg = try JPEGWriter() }

    /// A file's bytes.
    func make(_ picture: StagePicture, _ plan: PicturePlan, _ form: PictureForm, takenAt: Int64?) throws -> [UInt8] {
        let painted = try withExtendedLifetime(picture) {
            // Addresses leave their closures here. The picture is held until it is painted, and only read.
            let stored = Picture(picture.format.pixelFormat, width: picture.format.width, height: picture.format.height)
            { index in
                picture.withPlane(index) { (UnsafeMutableRawPointer(mutating: $0.baseAddress), $0.strideBytes) }
            }
            return try painter.paint(stored, picture.format, plan)
        }
        let date = takenAt.map(WallTime.init)
        let exif = Exif.bytes(of: plan.size, takenAt: date)
        return switch form.kind {
        case .jpeg: try jpeg.write(painted, quality: form.quality, exif: exif)
        case .png: try png.write(painted, exif: exif, takenAt: date)
        }
    }

    func trim() {
        painter.trim()
        jpeg.trim()
        png.trim()
    }

    /// Bytes that it keeps.
    var byteCount: Int { painter.byteCount + jpeg.byteCount + png.byteCount }
}
