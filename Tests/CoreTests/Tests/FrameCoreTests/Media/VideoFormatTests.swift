// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct VideoFormatTests {
    @Test func rowsAndBytesOfEveryPixelFormatAtAnOddSize() {
        let layouts: [PixelFormat: [[Int]]] = [
            .i420: [[5, 3], [3, 2], [3, 2]], .nv12: [[5, 3], [6, 2]], .yuyv: [[12, 3]], .bgra: [[20, 3]],
            .rgb24: [[15, 3]],
            .gray8: [[5, 3]], .i010: [[10, 3], [6, 2], [6, 2]], .p010: [[10, 3], [12, 2]],
        ]
        for format in PixelFormat.allCases {
            let found = (0..<format.planeCount).map {
                [format.rowBytes(plane: $0, width: 5), format.rows(plane: $0, height: 3)]
            }
            #expect(found == layouts[format], "\(format)")
        }
    }

    @Test func padsRowsToSixtyFourBytes() {
        let format = VideoFormat(.nv12, width: 1281, height: 721)
        #expect(format.strideBytes(plane: 0) == 1344)
        #expect(format.strideBytes(plane: 1) == 1344)
        #expect(format.bufferBytes == 1344 * 721 + 1344 * 361)
        #expect(VideoFormat(.gray8, width: 64, height: 1).strideBytes(plane: 0) == 64)
    }

    @Test func isWrittenForPeople() {
        #expect(
            VideoFormat(.i420, width: 1280, height: 720, frameRate: Rational(30)).description == "i420 1280x720 30 fps")
        #expect(
            VideoFormat(.nv12, width: 640, height: 480, frameRate: Rational(30_000, 1001), orientation: .right)
                .description
                == "nv12 640x480 30000/1001 fps, turned 90°")
        #expect(VideoFormat(.bgra, width: 2, height: 2).description == "bgra 2x2 variable rate")
        let video = VideoFormat(.i420, width: 1280, height: 720, frameRate: Rational(25))
        #expect(MediaFormat.encoded(EncodedFormat(codec: .h264, video: video)).description == "H.264 1280x720 25 fps")
        #expect(EncodedFormat(codec: Codec(rawValue: "vp9"), video: video).description == "vp9 1280x720 25 fps")
    }

    @Test func tellsDepthAndColourModel() {
        #expect(PixelFormat.allCases.filter { $0.bitDepth == 10 } == [.i010, .p010])
        #expect(PixelFormat.allCases.filter(\.isRGB) == [.bgra, .rgb24])
    }

    @Test func choosesTheConversionThatLosesLeast() {
        #expect(FormatCost.best(from: .i420, among: [.gray8, .bgra, .nv12]) == .nv12)
        #expect(FormatCost.best(from: .bgra, among: [.gray8, .i420, .rgb24]) == .rgb24)
        #expect(FormatCost.best(from: .p010, among: [.i420, .i010]) == .i010)
        #expect(FormatCost.best(from: .yuyv, among: [.gray8, .i420]) == .i420)
        #expect(FormatCost.best(from: .gray8, among: []) == nil)
        #expect(FormatCost.best(from: .gray8, among: [.i420, .gray8]) == .gray8)
    }

    @Test func saysWhichOfItsNumbersNoPictureHas() {
        let good = VideoFormat(
            .i420, width: 640, height: 480, frameRate: Rational(30_000, 1001), sampleAspectRatio: Rational(16, 11))
        #expect(good.impossibility == nil)
        func changed(_ change: (inout VideoFormat) -> Void) -> String? {
            var format = good
            change(&format)
            #expect(
                MediaFormat.video(format).impossibility
                    == MediaFormat.encoded(EncodedFormat(codec: .h264, video: format)).impossibility)
            return format.impossibility
        }
        #expect(changed { $0.width = 0 } == "a width of 0 pixels, which must be from 1 to 65536")
        #expect(changed { $0.height = .max } == "a height of \(Int.max) pixels, which must be from 1 to 65536")
        #expect(
            changed { $0.frameRate = Rational(-1) }
                == "-1 frames per second, which must be from 1/1000000 to 1000000, or 0 when unknown")
        #expect(changed { $0.frameRate = Rational(.max) } != nil && changed { $0.frameRate = Rational(1, .max) } != nil)
        #expect(changed { $0.sampleAspectRatio = Rational(.min) } != nil)
        #expect(
            changed { $0.sampleAspectRatio = Rational(1, .max) }
                == "a sample aspect ratio of 1/2147483647, which must be from 1/10000 to 10000, or 0 when unknown")
        #expect(changed { ($0.frameRate, $0.sampleAspectRatio) = (Rational(0), Rational(0)) } == nil)
        #expect(EncodedFormat(codec: .h264, video: good, reorderDepth: -1).impossibility != nil)
        #expect(EncodedFormat(codec: .h264, video: good, bitrateKbps: .max).impossibility != nil)
    }
}
