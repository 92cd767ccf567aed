// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared
import Testing

@testable import Conversion
@testable import Convert

/// Every pair of formats against an independent computation in floating point.
@Suite struct ConvertTests {
    static let targets: [PixelFormat] = [.i420, .nv12, .yuyv, .bgra, .rgb24, .gray8]

    @Test(arguments: PixelFormat.allCases, targets)
    func staysWithinTwoOfTheExactValue(from source: PixelFormat, to target: PixelFormat) throws {
        // Two columns for each level of the ramp. From 720 rows on RGB becomes BT.709.
        let sizes =
            [(source.bitDepth == 10 ? 2048 : 512, 2), (71, 33), (1, 1), (2, 19)] + (source.isRGB ? [(18, 720)] : [])
        for size in sizes.map({ (width: $0.0, height: $0.1) }) {
            for matrix: UInt8 in source.isRGB ? [0] : [1, 4, 6, 7, 9] {
                for range in source.isRGB ? [ColorRange.full] : [.video, .full] {
                    var format = VideoFormat(source, width: size.width, height: size.height)
                    format.color = ColorDescription(range: range, matrix: matrix, primaries: 1, transfer: 1)
                    for pattern in [Pattern.bars, .ramp] { try check(format, target, pattern) }
                }
            }
        }
    }

