// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import PictureFiles
@testable import Pictures

/// Files of pictures, as Pillow, ffmpeg and exiftool read them.
@Suite(.needsPillow) struct LibraryPictureEncoderTests {
    let encoder = LibraryPictureEncoder()
    let files: PictureFiles

    init() throws { files = try PictureFiles() }

    private static func form(
        _ kind: PictureForm.Kind = .png, width: Int? = nil, height: Int? = nil, fit: PictureForm.Fit = .contain,
        turns: Int = 0, mirrored: Bool = false, quality: Int = 100
    ) -> PictureForm {
        var form = PictureForm(kind)
        (form.width, form.height, form.fit) = (width, height, fit)
        (form.quarterTurns, form.isMirrored, form.quality) = (turns, mirrored, quality)
        return form
    }

    private func pixels(_ picture: StagePicture, _ forms: [PictureForm]) throws -> [RGBPixels] {
        try files.pixels(
            forms.map { try files.write(encoder.encode(picture, as: $0, takenAt: nil), $0.kind.rawValue) })
    }

    // MARK: Colours

    /// Bars of 16 columns, so that a block of JPEG has one colour.
    private static let barSize = (width: 128, height: 16)

    private func bars(_ format: VideoFormat) throws -> (picture: StagePicture, exact: [(Double, Double, Double)]) {
        let colors = (0..<format.width).map { Pattern.bars.color(x: $0, width: format.width) }
        let reference = SampleReference(format)
        let picture = try StagePicture.made(format) { reference.write(colors, to: &$0) }
        return (picture, colors.map { reference.exact($0) })
    }

    /// - Parameter margin: Columns beside each edge between two bars of 16 that are passed over.
    private func worst(_ pixels: RGBPixels, _ exact: [(Double, Double, Double)], margin: Int = 0) -> Double {
        var worst = 0.0
        for y in 0..<pixels.height {
            for x in 0..<pixels.width where (margin..<16 - margin).contains(x % 16) {
                // Where it was scaled: the middle of what the column stands for.
                let color = exact[(2 * x + 1) * exact.count / (2 * pixels.width)]
                for (sample, part) in zip(pixels[x, y], [color.0, color.1, color.2]) {
                    worst = max(worst, abs(Double(sample) - part * 255))
                }
            }
        }
        return worst
    }

    @Test(arguments: PixelFormat.allCases)
    func coloursAreWithinTwoOfTheExactValue(_ pixelFormat: PixelFormat) throws {
        let forms = [Self.form(), Self.form(.jpeg), Self.form(.jpeg, quality: 90)]
        for matrix: UInt8 in pixelFormat.isRGB ? [0] : [1, 6, 9] {
            for range in pixelFormat.isRGB ? [ColorRange.full] : [.video, .full] {
                var format = VideoFormat(pixelFormat, width: Self.barSize.width, height: Self.barSize.height)
                format.color = ColorDescription(range: range, matrix: matrix, primaries: 1, transfer: 1)
                let (picture, exact) = try bars(format)
                for (form, pixels) in zip(forms, try pixels(picture, forms)) {
                    let worst = worst(pixels, exact)
                    #expect(worst <= 2, "\(pixelFormat) \(matrix) \(range), \(form.kind) \(form.quality): \(worst)")
                }
            }
        }
    }

    /// Half the size, in planes of luma and chroma or of RGB; and a preview's JPEG.
    @Test(arguments: PixelFormat.allCases)
    func coloursStayWhereThePictureIsScaled(_ pixelFormat: PixelFormat) throws {
        for matrix: UInt8 in pixelFormat.isRGB ? [0] : [1, 6, 9] {
            for range in pixelFormat.isRGB ? [ColorRange.full] : [.video, .full] {
                var format = VideoFormat(pixelFormat, width: 256, height: 32)
                format.color = ColorDescription(range: range, matrix: matrix, primaries: 1, transfer: 1)
                let (picture, exact) = try bars(format)
                let all = try pixels(
                    picture,
                    [Self.form(width: 128), Self.form(.jpeg, width: 128), Self.form(.jpeg, width: 128, quality: 80)])
                // Where chroma has half the columns a reader draws it across the edges.
                for (pixels, (most, margin)) in zip(all, [(2.5, 0), (2.5, 0), (6, 2)]) {
                    #expect(pixels.width == 128 && pixels.height == 16)
                    let worst = worst(pixels, exact, margin: margin)
                    #expect(worst <= most, "\(pixelFormat) \(matrix) \(range): \(worst), at most \(most)")
                }
            }
        }
    }

