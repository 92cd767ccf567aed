// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FaceEffect

/// Frames of 30 a second through the guard, as a test tells it.
private struct Story {
    static let frame: Int64 = 33_333_333

    /// A face as a search sees it, or does not.
    struct Face {
        var serial = 1
        var box: FaceRect
        var isSeen = true
        var confidence = 0.9
    }

    var capacity = 30
    var hold: Int64 = 700_000_000
    /// By frame.
    var faces: [Int: [Face]] = [:]
    var cuts: Set<Int> = [0]
    var modes: [Int: PrivacyGuard.Mode] = [:]
    var weak: [Int: [FaceRect]] = [:]
    /// How far everything in the picture moves from a frame to the next; nil: no points are found before this frame.
    var motion = 0.0
    var blindBefore = 0

    /// The plans as they come out.
    func plans(_ count: Int) -> [TwoWayGuard.Plan] {
        var guarded = TwoWayGuard(capacity: capacity, holdTime: hold, sure: 0.7, width: 640, height: 360)
        var plans: [TwoWayGuard.Plan] = []
        for number in 0..<count {
            let seen = (faces[number] ?? []).map { face in
                TwoWayGuard.Face(
                    known: PrivacyGuard.Face(
                        serial: face.serial, box: face.box, isSeen: face.isSeen, velocityX: 0,
                        velocityY: 0), confidence: face.confidence)
            }
            let state = TwoWayGuard.Frame(
                time: Int64(number) * Self.frame, mode: modes[number] ?? .searched, isCut: cuts.contains(number))
            guarded.add(
                state, seen, regions: seen.map { ($0.known.box, $0.known.serial) }, weak: weak[number] ?? []
            ) { box, from, to in
                #expect(abs(from - to) == 1 && max(from, to) <= number && min(from, to) >= number - capacity)
                return from <= blindBefore ? nil : box.moved(Double(to - from) * motion, 0)
            }
            if guarded.count > capacity { plans.append(guarded.takeOldest()!) }
        }
        while let plan = guarded.takeOldest() { plans.append(plan) }
        return plans
    }
}

extension TwoWayGuard.Plan {
    /// Why a face is covered here; nil where it is not.
    fileprivate func how(_ serial: Int = 1) -> TwoWayGuard.How? { covers.first { $0.serial == serial }?.how }
}

@Suite struct TwoWayGuardTests {
    private static let box = FaceRect(x: 300, y: 100, width: 60, height: 60)

    private func story(foundIn frames: some Sequence<Int>) -> Story {
        var story = Story()
        for frame in frames { story.faces[frame] = [Story.Face(box: Self.box)] }
        return story
    }

    @Test func coversAFaceThatIsFoundLateWhereItCameFrom() {
        var story = Story()
        story.motion = 4
        for frame in 10..<20 { story.faces[frame] = [Story.Face(box: Self.box.moved(Double(frame) * 4, 0))] }
        let plans = story.plans(20)
        #expect(plans.map(\.number) == Array(0..<20))
        #expect(plans.map { $0.how() } == Array(repeating: .before, count: 10) + Array(repeating: .found, count: 10))
        for (number, plan) in plans.enumerated() {
            #expect(abs(plan.covers[0].box.x - Self.box.x - Double(number) * 4) < 0.01)
        }
        // The clip begins there: nothing to look at.
        #expect(plans.allSatisfy { $0.moments.isEmpty })
    }

    @Test func carriesWhatWasFoundOnceBackByAFewFramesOnly() {
        let plans = story(foundIn: [20]).plans(40)
        #expect(plans.indices.filter { plans[$0].how() == .before } == Array(15..<20))
        #expect(plans.allSatisfy { !$0.moments.contains { $0.kind == .beginsLate } })
    }

    @Test func aThirdFindingCarriesItAllTheWay() {
        let plans = story(foundIn: [20, 24, 28]).plans(40)
        #expect(plans.indices.filter { plans[$0].how() == .before } == Array(0..<20))
    }

