// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import FaceEffect

@Suite struct SearchSizesTests {
    private func format(_ width: Int, _ height: Int, rate: Int32 = 30) -> VideoFormat {
        VideoFormat(.i420, width: width, height: height, frameRate: Rational(rate))
    }

    private func sizes(_ format: VideoFormat, isLive: Bool = false, nanosecondsPerPixel: Double = 90) -> SearchSizes {
        all(format, isLive: isLive, nanosecondsPerPixel: nanosecondsPerPixel)[0]
    }

    private func all(
        _ format: VideoFormat, isLive: Bool, nanosecondsPerPixel: Double = 90, least: Int = 320
    ) -> [SearchSizes] {
        SearchSizes.yunet(format, isPrivate: true, isLive: isLive, least: least) { nanosecondsPerPixel }
    }

    @Test(arguments: [(320, 240), (480, 270), (640, 360), (640, 480), (1280, 720), (720, 1280), (1920, 1080)])
    func aFileIsSearchedFinelyEnoughForAFaceOf12Pixels(width: Int, height: Int) {
        let format = format(width, height)
        #expect(sizes(format).smallestYuNetFace(format) <= 12)
    }

    /// A line was enlarged until its shorter side had 64 pixels: 10 million pixels a search for one of 1x16384.
    @Test(arguments: [(1, 16384), (16384, 2), (2, 1080), (2, 2), (1920, 11), (1, 1)])
    func aLineIsNotEnlarged(width: Int, height: Int) {
        var sizes = sizes(format(width, height))
        sizes.addSmallSearch()
        let searched = sizes.searched(format(width, height))
        #expect(searched.allSatisfy { $0.width >= 64 && $0.height >= 64 }, "the network needs 64: \(searched)")
        #expect(sizes.pixels(format(width, height)) <= 64 * (320 + 480 + 2560), "\(searched)")
    }

    /// A face of the least size has room in it.
    @Test func aStripIsEnlargedAsEver() {
        let searched = sizes(format(1280, 16)).searched(format(1280, 16))
        #expect(searched.map(\.description) == ["5120x64", "5120x64"])
    }

    @Test func aFineSearchIsJoinedByACoarseOneThatSeesLargeFaces() {
        let sizes = sizes(format(1280, 720))
        #expect(sizes.sides.count == 2 && sizes.sides[0] == SearchSizes.coarseSide && sizes.sides[1] == 1280)
        #expect(sizes.copySide == 1280, "a copy is never an enlargement")
        #expect(sizes.trackingSide == 320, "flow sees as far as ever")
    }

    @Test func aPictureTooLargeForThatIsSearchedAsFinelyAsMemoryAllowsAndSaysSo() {
        let format = format(7680, 4320)
        #expect(sizes(format).sides == [480, 2560])
        #expect(sizes(format).smallestYuNetFace(format) == Int(SearchSizes.yunetFace) * 3)
    }

    @Test func aLiveChainSearchesAsFinelyAsAThirdOfAFramesDurationAllows() {
        let format = format(1280, 720)
        // 90 ns a pixel: 11.1 ms are 123,000 pixels, 468x263.
        #expect(sizes(format, isLive: true).sides == [448])
        #expect(sizes(format, isLive: true, nanosecondsPerPixel: 20).sides == [480, 992])
        #expect(sizes(format, isLive: true, nanosecondsPerPixel: 1000).sides == [320], "never less")
        #expect(sizes(format, isLive: true, nanosecondsPerPixel: 0).sides.last == 1280, "never more than there is")
        #expect(sizes(self.format(1280, 720, rate: 10), isLive: true).sides == [800])
    }

    @Test func whoLooksAheadSearchesASmallPictureToo() {
        var fine = sizes(format(1280, 720))
        fine.addSmallSearch()
        #expect(fine.sides == [320, 480, 1280])
        var whole = sizes(format(640, 360))
        whole.addSmallSearch()
        #expect(whole.sides == [320, 640] && whole.smallestYuNetFace(format(640, 360)) == 12)
        var small = SearchSizes(yunet: 320, tracking: 320, format(640, 360))
        small.addSmallSearch()
        #expect(small.sides == [320], "nothing that is asked for is searched twice")
    }