    /// A matrix that nobody named is that of the stored height, whatever the file's is.
    @Test func takesTheMatrixFromTheStoredHeight() throws {
        for (height, matrix) in [(719, UInt8(6)), (720, 1)] {
            let unnamed = VideoFormat(.i420, width: 128, height: height)
            var named = unnamed
            named.color.matrix = matrix
            let small = Self.form(width: 64, height: 64, fit: .fill)
            let two = try bars(named).picture
            // The same bytes, and nothing said of their matrix.
            let same = try StagePicture.large(unnamed) { plane, row in
                two.withPlane(plane) { source in _ = row.update(fromContentsOf: source.row(0)) }
            }
            let all = try files.pixels(
                [(two, small), (same, small)].map { try files.write(encoder.encode($0, as: $1, takenAt: nil), "png") })
            #expect(all[0] == all[1], "\(height) rows")
        }
    }

    @Test(.needsFFmpeg) func ffmpegReadsTheSamePixels() throws {
        let (picture, _) = try bars(VideoFormat(.nv12, width: 129, height: 37))
        let path = try files.write(encoder.encode(picture, as: Self.form(), takenAt: 1_700_000_000_000_000_000), "png")
        #expect(try files.ffmpegPixels(path, width: 129, height: 37) == files.pixels([path])[0])
    }

    // MARK: Places

    /// Each pixel another colour, where the format has it: grey, by luma in full range, or red, green and blue.
    private func marked(
        _ pixelFormat: PixelFormat, width: Int, height: Int, lying: Orientation = .up, aspect: Rational = Rational(0)
    ) throws -> (picture: StagePicture, pixels: RGBPixels) {
        var format = VideoFormat(pixelFormat, width: width, height: height)
        format.color = ColorDescription(range: .full, matrix: 6)
        format.sampleAspectRatio = aspect
        func color(_ x: Int, _ y: Int) -> [UInt8] {
            pixelFormat.isRGB
                ? [UInt8(x * 10 % 256), UInt8(y * 14 % 256), UInt8((x + y) % 2 * 90)]
                : [UInt8](repeating: UInt8((x * 9 + y * 29) % 256), count: 3)
        }
        let picture = try StagePicture.made(format, lying: lying) { frame in
            for plane in 0..<pixelFormat.planeCount {
                frame.withMutablePlane(plane) { memory in
                    for y in 0..<memory.height {
                        let row = memory.row(y)
                        for index in row.indices {
                            row[index] =
                                switch (pixelFormat, plane) {
                                case (.bgra, _): (color(index / 4, y) + [255])[[2, 1, 0, 3][index % 4]]
                                case (.rgb24, _): color(index / 3, y)[index % 3]
                                case (.yuyv, _): index % 2 == 0 ? color(index / 2, y)[0] : 128
                                case (_, 0): color(index, y)[0]
                                default: 128
                                }
                        }
                    }
                }
            }
        }
        var bytes: [UInt8] = []
        for y in 0..<height { for x in 0..<width { bytes += color(x, y) } }
        return (picture, RGBPixels(width: width, height: height, bytes: bytes))
    }

    private static let eightBits = PixelFormat.allCases.filter { $0.bitDepth == 8 }