    private func check(_ format: VideoFormat, _ target: PixelFormat, _ pattern: Pattern) throws {
        let driver = try StageDriver(
            Convert.self, options: "{ \"format\": \"\(target.rawValue)\" }", input: .video(format))
        let output = try #require(driver.outputFormat?.video)
        // What stands in the source, sample by sample, as the reference sees it.
        let colors = (0..<format.width).map { pattern.color(x: $0, width: format.width) }
        let source = SampleReference(format)
        try driver.send(driver.makeFrame { frame in source.write(colors, to: &frame) })
        let frame = try driver.nextFrame()
        #expect(frame.sequenceNumber == 0)
        let expected = colors.map { SampleReference(output).samples(of: source.exact($0)) }
        let reference = SampleReference(output)
        let worst =
            frame.planeBytes.enumerated().map { index, bytes in
                reference.worstError(of: bytes, plane: index, expected: expected)
            }.max() ?? 0
        #expect(
            worst <= 2, "\(pattern), \(format.pixelFormat) \(format.color.range) \(format.color.matrix) to \(target)")
    }

    /// Every code value, in every sample: the nearest eighth bit, never the one below.
    @Test(arguments: [(PixelFormat.i010, PixelFormat.i420), (.i010, .gray8), (.p010, .nv12), (.p010, .gray8)])
    func roundsTenBits(from source: PixelFormat, to target: PixelFormat) throws {
        let driver = try StageDriver(
            Convert.self, options: "{ \"format\": \"\(target.rawValue)\" }",
            input: .video(VideoFormat(source, width: 2048, height: 2)))
        try driver.send(
            driver.makeFrame { frame in
                for plane in 0..<frame.planeCount {
                    frame.withMutablePlane(plane) { memory in
                        for y in 0..<memory.height {
                            let row = memory.row(y)
                            for x in 0..<row.count / 2 {
                                let code = (x % 1024) << (source == .p010 ? 6 : 0)
                                row[2 * x] = UInt8(code & 255)
                                row[2 * x + 1] = UInt8(code >> 8)
                            }
                        }
                    }
                }
            })
        for bytes in try driver.nextFrame().planeBytes {
            let expected = bytes.indices.map { UInt8(min((Double($0 % 1024) / 4).rounded(), 255)) }
            #expect(bytes == expected)
        }
    }

    private static func hdr(_ source: PixelFormat, _ transfer: UInt8) -> VideoFormat {
        VideoFormat(
            source, width: 2048, height: 5,
            color: ColorDescription(range: .video, matrix: 9, primaries: 9, transfer: transfer))
    }

    /// HLG and PQ become 8 bits for ordinary screens, and no longer say that they are HLG or PQ.
    @Test(
        arguments: [
            (PixelFormat.i010, PixelFormat.i420), (.i010, .gray8), (.p010, .nv12), (.i010, .nv12), (.p010, .bgra),
        ],
        [UInt8(16), 18])
    func mapsTones(formats: (source: PixelFormat, target: PixelFormat), transfer: UInt8) throws {
        let driver = try StageDriver(
            Convert.self, options: "{ \"format\": \"\(formats.target.rawValue)\" }",
            input: .video(Self.hdr(formats.source, transfer)))
        #expect(driver.outputFormat?.video?.color.transfer == 1)
        #expect(driver.takeEvents().contains { $0.text.contains("are tone-mapped to 8 bits") })
        try driver.send(
            driver.makeFrame { frame in
                for plane in 0..<frame.planeCount {
                    frame.withMutablePlane(plane) { memory in
                        for y in 0..<memory.height {
                            let row = memory.row(y)
                            for x in 0..<row.count / 2 {
                                let code = (plane == 0 ? min(x, 1023) : 512) << (formats.source == .p010 ? 6 : 0)
                                row[2 * x] = UInt8(code & 255)
                                row[2 * x + 1] = UInt8(code >> 8)
                            }
                        }
                    }
                }
            })
        let planes = try driver.nextFrame().planeBytes
        let step = formats.target == .bgra ? 4 : 1
        let row = stride(from: 0, to: 1024 * step, by: step).map { planes[0][$0] }
        #expect(zip(row.dropFirst(), row).allSatisfy { $0 >= $1 }, "brighter stays brighter")
        let (black, white) = formats.target == .bgra ? (UInt8(0), UInt8(255)) : (16, 235)
        #expect(row[64] == black && row[940] == white && row[1023] == white)
        // 100 nits are 0.508 of the range in PQ and 0.63 in HLG; 0.616 of the screen's signal by Hable.
        let code = transfer == 16 ? 509 : 616
        let share = Double(Int(row[code]) - Int(black)) / Double(white - black)
        #expect(abs(share - 0.616) < 0.01, "\(share)")
        if formats.target == .bgra {
            for x in stride(from: 0, to: 4096, by: 4) {
                #expect(abs(Int(planes[0][x]) - Int(planes[0][x + 2])) <= 2, "grey stays grey")
            }
        } else {
            for plane in planes.dropFirst() { #expect(plane.allSatisfy { $0 == 128 }) }
        }
    }

    @Test(arguments: [UInt8(16), 18]) func refusesToneMappingWhereItIsOff(transfer: UInt8) throws {
        #expect {
            _ = try StageDriver(
                Convert.self, options: #"{ "toneMap": "off" }"#, input: .video(Self.hdr(.i010, transfer)))
        } throws: {
            FrameHostError.wrap($0).what.contains("makes no 8 bits of them")
        }
        _ = try StageDriver(Convert.self, options: #"{ "toneMap": "off" }"#, input: .video(Self.hdr(.i010, 1)))
    }

    /// Two rows of two colours: their chroma is the mean of both.
    @Test(arguments: [PixelFormat.yuyv, .bgra, .rgb24], [PixelFormat.i420, .nv12])
    func meansChromaOverItsRows(from source: PixelFormat, to target: PixelFormat) throws {
        let format = VideoFormat(source, width: 34, height: 9)
        let driver = try StageDriver(
            Convert.self, options: "{ \"format\": \"\(target.rawValue)\" }", input: .video(format))
        let output = try #require(driver.outputFormat?.video)
        let reference = SampleReference(format)
        let colors = [(0.75, 0.0, 0.25), (0.125, 0.5, 0.0)]
        try driver.send(
            driver.makeFrame { frame in
                reference.write(Array(repeating: colors[0], count: format.width), to: &frame)
                var other = try driver.makeFrame()
                reference.write(Array(repeating: colors[1], count: format.width), to: &other)
                let rows = other.planeBytes[0]
                frame.withMutablePlane(0) { memory in
                    for y in stride(from: 1, to: 9, by: 2) {
                        _ = memory.row(y).update(from: rows.prefix(memory.rowBytes))
                    }
                }
            })
        let frame = try driver.nextFrame()
        let samples = colors.map { SampleReference(output).samples(of: reference.exact($0)) }
        for plane in 1..<frame.planeCount {
            let bytes = frame.planeBytes[plane]
            for (index, byte) in bytes.enumerated() {
                let isU = target == .i420 ? plane == 1 : index % 2 == 0
                // The last of nine rows has no partner.
                let isLast = index / (bytes.count / 5) == 4
                let (a, b) = (isU ? samples[0].1 : samples[0].2, isU ? samples[1].1 : samples[1].2)
                #expect(abs(Double(byte) - (isLast ? a : (a + b) / 2)) <= 2, "plane \(plane), sample \(index)")
            }
        }
    }

    @Test func handsOnWhatIsRightAlready() throws {
        let driver = try StageDriver(
            Convert.self, options: #"{ "format": "nv12" }"#, input: .video(VideoFormat(.nv12, width: 8, height: 8)))
        #expect(driver.stage.demand.outputBuffers == .sameAsInput)
        let frame = try driver.makeFrame()
        let address = frame.withPlane(0) { Int(bitPattern: $0.baseAddress) }
        try driver.send(frame)
        let out = try driver.nextFrame()
        #expect(out.withPlane(0) { Int(bitPattern: $0.baseAddress) } == address)
    }

    @Test func keepsTimeAndOrientation() throws {
        let format = VideoFormat(.bgra, width: 8, height: 8, frameRate: Rational(25), orientation: .right)
        let driver = try StageDriver(Convert.self, input: .video(format))
        #expect(driver.outputFormat?.video?.orientation == .right)
        #expect(driver.outputFormat?.video?.frameRate == Rational(25))
        for _ in 0..<2 { try driver.send(driver.makeFrame()) }
        _ = try driver.nextFrame()
        let frame = try driver.nextFrame()
        #expect(frame.pts.nanoseconds == 40_000_000)
        #expect(frame.sequenceNumber == 1)
        #expect(frame.orientation == .right)
    }

    @Test func saysWhichColourItMakes() {
        var format = VideoFormat(.nv12, width: 1280, height: 720)
        format.color = ColorDescription(range: .full, matrix: 9, primaries: 9, transfer: 14, chromaSiting: 1)
        #expect(Convert.converted(format, to: .i420).color == format.color)
        #expect(
            Convert.converted(format, to: .bgra).color
                == ColorDescription(range: .full, matrix: 0, primaries: 9, transfer: 14))
        let rgb = VideoFormat(.rgb24, width: 1280, height: 720)
        #expect(Convert.converted(rgb, to: .i420).color == ColorDescription(range: .video, matrix: 1, chromaSiting: 2))
        #expect(
            Convert.converted(VideoFormat(.rgb24, width: 640, height: 480), to: .yuyv).color
                == ColorDescription(range: .video, matrix: 6))
    }

    @Test(arguments: [PixelFormat.i010, .p010]) func refusesToMakeTenBits(format: PixelFormat) {
        #expect(
            throws: OptionFault(
                "'format' cannot be \(format.rawValue): this stage can only read it",
                remedy: "Use i420, nv12, yuyv, bgra, rgb24 or gray8.", options: ["format"])
        ) {
            var options = ConvertOptions()
            options.format = format
            try options.validate()
        }
    }

    @Test(arguments: [LumaWeights.bt601, .bt709, .bt2020]) func keepsGreyGreyFromRGB(weights: LumaWeights) {
        let fixed = RGBToYUV.Weights(weights)
        for value in UInt16(0)...255 {
            #expect(fixed.u(value, value, value) == 128)
            #expect(fixed.v(value, value, value) == 128)
        }
        #expect(Int(fixed.luma.red) + Int(fixed.luma.green) + Int(fixed.luma.blue) == 220)
    }
}

