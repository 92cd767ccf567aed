// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// One way a camera can work.
struct CameraMode: Equatable {
    var pixels: CameraPixels
    /// As the driver names it.
    var code: FourCC
    var size: PictureSize
    /// Frames per second; zero where the driver does not say.
    var rate: Rational

    /// `1280x720 at 25 fps (yuyv)`.
    var text: String {
        rate.isZero ? "\(size) (\(pixels.rawValue))" : "\(size) at \(rate.short) fps (\(pixels.rawValue))"
    }
}

/// What the chain file asks of a camera.
struct AskedMode: Equatable {
    var size: PictureSize
    var rate: Rational
    /// Nil for any.
    var pixels: CameraPixels?

    var text: String { "\(size) at \(rate.short) fps" + (pixels.map { " (\($0.rawValue))" } ?? "") }
}

/// Chooses by closeness: first the size, then the rate, then what costs the chain least. Pure.
enum FormatChoice {
    static func best(of modes: [CameraMode], for asked: AskedMode) -> CameraMode? {
        modes.filter { mode in asked.pixels.map { mode.pixels == $0 } ?? (mode.pixels != .h264) }
            .min { distance($0, asked) < distance($1, asked) }
    }

    /// Ratios, not differences: half the width is as far as twice the width.
    private static func distance(_ mode: CameraMode, _ asked: AskedMode) -> (Double, Double, Int) {
        let size =
            far(Double(mode.size.width), Double(asked.size.width))
            + far(Double(mode.size.height), Double(asked.size.height))
        // A camera that does not say may have the rate, but one that says so comes first.
        let rate = mode.rate.isZero ? 0.01 : far(mode.rate.value, asked.rate.value)
        // 29.97 is as good as 30.
        return (size, rate < 0.005 ? 0 : rate, CameraPixels.byCost.firstIndex(of: mode.pixels) ?? 0)
    }

    private static func far(_ a: Double, _ b: Double) -> Double { abs(log(a / b)) }

    /// A note on the differences from the request; nil when there are none.
    static func difference(_ mode: CameraMode, _ asked: AskedMode) -> String? {
        let isRate = mode.rate.isZero || far(mode.rate.value, asked.rate.value) < 0.005
        return mode.size == asked.size && isRate
            ? nil : "requested \(asked.text), but the camera gives \(mode.text). `framehost devices` lists its modes"
    }
}

extension V4L2Device {
    /// Every mode that this plugin can use; from continuous sizes and rates those near `asked`.
    func modes(near asked: AskedMode) -> [CameraMode] {
        formats().flatMap { format -> [CameraMode] in
            guard let pixels = CameraPixels(format.code) else { return [] }
            var sizes = self.sizes(format.code).candidates(near: asked.size)
            // Some drivers list no sizes. They choose one near the requested size.
            if sizes.isEmpty, let answer = try? self.format(format.code, asked.size, isSet: false),
                answer.pixelformat == format.code.code, let size = PictureSize(driver: answer.width, answer.height)
            {
                sizes = [size]
            }
            return sizes.flatMap { size in
                rates(format.code, size).candidates(near: asked.rate).map {
                    CameraMode(pixels: pixels, code: format.code, size: size, rate: $0)
                }
            }
        }
    }
}

extension AskedMode {
    /// The format for a camera that is not there: the pictures of every camera can be converted to it.
    var plannedWithout: VideoFormat {
        let code: UInt8 = 6
        return VideoFormat(
            .i420, width: size.width, height: size.height, frameRate: rate,
            color: ColorDescription(range: .video, matrix: code, primaries: 1, transfer: 13, chromaSiting: 1),
            sampleAspectRatio: Rational(1))
    }
}