    @Test(arguments: [PixelFormat.bgra, .i420, .yuyv, .gray8])
    func bringsUprightTurnsAndMirrorsToThePixel(_ pixelFormat: PixelFormat) throws {
        var (paths, expected): ([String], [RGBPixels]) = ([], [])
        for lying in Orientation.allCases {
            let (picture, stored) = try marked(pixelFormat, width: 23, height: 9, lying: lying)
            for turns in 0...3 {
                for isMirrored in [false, true] {
                    let form = Self.form(turns: turns, mirrored: isMirrored)
                    paths.append(try files.write(encoder.encode(picture, as: form, takenAt: nil), "png"))
                    var shown = stored.shown(lying)
                    for _ in 0..<turns { shown = shown.turned }
                    expected.append(isMirrored ? shown.mirrored : shown)
                }
            }
        }
        for (index, pixels) in try files.pixels(paths).enumerated() {
            let worst = pixels.worst(against: expected[index])
            #expect(worst.map { $0 <= 1 } == true, "case \(index): \(worst ?? -1)")
        }
    }

    @Test(arguments: eightBits) func cutsTheMiddleToThePixel(_ pixelFormat: PixelFormat) throws {
        let (picture, stored) = try marked(pixelFormat, width: 23, height: 17)
        let wanted: [(PictureForm, RGBPixels)] = [
            // From column 7: between two pixels that share their chroma.
            (Self.form(width: 9, height: 17, fit: .fill), stored.part(7, 0, 9, 17)),
            (Self.form(width: 11, height: 17, fit: .fill), stored.part(6, 0, 11, 17)),
            (Self.form(width: 23, height: 7, fit: .fill), stored.part(0, 5, 23, 7)),
            (Self.form(width: 17, height: 9, fit: .fill, turns: 1), stored.part(7, 0, 9, 17).turned),
            (
                Self.form(width: 17, height: 9, fit: .fill, turns: 1, mirrored: true),
                stored.part(7, 0, 9, 17).turned.mirrored
            ),
            (Self.form(width: 23, height: 17, fit: .fill), stored),
        ]
        for (index, pixels) in try pixels(picture, wanted.map(\.0)).enumerated() {
            let worst = pixels.worst(against: wanted[index].1)
            #expect(worst.map { $0 <= 1 } == true, "case \(index): \(worst ?? -1)")
        }
    }

    @Test(arguments: eightBits) func putsAllOfItOnGrey(_ pixelFormat: PixelFormat) throws {
        let (picture, stored) = try marked(pixelFormat, width: 23, height: 17)
        let wanted: [(PictureForm, RGBPixels)] = [
            (Self.form(width: 33, height: 17), stored.placed(5, 0, in: 33, 17)),
            (Self.form(width: 23, height: 40), stored.placed(0, 11, in: 23, 40)),
            (Self.form(width: 17, height: 40, turns: 3), stored.turned.turned.turned.placed(0, 8, in: 17, 40)),
            (Self.form(width: 40, height: 17, mirrored: true), stored.mirrored.placed(8, 0, in: 40, 17)),
        ]
        for (index, pixels) in try pixels(picture, wanted.map(\.0)).enumerated() {
            let worst = pixels.worst(against: wanted[index].1)
            #expect(worst.map { $0 <= 1 } == true, "case \(index): \(worst ?? -1)")
        }
    }

    // MARK: Scaling

    /// Each sample of a smaller picture is the mean of those it stands for, however many. libyuv's boxes have whole
    /// samples: where they do not divide evenly, a board of single samples has one more of a kind in each.
    @Test(arguments: [PixelFormat.gray8, .i420, .nv12, .yuyv, .bgra])
    func smallerPicturesAreMeans(_ pixelFormat: PixelFormat) throws {
        var format = VideoFormat(pixelFormat, width: 2048, height: 1024)
        format.color = ColorDescription(range: .full, matrix: 6)
        var rows = 0
        let picture = try StagePicture.large(format) { plane, row in
            rows += 1
            for index in row.indices {
                let isLuma = pixelFormat == .yuyv ? index % 2 == 0 : plane == 0
                let x = pixelFormat == .yuyv ? index / 2 : pixelFormat == .bgra ? index / 4 : index
                row[index] = isLuma ? ((x + rows) % 2 == 0 ? 255 : 0) : 128
            }
        }
        let sizes = [(1024, 512), (512, 256), (300, 200), (64, 64), (60, 30), (7, 5), (1, 1), (1, 100), (700, 3)]
        let forms = sizes.map { Self.form(width: $0.0, height: $0.1, fit: .fill) }
        for (size, pixels) in zip(sizes, try pixels(picture, forms)) {
            let worst = pixels.bytes.reduce(0) { max($0, abs(Int($1) - 127)) }
            let isEven = 2048 % size.0 == 0 && 1024 % size.1 == 0
            #expect(worst <= (isEven ? 3 : 20), "\(size): \(worst)")
        }
    }

