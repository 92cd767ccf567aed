// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A small picture from a file, PNG or JPEG.
package struct StillPicture: Equatable, Sendable {
    package let width: Int
    package let height: Int
    /// Red, green, blue and alpha, eight bits each, rows without padding, alpha not premultiplied.
    package let pixels: [UInt8]

    /// - Parameter pixels: Four bytes for each pixel.
    package init(width: Int, height: Int, pixels: [UInt8]) {
        precondition(pixels.count == width * height * 4, "four bytes a pixel")
        (self.width, self.height, self.pixels) = (width, height, pixels)
    }

    /// [control thread] Reads a file.
    ///
    /// - Parameter option: Where the fault is shown.
    /// - Throws: ``FrameHostError`` `.unavailable` for a file that is neither PNG nor JPEG, is damaged, or has more
    ///   than ``PNGFile/mostPixels`` a side.
    package init(_ path: String, option: String) throws {
        if JPEGFile.isOne(path) {
            let file = try JPEGFile(path, option: option)
            self.init(width: file.width, height: file.height, pixels: file.pixels)
        } else {
            let file = try PNGFile(path, option: option, remedy: "Name a PNG or JPEG file.")
            self.init(width: file.width, height: file.height, pixels: file.pixels)
        }
    }
}