    @Test func withoutPrivacyNothingIsMeasured() {
        let found = SearchSizes.yunet(format(1280, 720), isPrivate: false, isLive: true, least: 320) {
            Issue.record("asked")
            return 1
        }
        #expect(found == [SearchSizes(side: 480)])
    }

    @Test func aTinyPictureIsEnlargedUntilTheNetworkTakesIt() {
        let format = format(48, 32)
        for size in sizes(format).searched(format) {
            #expect(min(size.width, size.height) >= 64)
        }
    }

    @Test func aLiveChainHasCoarserSizesDownToTheLeast() {
        let format = format(1280, 720)
        let sides = all(format, isLive: true, nanosecondsPerPixel: 20).map { $0.sides.last ?? 0 }
        #expect(sides == [992, 768, 608, 480, 384, 320])
        #expect(all(format, isLive: true, nanosecondsPerPixel: 20, least: 640).map(\.sides.last) == [992, 768, 640])
        #expect(all(format, isLive: true, nanosecondsPerPixel: 1000, least: 640).map(\.sides.last) == [640])
        #expect(all(format, isLive: false).count == 1, "a file has time")
    }
}

@Suite struct FindingMergeTests {
    private static let merge = FindingMerge(begins: 0.8, keeps: 0.6)

    private func merged(_ searches: [[Detection]], room: Int = 64) -> (found: [Detection], isWhole: Bool) {
        let empty = Detection.at(0, 0, 0, 0)
        let buffer = UnsafeMutableBufferPointer<Detection>.allocate(capacity: room)
        buffer.initialize(repeating: empty)
        defer { buffer.deallocate() }
        var count = 0
        var isWhole = true
        for search in searches {
            let coarser = count
            for face in search where !Self.merge.add(face, to: buffer, count: &count, coarser: coarser) {
                isWhole = false
            }
        }
        return (Array(buffer[..<count]), isWhole)
    }

    @Test func theSurerOfTwoCounts() {
        let unsure = Detection.at(100, 100, 40, 40, confidence: 0.7)
        let sure = Detection.at(104, 102, 40, 40, confidence: 1)
        let found = merged([[unsure], [sure]]).found
        #expect(found.count == 1 && found[0].confidence == 1)
        #expect(found[0].box == FaceRect(x: 100, y: 100, width: 44, height: 42), "both would keep a face")
        // What only guides does not make it larger.
        let weak = Detection.at(96, 96, 40, 40, confidence: 0.4)
        #expect(merged([[weak], [sure]]).found == [sure])
        #expect(merged([[sure], [weak]]).found == [sure])
    }

    @Test func aPartOfASureFaceBelongsToItAndAFaceInADoubtfulOneDoesNot() {
        let part = Detection.at(110, 110, 15, 15, confidence: 0.95)
        let large = Detection.at(100, 100, 100, 100, confidence: 0.9)
        #expect(merged([[large], [part]]).found.map(\.box) == [large.box])
        let doubtful = Detection.at(100, 100, 100, 100, confidence: 0.7)
        #expect(merged([[doubtful], [part]]).found == [doubtful, part])
    }

    @Test func saysThatItIsFull() {
        let many = (0..<5).map { Detection.at(Double($0) * 100, 0, 40, 40) }
        #expect(merged([many], room: 5).isWhole)
        #expect(!merged([many], room: 4).isWhole)
        #expect(merged([many, many], room: 5).isWhole, "what is known needs no room")
    }

