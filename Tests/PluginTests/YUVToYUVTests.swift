// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared
import Testing

@testable import Conversion
@testable import Convert

/// From one matrix and range to another, against an independent computation in floating point.
@Suite struct YUVToYUVTests {
    private static let colors = [UInt8(1), 4, 6, 7, 9].flatMap { matrix in
        [ColorRange.video, .full].map { ColorDescription(range: $0, matrix: matrix) }
    }

    @Test(arguments: [PixelFormat.i420, .nv12, .yuyv, .gray8], colors)
    func staysWithinTwoOfTheExactValue(format: PixelFormat, from: ColorDescription) throws {
        for (width, height) in [(512, 2), (71, 33), (1, 1), (2, 19)] {
            let source = VideoFormat(format, width: width, height: height, color: from)
            for to in Self.colors {
                let target = VideoFormat(format, width: width, height: height, color: to)
                let converter = YUVToYUV(from: source, to: target)
                #expect(
                    (converter == nil) == (from.range == to.range && (format == .gray8 || from.matrix == to.matrix)))
                guard let converter else { continue }
                for pattern in [Pattern.bars, .ramp] {
                    let colors = (0..<width).map { pattern.color(x: $0, width: width) }
                    let before = SampleReference(source)
                    let driver = try StageDriver(
                        Convert.self, options: #"{ "format": "\#(format.rawValue)" }"#, input: .video(source))
                    var frame = try driver.makeFrame { before.write(colors, to: &$0) }
                    frame.withMutablePicture(converter.convert)
                    let reference = SampleReference(target)
                    let expected = colors.map { reference.samples(of: before.exact($0)) }
                    let worst =
                        frame.planeBytes.enumerated()
                        .map { reference.worstError(of: $1, plane: $0, expected: expected) }.max() ?? 0
                    #expect(worst <= 2, "\(pattern), \(width)x\(height), \(from) to \(to)")
                }
            }
        }
    }

    @Test func convertsNothingWhereAnUnnamedMatrixIsTheSame() {
        func format(_ height: Int, _ matrix: UInt8, _ pixels: PixelFormat = .i420) -> VideoFormat {
            VideoFormat(pixels, width: 64, height: height, color: ColorDescription(matrix: matrix))
        }
        #expect(YUVToYUV(from: format(48, 2), to: format(48, 6)) == nil)
        #expect(YUVToYUV(from: format(720, 2), to: format(48, 1)) == nil)
        #expect(YUVToYUV(from: format(48, 2), to: format(720, 2)) != nil)
        #expect(YUVToYUV(from: format(48, 5), to: format(48, 1, .bgra)) == nil)
    }

    /// Two full descriptions: pixel format, range and matrix at once.
    @Test(arguments: [
        (PixelFormat.bgra, ColorDescription(range: .full, matrix: 0), PixelFormat.i420),
        (.rgb24, ColorDescription(range: .full, matrix: 0), .yuyv), (.i420, ColorDescription(matrix: 6), .nv12),
        (.yuyv, ColorDescription(matrix: 7), .i420), (.i010, ColorDescription(matrix: 9), .yuyv),
    ]) func convertsThePixelFormatToo(from: PixelFormat, color: ColorDescription, to: PixelFormat) throws {
        let source = VideoFormat(from, width: 512, height: 4, color: color)
        let target = VideoFormat(to, width: 512, height: 4, color: ColorDescription(range: .full, matrix: 1))
        let maker = try StageDriver(Convert.self, input: .video(source))
        let taker = try StageDriver(
            Convert.self, options: #"{ "format": "\#(to.rawValue)" }"#, input: .video(target))
        let converter = PictureConverter(from: source, to: target)
        for pattern in [Pattern.bars, .ramp] {
            let colors = (0..<512).map { pattern.color(x: $0, width: 512) }
            let before = SampleReference(source)
            let frame = try maker.makeFrame { before.write(colors, to: &$0) }
            var result = try taker.makeFrame()
            frame.withPicture { picture in result.withMutablePicture { converter.convert(picture, into: $0) } }
            let reference = SampleReference(target)
            let expected = colors.map { reference.samples(of: before.exact($0)) }
            let worst =
                result.planeBytes.enumerated()
                .map { reference.worstError(of: $1, plane: $0, expected: expected) }.max() ?? 0
            // Two conversions, each within 2.
            #expect(worst <= 4, "\(pattern)")
        }
    }
}