enum Pattern {
    case bars, ramp

    /// Red, green and blue in 0...1; columns change at even places only.
    func color(x: Int, width: Int) -> (Double, Double, Double) {
        let place = Double(x / 2 * 2) / Double(max(width - 2, 1))
        switch self {
        case .ramp:
            let level = min(place, 1)
            return (level, level, level)
        case .bars:
            let bar = min(Int(place * 8), 7)
            let level = bar < 4 ? 1.0 : 0.75
            return (bar & 4 == 0 ? level : 0, bar & 2 == 0 ? level : 0, bar & 1 == 0 ? level : 0)
        }
    }
}

/// The samples of a format by the definitions of ISO/IEC 23091-2, in floating point, with nothing of the stage's code.
struct SampleReference {
    /// Luma and chroma (or red, green, blue) as code values, not rounded.
    typealias Samples = (Double, Double, Double)
    let format: VideoFormat

    init(_ format: VideoFormat) { self.format = format }

    private var weights: (red: Double, green: Double, blue: Double) {
        switch format.color.matrix {
        case 1: (0.2126, 0.7152, 0.0722)
        case 4: (0.3, 0.59, 0.11)
        case 7: (0.212, 0.701, 0.087)
        case 9: (0.2627, 0.678, 0.0593)
        default: (0.299, 0.587, 0.114)
        }
    }
    private var top: Double { format.pixelFormat.bitDepth == 10 ? 1023 : 255 }
    private var scale: Double { format.pixelFormat.bitDepth == 10 ? 4 : 1 }
    private var isVideo: Bool { format.color.range == .video }

