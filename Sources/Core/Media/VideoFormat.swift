// SPDX-License-Identifier: Apache-2.0

/// The nominal range of the samples. ISO/IEC 23091-2, VideoFullRangeFlag.
public enum ColorRange: String, Sendable, Hashable, Codable {
    /// Luma 16...235, chroma 16...240 (8 bit).
    case video
    /// 0...255 (8 bit).
    case full
}

/// Code points of ISO/IEC 23091-2 (H.273); 2 is "unspecified". Carried unchanged from source to container and SDP.
public struct ColorDescription: Sendable, Hashable, Codable {
    /// The nominal range of the samples.
    public var range: ColorRange
    /// MatrixCoefficients: 1 BT.709, 5 or 6 BT.601, 9 BT.2020.
    public var matrix: UInt8
    /// ColourPrimaries.
    public var primaries: UInt8
    /// TransferCharacteristics.
    public var transfer: UInt8
    /// Chroma sample location type as in H.264 E.2.1 plus 1; 0 unspecified, 1 left, 2 centre, 3 top-left.
    public var chromaSiting: UInt8

    /// Describes colours; what is left out is unspecified.
    public init(
        range: ColorRange = .video, matrix: UInt8 = 2, primaries: UInt8 = 2, transfer: UInt8 = 2,
        chromaSiting: UInt8 = 0
    ) {
        self.range = range
        self.matrix = matrix
        self.primaries = primaries
        self.transfer = transfer
        self.chromaSiting = chromaSiting
    }
}

/// What all raw pictures of a link have in common.
///
/// To change only the size, copy the input's format and set ``width`` and ``height``: colours and orientation then
/// stay. But where no matrix is named (2), players assume BT.709 from 720 rows on and BT.601 for fewer. A stage that
/// changes the height names the one that held before.
public struct VideoFormat: Sendable, Hashable, CustomStringConvertible {
    /// How the samples lie in memory.
    public var pixelFormat: PixelFormat
    /// Pixels in a row, as stored (before ``Orientation`` is applied).
    public var width: Int
    /// Rows, as stored.
    public var height: Int
    /// Nominal frames per second; zero when variable or unknown.
    public var frameRate: Rational
    /// The tick of the origin's time stamps, so that a writer can restore them exactly.
    public var timeBase: TimeBase
    /// What the samples mean as colours.
    public var color: ColorDescription
    /// The width of a sample divided by its height; zero when unknown.
    public var sampleAspectRatio: Rational
    /// How the stored picture is to be turned for display, when the whole link agrees on it.
    public var orientation: Orientation

    /// A format of pictures; what is left out is unknown, or the usual value.
    public init(
        _ pixelFormat: PixelFormat, width: Int, height: Int, frameRate: Rational = Rational(0),
        timeBase: TimeBase = .nanoseconds, color: ColorDescription = ColorDescription(),
        sampleAspectRatio: Rational = Rational(0), orientation: Orientation = .up
    ) {
        self.pixelFormat = pixelFormat
        self.width = width
        self.height = height
        self.frameRate = frameRate
        self.timeBase = timeBase
        self.color = color
        self.sampleAspectRatio = sampleAspectRatio
        self.orientation = orientation
    }

    /// The range of either side, in pixels.
    public static let sides = 1...65_536
    /// The range of a ``frameRate`` other than zero, in frames per second: from one frame in eleven days.
    public static let frameRates = 1e-6...1e6
    /// The range of a ``sampleAspectRatio`` other than zero.
    public static let aspectRatios = 1e-4...1e4

    /// Says which number no picture can have, as the end of a sentence: `a width of 0 pixels, which must be from 1 to 65536`;
    /// nil when all numbers are possible.
    ///
    /// The host checks the formats that every stage gives, so that a stage need not check those of its neighbours.
    public var impossibility: String? {
        if !Self.sides.contains(width) { return "a width of \(width) pixels, which must be from 1 to 65536" }
        if !Self.sides.contains(height) { return "a height of \(height) pixels, which must be from 1 to 65536" }
        if !frameRate.isZero, !Self.frameRates.contains(frameRate.value) {
            return "\(frameRate) frames per second, which must be from 1/1000000 to 1000000, or 0 when unknown"
        }
        if !sampleAspectRatio.isZero, !Self.aspectRatios.contains(sampleAspectRatio.value) {
            return
                "a sample aspect ratio of \(sampleAspectRatio), which must be from 1/10000 to 10000, or 0 when unknown"
        }
        return nil
    }

    /// `i420 1280x720 30 fps`, the way `framehost check` shows it.
    public var description: String {
        let rate = frameRate.isZero ? "variable rate" : "\(frameRate) fps"
        let turned = orientation == .up ? "" : ", \(orientation)"
        return "\(pixelFormat.rawValue) \(width)x\(height) \(rate)\(turned)"
    }

    /// Rows start at multiples of this many bytes, which suits AVX-512 and every library in use.
    public static let strideAlignment = 64

    /// The stride of plane `index` in a pool's buffer, in bytes.
    public func strideBytes(plane index: Int) -> Int {
        let row = pixelFormat.rowBytes(plane: index, width: width)
        return (row + Self.strideAlignment - 1) / Self.strideAlignment * Self.strideAlignment
    }

    /// The size of a pool's buffer in bytes: all planes with their padding.
    public var bufferBytes: Int {
        (0..<pixelFormat.planeCount).reduce(0) {
            $0 + strideBytes(plane: $1) * pixelFormat.rows(plane: $1, height: height)
        }
    }
}

/// One of the eight ways a stored picture can lie; the values are those of Exif 2.32, tag Orientation.
public enum Orientation: UInt8, Sendable, Hashable, Codable, CaseIterable, CustomStringConvertible {
    /// Upright as stored.
    case up = 1
    /// Upright after mirroring left to right.
    case upMirrored
    /// Upright after a turn of 180°.
    case down
    /// Upright after mirroring left to right and then a turn of 180°.
    case downMirrored
    /// Upright after mirroring left to right and then a turn of 270° clockwise.
    case leftMirrored
    /// Upright after a turn of 90° clockwise.
    case right
    /// Upright after mirroring left to right and then a turn of 90° clockwise.
    case rightMirrored
    /// Upright after a turn of 270° clockwise.
    case left

    /// How many quarter turns clockwise bring the stored picture upright, after the mirroring.
    public var quarterTurns: Int {
        switch self {
        case .up, .upMirrored: 0
        case .right, .rightMirrored: 1
        case .down, .downMirrored: 2
        case .left, .leftMirrored: 3
        }
    }

    /// Whether the stored picture is mirrored left to right before it is turned.
    public var isMirrored: Bool {
        self == .upMirrored || self == .downMirrored || self == .leftMirrored || self == .rightMirrored
    }

    /// The orientation that mirrors first (if asked) and then turns clockwise by `quarterTurns`, any integer.
    public init(quarterTurns: Int, mirrored: Bool) {
        let plain: [Orientation] = [.up, .right, .down, .left]
        let flipped: [Orientation] = [.upMirrored, .rightMirrored, .downMirrored, .leftMirrored]
        self = (mirrored ? flipped : plain)[(quarterTurns % 4 + 4) % 4]
    }

    /// Whether the upright picture is as wide as the stored one is high.
    public var swapsSides: Bool { quarterTurns % 2 == 1 }

    public var description: String {
        quarterTurns == 0 && !isMirrored ? "upright" : "\(isMirrored ? "mirrored, " : "")turned \(quarterTurns * 90)°"
    }
}
