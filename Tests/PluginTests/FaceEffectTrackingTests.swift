// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared
import Testing

@testable import FaceEffect

@Suite struct FaceTracksTests {
    private static let frameTime: Int64 = 33_333_333

    /// Frames of tracks without pixels: what is followed stands still.
    private struct Run {
        var tracks: FaceTracks
        var frame = -1

        init(_ rules: FaceTracks.Rules = FaceTracks.Rules()) { tracks = FaceTracks(rules) }

        /// One frame. `faces` nil: no detection. `isFollowed`: the points are found again.
        mutating func step(_ faces: [Detection]?, isFollowed: Bool = true, motion: (Double, Double) = (0, 0)) {
            frame += 1
            let moved = FaceMotion(dx: motion.0, dy: motion.1, growth: 1, turn: 0, agreement: 1)
            tracks.follow({ _ in isFollowed ? moved : nil }, scaleX: 1, scaleY: 1)
            if let faces { tracks.take(faces, frame: frame, now: frame, time: Int64(frame) * frameTime) { $0 } }
            tracks.settle(frame: frame, time: Int64(frame) * frameTime)
        }

        var shown: [UInt32] { tracks.tracks.filter(\.isConfirmed).map(\.id) }
    }

    private static let face = Detection.at(100, 100, 40, 50)

    @Test func aFaceCountsOnceTwoOfThreeDetectionsSawIt() {
        var run = Run()
        run.step([Self.face])
        #expect(run.shown.isEmpty)
        #expect(run.tracks.hasDoubts)
        run.step([])
        #expect(run.shown.isEmpty)
        run.step([Self.face])
        #expect(run.shown == [1])
        #expect(!run.tracks.hasDoubts)
    }

    @Test func aFaceSeenInOneOfThreeIsForgotten() {
        var run = Run()
        run.step([Self.face])
        run.step([])
        run.step([])
        #expect(run.tracks.tracks.isEmpty)
        run.step([Self.face])
        #expect(run.shown.isEmpty)
    }

    @Test func aDoubtfulDetectionKeepsAFaceAndBeginsNone() {
        var rules = FaceTracks.Rules()
        rules.leastConfidence = 0.8
        var run = Run(rules)
        let doubtful = Detection.at(100, 100, 40, 50, confidence: 0.7)
        for _ in 0..<4 { run.step([doubtful]) }
        #expect(run.tracks.tracks.isEmpty)
        for _ in 0..<3 { run.step([Self.face]) }
        for _ in 0..<90 { run.step([doubtful]) }
        #expect(run.shown == [1])
    }

    @Test func countsAtOnceWithPrivacy() {
        var rules = FaceTracks.Rules()
        rules.confirmsAtOnce = true
        var run = Run(rules)
        run.step([Self.face])
        #expect(run.shown == [1])
    }

    @Test func keepsIdsWhenFacesPassEachOther() {
        var run = Run()
        for step in 0..<20 {
            let x = Double(step) * 12
            run.step([.at(50 + x, 100, 40, 50), .at(290 - x, 170, 40, 50)], motion: (0, 0))
        }
        let byPlace = run.tracks.tracks.sorted { $0.box.y < $1.box.y }
        #expect(byPlace.map(\.id) == [1, 2])
        #expect(byPlace[0].box.x > byPlace[1].box.x)
    }

    @Test func survivesShortMissesAndGoesAfterLongOnes() {
        var run = Run()
        for _ in 0..<6 { run.step([Self.face]) }
        for _ in 0..<8 { run.step([]) }
        #expect(run.shown == [1])
        for _ in 0..<60 { run.step([]) }
        #expect(run.shown.isEmpty)
    }

    @Test func aFaceWhosePointsAreLostGoesSooner() {
        var run = Run()
        for _ in 0..<30 { run.step([Self.face]) }
        for _ in 0..<12 { run.step(nil, isFollowed: false) }
        #expect(run.shown.isEmpty)
    }

    @Test func comesBackUnderItsIdWithinASecond() {
        var run = Run()
        for _ in 0..<6 { run.step([Self.face]) }
        for _ in 0..<15 { run.step([], isFollowed: false) }
        #expect(run.shown.isEmpty)
        run.step([.at(110, 105, 40, 50)])
        #expect(run.shown == [1])
    }

