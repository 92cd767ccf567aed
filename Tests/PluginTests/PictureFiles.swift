// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Convert

/// A picture's pixels: red, green, blue.
struct RGBPixels: Equatable {
    var width: Int
    var height: Int
    var bytes: [UInt8]

    subscript(x: Int, y: Int) -> [UInt8] { Array(bytes[((y * width + x) * 3)..<((y * width + x) * 3 + 3)]) }

    /// The largest difference of any sample; nil where the sizes differ.
    func worst(against other: RGBPixels) -> Int? {
        guard width == other.width, height == other.height else { return nil }
        return zip(bytes, other.bytes).reduce(0) { max($0, abs(Int($1.0) - Int($1.1))) }
    }

    // Turned and mirrored pixel by pixel, by the words of `Orientation` and with nothing of the plugin's code.

    var mirrored: RGBPixels { made(width, height) { x, y in self[width - 1 - x, y] } }
    /// A quarter turn clockwise: the left column becomes the top row.
    var turned: RGBPixels { made(height, width) { x, y in self[y, height - 1 - x] } }
    func part(_ left: Int, _ top: Int, _ width: Int, _ height: Int) -> RGBPixels {
        made(width, height) { x, y in self[left + x, top + y] }
    }
    /// On grey.
    func placed(_ left: Int, _ top: Int, in width: Int, _ height: Int) -> RGBPixels {
        made(width, height) { x, y in
            let (x, y) = (x - left, y - top)
            return x >= 0 && y >= 0 && x < self.width && y < self.height ? self[x, y] : [128, 128, 128]
        }
    }
    func shown(_ orientation: Orientation) -> RGBPixels {
        var picture = orientation.isMirrored ? mirrored : self
        for _ in 0..<orientation.quarterTurns { picture = picture.turned }
        return picture
    }

    private func made(_ width: Int, _ height: Int, _ color: (Int, Int) -> [UInt8]) -> RGBPixels {
        var bytes: [UInt8] = []
        for y in 0..<height { for x in 0..<width { bytes += color(x, y) } }
        return RGBPixels(width: width, height: height, bytes: bytes)
    }
}

/// Files of pictures as other programs read them.
final class PictureFiles {
    let folder: ScratchFolder
    private var count = 0

    init() throws { folder = try ScratchFolder() }

    func write(_ bytes: [UInt8], _ kind: String) throws -> String {
        count += 1
        let path = folder.file("\(count).\(kind)")
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return path
    }

    private static let script = """
        import sys
        from PIL import Image
        Image.MAX_IMAGE_PIXELS = None
        for path in sys.argv[1:]:
            picture = Image.open(path)
            picture.load()
            assert picture.mode == "RGB", picture.mode
            with open(path + ".rgb", "wb") as file: file.write(picture.tobytes())
            with open(path + ".size", "w") as file: file.write("%d %d" % picture.size)
        """

    /// By Pillow, which reads with libraries of its own build.
    func pixels(_ paths: [String]) throws -> [RGBPixels] {
        try Tool.run(debianPython, ["-c", Self.script] + paths)
        return try paths.map { path in
            let size = try String(contentsOfFile: path + ".size", encoding: .utf8).split(separator: " ").map {
                Int($0)!
            }
            let bytes = try Data(contentsOf: URL(fileURLWithPath: path + ".rgb"))
            return RGBPixels(width: size[0], height: size[1], bytes: Array(bytes))
        }
    }

    /// By ffmpeg, a PNG's pixels.
    func ffmpegPixels(_ path: String, width: Int, height: Int) throws -> RGBPixels {
        let program = try #require(Tool.ffmpeg, "ffmpeg is not installed: make test-packages")
        try Tool.run(
            program,
            ["-nostdin", "-v", "error", "-y", "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", path + ".ffmpeg"])
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path + ".ffmpeg"))
        return RGBPixels(width: width, height: height, bytes: Array(bytes))
    }

    /// All that exiftool finds in a file, and what it holds of it.
    func exif(_ path: String) throws -> [String: String] {
        let program = try #require(Tool.find("exiftool"))
        let out = path + ".exif"
        try Tool.run(
            "/bin/sh", ["-c", "\"$0\" -a -s -validate -warning -error \"-all\" \"$1\" > \"$2\"", program, path, out])
        var found: [String: String] = [:]
        for line in try String(contentsOfFile: out, encoding: .utf8).split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            if parts.count == 2 { found[parts[0]] = parts[1] }
        }
        return found
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips by name where python3-pil is missing, except in CI: there the test runs, and fails for want of it.
    static var needsPillow: Self {
        .enabled(
            if: hasPillow || ProcessInfo.processInfo.environment["CI"] == "true", "python3-pil is not installed")
    }
    static var needsExiftool: Self {
        .enabled(
            if: Tool.find("exiftool") != nil || ProcessInfo.processInfo.environment["CI"] == "true",
            "libimage-exiftool-perl is not installed")
    }
}

/// The one that python3-pil is for; another may come first in PATH.
private let debianPython = "/usr/bin/python3"

private let hasPillow = (try? Tool.run(debianPython, ["-c", "import PIL"])) != nil

extension StagePicture {
    /// A picture that lies so, its planes filled by `fill`.
    static func made(
        _ format: VideoFormat, lying orientation: Orientation = .up, _ fill: (inout Frame) throws -> Void
    ) throws -> StagePicture {
        let driver = try StageDriver(Convert.self, options: #"{ "format": "gray8" }"#, input: .video(format))
        let frame = try driver.makeFrame { frame in
            try fill(&frame)
            frame.orientation = orientation
        }
        return try StagePicture(of: frame)
    }

    /// A large one, upright: written where no frame of that size is to be had.
    static func large(_ format: VideoFormat, _ fill: (_ plane: Int, _ row: UnsafeMutableBufferPointer<UInt8>) -> Void)
        throws -> StagePicture
    {
        let picture = try StagePicture(format)
        for index in 0..<picture.planeCount {
            picture.withPlane(index) { plane in
                for y in 0..<plane.height {
                    let row = UnsafeMutablePointer(mutating: plane.baseAddress + y * plane.strideBytes)
                    fill(index, UnsafeMutableBufferPointer(start: row, count: plane.rowBytes))
                }
            }
        }
        return picture
    }
}
