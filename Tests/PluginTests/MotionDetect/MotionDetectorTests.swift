// SPDX-License-Identifier: Apache-2.0

import FrameCore
import MovingScenes
import Shared
import Testing

@testable import MotionDetect

/// Plays scenes to the detector alone.
struct DetectorRun {
    /// When motion began and when it was last seen, in seconds.
    private(set) var spans: [ClosedRange<Double>] = []
    let truth: [ClosedRange<Double>]

    /// - Parameters:
    ///   - rate: Pictures a second.
    ///   - isLost: Of a picture: it is left out.
    init(
        _ scene: MovingScene, width: Int = 320, height: Int = 240, rate: Double = 15,
        settings: MotionDetector.Settings = .init(), ignoring: ((Float, Float) -> Bool)? = nil,
        isLost: (Int) -> Bool = { _ in false }
    ) throws {
        let grid = try #require(CellGrid(pictureWidth: width, pictureHeight: height))
        let format = VideoFormat(.gray8, width: width, height: height)
        let reducer = LumaReducer(format, grid)
        let detector = MotionDetector(grid, settings: settings)
        if let ignoring {
            detector.ignore(
                (0..<grid.count).map {
                    ignoring(
                        (Float($0 % grid.columns) + 0.5) / Float(grid.columns),
                        (Float($0 / grid.columns) + 0.5) / Float(grid.rows))
                })
        }
        var painter = ScenePainter(scene, width: width, height: height)
        let scratch = ScratchPicture(.gray8, width: width, height: height)
        let picture = scratch.picture
        defer { withExtendedLifetime(scratch) {} }
        var small = [UInt8](repeating: 0, count: grid.width * grid.height)
        truth = scene.truth(aspect: Float(width) / Float(height))
        for number in 0..<Int(scene.seconds * rate) where !isLost(number) {
            let seconds = Double(number) / rate
            let time = Int64(seconds * 1e9)
            guard detector.isDue(time) else { continue }
            painter.draw(
                seconds, to: picture[0].base.assumingMemoryBound(to: UInt8.self), strideBytes: picture[0].strideBytes)
            small.withUnsafeMutableBufferPointer {
                reducer.reduce(picture, into: $0.baseAddress!)
                detector.take($0.baseAddress!, time: time)
            }
            guard detector.tracks.contains(where: \.isMotion) else { continue }
            if let last = spans.last, seconds - last.upperBound < 3 {
                spans[spans.count - 1] = last.lowerBound...seconds
            } else {
                spans.append(seconds...seconds)
            }
        }
    }

    /// What moved and was not found.
    var missed: [ClosedRange<Double>] {
        truth.filter { moves in !spans.contains { $0.overlaps(moves) } }
    }

    /// What was found and does not move.
    var falseStarts: [Double] {
        spans.map(\.lowerBound).filter { start in
            !truth.contains { start >= $0.lowerBound - 0.2 && start <= $0.upperBound + 1 }
        }
    }
}

@Suite struct MotionDetectorTests {
    private static func scene(_ name: String) -> MovingScene { MovingScene.all.first { $0.name == name }! }

    /// The short part of what Tests/Soak/motion.py does beside another program.
    @Test(arguments: MovingScene.all) func findsWhatMovesAndNothingElse(scene: MovingScene) throws {
        let run = try DetectorRun(scene)
        #expect(run.missed.isEmpty)
        #expect(run.falseStarts.count <= 1)
    }

    @Test(arguments: ["cars", "light switch"], [5.0, 60])
    func findsTheSameAtAnotherRate(name: String, rate: Double) throws {
        let run = try DetectorRun(Self.scene(name), rate: rate)
        #expect(run.missed.isEmpty)
        #expect(run.falseStarts.count <= 1)
    }

    @Test func goesByTimesWhereFramesAreLost() throws {
        var numbers = SeededNumbers(3)
        let lost = (0..<10_000).map { _ in numbers.unit() < 0.3 }
        let run = try DetectorRun(Self.scene("walker"), rate: 25, isLost: { lost[$0] })
        #expect(run.missed.isEmpty)
        #expect(run.falseStarts.isEmpty)
    }