    @Test(arguments: [5, 9, 10]) func aCutEndsTheWayBack(cut: Int) {
        var story = story(foundIn: 10..<20)
        story.cuts = [0, cut]
        let plans = story.plans(20)
        #expect(plans.indices.filter { plans[$0].how() == .before } == Array(cut..<10))
        #expect(plans.allSatisfy { $0.moments.isEmpty })
    }

    @Test func timeThatStepsBackDoesNot() {
        var guarded = TwoWayGuard(capacity: 30, holdTime: 0, sure: 0.7, width: 640, height: 360)
        for number in 0..<20 {
            let face = PrivacyGuard.Face(
                serial: 1, box: Self.box, isSeen: true, velocityX: 0, velocityY: 0)
            guarded.add(
                TwoWayGuard.Frame(
                    time: Int64(number < 8 ? number + 100 : number) * Story.frame, mode: .searched, isCut: number == 0),
                number < 12 ? [] : [TwoWayGuard.Face(known: face, confidence: 0.9)], regions: [], weak: []
            ) { box, _, _ in box }
        }
        var plans: [TwoWayGuard.Plan] = []
        while let plan = guarded.takeOldest() { plans.append(plan) }
        #expect(plans.indices.filter { !plans[$0].covers.isEmpty } == Array(0..<20))
    }

    @Test func bridgesAGapOnTheStraightWay() {
        var story = Story()
        // Flow says that nothing moves: the straight way is covered all the same.
        for frame in 0..<5 { story.faces[frame] = [Story.Face(box: Self.box)] }
        for frame in 15..<20 { story.faces[frame] = [Story.Face(box: Self.box.moved(100, 0))] }
        let plans = story.plans(20)
        for number in 5..<15 {
            #expect(plans[number].how() == .bridged)
            let straight = Self.box.moved(Double(number - 4) / 11 * 100, 0)
            #expect(plans[number].covers.contains { $0.box.containment(straight) > 0.999 })
        }
        #expect(plans.allSatisfy { $0.moments.isEmpty })
    }