    @Test(arguments: [PixelFormat.gray8, .i420, .bgra]) func whiteStaysWhiteInAnySize(_ pixelFormat: PixelFormat) throws
    {
        var format = VideoFormat(pixelFormat, width: 1000, height: 700)
        format.color = ColorDescription(range: .full, matrix: 6)
        let picture = try StagePicture.large(format) { plane, row in
            row.update(repeating: plane == 0 ? 255 : 128)
        }
        var dice = Dice(state: 3)
        let forms = (0..<40).map { _ in
            Self.form(width: dice.next(in: 1...1200), height: dice.next(in: 1...900), fit: .fill)
        }
        for (form, pixels) in zip(forms, try pixels(picture, forms)) {
            // Sums of a box are rounded down, in luma and in chroma.
            let darkest = pixels.bytes.min() ?? 0
            #expect(darkest >= 250, "\(form.width!)x\(form.height!): \(darkest)")
        }
    }

    /// What is left stays left: a picture of two halves, in any size.
    @Test(arguments: [PixelFormat.i420, .rgb24]) func enlargesWithoutMovingAnything(_ pixelFormat: PixelFormat) throws {
        var format = VideoFormat(pixelFormat, width: 40, height: 20)
        format.color = ColorDescription(range: .full, matrix: 6)
        let picture = try StagePicture.large(format) { plane, row in
            for index in row.indices { row[index] = plane > 0 ? 128 : index < row.count / 2 ? 255 : 0 }
        }
        let forms = [Self.form(width: 400), Self.form(width: 37), Self.form(height: 500), Self.form(width: 8)]
        for pixels in try pixels(picture, forms) {
            #expect(abs(pixels.height * 2 - pixels.width) <= 1)
            let edge = pixels.width / 40 + 2
            for x in 0..<pixels.width where abs(2 * x - pixels.width) > 2 * edge {
                let value = pixels[x, pixels.height / 2][0]
                #expect(x < pixels.width / 2 ? value >= 253 : value <= 2, "column \(x) of \(pixels.width): \(value)")
            }
        }
    }

    // MARK: What stands in the file