    /// What a search saw stays covered, whichever of two tracks of one face is kept.
    @Test func aTwinThatIsRemovedStaysWithinTheOther() {
        var rules = FaceTracks.Rules()
        rules.confirmsAtOnce = true
        var run = Run(rules)
        let part = Detection.at(110, 110, 20, 20)
        for _ in 0..<8 { run.step([part]) }
        let whole = Detection.at(80, 80, 100, 120)
        run.step([part, whole])
        #expect(run.shown == [1])
        let box = run.tracks.tracks[0].box
        #expect(box.x <= 80 && box.y <= 80 && box.right >= 180 && box.bottom >= 200, "\(box)")
    }

    private static func privateRules() -> FaceTracks.Rules {
        var rules = FaceTracks.Rules()
        (rules.confirmsAtOnce, rules.leastConfidence) = (true, 0.8)
        (rules.leastUnseen, rules.unseenPerLook) = (0, 70_000_000)
        return rules
    }

    /// A small sharp face within the box of a large one that the search is less sure of, which comes later in the list.
    @Test func aFaceTakesNoTrackOfOneThatIsFoundToo() {
        var run = Run(Self.privateRules())
        let large = Detection.at(100, 100, 200, 240)
        for _ in 0..<5 { run.step([large]) }
        let doubtful = Detection.at(100, 100, 200, 240, confidence: 0.7)
        let small = Detection.at(240, 280, 40, 50, confidence: 1)
        for _ in 0..<60 {
            run.step([small, doubtful])
            let isCovered = run.tracks.tracks.contains {
                $0.box.union($0.seenBox).union(large.box).area <= $0.box.union($0.seenBox).area * 1.001
            }
            #expect(isCovered, "\(run.tracks.tracks.map(\.box))")
        }
    }

    /// It may be somebody else, and the one of before still be there.
    @Test func aFaceThatIsFoundElsewhereHasJumped() {
        var run = Run(Self.privateRules())
        for _ in 0..<5 { run.step([.at(100, 100, 40, 50)]) }
        run.step([.at(102, 100, 40, 50)])
        #expect(!run.tracks.tracks[0].hasJumped)
        run.step([.at(140, 100, 40, 50)])
        #expect(run.tracks.tracks.count == 1 && run.tracks.tracks[0].hasJumped)
        run.step([.at(140, 100, 40, 50)])
        #expect(!run.tracks.tracks[0].hasJumped)
    }

    /// Whatever comes, what this frame's search is sure of lies within a track.
    @Test(arguments: 1...30) func whatIsFoundIsWithinATrack(seed: UInt64) {
        var noise = Noise(seed)
        func roll(_ most: Int) -> Int { (Int(noise.byte()) << 8 | Int(noise.byte())) % most }
        var run = Run(Self.privateRules())
        var places = (0..<6).map { _ in (x: roll(400), y: roll(200), side: 20 + roll(100)) }
        for _ in 0..<100 {
            for index in places.indices {
                places[index].x += roll(9) - 4
                places[index].y += roll(9) - 4
                if roll(40) == 0 { places[index] = (roll(400), roll(200), 20 + roll(100)) }
            }
            let found = places.filter { _ in roll(4) > 0 }.map {
                Detection.at(
                    Double($0.x), Double($0.y), Double($0.side), Double($0.side),
                    confidence: 0.6 + Double(roll(41)) / 100)
            }
            run.step(found, isFollowed: roll(5) > 0)
            for face in found where face.confidence >= 0.8 {
                let isWithin = run.tracks.tracks.contains { track in
                    let box = track.box.union(track.seenBox)
                    return track.lastSeenFrame == run.frame && box.union(face.box).area <= box.area * 1.001
                }
                #expect(isWithin, "\(face) \(run.tracks.tracks.map(\.box))")
            }
        }
    }

    @Test func saysThatThereAreTooManyFaces() {
        var tracks = FaceTracks()
        let faces = (0..<65).map { Detection.at(Double($0) * 100, 0, 40, 50) }
        let all = [Array(faces[..<64]), faces, Array(faces[1...])].enumerated().map { frame, faces in
            tracks.take(faces, frame: frame, now: frame, time: Int64(frame)) { $0 }
        }
        #expect(all == [true, false, false], "one that is lost is not gone at once")
    }

