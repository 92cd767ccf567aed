// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

struct CropOrientOptions: StageOptions {
    @Option(
        help:
            "Part of the upright picture to keep, such as 640x480+320+120 (size and top left corner) or 640x480 (the middle).",
        unit: "px")
    var crop: CropRectangle? = nil
    @Option(help: "Aspect ratio of the result as shown, width to height, such as 16:9. 'fit' says how it is reached.")
    var aspect: AspectRatio? = nil
    @Option(help: "Rotates the picture clockwise, after 'crop'.", unit: "degrees") var rotate = Rotation.none
    @Option(help: "Mirrors left to right, after 'rotate'.") var mirror = false
    @Option(
        help:
            "Also turns upright pictures that lie otherwise than the stage before declares, as in a list of files. Set it where this stage has nothing else to do: each picture is then copied."
    )
    var anyOrientation = false
    @Option(help: "Size of the result. Default: pixels are not scaled.", unit: "px") var size: PictureSize? = nil
    @Option(
        help:
            "How the picture gets the shape of 'size' or 'aspect': fill crops it to its middle, contain adds bars, stretch distorts it."
    )
    var fit = Fit.fill
    @Option(help: "Colour of the bars that \"fit\": \"contain\" adds.") var color = RGBColor(red: 0, green: 0, blue: 0)

    func validate() throws(OptionFault) {
        guard let aspect, let size else { return }
        let wanted = Double(aspect.width) / Double(aspect.height)
        let given = Double(size.width) / Double(size.height)
        // A size in whole pixels cannot match every shape exactly.
        guard abs(wanted / given - 1) > 0.02 else { return }
        throw OptionFault(
            "'aspect' \(aspect) and 'size' \(size) must have the same shape",
            remedy: "Leave 'aspect' out, because 'size' sets the shape too.", options: ["aspect", "size"])
    }
}

/// Width to height, written `"9:16"`.
struct AspectRatio: OptionValue, Hashable, CustomStringConvertible {
    var width: Int
    var height: Int

    var description: String { "\(width):\(height)" }

    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> AspectRatio {
        let parts = node.asString?.split(separator: ":", omittingEmptySubsequences: false).map { Int($0) } ?? []
        guard parts.count == 2, let width = parts[0], let height = parts[1], (1...10_000).contains(width),
            (1...10_000).contains(height)
        else {
            throw OptionFault(
                "\(node.text()) must be an aspect ratio", remedy: "Write it as \"9:16\", each part from 1 to 10000.")
        }
        return AspectRatio(width: width, height: height)
    }
    var optionJSON: JSONNode { .string(description) }
    static var optionTypeName: String { "aspect ratio" }
    static var optionSchema: JSONNode { ["type": "string", "pattern": "^[1-9][0-9]{0,4}:[1-9][0-9]{0,4}$"] }
}

/// A part of a picture, written as X11 and ImageMagick write it: `"640x480+320+120"`, or `"640x480"` for the middle.
struct CropRectangle: OptionValue, Hashable, CustomStringConvertible {
    var size: PictureSize
    /// Top left corner; nil: the middle.
    var origin: (x: Int, y: Int)?

    var description: String { origin.map { "\(size)+\($0.x)+\($0.y)" } ?? size.description }

    static func == (a: CropRectangle, b: CropRectangle) -> Bool { a.description == b.description }
    func hash(into hasher: inout Hasher) { hasher.combine(description) }

    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> CropRectangle {
        let fault = OptionFault(
            "\(node.text()) must be a part of a picture",
            remedy:
                "Write it as \"640x480+320+120\" (width x height + left + top), or as \"640x480\" for the middle. Width and height must be at least 1, and no number may exceed 16384."
        )
        let parts = node.asString?.split(separator: "+", omittingEmptySubsequences: false) ?? []
        guard parts.count == 1 || parts.count == 3 else { throw fault }
        let numbers = parts.dropFirst().map { Int($0) }
        guard numbers.allSatisfy({ $0.map { (0...PictureSize.range.upperBound).contains($0) } ?? false }) else {
            throw fault
        }
        let size: PictureSize
        do { size = try PictureSize.decodeOption(.string(String(parts[0]))) } catch { throw fault }
        return CropRectangle(size: size, origin: numbers.count == 2 ? (numbers[0]!, numbers[1]!) : nil)
    }
    var optionJSON: JSONNode { .string(description) }
    static var optionTypeName: String { "part of a picture" }
    static var optionSchema: JSONNode {
        ["type": "string", "pattern": "^[1-9][0-9]{0,4}x[1-9][0-9]{0,4}([+][0-9]{1,5}[+][0-9]{1,5})?$"]
    }
}