    @Test func doesNotBridgeACut() {
        var story = story(foundIn: [0, 1, 2, 10, 11, 12])
        story.cuts = [0, 7]
        #expect(
            story.plans(15).map { $0.how() }
                == [
                    .found, .found, .found, nil, nil, nil, nil, .before, .before, .before, .found, .found, .found, nil,
                    nil,
                ])
    }

    @Test func followsBackOverAGapThatIsLongerThanWhatIsKept() {
        var story = story(foundIn: [0, 1, 2, 20, 21, 22])
        story.capacity = 6
        let plans = story.plans(30)
        // Once it was found there again, and when it was for the third time, 16 was the oldest.
        #expect(plans.indices.filter { plans[$0].how() == .before } == Array(15..<20))
        #expect(plans[16].moments.map(\.kind) == [.beginsLate])
    }

    @Test func tellsWhereAFaceBeginsAndNothingSaysWhy() throws {
        var story = story(foundIn: 20..<25)
        story.capacity = 10
        let plans = story.plans(40)
        // The third finding is in 22: 12 is the oldest then.
        #expect(plans.indices.filter { plans[$0].how() == .before } == Array(12..<20))
        let moment = try #require(plans[12].moments.first)
        #expect(moment.kind == .beginsLate && moment.serial == 1 && moment.box == Self.box)
    }

    @Test func staysForTheHoldWhereFlowLosesIt() {
        var story = story(foundIn: 25..<35)
        story.blindBefore = 22
        story.hold = 10 * Story.frame + 1
        let plans = story.plans(35)
        #expect(plans.indices.filter { plans[$0].how() == .before } == Array(12..<25))
        #expect(plans[11].moments.map(\.kind) == [.beginsLate])
    }

    @Test func anUnsureDetectionGuidesTheWayBack() {
        var story = story(foundIn: 25..<35)
        story.hold = 2 * Story.frame
        story.blindBefore = 100
        #expect(story.plans(35)[10].how() == nil)
        for frame in 5..<25 { story.weak[frame] = [Self.box.moved(Double(25 - frame), 0)] }
        let guided = story.plans(35)
        #expect(guided[5..<25].allSatisfy { $0.how() == .before })
        #expect(guided[5].covers[0].box.containment(Self.box.moved(20, 0)) > 0.9)
        // It begins no face.
        story.faces = [:]
        #expect(story.plans(35).allSatisfy { $0.covers.isEmpty })
    }

    @Test func aFaceThatCameInAtTheEdgeIsNoMoment() {
        var story = Story()
        story.motion = 30
        story.capacity = 25
        for frame in 40..<50 { story.faces[frame] = [Story.Face(box: Self.box.moved(Double(frame - 40) * 30, 0))] }
        let plans = story.plans(50)
        let before = plans.indices.filter { plans[$0].how() == .before }
        #expect(before == Array(29..<40))
        #expect(plans.allSatisfy { plan in !plan.moments.contains { $0.kind == .beginsLate } })
    }

    @Test func endsWhereTheFaceWasKnownUnderAnotherNumber() {
        var story = story(foundIn: 0..<10)
        for frame in 15..<20 { story.faces[frame] = [Story.Face(serial: 2, box: Self.box.moved(10, 0))] }
        let plans = story.plans(20)
        #expect(plans.indices.filter { plans[$0].how(2) == .before } == Array(10..<15))
        #expect(plans.allSatisfy { plan in !plan.moments.contains { $0.kind == .beginsLate } })
    }

    /// A list that is full says nothing of the faces that are left out.
    @Test func moreFacesThanItCanFollowBackCoverAllBackToTheCut() {
        var story = Story()
        story.cuts = [0, 4]
        for number in 0..<130 {
            story.faces[6, default: []].append(
                Story.Face(serial: number, box: FaceRect(x: Double(number) * 4, y: 100, width: 3, height: 3)))
        }
        let plans = story.plans(8)
        #expect(plans.map(\.mode.coversAll) == [false, false, false, false, true, true, true, false])
        #expect(plans[6].mode == .crowded && plans[6].firstMode == .searched)
    }

    @Test func tellsOfALongGapInItsMiddle() {
        let plans = story(foundIn: [0, 1, 2, 22, 23]).plans(24)
        #expect(plans.indices.filter { !plans[$0].moments.isEmpty } == [12])
        #expect(plans[12].moments.map(\.kind) == [.bridgedLong])
    }

    @Test func tellsWhereACoverEndsInsideThePicture() {
        let plans = story(foundIn: 0..<10).plans(20)
        #expect(plans[10].moments.map(\.kind) == [.lost])
        var atTheEdge = Story()
        for frame in 0..<10 {
            atTheEdge.faces[frame] = [Story.Face(box: FaceRect(x: 590, y: 100, width: 60, height: 60))]
        }
        #expect(atTheEdge.plans(20).allSatisfy { $0.moments.isEmpty })
    }

    @Test func tellsOfAnUnsureFaceAndOfWholeFramesOnce() {
        var story = Story()
        for frame in 0..<10 { story.faces[frame] = [Story.Face(box: Self.box, confidence: 0.65)] }
        story.modes = [5: .late, 6: .late, 8: .failed]
        let plans = story.plans(10)
        #expect(plans.indices.filter { !plans[$0].moments.isEmpty } == [0, 5, 8])
        #expect(plans[0].moments.map(\.kind) == [.unsure])
        #expect(plans[5].moments.map(\.kind) == [.whole])
    }

    /// Whatever comes: what a live chain covers is covered, and each frame comes out once.
    @Test(arguments: 1...40) func onlyEverAdds(seed: UInt64) {
        var noise = Noise(seed)
        func roll(_ most: Int) -> Int { (Int(noise.byte()) << 8 | Int(noise.byte())) % most }
        var story = Story()
        story.capacity = 1 + roll(20)
        story.motion = Double(roll(9)) - 4
        story.blindBefore = roll(60)
        for frame in 0..<100 {
            if roll(15) == 0 { story.cuts.insert(frame) }
            if roll(12) == 0 { story.modes[frame] = [.late, .failed, .starting][roll(3)] }
            for serial in 0..<4 where roll(3) > 0 {
                let box = FaceRect(
                    x: Double(roll(700)) - 50, y: Double(roll(400)) - 20, width: Double(4 + roll(90)),
                    height: Double(4 + roll(90)))
                story.faces[frame, default: []].append(
                    Story.Face(serial: serial, box: box, isSeen: roll(2) == 0, confidence: Double(roll(100)) / 100))
                if roll(4) == 0 { story.weak[frame, default: []].append(box.moved(5, 5)) }
            }
        }
        let plans = story.plans(100)
        #expect(plans.map(\.number) == Array(0..<100))
        for (number, plan) in plans.enumerated() {
            for face in story.faces[number] ?? [] {
                #expect(
                    plan.covers.contains {
                        $0.serial == face.serial && $0.box.x <= face.box.x + 1e-9 && $0.box.y <= face.box.y + 1e-9
                            && $0.box.right >= face.box.right - 1e-9 && $0.box.bottom >= face.box.bottom - 1e-9
                    })
            }
            #expect(plan.covers.allSatisfy { $0.box.area.isFinite && $0.box.width > 0 && $0.box.height > 0 })
        }
    }
}

