// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Shared
import Testing

@testable import CropOrient

@Suite struct GeometryTests {
    private func geometry(_ change: (inout CropOrientOptions) -> Void, of format: VideoFormat) throws -> Geometry {
        var options = CropOrientOptions()
        change(&options)
        try options.validate()
        return try Geometry(options, of: format)
    }
    private static let hd = VideoFormat(.i420, width: 1920, height: 1080)

    @Test func doesNothingByDefault() throws {
        #expect(try geometry({ _ in }, of: Self.hd).isIdentity(of: Self.hd))
        #expect(try geometry({ $0.size = PictureSize(1920, 1080) }, of: Self.hd).isIdentity(of: Self.hd))
        #expect(try geometry({ $0.aspect = AspectRatio(width: 16, height: 9) }, of: Self.hd).isIdentity(of: Self.hd))
    }

    @Test func cropsTheMiddleWithoutAPlace() throws {
        let plan = try geometry({ $0.crop = CropRectangle(size: PictureSize(720, 720)) }, of: Self.hd)
        #expect(plan.source == Rectangle(x: 600, y: 180, width: 720, height: 720))
        #expect(plan.output == PictureSize(720, 720))
    }

    @Test func beginsAtEvenPlacesWhereChromaIsShared() throws {
        let crop = CropRectangle(size: PictureSize(33, 17), origin: (x: 7, y: 9))
        let plan = try geometry({ $0.crop = crop }, of: Self.hd)
        #expect(plan.source == Rectangle(x: 6, y: 8, width: 33, height: 17))
        #expect(plan.isMoved)
        let exact = try geometry({ $0.crop = crop }, of: VideoFormat(.bgra, width: 1920, height: 1080))
        #expect(exact.source == Rectangle(x: 7, y: 9, width: 33, height: 17))
        #expect(!exact.isMoved)
    }

    @Test func saysWhereACropReachesOutside() throws {
        let error = #expect(throws: FrameHostError.self) {
            _ = try geometry(
                { $0.crop = CropRectangle(size: PictureSize(640, 480), origin: (x: 1300, y: 0)) }, of: Self.hd)
        }
        #expect(
            error?.description
                == "crop: 640x480+1300+0 must lie within the picture, which is 1920x1080. Choose a part inside it.")
    }

    @Test func cropsThePictureAsItIsShown() throws {
        // Stored lying on its side: shown, it is 1080 wide and 1920 high, and its top is the stored left side.
        var format = Self.hd
        format.orientation = .right
        let plan = try geometry(
            { $0.crop = CropRectangle(size: PictureSize(100, 200), origin: (x: 0, y: 0)) }, of: format)
        #expect(plan.source == Rectangle(x: 0, y: 980, width: 200, height: 100))
        #expect(plan.orientation == .right)
        #expect(plan.output == PictureSize(100, 200))
    }

    @Test func fillsCutsTheMiddle() throws {
        let square = try geometry({ $0.size = PictureSize(720, 720) }, of: Self.hd)
        #expect(square.source == Rectangle(x: 420, y: 0, width: 1080, height: 1080))
        #expect(square.target == Rectangle(x: 0, y: 0, width: 720, height: 720))
        let portrait = try geometry({ $0.aspect = AspectRatio(width: 9, height: 16) }, of: Self.hd)
        #expect(portrait.output == PictureSize(608, 1080))
        #expect(portrait.source == Rectangle(x: 656, y: 0, width: 608, height: 1080))
        let turned = try geometry(
            {
                $0.rotate = .right
                $0.aspect = AspectRatio(width: 1, height: 1)
            }, of: Self.hd)
        #expect(turned.source == Rectangle(x: 420, y: 0, width: 1080, height: 1080))
    }

    @Test func containsAddsBars() throws {
        let plan = try geometry(
            {
                $0.size = PictureSize(720, 1280)
                $0.fit = .contain
            }, of: Self.hd)
        #expect(plan.target == Rectangle(x: 0, y: 436, width: 720, height: 406))
        #expect(plan.source == Rectangle(x: 0, y: 0, width: 1920, height: 1080))
        let square = try geometry(
            {
                $0.aspect = AspectRatio(width: 1, height: 1)
                $0.fit = .contain
            }, of: Self.hd)
        #expect(square.output == PictureSize(1920, 1920))
        #expect(square.target == Rectangle(x: 0, y: 420, width: 1920, height: 1080))
    }

    @Test func stretchesToTheWholeSize() throws {
        let plan = try geometry(
            {
                $0.size = PictureSize(100, 300)
                $0.fit = .stretch
            }, of: Self.hd)
        #expect(plan.source == Rectangle(x: 0, y: 0, width: 1920, height: 1080))
        #expect(plan.target == Rectangle(x: 0, y: 0, width: 100, height: 300))
    }

    @Test func honoursTheShapeOfPixels() throws {
        // PAL 16:9: 720x576 pixels of 64:45 are shown as 1024x576.
        var pal = VideoFormat(.i420, width: 720, height: 576)
        pal.sampleAspectRatio = Rational(64, 45)
        let wide = try geometry({ $0.size = PictureSize(1024, 576) }, of: pal)
        #expect(wide.source == Rectangle(x: 0, y: 0, width: 720, height: 576))
        #expect(wide.sampleAspectRatio == Rational(1))
        let turned = try geometry({ $0.rotate = .left }, of: pal)
        #expect(turned.sampleAspectRatio == Rational(45, 64))
        #expect(turned.output == PictureSize(576, 720))
    }

    @Test func refusesTwoShapes() {
        #expect(
            throws: OptionFault(
                "'aspect' 9:16 and 'size' 1280x720 must have the same shape",
                remedy: "Leave 'aspect' out, because 'size' sets the shape too.", options: ["aspect", "size"])
        ) {
            var options = CropOrientOptions()
            options.aspect = AspectRatio(width: 9, height: 16)
            options.size = PictureSize(1280, 720)
            try options.validate()
        }
    }

    @Test(arguments: [
        ("640x480+10+20", true), ("640x480", true), ("640x480+10", false), ("640x480-1+0", false), ("0x480", false),
        ("640", false),
        ("640x480+10+20+30", false), ("640x480++20", false), ("", false),
    ])
    func readsRectangles(text: String, isGood: Bool) throws {
        if isGood {
            #expect(try CropRectangle.decodeOption(.string(text)).description == text)
        } else {
            #expect(throws: OptionFault.self) { _ = try CropRectangle.decodeOption(.string(text)) }
        }
    }
}