    @Test(.needsExiftool, arguments: [PictureForm.Kind.jpeg, .png])
    func saysWhenItWasTakenAndThatItIsUpright(_ kind: PictureForm.Kind) throws {
        let (picture, _) = try marked(.i420, width: 32, height: 16, lying: .right)
        let path = try files.write(
            encoder.encode(picture, as: Self.form(kind), takenAt: 1_700_000_000_123_456_789), kind.rawValue)
        let exif = try files.exif(path)
        #expect(exif["DateTimeOriginal"] == "2023:11:14 22:13:20")
        #expect(exif["SubSecTimeOriginal"] == "123")
        #expect(exif["OffsetTimeOriginal"] == "+00:00")
        #expect(exif["Orientation"] == "Horizontal (normal)")
        #expect(exif["Software"] == "framehost")
        #expect(exif["ExifImageWidth"] == "16" && exif["ExifImageHeight"] == "32")
        #expect(exif["ImageSize"] == "16x32")
        if kind == .png { #expect(exif["ModifyDate"] == "2023:11:14 22:13:20") }
        #expect(exif["Validate"] == "OK" && exif["Error"] == nil, "\(exif)")
        let without = try files.write(encoder.encode(picture, as: Self.form(kind), takenAt: nil), kind.rawValue)
        let plain = try files.exif(without)
        #expect(plain["DateTimeOriginal"] == nil && plain["ModifyDate"] == nil && plain["Software"] == "framehost")
    }

    @Test func knowsTheCalendar() {
        #expect(WallTime(0).exifText == "1970:01:01 00:00:00")
        #expect(WallTime(-1).exifText == "1969:12:31 23:59:59" && WallTime(-1).millisecond == 999)
        #expect(WallTime(1_709_164_800_000_000_000).exifText == "2024:02:29 00:00:00")
        #expect(WallTime(.max).exifText == "2262:04:11 23:47:16" && WallTime(.min).exifText == "1677:09:21 00:12:43")
    }

    @Test func qualityIsThatOfTheJPEG() throws {
        let (picture, _) = try marked(.bgra, width: 200, height: 100)
        let sizes = try [10, 50, 80, 95].map {
            try encoder.encode(picture, as: Self.form(.jpeg, quality: $0), takenAt: nil).count
        }
        #expect(sizes == sizes.sorted() && sizes[0] * 2 < sizes[3], "\(sizes)")
    }

    // MARK: All sizes

    @Test func takesEverySizeAndForm() throws {
        var dice = Dice(state: 11)
        let sides = [1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 64, 97, 130, 255]
        let targets = [1, 2, 3, 9, 16, 50, 63, 64, 65, 200, 333]
        var (paths, sizes): ([String], [PictureSize]) = ([], [])
        for index in 0..<400 {
            let pixelFormat = PixelFormat.allCases[index % PixelFormat.allCases.count]
            var (width, height) = (dice.pick(sides), dice.pick(sides))
            if index % 40 == 0 { (width, height) = dice.next(in: 0...1) == 0 ? (16_384, 2) : (1, 16_384) }
            var format = VideoFormat(pixelFormat, width: width, height: height)
            format.color.range = dice.next(in: 0...1) == 0 ? .video : .full
            format.color.matrix = UInt8(dice.next(in: 0...14))
            if dice.next(in: 0...3) == 0 {
                format.sampleAspectRatio = Rational(Int32(dice.next(in: 1...64)), Int32(dice.next(in: 1...64)))
            }
            let noise = UInt8(dice.next(in: 0...255))
            let picture = try StagePicture.large(format) { _, row in
                for index in row.indices { row[index] = UInt8(truncatingIfNeeded: index &* 37) ^ noise }
            }
            let kind: PictureForm.Kind = dice.next(in: 0...1) == 0 ? .jpeg : .png
            let form = Self.form(
                kind, width: dice.next(in: 0...2) == 0 ? nil : dice.pick(targets),
                height: dice.next(in: 0...2) == 0 ? nil : dice.pick(targets),
                fit: dice.next(in: 0...1) == 0 ? .contain : .fill, turns: dice.next(in: 0...3),
                mirrored: dice.next(in: 0...1) == 0, quality: dice.next(in: 1...100))
            do {
                let plan = try PicturePlan(form, of: format, lying: .up)
                paths.append(try files.write(encoder.encode(picture, as: form, takenAt: 5), kind.rawValue))
                sizes.append(plan.size)
            } catch let fault as FrameHostError {
                // A side that would follow from the other by the shape.
                #expect(fault.what.contains("picture's shape") || fault.what.contains("pixels"), "\(fault)")
            }
        }
        #expect(paths.count > 350, "\(paths.count)")
        for (index, pixels) in try files.pixels(paths).enumerated() {
            #expect(PictureSize(pixels.width, pixels.height) == sizes[index])
        }
    }

    @Test func takesTheLargestSides() throws {
        let picture = try StagePicture.large(VideoFormat(.i420, width: 64, height: 4)) { plane, row in
            row.update(repeating: plane == 0 ? 235 : 128)
        }
        let forms = [
            Self.form(.jpeg, width: 16_384, height: 8, fit: .fill), Self.form(width: 8, height: 16_384, fit: .fill),
            Self.form(width: 16_384, height: 3),
        ]
        for (form, pixels) in zip(forms, try pixels(picture, forms)) {
            #expect(pixels.width == form.width && pixels.height == form.height)
            #expect(pixels[pixels.width / 2, pixels.height / 2] == [255, 255, 255])
        }
    }

    @Test func refusesAPictureThatLibyuvCannotScale() throws {
        let picture = try StagePicture(VideoFormat(.gray8, width: 40_000, height: 2))
        #expect(
            throws: FrameHostError(
                .exhausted,
                what: "a picture of 40000x2 cannot be scaled: each side must be at most 32767 pixels",
                remedy: "Name a stage with smaller pictures.")
        ) { try encoder.encode(picture, as: Self.form(width: 100), takenAt: nil) }
        // A part of it is not scaled.
        let part = try encoder.encode(picture, as: Self.form(width: 100, height: 2, fit: .fill), takenAt: nil)
        #expect(!part.isEmpty)
    }