@Suite struct CutWatchLightTests {
    /// A picture of blocks: by `value`, 0...1, then dimmed.
    private func picture(_ pyramid: GrayPyramid, light: Double, _ value: (Int, Int) -> Double) -> GrayPlane {
        let plane = pyramid.full
        for y in 0..<plane.height {
            for x in 0..<plane.width {
                plane.base[y * plane.width + x] = UInt8(16 + 200 * light * value(x / 20, y / 15))
            }
        }
        return plane
    }

    /// What one picture after another is called: without and with privacy.
    private func verdicts(light: Double, same: Bool) -> [Bool] {
        let pyramid = GrayPyramid(width: 320, height: 180)
        let first = { (x: Int, y: Int) in Double((x * 7 + y * 13) % 10) / 10 }
        let second = { (x: Int, y: Int) in Double((x * 3 + y * 5 + 4) % 7) / 7 }
        return [false, true].map { knows in
            var watch = CutWatch(knowsLight: knows)
            let begins = watch.isCut(picture(pyramid, light: 1, first))
            #expect(begins, "the first picture begins a scene")
            return watch.isCut(picture(pyramid, light: light, same ? first : second))
        }
    }

    @Test func aLampThatGoesOutIsNoCutWithPrivacy() { #expect(verdicts(light: 0.2, same: true) == [true, false]) }
    @Test(arguments: [1, 0.6]) func anotherPictureIs(light: Double) {
        #expect(verdicts(light: light, same: false) == [true, true])
    }
    /// Light that goes out over a part of the picture.
    @Test(arguments: [0.1, 0.3, 0.5]) func lightThatChangesInAPartIsNoCutWithPrivacy(share: Double) {
        let pyramid = GrayPyramid(width: 320, height: 180)
        let value = { (x: Int, y: Int) in Double((x * 7 + y * 13) % 10) / 10 }
        var watch = CutWatch(knowsLight: true)
        _ = watch.isCut(picture(pyramid, light: 1, value))
        for light in [0.1, 1, 0.05, 1] {
            let isDark = { (x: Int) in Double(x) < 16 * share }
            let isCut = watch.isCut(picture(pyramid, light: 1) { x, y in value(x, y) * (isDark(x) ? light : 1) })
            #expect(!isCut)
        }
    }
    @Test func theSamePictureIsNone() { #expect(verdicts(light: 1, same: true) == [false, false]) }
}

/// The stage with frames that wait: pixels that go out.
@Suite struct FaceEffectArchiveTests {
    private static let format = VideoFormat(.i420, width: 160, height: 120, frameRate: Rational(30))
    private static let face = (x: 60, y: 40, side: 40)

    /// What went out of a run.
    private struct Outcome {
        /// By frame: the share of the face's samples, and of the first ten rows, that came through as they were.
        var face: [Double] = []
        var rest: [Double] = []
        var numbers: [UInt64] = []
        var events: [Event] = []
    }

    /// Frames of the same noise, another one in each scene, and a detector that sees the face in some of them.
    private func run(
        _ options: String, _ count: Int, scenes: [Int] = [], isDrained: Bool = true,
        sees: @escaping @Sendable (Int) -> Bool
    ) throws -> Outcome {
        let detector = FakeDetector { call, _, _ in
            sees(call)
                ? [.at(Double(Self.face.x), Double(Self.face.y), Double(Self.face.side), Double(Self.face.side))] : []
        }
        let driver = try HarnessedFaceEffect.driver(options, Self.format, detector)
        var outcome = Outcome()
        var before: [[UInt8]] = []
        func take() throws {
            while let frame = driver.takeFrame() {
                let old = before[outcome.numbers.count]
                let new = frame.planeBytes[0]
                var same = 0
                for y in 0..<Self.face.side {
                    for x in 0..<Self.face.side {
                        let place = (Self.face.y + y) * 160 + Self.face.x + x
                        if old[place] == new[place] { same += 1 }
                    }
                }
                outcome.face.append(Double(same) / Double(Self.face.side * Self.face.side))
                outcome.rest.append(Double(zip(old[..<1600], new[..<1600]).count { $0 == $1 }) / 1600)
                outcome.numbers.append(frame.sequenceNumber)
            }
        }
        for number in 0..<count {
            let scene = scenes.count { $0 <= number }
            var noise = Noise(UInt64(scene))
            let frame = try driver.makeFrame { frame in
                noise.fill(&frame)
                // A scene has its light where the one before has its dark.
                frame.withMutablePlane(0) { plane in
                    for y in 0..<plane.height {
                        for x in 0..<plane.rowBytes where (x / 40 + scene) % 2 == 0 { plane.row(y)[x] /= 2 }
                    }
                }
            }
            before.append(frame.planeBytes[0])
            try driver.send(frame)
            try take()
        }
        if isDrained { try driver.drain() }
        try take()
        try driver.stop()
        outcome.events = driver.takeEvents()
        return outcome
    }

    private static let chance = 0.05

    @Test func aFaceThatIsFoundLateIsCoveredBefore() throws {
        let live = try run(#"{ "privacy": true, "lookAheadSeconds": 0 }"#, 20) { $0 >= 8 }
        #expect(live.face[..<8].allSatisfy { $0 == 1 }, "without looking ahead it is not: \(live.face)")
        let archive = try run(#"{ "privacy": true, "lookAheadSeconds": 0.4 }"#, 20) { $0 >= 8 }
        #expect(archive.numbers == Array(0..<20))
        #expect(archive.face.allSatisfy { $0 < Self.chance }, "\(archive.face)")
        #expect(archive.rest.allSatisfy { $0 == 1 }, "what is no face stays as it was")
        let told = archive.events.first { $0.name == "look-ahead" }
        #expect(
            told?.text
                == "Covered faces, counted in every frame: 12 found by the frame's own search, 8 before they were found, 0 between two detections, 0 after they were lost."
        )
    }

    @Test func aCutEndsThatAndTheSceneBeforeStaysAsItWas() throws {
        let archive = try run(#"{ "privacy": true, "lookAheadSeconds": 0.6 }"#, 20, scenes: [5]) { $0 >= 10 }
        #expect(archive.face[..<5].allSatisfy { $0 == 1 }, "\(archive.face)")
        #expect(archive.face[5...].allSatisfy { $0 < Self.chance }, "\(archive.face)")
    }

    @Test func aGapIsBridged() throws {
        let sees: @Sendable (Int) -> Bool = { $0 < 2 || $0 >= 14 }
        let live = try run(#"{ "privacy": true, "lookAheadSeconds": 0, "holdSeconds": 0 }"#, 20, sees: sees)
        #expect(live.face[8..<14].contains(1), "without looking ahead it is not: \(live.face)")
        let archive = try run(#"{ "privacy": true, "lookAheadSeconds": 0.5, "holdSeconds": 0 }"#, 20, sees: sees)
        #expect(archive.face.allSatisfy { $0 < Self.chance }, "\(archive.face)")
    }

    @Test func looksAheadWithoutAWordAndGivesAllFrames() throws {
        let archive = try run(#"{ "privacy": true }"#, 40) { $0 >= 20 }
        #expect(archive.numbers == Array(0..<40))
        #expect(archive.face.allSatisfy { $0 < Self.chance }, "\(archive.face)")
        #expect(archive.events.contains { $0.name == "note" && $0.text.hasPrefix("looks 30 frames ahead") })
    }

    @Test func asksForAsManyFramesAsItKeeps() throws {
        func demand(_ options: String, isLive: Bool = false) throws -> [Int] {
            let driver = try HarnessedFaceEffect.driver(
                options, Self.format, isLive: isLive, FakeDetector { _, _, _ in [] })
            defer { try? driver.stop() }
            return [driver.stage.demand.hold, driver.stage.demand.delay]
        }
        #expect(try demand(#"{ "privacy": true }"#) == [30, 30])
        #expect(try demand(#"{ "privacy": true, "lookAheadSeconds": 0.25 }"#) == [8, 8])
        #expect(try demand(#"{ "privacy": true, "lookAheadSeconds": 0 }"#) == [0, 0])
        #expect(try demand(#"{ "privacy": true }"#, isLive: true) == [0, 0])
        #expect(try demand("{}") == [0, 0])
    }

    @Test func keepsAtMostSoMuchWithoutAWord() throws {
        func frames(_ width: Int, _ height: Int, _ rate: Int32) throws -> Int {
            try LookAhead.frames(nil, VideoFormat(.i420, width: width, height: height, frameRate: Rational(rate)))
        }
        #expect(try frames(1280, 720, 30) == 30)
        #expect(try frames(1920, 1080, 60) == 60)
        #expect(try frames(3840, 2160, 30) == 21)
        #expect(try frames(160, 120, 1000) == 600)
    }

    @Test(arguments: [
        (
            #"{ "privacy": true, "lookAheadSeconds": 1 }"#, true,
            "lookAheadSeconds: 'lookAheadSeconds' must be 0 in a chain with a live source, because it delays the picture. Leave 'lookAheadSeconds' out, or set it to 0."
        ),
        (
            #"{ "privacy": true, "reviewFile": "review.html" }"#, true,
            "reviewFile: 'reviewFile' needs 'lookAheadSeconds', which a chain with a live source cannot use. Leave 'reviewFile' out."
        ),
        (
            #"{ "privacy": true, "lookAheadSeconds": 0, "reviewFile": "review.html" }"#, false,
            "reviewFile: 'reviewFile' needs 'lookAheadSeconds', which is 0. Leave 'lookAheadSeconds' out."
        ),
        (
            #"{ "lookAheadSeconds": 1 }"#, false,
            "'lookAheadSeconds' is only used with \"privacy\": true. Leave it out, or set 'privacy' to true."
        ),
        (
            #"{ "reviewFile": "a" }"#, false,
            "'reviewFile' is only used with \"privacy\": true. Leave it out, or set 'privacy' to true."
        ),
    ])
    func refusesWhatItCannotDo(options: String, isLive: Bool, text: String) throws {
        var told = "nothing"
        do {
            _ = try HarnessedFaceEffect.driver(options, Self.format, isLive: isLive, FakeDetector { _, _, _ in [] })
        } catch {
            told = "\((error as? FrameHostErrors)?.errors.first ?? FrameHostError.wrap(error))"
        }
        #expect(told.hasSuffix(text), "\(told)")
    }

    @Test func refusesMoreFramesThanItMayKeep() throws {
        let fast = VideoFormat(.i420, width: 160, height: 120, frameRate: Rational(240))
        var told = "nothing"
        do { _ = try LookAhead.frames(10, fast) } catch { told = "\(error)" }
        #expect(
            told
                == "lookAheadSeconds: 'lookAheadSeconds' must be at most 600 frames long, but 10 s are 2400 frames. Choose at most 2.5 s."
        )
    }

    // MARK: The review

    private func review(_ name: String, isDrained: Bool = true, sees: @escaping @Sendable (Int) -> Bool) throws
        -> String
    {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(
            "framehost-review-\(name)-\(getpid()).html"
        ).path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let options = #"{ "privacy": true, "lookAheadSeconds": 0.2, "holdSeconds": 0.1, "reviewFile": "\#(path)" }"#
        _ = try run(options, 70, isDrained: isDrained, sees: sees)
        return try String(contentsOfFile: path, encoding: .utf8)
    }

    @Test func writesAPageWithALineForEachFrameAndPicturesOfMoments() throws {
        let page = try review("page") { $0 >= 20 && $0 < 30 }
        let lines = page.split(separator: "\n").filter { $0.hasPrefix("{") }
        #expect(lines.count == 70)
        let parsed = try lines.map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
        #expect(parsed.compactMap { $0["frame"] as? Int } == Array(0..<70))
        func hows(_ frame: Int) -> [String] {
            ((parsed[frame]["faces"] as? [[String: Any]]) ?? []).compactMap { $0["how"] as? String }
        }
        #expect(hows(10) == [] && hows(19) == ["before"] && hows(25) == ["found"] && hows(31) == ["held"])
        #expect(page.contains("A face begins") && page.contains("A face is lost"))
        let pictures = page.components(separatedBy: "src=\"data:image/jpeg;base64,").dropFirst()
        #expect(!pictures.isEmpty)
        for picture in pictures {
            let data = try #require(Data(base64Encoded: String(picture.prefix { $0 != "\"" })))
            #expect(data.starts(with: [0xff, 0xd8, 0xff]) && data.suffix(2) == Data([0xff, 0xd9]))
        }
        #expect(page.contains("<style>#unfinished{display:none}</style>") && page.hasSuffix("</body></html>\n"))
        #expect(!page.contains("http:") && !page.contains("https:") && !page.contains("<script"))
    }

    @Test func thePageOfARunThatWasCutOffSaysSo() throws {
        let page = try review("cut-off", isDrained: false) { _ in true }
        #expect(page.contains("The run did not finish: this page is incomplete."))
        #expect(!page.contains("#unfinished{display:none}"))
    }

    @Test func keepsThePicturesOfMostWeightAndCountsAll() {
        var moments = ReviewMoments()
        for weight in [5, 1, 9, 3, 7, 2, 8, 4, 6, 0, 11, 10, 13, 12, 14] {
            let moment = TwoWayGuard.Moment(
                kind: .lost, serial: weight, box: FaceRect(x: 0, y: 0, width: 1, height: 1), weight: Double(weight))
            if moments.note(moment) {
                moments.keep(
                    ReviewMoments.Entry(
                        moment: moment, frame: 0, seconds: 0, size: PictureSize(1, 1), picture: []))
            }
        }
        let kept = moments.entries[TwoWayGuard.Moment.Kind.lost.rawValue]
        #expect(kept.map(\.moment.serial).sorted() == Array(3...14))
        #expect(moments.counts[TwoWayGuard.Moment.Kind.lost.rawValue] == 15)
    }

    @Test(arguments: [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")])
    func codesAsRFC4648Has(text: String, code: String) { #expect(Base64.encode(Array(text.utf8)) == code) }
}
