// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Memory and handles to make one picture at a time.
///
/// It is kept from picture to picture: a second picture of the same form only needs memory for the file's bytes.
package final class PictureEncoderState {
    private let painter = PicturePainter()
    private let jpeg: JPEGWriter
    private let png = PNGWriter()

    /// - Throws: ``FrameHostError`` `.exhausted`.
    package init() throws { jpeg = try JPEGWriter() }

    /// A file's bytes.
    ///
    /// - Parameters:
    ///   - picture: The stored picture, which is only read.
    ///   - format: Its format.
    ///   - takenAt: Wall-clock time of the picture, nanoseconds since 1970; nil writes none.
    /// - Throws: ``FrameHostError`` `.exhausted`, or `.callFailed` with the library's words.
    package func make(
        _ picture: Picture, _ format: VideoFormat, _ plan: PicturePlan, _ form: PictureForm, takenAt: Int64?
    ) throws -> [UInt8] {
        let painted = try painter.paint(picture, format, plan)
        let date = takenAt.map(WallTime.init)
        let exif = Exif.bytes(of: plan.size, takenAt: date)
        return switch form.kind {
        case .jpeg: try jpeg.write(painted, quality: form.quality, exif: exif)
        case .png: try png.write(painted, exif: exif, takenAt: date)
        }
    }

    package func trim() {
        painter.trim()
        jpeg.trim()
        png.trim()
    }

    /// Bytes that it keeps.
    package var byteCount: Int { painter.byteCount + jpeg.byteCount + png.byteCount }
}