    @Test func aCutEndsAll() {
        var run = Run()
        for _ in 0..<6 { run.step([Self.face]) }
        run.tracks.endAll()
        for _ in 0..<2 { run.step([Self.face]) }
        #expect(run.shown == [2])
    }

    @Test func aLateAnswerMovesTheFaceByWhatItWasOffThen() throws {
        var run = Run()
        for _ in 0..<4 { run.step([Self.face]) }
        // Moves 5 pixels a frame for four frames; then the answer for the second of these comes: 4 pixels further right
        // than thought.
        for _ in 0..<4 { run.step(nil, motion: (5, 0)) }
        let before = try #require(run.tracks.tracks.first).box.centerX
        run.tracks.take([.at(100 + 10 + 4, 100, 40, 50)], frame: 5, now: 7, time: 5 * Self.frameTime) { $0 }
        #expect(abs(try #require(run.tracks.tracks.first).box.centerX - before - 2) < 0.01)
    }

    @Test func fortyFacesKeepFortyIds() {
        var run = Run()
        let faces = (0..<40).map { Detection.at(Double($0 % 8) * 150, Double($0 / 8) * 140, 60, 70) }
        for step in 0..<10 { run.step(step % 2 == 0 ? faces : faces.reversed()) }
        #expect(run.shown.sorted() == Array(1...40))
    }
}

@Suite struct MedianFlowTests {
    /// A smooth texture that can be shifted, grown and turned by any amount.
    private static func picture(dx: Double = 0, dy: Double = 0, growth: Double = 1, turn: Double = 0, light: Double = 0)
        -> GrayPyramid
    {
        let pyramid = GrayPyramid(width: 160, height: 120)
        let (cx, cy) = (79.5, 59.5)
        for y in 0..<120 {
            for x in 0..<160 {
                // Backwards: where this pixel's content was.
                let px = (Double(x) - cx - dx) / growth
                let py = (Double(y) - cy - dy) / growth
                let u = px + turn * py
                let v = py - turn * px
                let value =
                    128 + 40 * sinus(u * 0.23 + v * 0.05) + 30 * sinus(v * 0.27 - u * 0.11) + 15
                    * sinus(u * 0.61 + v * 0.47)
                pyramid.full.base[y * 160 + x] = UInt8(min(max(value + light, 0), 255))
            }
        }
        pyramid.build()
        return pyramid
    }

    /// Without Foundation: Taylor's sine after bringing the angle near 0.
    private static func sinus(_ angle: Double) -> Double {
        let x = angle - (angle / (2 * .pi)).rounded() * 2 * .pi
        let s = x * x
        return x * (1 - s / 6 * (1 - s / 20 * (1 - s / 42 * (1 - s / 72 * (1 - s / 110)))))
    }

    private static let box = FaceRect(centerX: 80, centerY: 60, width: 44, height: 52)

    @Test(arguments: [(0.0, 0.0), (1.3, -0.6), (5.2, 3.1), (-5.5, 4)])
    func findsAShift(dx: Double, dy: Double) throws {
        let motion = try #require(
            MedianFlow().follow(Self.box, from: Self.picture(), to: Self.picture(dx: dx, dy: dy), side: 7))
        #expect(abs(motion.dx - dx) < 0.1 && abs(motion.dy - dy) < 0.1, "\(motion)")
        #expect(abs(motion.growth - 1) < 0.01)
    }

    @Test func findsGrowthAndTurn() throws {
        let next = Self.picture(growth: 1.06, turn: 0.05)
        let motion = try #require(MedianFlow().follow(Self.box, from: Self.picture(), to: next, side: 7))
        #expect(abs(motion.growth - 1.06) < 0.015 && abs(motion.turn - 0.05) < 0.015, "\(motion)")
    }

    @Test func lightAloneMovesNothing() throws {
        let motion = try #require(
            MedianFlow().follow(Self.box, from: Self.picture(), to: Self.picture(light: -25), side: 7))
        #expect(abs(motion.dx) < 0.1 && abs(motion.dy) < 0.1, "\(motion)")
    }

    @Test func findsNothingWhereThereIsNothingToSee() {
        let flat = GrayPyramid(width: 160, height: 120)
        #expect(MedianFlow().follow(Self.box, from: flat, to: flat, side: 7) == nil)
    }

    @Test func findsNothingInAnotherPicture() {
        let other = GrayPyramid(width: 160, height: 120)
        var noise = Noise(5)
        for index in 0..<(160 * 120) { other.full.base[index] = noise.byte() }
        other.build()
        let motion = MedianFlow().follow(Self.box, from: Self.picture(), to: other, side: 7)
        #expect(motion.map { $0.agreement < 0.5 } ?? true, "\(String(describing: motion))")
    }
}

