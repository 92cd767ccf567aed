import CPNG
import FrameCore

/// A PNG as red, green, blue and alpha, eight bits each; the only place that calls libpng.
struct PNGFile {
    /// Larger ones are no stickers but mistakes.
    static let mostPixels = 4096

    let width: Int
    let height: Int
    /// Four bytes a pixel, rows without padding, alpha not multiplied in (PNG specification, 6.2).
    let pixels: [UInt8]

    /// [control thread] Reads the file (`png_image_begin_read_from_file`).
    ///
    /// - Throws: ``FrameHostError`` `.unavailable` with libpng's words.
    init(_ path: String) throws {
        var image = png_image()
        fh_png_begin(&image)
        defer { png_image_free(&image) }
        guard png_image_begin_read_from_file(&image, path) != 0 else { throw Self.fault(path, &image) }
        guard image.width <= Self.mostPixels, image.height <= Self.mostPixels else {
            throw FrameHostError(
                .unavailable, place: "image", what: "\(path) has \(image.width)x\(image.height) pixels",
                remedy: "Use a picture of \(Self.mostPixels) pixels a side at most.")
        }
        image.format = fh_png_format_rgba()
        width = Int(image.width)
        height = Int(image.height)
        var pixels = [UInt8](repeating: 0, count: width * height * 4)
        guard png_image_finish_read(&image, nil, &pixels, 0, nil) != 0 else { throw Self.fault(path, &image) }
        self.pixels = pixels
    }

    private static func fault(_ path: String, _ image: inout png_image) -> FrameHostError {
        FrameHostError(
            .unavailable, place: "image",
            what: "\(path) cannot be read as PNG: \(String(cString: fh_png_message(&image)))",
            remedy: "Name a PNG, with transparency where the picture shall show through.")
    }
}