    /// Whatever the searches find: what one of them alone would cover is covered.
    @Test(arguments: 1...60) func aFurtherSearchNeverUncovers(seed: UInt64) {
        var noise = Noise(seed)
        func roll(_ most: Int) -> Int { (Int(noise.byte()) << 8 | Int(noise.byte())) % most }
        for _ in 0..<50 {
            // Faces here and there, seen by each search somewhat differently, and what is no face.
            let places = (0..<(1 + roll(6))).map { _ in (x: roll(200), y: roll(200), side: 8 + roll(120)) }
            let searches = (0..<3).map { _ in
                places.filter { _ in roll(4) > 0 }.map { place in
                    let most = max(place.side / 3, 1)
                    return Detection.at(
                        Double(place.x + roll(most)), Double(place.y + roll(most)),
                        Double(place.side / (roll(5) == 0 ? 3 : 1) + roll(most)), Double(place.side + roll(most)),
                        confidence: 0.3 + Double(roll(70)) / 100)
                }
            }
            let found = merged(searches).found
            for face in searches.joined() where face.confidence >= Self.merge.keeps {
                #expect(
                    found.contains {
                        $0.confidence >= face.confidence && $0.box.union(face.box).area <= $0.box.area * 1.000001
                    }, "\(face) of \(searches) in \(found)")
            }
        }
    }
}

@Suite struct SearchPaceTests {
    private static let second: Int64 = 1_000_000_000
    private static let patience: Int64 = 16_666_667

    /// Thirty frames a second on a machine where a search takes `cost` nanoseconds a pixel.
    private struct Machine {
        var pace: SearchPace
        let pixels: [Int]
        var frame: Int64 = 0
        var lateCount = 0
        /// The levels, in the order in which they were chosen.
        var chosen: [Int] = [0]

        init(_ pixels: [Int]) { (self.pixels, pace) = (pixels, SearchPace(pixels: pixels, patience: patience)) }

        mutating func run(seconds: Int, cost: Double) {
            for _ in 0..<(30 * seconds) {
                let time = Int64(cost * Double(pixels[pace.level]))
                let isLate = time > patience
                if isLate { lateCount += 1 }
                pace.searched(pace.level, nanoseconds: time)
                if pace.frame(isLate: isLate, now: frame * second / 30) { chosen.append(pace.level) }
                frame += 1
            }
        }
    }

    private static let pixels = [992 * 558, 768 * 432, 608 * 342, 480 * 270, 384 * 216, 320 * 180]

    @Test func goesAtOnceToTheSizeThatIsInTimeAndStaysThere() {
        var machine = Machine(Self.pixels)
        machine.run(seconds: 20, cost: 90)
        #expect(machine.chosen == [0, 3], "130,000 pixels take 11.7 ms")
        #expect(machine.lateCount == 5)
    }

    @Test func growsAgainWhenThereIsTime() {
        var machine = Machine(Self.pixels)
        machine.run(seconds: 5, cost: 500)
        #expect(machine.pace.level == 5)
        machine.run(seconds: 60, cost: 20)
        #expect(machine.pace.level == 0 && machine.chosen == [0, 5, 4, 3, 2, 1, 0])
    }

    @Test func triesAFinerSearchThatIsTooMuchEverMoreSeldom() {
        var pace = SearchPace(pixels: [200_000, 100_000], patience: Self.patience)
        var tries: [Int64] = []
        for frame in 0..<Int64(30 * 300) {
            // By the coarse search the fine one would be in time, and is not.
            let isFine = pace.level == 0
            pace.searched(pace.level, nanoseconds: isFine ? 30_000_000 : 5_000_000)
            if pace.frame(isLate: isFine, now: frame * Self.second / 30), pace.level == 0 { tries.append(frame / 30) }
        }
        #expect((3...6).contains(tries.count), "\(tries)")
        #expect(zip(tries, tries.dropFirst()).map { $1 - $0 }.last ?? 0 >= 60)
    }

    @Test func aFewLateFramesChangeNothing() {
        var pace = SearchPace(pixels: [2, 1], patience: Self.patience)
        for frame in 0..<Int64(3000) {
            pace.searched(0, nanoseconds: 1_000_000)
            let hasChanged = pace.frame(isLate: frame % 10 == 0, now: frame * Self.second / 30)
            #expect(!hasChanged)
        }
    }