@Suite struct SmallPictureTests {
    /// Each orientation: a bright corner of the upright picture is where it should be in what a detector reads, and back.
    @Test(arguments: Orientation.allCases)
    func turnsTheSmallCopyUpright(orientation: Orientation) throws {
        let format = VideoFormat(.i420, width: 64, height: 48)
        let map = UprightMap(format, orientation)
        let scratch = ScratchPicture(.i420, width: 64, height: 48)
        // A quarter of the upright picture, its upper left.
        let quarter = FaceRect(x: 0, y: 0, width: Double(map.width) / 2, height: Double(map.height) / 2)
        let corner = map.stored(quarter)
        #expect(map.upright(corner) == quarter)
        let luma = scratch.picture[0]
        for y in Int(corner.y)..<Int(corner.bottom) {
            for x in Int(corner.x)..<Int(corner.right) {
                luma.base.storeBytes(of: 200, toByteOffset: y * luma.strideBytes + x, as: UInt8.self)
            }
        }
        let small = SmallPicture(format, size: SmallPicture.squareSize(format, longSide: 32))
        small.take(scratch.picture)
        let size = small.uprightSize(orientation)
        #expect(size.width == map.width / 2 && size.height == map.height / 2)
        let gray = UnsafeMutablePointer<UInt8>.allocate(capacity: size.width * size.height)
        defer { gray.deallocate() }
        small.writeGray(to: gray, orientation)
        for y in 0..<size.height {
            for x in 0..<size.width {
                #expect(gray[y * size.width + x] == (x < size.width / 2 && y < size.height / 2 ? 200 : 0))
            }
        }
        let found = small.stored(.at(0, 0, quarter.width / 2, quarter.height / 2), orientation)
        #expect(found.box == corner)
    }

    /// Pixels that are not square: the copy that is followed has square ones, and that for YuNet keeps all that are there.
    @Test(arguments: [(2, 1, 320, 360, 320, 180), (1, 2, 640, 180, 320, 180), (4, 3, 480, 360, 320, 180)])
    func copiesAreSquare(sample: (Int32, Int32, Int, Int, Int, Int)) {
        let format = VideoFormat(
            .i420, width: sample.2, height: sample.3, sampleAspectRatio: Rational(sample.0, sample.1))
        #expect(SmallPicture.squareSize(format, longSide: 320) == PictureSize(sample.4, sample.5))
        #expect(SmallPicture.fineSize(format, longSide: 640) == PictureSize(sample.2, sample.3))
        #expect(format.squareLong == 640)
        let sizes = SearchSizes(yunet: 640, tracking: 320, format)
        #expect(sizes.searched(format) == [PictureSize(640, 360)])
        #expect(sizes.searched(format, .right) == [PictureSize(360, 640)])
    }

    @Test func isTheMeanOfTheAreaAndItsColour() {
        // BT.601, video range: pure red is 81, 90, 240.
        for pixelFormat in [PixelFormat.i420, .nv12] {
            let format = VideoFormat(pixelFormat, width: 101, height: 75)
            let scratch = ScratchPicture(pixelFormat, width: 101, height: 75)
            scratch.picture.fill(
                x: 0, y: 0, width: 101, height: 75, Paint(RGBColor(red: 255, green: 0, blue: 0), for: format))
            let small = SmallPicture(format, size: SmallPicture.squareSize(format, longSide: 40))
            small.take(scratch.picture)
            let bgr = UnsafeMutablePointer<UInt8>.allocate(capacity: small.width * small.height * 3)
            defer { bgr.deallocate() }
            small.writeBGR(scratch.picture, to: bgr, .up)
            for pixel in 0..<(small.width * small.height) {
                #expect(bgr[pixel * 3] < 8 && bgr[pixel * 3 + 1] < 8 && bgr[pixel * 3 + 2] > 247)
            }
        }
    }
}
