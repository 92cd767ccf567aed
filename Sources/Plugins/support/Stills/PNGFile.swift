// SPDX-License-Identifier: Apache-2.0

import CPNG
import FrameCore
import Glibc

/// A PNG as red, green, blue and alpha, eight bits each; the only place that calls libpng.
package struct PNGFile {
    /// The most pixels of a side. A larger picture is not a sticker but a mistake.
    package static let mostPixels = 4096

    package let width: Int
    package let height: Int
    /// Four bytes a pixel, rows without padding, alpha not premultiplied (PNG specification, 6.2).
    package let pixels: [UInt8]

    /// [control thread] Reads the file (`png_image_begin_read_from_file`).
    ///
    /// - Parameters:
    ///   - option: Where the fault is shown.
    ///   - remedy: What to do where the file is not a PNG.
    /// - Throws: ``FrameHostError`` `.unavailable` with libpng's words.
    package init(
        _ path: String, option: String = "image",
        remedy: String = "Name a PNG file. Where it is transparent, the picture shows through."
    ) throws {
        // libpng would wait for a pipe's writer.
        var status = stat()
        guard stat(path, &status) == 0, access(path, R_OK) == 0 else {
            throw FrameHostError(
                .unavailable, place: FaultPlace(option),
                what: "\(path) cannot be read: \(String(cString: strerror(errno)))",
                remedy: "Check that the path is right and that framehost may read the file.")
        }
        if status.st_mode & S_IFMT != S_IFREG {
            throw FrameHostError(
                .unavailable, place: FaultPlace(option), what: "\(path) must be a regular file", remedy: remedy)
        }
        var image = png_image()
        fh_png_begin(&image)
        defer { png_image_free(&image) }
        guard png_image_begin_read_from_file(&image, path) != 0 else {
            throw Self.fault(path, option, remedy, &image)
        }
        guard image.width <= Self.mostPixels, image.height <= Self.mostPixels else {
            throw FrameHostError(
                .unavailable, place: FaultPlace(option),
                what:
                    "\(path) must have at most \(Self.mostPixels) pixels on each side, but has \(image.width)x\(image.height)",
                remedy: "Make the picture smaller, or use another one.")
        }
        image.format = fh_png_format_rgba()
        width = Int(image.width)
        height = Int(image.height)
        var pixels = [UInt8](repeating: 0, count: width * height * 4)
        guard png_image_finish_read(&image, nil, &pixels, 0, nil) != 0 else {
            throw Self.fault(path, option, remedy, &image)
        }
        self.pixels = pixels
    }

    private static func fault(
        _ path: String, _ option: String, _ remedy: String, _ image: inout png_image
    ) -> FrameHostError {
        FrameHostError(
            .unavailable, place: FaultPlace(option),
            what: "\(path) cannot be read as PNG: \(String(cString: fh_png_message(&image)))", remedy: remedy)
    }
}
