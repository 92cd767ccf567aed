// SPDX-License-Identifier: Apache-2.0

import CV4L2
import FrameCore

/// A pixel format by its four letters in V4L2.
struct FourCC: Hashable, CustomStringConvertible {
    let code: UInt32

    init(code: UInt32) { self.code = code }

    /// - Precondition: four ASCII characters.
    init(_ text: StaticString) {
        precondition(text.utf8CodeUnitCount == 4, "a FourCC has four letters")
        code = (0..<4).reduce(0) { $0 | UInt32(text.utf8Start[$1]) << UInt32(8 * $1) }
    }

    var description: String {
        let bytes = (0..<4).map { UInt8(truncatingIfNeeded: code >> UInt32(8 * $0)) & 0x7F }
        let text = String(decoding: bytes.map { $0 > 32 && $0 < 127 ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
        // The uppermost bit means big-endian (v4l2_fourcc_be).
        return code >> 31 == 0 ? text : "\(text)-BE"
    }
}

/// The camera formats that this plugin takes.
enum CameraPixels: String, OptionChoice {
    case nv12, i420, yuyv, mjpeg
    /// Passed on as access units, and only used where the chain file asks for it.
    case h264

    /// The cheapest for the chain first: encoders take the first two as they are.
    static let byCost: [CameraPixels] = [.nv12, .i420, .yuyv, .mjpeg]

    /// The names that drivers use for it, the usual one first.
    var codes: [FourCC] {
        switch self {
        case .nv12: [FourCC("NV12")]
        case .i420: [FourCC("YU12")]
        case .yuyv: [FourCC("YUYV")]
        case .mjpeg: [FourCC("MJPG"), FourCC("JPEG")]
        case .h264: [FourCC("H264")]
        }
    }

    init?(_ code: FourCC) {
        guard let known = Self.allCases.first(where: { $0.codes.contains(code) }) else { return nil }
        self = known
    }

    /// The format of its pictures in the chain; for H.264 the presumed format before encoding.
    var pixelFormat: PixelFormat {
        switch self {
        case .nv12: .nv12
        case .i420, .mjpeg, .h264: .i420
        case .yuyv: .yuyv
        }
    }
}

/// The range of widths or of heights that a driver offers.
struct Steps: Equatable {
    let least: Int
    let most: Int
    let step: Int

    /// Takes any numbers of a driver.
    init(_ least: UInt32, _ most: UInt32, _ step: UInt32) {
        let range = PictureSize.range
        self.least = min(max(Int(least), range.lowerBound), range.upperBound)
        self.most = min(max(Int(most), self.least), range.upperBound)
        self.step = min(max(Int(step), 1), range.upperBound)
    }

    func nearest(to side: Int) -> Int {
        let within = min(max(side, least), most)
        let lower = least + (within - least) / step * step
        return within - lower > step / 2 && lower + step <= most ? lower + step : lower
    }
}

/// Sizes a camera has in one format.
enum SizeOffer: Equatable {
    case list([PictureSize])
    case steps(width: Steps, height: Steps)

    /// The sizes that are worth comparing with the requested one.
    func candidates(near asked: PictureSize) -> [PictureSize] {
        switch self {
        case .list(let sizes): sizes
        case .steps(let width, let height):
            [PictureSize(width.nearest(to: asked.width), height.nearest(to: asked.height))]
        }
    }
}

/// Rates a camera has in one format and size.
enum RateOffer: Equatable {
    /// Highest first; none where the driver does not say.
    case list([Rational])
    case range(slowest: Rational, fastest: Rational)

    /// The rates that are worth comparing with the requested one; zero for a camera that does not say.
    func candidates(near asked: Rational) -> [Rational] {
        switch self {
        case .list(let rates): rates.isEmpty ? [Rational(0)] : rates
        case .range(let slowest, let fastest):
            [asked.value < slowest.value ? slowest : asked.value > fastest.value ? fastest : asked]
        }
    }
}

extension PictureSize {
    /// The size for a driver's numbers; nil for one that no frame can have.
    init?(driver width: UInt32, _ height: UInt32) {
        guard let width = Int(exactly: width), let height = Int(exactly: height), Self.range.contains(width),
            Self.range.contains(height)
        else { return nil }
        self.init(width, height)
    }
}

extension Rational {
    /// The rate for a driver's frame interval, reduced; nil for an impossible one.
    init?(interval: v4l2_fract) {
        guard interval.numerator > 0, interval.denominator > 0 else { return nil }
        var (a, b) = (interval.numerator, interval.denominator)
        while b != 0 { (a, b) = (b, a % b) }
        guard let top = Int32(exactly: interval.denominator / a), let bottom = Int32(exactly: interval.numerator / a),
            VideoFormat.frameRates.contains(Double(top) / Double(bottom))
        else { return nil }
        self.init(top, bottom)
    }

    /// The rate in messages: `12.5`, `29.97`.
    var short: String {
        let hundredths = (value * 100).rounded() / 100
        return hundredths == hundredths.rounded() ? "\(Int(hundredths))" : "\(hundredths)"
    }
}