    @Test func staysAtTheCoarsest() {
        var machine = Machine([100_000])
        machine.run(seconds: 10, cost: 500)
        #expect(machine.chosen == [0])
    }
}

@Suite struct LateWatchTests {
    private func feed(_ watch: inout LateWatch, from: Int, _ seconds: Int, isLate: (Int) -> Bool) -> [(Int, Bool)] {
        var changes: [(Int, Bool)] = []
        for frame in from * 30..<(from + seconds) * 30
        where watch.note(
            isLate: isLate(frame), time: Int64(frame) * 1_000_000_000 / 30)
        {
            changes.append((frame, watch.isTooLate))
        }
        return changes
    }

    @Test func aFifthOfTenSecondsIsTooMuchAndATenthIsWell() {
        var watch = LateWatch(frameRate: 30)
        let before = feed(&watch, from: 0, 20) { $0 % 6 == 0 }
        #expect(before.isEmpty, "a sixth is not")
        let changes = feed(&watch, from: 20, 20) { $0 % 4 == 0 }
        #expect(changes.count == 1 && watch.isTooLate)
        let after = feed(&watch, from: 40, 20) { _ in false }
        #expect(after.count == 1 && !watch.isTooLate)
        #expect(watch.count == 1800 && watch.lateCount == 100 + 150)
    }

    @Test func twoSecondsOfTheFirstTenAreEnough() {
        var watch = LateWatch(frameRate: 30)
        let changes = feed(&watch, from: 0, 10) { _ in true }
        #expect(changes.map(\.0) == [53], "a fifth of nine tenths of 300 frames")
    }

    /// Where pictures are dropped too, only those that come count.
    @Test(arguments: [1, 3, 5]) func aSlowerRateThanDeclaredIsJudgedByWhatComes(rate: Int64) {
        var watch = LateWatch(frameRate: 30)
        for frame in 0..<(10 * rate) { _ = watch.note(isLate: true, time: frame * 1_000_000_000 / rate) }
        #expect(watch.isTooLate && watch.share == 1)
    }

    @Test func timeThatStepsBackForgetsNothing() {
        var watch = LateWatch(frameRate: 30)
        var changes = 0
        for turn in 0..<10 {
            for frame in 0..<90 where watch.note(isLate: true, time: Int64(frame - turn * 7) * 33_333_333) {
                changes += 1
            }
        }
        #expect(watch.isTooLate && changes == 1)
        #expect(watch.note(isLate: true, time: .min) == false && watch.note(isLate: true, time: .max) == false)
    }
}

@Suite struct FrameTimesTests {
    private func gaps(_ times: [Int64], frameDuration: Int64 = 0, marked: Set<Int64> = []) -> [Int64] {
        var state = FrameTimes(frameDuration: frameDuration)
        var gaps: [Int64] = []
        for time in times where state.isGap(time, isDiscontinuity: marked.contains(time)) { gaps.append(time) }
        return gaps
    }

    @Test func tellsAGapFromASlowRate() {
        #expect(gaps([0, 33, 66, 100, 300, 333], frameDuration: 33) == [300])
        #expect(gaps([100, 133, 50, 83], frameDuration: 33) == [50], "time that steps back")
        #expect(gaps([0, 33, 66, 99], frameDuration: 33, marked: [66]) == [66])
        #expect(gaps([0, 1000, 2000, 3000, 3500, 4500]).isEmpty)
        #expect(gaps([.max, .min, .max]) == [.min, .max])
    }

    @Test func anUnevenRateHasNoGaps() {
        #expect(gaps([0, 33, 133, 166, 266, 299, 399], frameDuration: 66).isEmpty)
        #expect(gaps([0, 33, 33, 66, 66, 99], frameDuration: 33).isEmpty, "times that stand still")
        #expect(gaps([0, 33, 133, 166, 900], frameDuration: 66) == [900])
    }
}