    // MARK: From picture to picture

    @Test func givesTheSameFromSeveralThreads() throws {
        let pictures = try [PixelFormat.i420, .nv12, .yuyv, .bgra].map {
            try marked($0, width: 300, height: 200).picture
        }
        let forms = [
            Self.form(.jpeg, width: 120, quality: 80), Self.form(.png, turns: 1), Self.form(.jpeg, height: 300),
            Self.form(.png, width: 50, height: 90, fit: .fill),
        ]
        let jobs = pictures.flatMap { picture in forms.map { (picture, $0) } }
        let expected = try jobs.map { try encoder.encode($0.0, as: $0.1, takenAt: 7) }
        let (wrong, shared) = (Locked(0), encoder)
        DispatchQueue.concurrentPerform(iterations: 16 * jobs.count) { index in
            let job = index * 7 % jobs.count
            let file = try? shared.encode(jobs[job].0, as: jobs[job].1, takenAt: 7)
            if file != expected[job] { wrong.withLock { $0 += 1 } }
        }
        #expect(wrong.withLock { $0 } == 0)
        #expect((1...LibraryPictureEncoder.mostIdle).contains(encoder.idleCount), "\(encoder.idleCount)")
    }

    @Test func keepsItsMemoryAndTakesNoMore() throws {
        let (picture, _) = try marked(.nv12, width: 640, height: 360)
        let forms = [
            Self.form(.jpeg, width: 320, quality: 80), Self.form(.png, width: 100),
            Self.form(.jpeg, turns: 1, quality: 90),
        ]
        func round() throws { for form in forms { _ = try encoder.encode(picture, as: form, takenAt: nil) } }
        try round()
        let kept = encoder.idleBytes
        #expect(kept > 0 && encoder.idleCount == 1)
        for _ in 0..<20 { try round() }
        #expect(encoder.idleBytes == kept && encoder.idleCount == 1)
    }

    @Test func givesLargeMemoryBack() throws {
        let picture = try StagePicture.large(VideoFormat(.gray8, width: 4, height: 4)) { _, row in
            row.update(repeating: 9)
        }
        _ = try encoder.encode(picture, as: Self.form(.jpeg, width: 5000, height: 4000, fit: .fill), takenAt: nil)
        #expect(encoder.idleBytes < 6 * GrowingMemory.mostKept, "\(encoder.idleBytes)")
        _ = try encoder.encode(
            picture, as: Self.form(.jpeg, width: 5000, height: 4000, fit: .fill, turns: 1), takenAt: nil)
        #expect(encoder.idleBytes < GrowingMemory.mostKept, "80 MB of pixels went back: \(encoder.idleBytes)")
    }
}

private struct Dice {
    var state: UInt64

    mutating func next(in range: ClosedRange<Int>) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return range.lowerBound + Int((state >> 33) % UInt64(range.count))
    }

    mutating func pick<Value>(_ values: [Value]) -> Value { values[next(in: 0...values.count - 1)] }
}
