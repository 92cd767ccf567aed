// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// The steps that make a stored picture look as a form says.
///
/// `region` is cut out of the stored picture, scaled to `scaled`, mirrored and turned as `orientation` says, and put at
/// `place` of a grey picture of `size`.
package struct PicturePlan: Equatable {
    /// In the stored picture.
    let region: Rectangle
    /// What the region is scaled to, before it is turned.
    let scaled: PictureSize
    let orientation: Orientation
    /// Where the turned part lies in the file's picture.
    let place: Rectangle
    let size: PictureSize

    /// Pixels that a file's picture may have: 256 MiB of memory while it is made.
    static let mostPixels = 1 << 26

    /// - Parameters:
    ///   - format: The format of the stored picture.
    ///   - lying: How the stored picture must be turned for display.
    /// - Throws: ``FrameHostError`` `.invalidConfiguration`.
    package init(_ form: PictureForm, of format: VideoFormat, lying: Orientation) throws {
        try Self.check(form)
        orientation = lying.then(Orientation(quarterTurns: form.quarterTurns, mirrored: false))
            .then(form.isMirrored ? .upMirrored : .up)
        let stored = PictureGeometry(format, lying: orientation)
        size = try Self.size(form, shown: stored.shownSides)
        // With one side its own shape, except for rounding.
        let fit: Fit = form.width == nil || form.height == nil ? .stretch : form.fit == .fill ? .fill : .contain
        let placement = PicturePlacement(
            Rectangle(stored.size), pixelAspect: stored.pixelAspect, into: Rectangle(size.turned(by: orientation)), fit)
        region = placement.source
        scaled = placement.target.size
        place = Rectangle(size).middle(scaled.turned(by: orientation))
    }

    /// Whether no grey shows.
    var fillsAll: Bool { place.width == size.width && place.height == size.height }

    private static func check(_ form: PictureForm) throws {
        func fault(_ key: String, _ range: ClosedRange<Int>, _ value: Int, _ remedy: String) -> FrameHostError {
            FrameHostError(
                .invalidConfiguration, place: "\(key)",
                what: "must be from \(range.lowerBound) to \(range.upperBound), but is \(value)", remedy: remedy)
        }
        for (key, side) in [("width", form.width), ("height", form.height)] {
            guard let side, !PictureForm.sides.contains(side) else { continue }
            throw fault(key, PictureForm.sides, side, "Use a number in this range, or leave it out.")
        }
        guard (0...3).contains(form.quarterTurns) else {
            throw fault(
                "quarterTurns", 0...3, form.quarterTurns, "Use a number in this range: each quarter turn is clockwise.")
        }
        guard form.kind != .jpeg || (1...100).contains(form.quality) else {
            throw fault("quality", 1...100, form.quality, "Use 90, the usual value.")
        }
    }

    private static func size(_ form: PictureForm, shown: (width: Double, height: Double)) throws -> PictureSize {
        let most = Double(PictureForm.sides.upperBound)
        func side(_ value: Double) -> Int { max(Int(min(value, 1e6).rounded()), 1) }
        let size: PictureSize
        switch (form.width, form.height) {
        case (let width?, let height?): size = PictureSize(width, height)
        case (let width?, nil): size = PictureSize(width, side(Double(width) * shown.height / shown.width))
        case (nil, let height?): size = PictureSize(side(Double(height) * shown.width / shown.height), height)
        case (nil, nil):
            // The stored picture may be larger than any file's picture, so both sides are limited.
            let scale = min(1, most / max(shown.width, shown.height))
            size = PictureSize(side(shown.width * scale), side(shown.height * scale))
        }
        for (key, other, value) in [("width", "height", size.width), ("height", "width", size.height)]
        where !PictureForm.sides.contains(value) {
            throw FrameHostError(
                .invalidConfiguration, place: "\(other)",
                what:
                    "at this \(other) the picture would be \(value) pixels \(key == "width" ? "wide" : "high"), but a side can have at most \(Int(most))",
                remedy: "Use a smaller \(other), or set both width and height.")
        }
        guard size.width * size.height <= mostPixels else {
            throw FrameHostError(
                .invalidConfiguration, place: form.width == nil && form.height != nil ? "height" : "width",
                what:
                    "a picture of \(size) has \(size.width * size.height) pixels, but must have at most \(mostPixels)",
                remedy: "Set a smaller width or height.")
        }
        return size
    }
}