@Suite struct CropOrientTests {
    /// Players assume the matrix by the height where none is named.
    @Test(arguments: [
        ((640, 480), "1280x720", UInt8(2), UInt8(6)), ((1280, 720), "640x360", 2, 1), ((640, 480), "320x240", 2, 2),
        ((640, 480), "1280x720", 9, 9), ((1280, 640), nil, 2, 6),
    ])
    func namesTheMatrixThatHeldBeforeTheHeightChanged(
        stored: (Int, Int), size: String?, matrix: UInt8, expected: UInt8
    ) throws {
        let format = VideoFormat(
            .i420, width: stored.0, height: stored.1, color: ColorDescription(matrix: matrix), orientation: .right)
        let options = size.map { #"{ "size": "\#($0)" }"# } ?? "{}"
        let driver = try StageDriver(CropOrient.self, options: options, input: .video(format))
        #expect(driver.outputFormat?.video?.color.matrix == expected)
    }

    @Test(arguments: [PixelFormat.i420, .nv12, .bgra], Orientation.allCases)
    func bringsEveryOrientationUpright(pixels: PixelFormat, orientation: Orientation) throws {
        for (width, height) in [(64, 48), (33, 17), (1, 5), (130, 1)] {
            let format = VideoFormat(pixels, width: width, height: height, orientation: orientation)
            let driver = try StageDriver(CropOrient.self, input: .video(format))
            #expect(driver.outputFormat?.video?.orientation == .up)
            let source = try driver.makeFrame { noise(&$0) }
            let original = source.planeBytes
            try driver.send(source)
            let frame = try driver.nextFrame()
            #expect(frame.orientation == .up)
            for (plane, bytes) in frame.planeBytes.enumerated() {
                let unit = pixels == .bgra ? 4 : pixels == .nv12 && plane == 1 ? 2 : 1
                let rowBytes = pixels.rowBytes(plane: plane, width: width)
                let expected = turned(original[plane], width: rowBytes / unit, unit: unit, orientation)
                #expect(bytes == expected, "\(width)x\(height), plane \(plane)")
            }
        }
    }

    /// Sample by sample: mirrored left to right, then turned clockwise.
    private func turned(_ bytes: [UInt8], width: Int, unit: Int, _ orientation: Orientation) -> [UInt8] {
        var rows = stride(from: 0, to: bytes.count, by: width * unit).map { start in
            stride(from: start, to: start + width * unit, by: unit).map { Array(bytes[$0..<$0 + unit]) }
        }
        if orientation.isMirrored { rows = rows.map { $0.reversed() } }
        for _ in 0..<orientation.quarterTurns {
            rows = rows[0].indices.map { column in rows.reversed().map { $0[column] } }
        }
        return rows.joined().flatMap { $0 }
    }

    @Test func handsOnWhatIsRightAlready() throws {
        let driver = try StageDriver(
            CropOrient.self, options: #"{ "size": "64x36" }"#, input: .video(VideoFormat(.nv12, width: 64, height: 36)))
        #expect(driver.stage.demand.outputBuffers == .sameAsInput)
        let frame = try driver.makeFrame()
        let address = frame.withPlane(0) { Int(bitPattern: $0.baseAddress) }
        try driver.send(frame)
        let out = try driver.nextFrame()
        #expect(out.withPlane(0) { Int(bitPattern: $0.baseAddress) } == address)
    }

    /// A frame that lies otherwise than its link said comes out as from a link that says so, in the size settled
    /// before.
    @Test(arguments: [PixelFormat.i420, .nv12, .bgra], ["fill", "contain", "stretch"])
    func honoursTheOrientationOfEachFrame(pixels: PixelFormat, fit: String) throws {
        let format = VideoFormat(pixels, width: 64, height: 38, orientation: .right)
        let driver = try StageDriver(
            CropOrient.self, options: #"{ "mirror": true, "fit": "\#(fit)" }"#, input: .video(format))
        for orientation in Orientation.allCases + Orientation.allCases {
            try driver.send(
                driver.makeFrame {
                    noise(&$0)
                    $0.orientation = orientation
                })
            let frame = try driver.nextFrame()
            #expect(frame.orientation == .up)
            var other = format
            other.orientation = orientation
            let reference = try StageDriver(
                CropOrient.self, options: #"{ "mirror": true, "size": "38x64", "fit": "\#(fit)" }"#,
                input: .video(other))
            try reference.send(reference.makeFrame { noise(&$0) })
            #expect(try reference.nextFrame().planeBytes == frame.planeBytes, "\(orientation)")
        }
        let logs = driver.takeEvents().map(\.text).filter { $0.contains("the stage before declared") }
        #expect(logs.count == 7)
        #expect(
            logs.first
                == "crop-orient: Frame 0 is stored upright, but the stage before declared its frames as turned 90°. Such frames are also turned upright, and fitted to 38x64 with \"fit\": \"\(fit)\"."
        )
    }

    @Test func cutsTheCropToWhatATurnedFrameHas() throws {
        let driver = try StageDriver(
            CropOrient.self, options: #"{ "crop": "60x20+4+10" }"#,
            input: .video(VideoFormat(.bgra, width: 64, height: 38)))
        try driver.send(driver.makeFrame { $0.orientation = .left })
        let frame = try driver.nextFrame()
        #expect(frame.format.width == 60)
        #expect(frame.format.height == 20)
    }

    @Test func saysThatItHasNothingToTurnAFrameInto() throws {
        let driver = try StageDriver(CropOrient.self, input: .video(VideoFormat(.nv12, width: 64, height: 36)))
        for _ in 0..<2 { try driver.send(driver.makeFrame { $0.orientation = .left }) }
        #expect(try driver.nextFrame().orientation == .left)
        let warnings = driver.takeEvents().filter { $0.level == .warning }
        #expect(
            warnings.map(\.text) == [
                "crop-orient: Frame 0 is stored turned 270°, but the stage before declared its frames as upright. Such frames pass without being turned, because this stage has nothing else to do and so has no buffers. To have them turned, set \"anyOrientation\": true."
            ])
    }

    /// In a list of files one may be turned: then the stage has buffers, though it has nothing else to do.
    @Test func turnsWhatLiesOtherwiseWhenItIsTold() throws {
        let driver = try StageDriver(
            CropOrient.self, options: #"{ "anyOrientation": true }"#,
            input: .video(VideoFormat(.nv12, width: 64, height: 36)))
        for orientation in [Orientation.up, .left] {
            try driver.send(driver.makeFrame { $0.orientation = orientation })
        }
        for _ in 0..<2 {
            let frame = try driver.nextFrame()
            #expect(frame.orientation == .up && frame.format.width == 64 && frame.format.height == 36)
        }
        #expect(!driver.takeEvents().contains { $0.level == .warning })
    }

    /// Turned back to how it is stored: the same buffer, which is upright now.
    @Test func handsOnWhatIsTurnedBackAsUpright() throws {
        let format = VideoFormat(.nv12, width: 64, height: 36, orientation: .right)
        let driver = try StageDriver(CropOrient.self, options: #"{ "rotate": 270 }"#, input: .video(format))
        #expect(driver.stage.demand.outputBuffers == .sameAsInput)
        for orientation in [Orientation.right, .down] {
            try driver.send(driver.makeFrame { $0.orientation = orientation })
        }
        #expect(try driver.nextFrame().orientation == .up)
        // Half a turn and three quarters of one.
        #expect(try driver.nextFrame().orientation == .right)
        #expect(driver.takeEvents().filter { $0.level == .warning }.count == 1)
    }

    @Test func isNotTheInputWhereABarIsAdded() throws {
        let format = VideoFormat(.i420, width: 3, height: 4)
        let plan = try StageDriver(
            CropOrient.self, options: #"{ "aspect": "1:1", "fit": "contain" }"#, input: .video(format))
        #expect(plan.outputFormat?.video?.width == 4)
        #expect(plan.stage.demand.outputBuffers == .own)
    }

    /// Every description of colour, from the link to the encoder, into a file and back.
    @Test(arguments: [
        ColorDescription(range: .video, matrix: 1, primaries: 1, transfer: 1, chromaSiting: 1),
        ColorDescription(range: .full, matrix: 6, primaries: 6, transfer: 6, chromaSiting: 2),
        ColorDescription(range: .video, matrix: 9, primaries: 9, transfer: 16, chromaSiting: 3),
        ColorDescription(range: .full, matrix: 5, primaries: 5, transfer: 13, chromaSiting: 1),
    ])
    func carriesColourFromFileToFile(color: ColorDescription) throws {
        let folder = try ScratchFolder()
        var format = VideoFormat(
            .i420, width: 64, height: 48, frameRate: Rational(25), timeBase: TimeBase(1, 25), color: color)
        try ClipMaker.record(to: folder.file("in.mp4"), format, ClipMaker.steady(5, format))
        let source = try ClipMaker.read(folder.file("in.mp4")).format
        #expect(source.color == color)
        for options in [
            #"{ "rotate": 90 }"#, #"{ "size": "32x32" }"#, #"{ "crop": "20x30+4+4", "mirror": true }"#, "{}",
        ] {
            let driver = try StageDriver(CropOrient.self, options: options, input: .video(source))
            format = try #require(driver.outputFormat?.video)
            #expect(format.color == color)
            try ClipMaker.record(to: folder.file("out\(options.count).mp4"), format, ClipMaker.steady(5, format))
            #expect(try ClipMaker.read(folder.file("out\(options.count).mp4")).format.color == color)
        }
    }

    @Test(arguments: [PixelFormat.i420, .nv12, .bgra]) func paintsBarsAroundThePicture(pixels: PixelFormat) throws {
        let format = VideoFormat(pixels, width: 40, height: 20)
        let driver = try StageDriver(
            CropOrient.self, options: ##"{ "size": "41x61", "fit": "contain", "color": "#ffffff" }"##,
            input: .video(format))
        // Twice, so that a buffer that was used before is seen too.
        for _ in 0..<2 {
            try driver.send(
                driver.makeFrame { frame in
                    for plane in 0..<frame.planeCount {
                        frame.withMutablePlane(plane) { memory in
                            for y in 0..<memory.height { memory.row(y).update(repeating: plane == 0 ? 50 : 128) }
                        }
                    }
                })
            let luma = try driver.nextFrame().planeBytes[0]
            let rowBytes = pixels.rowBytes(plane: 0, width: 41)
            let white: UInt8 = pixels == .bgra ? 255 : 235
            let rows = stride(from: 0, to: luma.count, by: rowBytes).map { Array(luma[$0..<$0 + rowBytes]) }
            let top = 20
            let height = pixels == .bgra ? 21 : 20
            for (y, row) in rows.enumerated() {
                let isPicture = y >= top && y < top + height
                #expect(row.allSatisfy { $0 == (isPicture ? 50 : white) }, "row \(y)")
            }
        }
    }

    @Test(arguments: [PixelFormat.i420, .nv12, .bgra]) func scalesAnySizeToAnyOther(pixels: PixelFormat) throws {
        for (width, height) in [(64, 48), (33, 17), (1, 1), (2, 2), (1, 40)] {
            for size in ["1x1", "7x5", "99x201"] {
                for rotate in [0, 90] {
                    for fit in ["fill", "contain", "stretch"] {
                        let driver = try StageDriver(
                            CropOrient.self,
                            options:
                                ##"{ "size": "\##(size)", "rotate": \##(rotate), "mirror": true, "fit": "\##(fit)", "color": "#7f7f7f" }"##,
                            input: .video(VideoFormat(pixels, width: width, height: height)))
                        try driver.send(
                            driver.makeFrame { frame in
                                for plane in 0..<frame.planeCount {
                                    frame.withMutablePlane(plane) { memory in
                                        for y in 0..<memory.height { memory.row(y).update(repeating: 127) }
                                    }
                                }
                            })
                        let planes = try driver.nextFrame().planeBytes
                        // Grey of 127 in, bars of the same grey (125 in video range): nothing else may appear.
                        #expect(
                            planes.allSatisfy {
                                $0.allSatisfy { (125...128).contains($0) || (pixels == .bgra && $0 == 255) }
                            },
                            "\(width)x\(height) to \(size), \(rotate), \(fit): \(planes.map { "\($0.min()!)...\($0.max()!)" })"
                        )
                    }
                }
            }
        }
    }
}

/// Against ffmpeg's own filters; skipped by name where there is no ffmpeg, except in CI.
@Suite(
    .enabled(if: Tool.ffmpeg != nil || ProcessInfo.processInfo.environment["CI"] == "true", "ffmpeg is not installed"))
struct CropOrientAgainstFFmpegTests {
    @Test(arguments: [
        (#"{ "crop": "100x60+20+10" }"#, "crop=100:60:20:10"),
        (#"{ "crop": "100x60" }"#, "crop=100:60"),
        (#"{ "crop": "100x60+21+11" }"#, "crop=100:60:21:11"),
        (#"{ "aspect": "1:1" }"#, "crop=120:120"),
        (#"{ "rotate": 90 }"#, "transpose=clock"),
        (#"{ "rotate": 270 }"#, "transpose=cclock"),
        (#"{ "rotate": 180 }"#, "hflip,vflip"),
        (#"{ "mirror": true }"#, "hflip"),
        (#"{ "rotate": 180, "mirror": true }"#, "vflip"),
        (#"{ "rotate": 90, "mirror": true }"#, "transpose=cclock_flip"),
        (#"{ "rotate": 270, "mirror": true }"#, "transpose=clock_flip"),
        (#"{ "crop": "100x60+20+10", "rotate": 90, "mirror": true }"#, "crop=100:60:20:10,transpose=clock,hflip"),
    ])
    func isBitIdentical(options: String, filter: String) throws {
        for pixels in [PixelFormat.i420, .nv12, .bgra] {
            let (ours, theirs) = try run(options, [filter], pixels, width: 160, height: 120)
            // ffmpeg crops packed RGB at odd places exactly, as we do.
            #expect(ours == theirs[0], "\(pixels)")
        }
    }

    /// A photograph, up, down and both axes differently; nearest neighbour must fail the same test.
    @Test(
        .enabled(
            if: photograph != nil || isPhotographNeeded,
            "coffee_no_face.png is not there"),
        arguments: [
            "300x200", "400x267", "450x300", "599x399", "800x533", "900x600", "1200x800", "300x600", "900x250",
            "150x100", "97x55",
        ])
    func scalesAsWellAsBilinear(size: String) throws {
        let photograph = try #require(Self.photograph, "CI has no coffee_no_face.png")
        for pixels in [PixelFormat.i420, .nv12, .bgra] {
            let (ours, theirs) = try run(
                #"{ "size": "\#(size)", "fit": "stretch" }"#,
                ["bilinear", "neighbor"].map { "scale=\(size):flags=\($0)" },
                pixels, width: 600, height: 400, of: photograph)
            // Ours has 37 to 57 dB; at little scaling nearest neighbour comes to 36.3.
            #expect(quality(ours, theirs[0]) >= 36.5, "\(pixels)")
            #expect(quality(theirs[1], theirs[0]) < 36.5, "\(pixels)")
        }
    }

    /// In CI, unless `FRAMEHOST_MEDIA` is `none`.
    private static let isPhotographNeeded =
        ProcessInfo.processInfo.environment["CI"] == "true"
        && ProcessInfo.processInfo.environment["FRAMEHOST_MEDIA"] != "none"

    /// Beside the project, or in `$FRAMEHOST_MEDIA`.
    private static let photograph: String? = {
        let folders = [ProcessInfo.processInfo.environment["FRAMEHOST_MEDIA"], "../shared/media"].compactMap { $0 }
        return folders.map { $0 + "/coffee_no_face.png" }.first { FileManager.default.fileExists(atPath: $0) }
    }()

    /// What the stage and what ffmpeg's filters make of one picture, all planes in a row.
    ///
    /// - Parameter path: The picture, of this size; without it one is made.
    private func run(
        _ options: String, _ filters: [String], _ pixels: PixelFormat, width: Int, height: Int, of path: String? = nil
    ) throws -> ([UInt8], [[UInt8]]) {
        let ffmpeg = try #require(Tool.ffmpeg, "CI has no ffmpeg")
        let name = [PixelFormat.i420: "yuv420p", .nv12: "nv12", .bgra: "bgra"][pixels]!
        let folder = try ScratchFolder()
        let raw = ["-f", "rawvideo", "-pix_fmt", name]
        try Tool.run(
            ffmpeg,
            ["-v", "error"]
                + (path.map { ["-i", $0] } ?? [
                    "-f", "lavfi", "-i", "mandelbrot=size=\(width)x\(height):start_scale=0.2",
                ])
                + ["-frames:v", "1", "-vf", "format=\(name)"] + raw + [folder.file("in.raw")])
        try Tool.run(
            ffmpeg,
            ["-v", "error"] + raw + ["-s", "\(width)x\(height)", "-i", folder.file("in.raw")]
                + filters.enumerated().flatMap { ["-vf", $1] + raw + [folder.file("out\($0).raw")] })
        var input = Array(try Data(contentsOf: URL(fileURLWithPath: folder.file("in.raw"))))[...]
        let driver = try StageDriver(
            CropOrient.self, options: options, input: .video(VideoFormat(pixels, width: width, height: height)))
        try driver.send(
            driver.makeFrame { frame in
                for plane in 0..<frame.planeCount {
                    frame.withMutablePlane(plane) { memory in
                        for y in 0..<memory.height {
                            _ = memory.row(y).update(from: input.prefix(memory.rowBytes))
                            input = input.dropFirst(memory.rowBytes)
                        }
                    }
                }
            })
        let theirs = try filters.indices.map {
            Array(try Data(contentsOf: URL(fileURLWithPath: folder.file("out\($0).raw"))))
        }
        return (try driver.nextFrame().planeBytes.flatMap { $0 }, theirs)
    }

    /// Peak signal to noise ratio in decibels; 0 for different sizes.
    private func quality(_ a: [UInt8], _ b: [UInt8]) -> Double {
        guard a.count == b.count, !a.isEmpty else { return 0 }
        // Without sequences, which are slow where they are not optimised.
        var (sum, index) = (0, 0)
        a.withUnsafeBufferPointer { a in
            b.withUnsafeBufferPointer { b in
                while index < a.count {
                    let difference = Int(a[index]) - Int(b[index])
                    sum += difference * difference
                    index += 1
                }
            }
        }
        let error = Double(sum) / Double(a.count)
        return error == 0 ? .infinity : 10 * log10(255 * 255 / error)
    }
}