    @Test func goesOnWhereTimesBeginAnew() throws {
        let grid = try #require(CellGrid(pictureWidth: 320, pictureHeight: 240))
        let detector = MotionDetector(grid)
        var luma = [UInt8](repeating: 90, count: grid.width * grid.height)
        for step in 0..<60 {
            // Another scene at the end, which is followed by a rest.
            if step == 59 { for index in luma.indices { luma[index] = index % 7 < 3 ? 30 : 200 } }
            luma.withUnsafeBufferPointer {
                detector.take($0.baseAddress!, time: 500_000_000_000 + Int64(step) * 100_000_000)
            }
        }
        luma.withUnsafeBufferPointer { detector.take($0.baseAddress!, time: 0) }
        #expect(detector.isLearning(at: 500_000_000))
        #expect(!detector.isLearning(at: 2_100_000_000))
    }

    @Test func looksNotAtIgnoredCells() throws {
        #expect(try DetectorRun(Self.scene("walker"), ignoring: { _, _ in true }).spans.isEmpty)
        // The cars drive in the lower part.
        #expect(try DetectorRun(Self.scene("cars"), ignoring: { _, y in y > 0.45 }).spans.isEmpty)
        #expect(try DetectorRun(Self.scene("walker"), ignoring: { _, y in y < 0.2 }).missed.isEmpty)
    }

    /// Watches a door, 6 % of the picture, which somebody near and cars fill.
    @Test func findsWhatFillsTheWatchedArea() throws {
        let scene = MovingScene(
            "door", seconds: 42,
            [
                .car(from: 6, size: 0.3, ground: 0.7, speed: 0.5, paint: 200), .noise(sigma: 2),
                .walker(from: 16, size: 0.7, ground: 0.9, speed: 0.5, coat: 60),
                .walker(from: 26, size: 0.9, ground: 1, speed: -0.8, coat: 200),
                .car(from: 36, size: 0.4, ground: 0.75, speed: 0.8, paint: 50),
            ])
        let run = try DetectorRun(scene, ignoring: { x, y in x < 0.42 || x > 0.58 || y < 0.3 || y > 0.7 })
        #expect(run.missed.isEmpty)
        #expect(run.falseStarts.isEmpty)
    }

    /// Another scene is still one where only a part is watched.
    @Test func takesAnotherSceneForNoMotionWhereAPartIsWatched() throws {
        let scene = MovingScene("slates", seconds: 40, [.slate(from: 12, until: 18), .noise(sigma: 2)])
        #expect(try DetectorRun(scene, ignoring: { x, _ in x < 0.6 }).spans.isEmpty)
    }

    @Test func findsWhatMovesWherePicturesAreRare() throws {
        let scene = MovingScene(
            "rare", seconds: 300,
            [.walker(from: 100, size: 0.4, ground: 0.88, speed: 0.02, coat: 50), .noise(sigma: 2)])
        let run = try DetectorRun(scene, rate: 0.2)
        #expect(run.missed.isEmpty)
        #expect(run.falseStarts.isEmpty)
    }

    @Test func restsAfterOneLateStep() throws {
        let grid = try #require(CellGrid(pictureWidth: 320, pictureHeight: 240))
        let detector = MotionDetector(grid)
        let luma = [UInt8](repeating: 90, count: grid.width * grid.height)
        func take(_ seconds: Double) {
            luma.withUnsafeBufferPointer { detector.take($0.baseAddress!, time: Int64(seconds * 1e9)) }
        }
        for step in 0..<60 { take(Double(step) / 10) }
        take(9)
        #expect(detector.isLearning(at: 9_500_000_000))
        #expect(!detector.isLearning(at: 10_100_000_000))
        // The third step of three seconds is no gap any more.
        for seconds in [12.0, 15, 18] { take(seconds) }
        #expect(!detector.isLearning(at: 18_100_000_000))
    }

    @Test func findsNothingSmallerThanAsked() throws {
        var settings = MotionDetector.Settings()
        settings.leastShare = 0.3
        #expect(try DetectorRun(Self.scene("walker"), settings: settings).spans.isEmpty)
    }

    @Test func findsNothingShorterThanAsked() throws {
        var settings = MotionDetector.Settings()
        settings.leastSeconds = 20
        #expect(try DetectorRun(Self.scene("walker"), settings: settings).spans.isEmpty)
    }