    /// Code values of a colour (0...1).
    func samples(of color: (Double, Double, Double)) -> Samples {
        if format.pixelFormat.isRGB { return (color.0 * 255, color.1 * 255, color.2 * 255) }
        let y = weights.red * color.0 + weights.green * color.1 + weights.blue * color.2
        let u = (color.2 - y) / (2 - 2 * weights.blue)
        let v = (color.0 - y) / (2 - 2 * weights.red)
        let middle = 128 * scale
        if isVideo { return ((16 + 219 * y) * scale, middle + 224 * scale * u, middle + 224 * scale * v) }
        return (y * top, middle + u * top, middle + v * top)
    }

    /// Whole code values as they are stored.
    func codes(of color: (Double, Double, Double)) -> (Int, Int, Int) {
        let exact = samples(of: color)
        func code(_ value: Double) -> Int { Int(min(max(value.rounded(), 0), top)) }
        return (code(exact.0), code(exact.1), code(exact.2))
    }

    /// The colour that the stored codes stand for, each part cut to 0...1.
    func exact(_ color: (Double, Double, Double)) -> (Double, Double, Double) {
        let codes = codes(of: color)
        let (a, b, c) = (Double(codes.0), Double(codes.1), Double(codes.2))
        if format.pixelFormat.isRGB { return (a / 255, b / 255, c / 255) }
        let isGray = format.pixelFormat == .gray8
        let y = isVideo ? (a / scale - 16) / 219 : a / top
        let u = isGray ? 0 : isVideo ? (b / scale - 128) / 224 : (b - 128 * scale) / top
        let v = isGray ? 0 : isVideo ? (c / scale - 128) / 224 : (c - 128 * scale) / top
        let red = y + v * (2 - 2 * weights.red)
        let blue = y + u * (2 - 2 * weights.blue)
        let green = (y - weights.red * red - weights.blue * blue) / weights.green
        func cut(_ value: Double) -> Double { min(max(value, 0), 1) }
        return (cut(red), cut(green), cut(blue))
    }

    /// Writes a column's colour into every row.
    func write(_ colors: [(Double, Double, Double)], to frame: inout Frame) {
        let codes = colors.map { self.codes(of: $0) }
        for plane in 0..<format.pixelFormat.planeCount {
            frame.withMutablePlane(plane) { memory in
                for y in 0..<memory.height {
                    let row = memory.row(y)
                    for index in 0..<(row.count / bytesPerSample) {
                        let (x, part) = place(of: index, plane: plane)
                        let code = codes[min(x, codes.count - 1)]
                        var value = part == 0 ? code.0 : part == 1 ? code.1 : part == 2 ? code.2 : 255
                        if format.pixelFormat == .p010 { value <<= 6 }
                        row[index * bytesPerSample] = UInt8(value & 255)
                        if bytesPerSample == 2 { row[index * 2 + 1] = UInt8(value >> 8) }
                    }
                }
            }
        }
    }

    private var bytesPerSample: Int { format.pixelFormat.bitDepth == 10 ? 2 : 1 }

    /// Pixel column and component (0...2, 3 for alpha) of a sample in a row.
    private func place(of index: Int, plane: Int) -> (x: Int, part: Int) {
        switch format.pixelFormat {
        case .i420, .i010: plane == 0 ? (index, 0) : (index * 2, plane)
        case .nv12, .p010: plane == 0 ? (index, 0) : (index / 2 * 2, 1 + index % 2)
        case .yuyv: index % 2 == 0 ? (index / 2, 0) : (index / 4 * 2, index % 4 == 1 ? 1 : 2)
        case .bgra: (index / 4, [2, 1, 0, 3][index % 4])
        case .rgb24: (index / 3, index % 3)
        case .gray8: (index, 0)
        }
    }

    /// The largest difference of any sample of a plane (8 bit, rows without padding) from what its column should be.
    func worstError(of bytes: [UInt8], plane: Int, expected: [Samples]) -> Double {
        let rowBytes = format.pixelFormat.rowBytes(plane: plane, width: format.width)
        var worst = 0.0
        for (offset, byte) in bytes.enumerated() {
            let (x, part) = place(of: offset % rowBytes, plane: plane)
            // The second pixel of the last group of an odd width lies outside the picture.
            guard x < expected.count else { continue }
            let exact = part == 0 ? expected[x].0 : part == 1 ? expected[x].1 : part == 2 ? expected[x].2 : 255
            worst = max(worst, abs(Double(byte) - exact))
        }
        return worst
    }
}