    @Test func learnsInTheFirstSeconds() throws {
        let run = try DetectorRun(Self.scene("from the first"))
        #expect(run.spans.allSatisfy { $0.lowerBound >= 2 })
        var settings = MotionDetector.Settings()
        settings.learnSeconds = 10
        let patient = try DetectorRun(Self.scene("from the first"), settings: settings)
        #expect(patient.spans.allSatisfy { $0.lowerBound >= 10 })
    }

    @Test(arguments: [(16, 16), (17, 4_000), (4_000, 17), (1, 1), (640, 15), (319, 241), (16_384, 16)])
    func takesPicturesOfAnySize(width: Int, height: Int) throws {
        guard let grid = CellGrid(pictureWidth: width, pictureHeight: height) else {
            #expect(min(width, height) < 16)
            return
        }
        #expect(grid.width <= max(width, 16) && grid.height <= max(height, 16))
        let reducer = LumaReducer(VideoFormat(.gray8, width: width, height: height), grid)
        let scratch = ScratchPicture(.gray8, width: width, height: height)
        let picture = scratch.picture
        defer { withExtendedLifetime(scratch) {} }
        var small = [UInt8](repeating: 0, count: grid.width * grid.height)
        let detector = MotionDetector(grid)
        for number in 0..<30 {
            for row in 0..<height {
                let line = (picture[0].base + row * picture[0].strideBytes).assumingMemoryBound(to: UInt8.self)
                for column in 0..<width { line[column] = UInt8(truncatingIfNeeded: column &* 7 &+ row &* number) }
            }
            small.withUnsafeMutableBufferPointer {
                reducer.reduce(picture, into: $0.baseAddress!)
                detector.take($0.baseAddress!, time: Int64(number) * 100_000_000)
            }
        }
        #expect(detector.movingShare >= 0 && detector.movingShare <= 1)
    }

    @Test func knowsLumaInEveryFormat() throws {
        let grid = try #require(CellGrid(pictureWidth: 64, pictureHeight: 64))
        for pixelFormat in PixelFormat.allCases {
            var format = VideoFormat(pixelFormat, width: 64, height: 64)
            format.color.range = .full
            let scratch = ScratchPicture(pixelFormat, width: 64, height: 64)
            let gray = Paint(RGBColor(red: 100, green: 100, blue: 100), for: format)
            let picture = scratch.picture
            defer { withExtendedLifetime(scratch) {} }
            FrameCanvas(pixelFormat, width: 64, height: 64) { (picture[$0].base, picture[$0].strideBytes) }
                .fill(x: 0, y: 0, width: 64, height: 64, gray)
            var small = [UInt8](repeating: 0, count: grid.width * grid.height)
            small.withUnsafeMutableBufferPointer {
                LumaReducer(format, grid).reduce(picture, into: $0.baseAddress!)
            }
            #expect(small.allSatisfy { (99...101).contains($0) }, "\(pixelFormat): \(small[0])")
        }
    }
}

@Suite struct MotionWatchTests {
    private static let second: Int64 = 1_000_000_000

    @Test func endsAfterItsPatience() {
        var watch = MotionWatch()
        var changes: [MotionWatch.Change] = []
        for (time, size) in [(0, 0), (1, 0.1), (2, 0.3), (3, 0), (4, 0.2), (5, 0), (6, 0), (7, 0), (8, 0)] {
            if let change = watch.take(size: Float(size), time: Int64(time) * Self.second, patience: 3 * Self.second) {
                changes.append(change)
            }
        }
        #expect(changes == [.began, .ended(duration: 3 * Self.second, size: 0.3)])
        #expect(watch.count == 1)
    }

    @Test func goesOnWhereTimesBeginAnew() {
        var watch = MotionWatch()
        let began = watch.take(size: 0.1, time: 100 * Self.second, patience: Self.second)
        let again = watch.take(size: 0.1, time: 0, patience: Self.second)
        let ended = watch.take(size: 0, time: 2 * Self.second, patience: Self.second)
        #expect(began == .began)
        #expect(again == nil)
        #expect(ended == .ended(duration: 0, size: 0.1))
    }

    @Test func endsWithTheRun() {
        var watch = MotionWatch()
        let none = watch.end()
        _ = watch.take(size: 0.2, time: 5, patience: 1)
        let ended = watch.end()
        #expect(none == nil)
        #expect(ended == .ended(duration: 0, size: 0.2))
    }
}
