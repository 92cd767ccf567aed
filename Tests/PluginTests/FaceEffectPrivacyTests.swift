// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FaceEffect

@Suite struct PrivacyGuardTests {
    private static let second: Int64 = 1_000_000_000
    private static let box = FaceRect(x: 100, y: 100, width: 50, height: 60)

    private func face(_ serial: Int = 1, seen: Bool = true, speed: Double = 0) -> PrivacyGuard.Face {
        PrivacyGuard.Face(serial: serial, box: Self.box, isSeen: seen, velocityX: speed, velocityY: 0)
    }

    @Test func coversAllUntilTheFirstAnswer() {
        var guarded = PrivacyGuard(holdTime: Self.second)
        #expect(guarded.decide(.late, after: .cut, faces: [], time: 0) == .starting)
        #expect(guarded.decide(.answered, after: .none, faces: [face()], time: 1) == .searched)
        #expect(guarded.regions == [Self.box])
    }

    @Test func coversAllWithoutAnAnswerForThisVeryFrame() {
        var guarded = PrivacyGuard(holdTime: Self.second)
        _ = guarded.decide(.answered, after: .cut, faces: [face()], time: 0)
        #expect(guarded.decide(.late, after: .none, faces: [face(seen: false)], time: 1) == .late)
        #expect(guarded.decide(.failed, after: .none, faces: [face(seen: false)], time: 2) == .failed)
        for mode: PrivacyGuard.Mode in [.searched, .late, .failed] { guarded.count(mode, isCovered: true) }
        #expect(
            PrivacyGuard.Mode.late.coversAll && PrivacyGuard.Mode.failed.coversAll
                && PrivacyGuard.Mode.starting.coversAll)
        #expect(guarded.counts == [1, 0, 0, 1, 1, 0])
    }

    @Test func aCutCoversAllUntilAnswered() {
        var guarded = PrivacyGuard(holdTime: Self.second)
        _ = guarded.decide(.answered, after: .cut, faces: [face()], time: 0)
        #expect(guarded.decide(.late, after: .cut, faces: [], time: 1) == .starting)
        #expect(guarded.decide(.late, after: .none, faces: [], time: 2) == .starting)
        #expect(guarded.decide(.answered, after: .none, faces: [], time: 3) == .held)
    }

    @Test func aLostFaceStaysCoveredAndGrowsForTheHoldTime() throws {
        var guarded = PrivacyGuard(holdTime: Self.second)
        _ = guarded.decide(.answered, after: .cut, faces: [face(speed: 100)], time: 0)
        #expect(guarded.decide(.answered, after: .none, faces: [], time: Self.second / 4) == .held)
        let first = try #require(guarded.regions.first)
        #expect(first.width > Self.box.width && first.centerX == Self.box.centerX)
        #expect(guarded.decide(.answered, after: .none, faces: [], time: Self.second) == .held)
        #expect(try #require(guarded.regions.first).width > first.width)
        #expect(guarded.decide(.answered, after: .none, faces: [], time: Self.second + 1) == .searched)
        #expect(guarded.regions.isEmpty)
    }

    /// In a gap no time passes that anybody has seen.
    @Test(arguments: [PrivacyGuard.Break.gap, .cut]) func aLostFaceStaysUntilThreeSearchesAfterABreak(
        pause: PrivacyGuard.Break
    ) {
        var guarded = PrivacyGuard(holdTime: Self.second)
        _ = guarded.decide(.answered, after: .cut, faces: [face()], time: 0)
        for frame in 1...3 { _ = guarded.decide(.answered, after: .none, faces: [], time: Int64(frame)) }
        // Ten seconds on, with another face, which does not make the first one forgotten.
        let later = 10 * Self.second
        for (frame, pause) in [pause, .none].enumerated() {
            let mode = guarded.decide(.answered, after: pause, faces: [face(2)], time: later + Int64(frame))
            #expect(mode == .held && guarded.serials.sorted() == [1, 2])
        }
        #expect(guarded.decide(.late, after: .none, faces: [face(2, seen: false)], time: later + 2) == .late)
        #expect(guarded.decide(.answered, after: .none, faces: [face(2)], time: later + 3) == .searched)
        #expect(guarded.serials == [2])
    }

    private func covers(_ guarded: PrivacyGuard, _ box: FaceRect) -> Bool {
        guarded.regions.contains { $0.union(box).area <= $0.area * 1.000001 }
    }

    /// What passes in front takes the track along, and not the place where the face was seen.
    @Test func aFaceThatIsOnlyFollowedStaysCoveredWhereItWasSeen() {
        var guarded = PrivacyGuard(holdTime: Self.second)
        for frame in 0..<5 {
            _ = guarded.decide(.answered, after: .none, faces: [face()], time: Int64(frame) * Self.second / 30)
        }
        for frame in 5..<34 {
            var drifting = face(seen: false, speed: 360)
            drifting.box = Self.box.moved(Double(frame - 4) * 12, 0)
            // The track ends on the way.
            let faces = frame < 20 ? [drifting] : []
            #expect(
                guarded.decide(.answered, after: .none, faces: faces, time: Int64(frame) * Self.second / 30) == .held)
            #expect(covers(guarded, Self.box))
            if frame < 20 { #expect(covers(guarded, drifting.box)) }
        }
    }

    /// Another face that takes the track leaves the place of the first one covered, at any rate of frames.
    @Test(arguments: [5, 30, 60]) func aFaceThatJumpsLeavesItsPlaceCovered(rate: Int64) {
        var guarded = PrivacyGuard(holdTime: Self.second)
        _ = guarded.decide(.answered, after: .cut, faces: [face()], time: 0)
        for frame in 1...rate {
            var other = face()
            other.box = Self.box.moved(60, 0)
            other.hasJumped = frame == 1
            _ = guarded.decide(.answered, after: .none, faces: [other], time: Self.second * frame / rate)
            #expect(covers(guarded, Self.box) && covers(guarded, other.box))
            #expect(!covers(guarded, Self.box.moved(-60, 0)))
        }
    }

    @Test func holdsEndThoughEachPictureFollowsAGapOrACut() {
        for pause in [PrivacyGuard.Break.gap, .cut] {
            var guarded = PrivacyGuard(holdTime: Self.second)
            var last = PrivacyGuard.Mode.starting
            for frame in 0..<300 {
                // A face of another number after each break.
                let faces = frame < 200 ? [face(frame)] : []
                last = guarded.decide(.answered, after: pause, faces: faces, time: Self.second * Int64(frame) / 30)
                #expect(!last.coversAll)
            }
            #expect(last == .searched && guarded.regions.isEmpty)
        }
    }

    /// It does not know the faces that the one before it held.
    @Test func anInstanceThatFollowsAnotherCoversAllForTheHoldTimeAndThreeSearches() {
        var guarded = PrivacyGuard(holdTime: Self.second, followsAnother: true)
        for frame in 0...30 {
            #expect(
                guarded.decide(.answered, after: .none, faces: [], time: Self.second * Int64(frame) / 30) == .starting)
        }
        #expect(guarded.decide(.answered, after: .none, faces: [], time: Self.second * 31 / 30) == .searched)
        var slow = PrivacyGuard(holdTime: Self.second, followsAnother: true)
        let modes = (0..<5).map { slow.decide(.answered, after: .none, faces: [], time: Self.second * 10 * $0) }
        #expect(modes == [.starting, .starting, .starting, .searched, .searched])
    }

    @Test func aPlaceThatIsNoNumberCoversAll() {
        let lost = FaceRect(x: .nan, y: 0, width: .infinity, height: 10)
        let region = EffectRegion(lost, margin: 0.3, feather: 0.1, width: 64, height: 48)
        #expect(region.map { [$0.left, $0.top, $0.right, $0.bottom] } == [0, 0, 64, 48])
    }

    @Test func aCutForgetsNoFaceBeforeTheHoldTimeIsOver() {
        var guarded = PrivacyGuard(holdTime: Self.second)
        _ = guarded.decide(.answered, after: .cut, faces: [face()], time: 0)
        for frame in 1...30 {
            let pause: PrivacyGuard.Break = frame % 5 == 0 ? .cut : .none
            #expect(
                guarded.decide(.answered, after: pause, faces: [face(2)], time: Self.second * Int64(frame) / 30)
                    == .held)
        }
        #expect(guarded.decide(.answered, after: .none, faces: [face(2)], time: Self.second * 31 / 30) == .held)
        #expect(guarded.decide(.answered, after: .none, faces: [face(2)], time: Self.second * 33 / 30) == .searched)
    }

    @Test func moreFacesThanItCanRememberCoverAll() {
        var guarded = PrivacyGuard(holdTime: Self.second)
        let many = (0..<64).map { face($0) }
        #expect(guarded.decide(.full, after: .cut, faces: many, time: 0) == .crowded)
        #expect(PrivacyGuard.Mode.crowded.coversAll)
        // Faces that were lost fill the memory, too.
        let modes = (1..<4).map { frame in
            guarded.decide(.answered, after: .none, faces: (0..<64).map { face($0 + 64 * frame) }, time: Int64(frame))
        }
        #expect(modes == [.held, .crowded, .crowded])
    }

    @Test func aFaceThatIsPartlyHiddenStaysCoveredWhole() throws {
        var guarded = PrivacyGuard(holdTime: Self.second)
        _ = guarded.decide(.answered, after: .cut, faces: [face()], time: 0)
        var half = face()
        half.box = FaceRect(x: 100, y: 100, width: 25, height: 60)
        _ = guarded.decide(.answered, after: .none, faces: [half], time: Self.second / 30)
        #expect(try #require(guarded.regions.first).right > 145)
        for frame in 2..<60 {
            _ = guarded.decide(.answered, after: .none, faces: [half], time: Self.second * Int64(frame) / 30)
        }
        #expect(try #require(guarded.regions.first).right < 126)
    }

    @Test func timeThatStepsBackForgetsNothingAtOnce() {
        var guarded = PrivacyGuard(holdTime: Self.second)
        _ = guarded.decide(.answered, after: .cut, faces: [face()], time: 100 * Self.second)
        #expect(guarded.decide(.answered, after: .gap, faces: [], time: 0) == .held)
        #expect(guarded.decide(.answered, after: .none, faces: [], time: Self.second) == .held)
        #expect(guarded.decide(.answered, after: .none, faces: [], time: Self.second + 1) == .searched)
    }
}

/// The stage with a detector that misbehaves: never a raw picture.
@Suite struct FaceEffectPrivacyTests {
    private static let format = VideoFormat(.i420, width: 160, height: 120, frameRate: Rational(30))

    /// Sends frames of noise; gives, for each, the share of its samples that came through as they were, of the plane
    /// where that is largest.
    private func rawShares(
        _ count: Int, _ options: String, _ detector: FakeDetector, beforeStop: () -> Void = {}
    ) throws -> (
        shares: [Double], events: [Event], fault: FrameHostError?
    ) {
        let driver = try HarnessedFaceEffect.driver(options, Self.format, detector)
        var noise = Noise(7)
        let shares = try (0..<count).map { _ in try Self.rawShare(driver, &noise) }
        beforeStop()
        var fault: FrameHostError?
        do { try driver.stop() } catch { fault = FrameHostError.wrap(error) }
        return (shares, driver.takeEvents(), fault)
    }

    private static func rawShare(_ driver: StageDriver<HarnessedFaceEffect>, _ noise: inout Noise) throws -> Double {
        let frame = try driver.makeFrame { noise.fill(&$0) }
        let before = frame.planeBytes
        try driver.send(frame)
        let after = try driver.nextFrame().planeBytes
        return zip(before, after).map { old, new in Double(zip(old, new).count { $0 == $1 }) / Double(old.count) }.max()
            ?? 1
    }

    /// By chance a sample of noise equals the mean of its block.
    private static let chance = 0.05

    /// It comes back when all frames are through. (The limit is against a hang alone: it counts the wait for a thread, and
    /// tests beside it build plugins.)
    @Test(.timeLimit(.minutes(60))) func aDetectorThatSleepsCoversAll() throws {
        let gate = DispatchSemaphore(value: 0)
        let detector = FakeDetector { call, _, _ in
            if call == 0 { gate.wait() }
            return []
        }
        let result = try rawShares(8, #"{ "privacy": true, "lookAheadSeconds": 0, "waitMs": 20 }"#, detector) {
            gate.signal()
        }
        #expect(result.shares.allSatisfy { $0 < Self.chance }, "\(result.shares)")
    }

    @Test func aDetectorThatThrowsCoversAllAndIsToldOfOnce() throws {
        let detector = FakeDetector { _, _, _ in throw FrameHostError(.callFailed, what: "out of luck") }
        let result = try rawShares(8, #"{ "privacy": true, "lookAheadSeconds": 0, "effect": "replace" }"#, detector)
        #expect(result.shares.allSatisfy { $0 < Self.chance }, "\(result.shares)")
        let told = result.events.filter { $0.name == "detector-failed" }
        #expect(
            told.map(\.text) == [
                "Face detection failed: out of luck. Until it works again, frames are covered completely. If this repeats, check the model with 'framehost models'."
            ])
        #expect(
            result.events.last { $0.name == "privacy" }?.text
                == "8 frames: 0 searched in time, 0 more in which the search missed a known face that was covered anyway, 8 covered completely (starting 0, late 0, failed 8, crowded 0); of the searched frames, 0 went out unchanged because no face was found. How many faces no search saw is unknown."
        )
    }

    /// The picture was safe, and yet nobody asked for 8 frames of nothing.
    @Test func aDetectorThatFailsMoreOftenThanNotFailsTheRun() throws {
        for (options, consequence) in [
            (#"{ "privacy": true, "lookAheadSeconds": 0 }"#, "frames were covered completely"),
            (#"{ "every": 1 }"#, "faces were not found"),
        ] {
            let broken = FakeDetector { _, _, _ in throw FrameHostError(.callFailed, what: "out of luck") }
            let result = try rawShares(8, options, broken)
            #expect(
                result.fault?.what.hasSuffix("the detector failed in 8 of 8 searches: \(consequence)") == true,
                "\(String(describing: result.fault))")
            let hiccup = FakeDetector { call, _, _ in
                if call == 3 { throw FrameHostError(.callFailed, what: "out of luck") }
                return []
            }
            #expect(try rawShares(8, options, hiccup).fault == nil)
        }
    }

    /// Were the end to wait for it, the test would not end.
    @Test(.timeLimit(.minutes(60))) func aDetectorThatNeverComesBackCoversAllAndDoesNotHoldUpTheEnd() throws {
        let never = DispatchSemaphore(value: 0)
        defer { never.signal() }
        let detector = FakeDetector { _, _, _ in
            never.wait()
            return []
        }
        let result = try rawShares(
            6, #"{ "privacy": true, "lookAheadSeconds": 0, "effect": "blur", "waitMs": 10 }"#, detector)
        #expect(result.shares.allSatisfy { $0 < Self.chance }, "\(result.shares)")
    }

    /// 64 faces can be followed: with one more, no list of faces says what must be covered.
    @Test(arguments: [0.0, 0.2]) func moreFacesThanCanBeFollowedCoverAllAndAreToldOf(ahead: Double) throws {
        func crowd(_ count: Int) -> FakeDetector {
            FakeDetector { _, _, _ in
                (0..<count).map { .at(Double($0 % 16) * 10, Double($0 / 16) * 10, 8, 8) }
            }
        }
        let options = #"{ "privacy": true, "effect": "replace", "lookAheadSeconds": \#(ahead) }"#
        // Faces of noise lose their tracks, so that fewer than 64 fill the list.
        for count in [40, 65] {
            let driver = try HarnessedFaceEffect.driver(options, Self.format, crowd(count))
            var noise = Noise(5)
            var before: [[UInt8]] = []
            for _ in 0..<10 {
                let frame = try driver.makeFrame { noise.fill(&$0) }
                before.append(frame.planeBytes[0])
                try driver.send(frame)
            }
            try driver.drain()
            var number = 0
            while let frame = driver.takeFrame() {
                let same = zip(before[number], frame.planeBytes[0]).count { $0 == $1 }
                number += 1
                // 40 small faces leave more than half of the picture as it is.
                #expect(count == 40 ? same > 160 * 60 : Double(same) < 160 * 120 * Self.chance)
            }
            try driver.stop()
            #expect(number == 10)
            let events = driver.takeEvents()
            #expect(events.count { $0.name == "crowd" } == (count == 40 ? 0 : 1))
            #expect(
                events.last { $0.name == "privacy" }?.details["crowded"]?.asInt == (count == 40 ? 0 : 10))
        }
    }

    /// A frame may lie otherwise than its format says: the search sees it upright, and what is covered is where the face is.
    @Test(arguments: Orientation.allCases) func aFrameIsSearchedAsItLies(orientation: Orientation) throws {
        let upright = UprightMap(Self.format, orientation)
        let box = FaceRect(x: 20, y: 10, width: 30, height: 40)
        let detector = FakeDetector { _, width, height in
            width == upright.width && height == upright.height
                ? [.at(box.x, box.y, box.width, box.height)] : []
        }
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(
            "framehost-lying-\(orientation.rawValue)-\(getpid()).jsonl"
        ).path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let driver = try HarnessedFaceEffect.driver(
            #"{ "privacy": true, "lookAheadSeconds": 0, "margin": 0.1, "feather": 0, "facesFile": "\#(path)" }"#,
            Self.format, detector)
        var noise = Noise(9)
        let frame = try driver.makeFrame { noise.fill(&$0) }
        frame.orientation = orientation
        let before = frame.planeBytes[0]
        try driver.send(frame)
        let after = try driver.nextFrame().planeBytes[0]
        try driver.stop()
        let stored = upright.stored(box)
        var (inside, outside) = (0, 0)
        for y in 0..<120 {
            for x in 0..<160 where before[y * 160 + x] == after[y * 160 + x] {
                let isInside =
                    Double(x) >= stored.x && Double(x) < stored.right && Double(y) >= stored.y
                    && Double(y) < stored.bottom
                if isInside { inside += 1 } else { outside += 1 }
            }
        }
        #expect(Double(inside) < 1200 * Self.chance && outside > 160 * 120 - 1200 * 2, "\(inside) \(outside)")
        let line = try String(contentsOfFile: path, encoding: .utf8)
        #expect(line.contains(#""covered":[[20.00,10.00,30.00,40.00]]"#), "\(line)")
        #expect(upright.upright(stored) == box)
    }

    /// Where one picture in two comes too late, a person sees nothing: the run must not call that done.
    @Test func aSearchThatIsAlwaysLateIsSaidAndFailsTheRun() throws {
        let gate = DispatchSemaphore(value: 0)
        let detector = FakeDetector { _, _, _ in
            gate.wait()
            gate.signal()
            return []
        }
        let result = try rawShares(
            100, #"{ "privacy": true, "lookAheadSeconds": 0, "waitMs": 0, "detectionSize": 320 }"#, detector
        ) { gate.signal() }
        let told = result.events.filter { $0.name == "search-late" }
        #expect(
            told.first?.text.hasPrefix("In the last 10 s, 20 % of the pictures were covered completely") == true,
            "\(told)")
        #expect(told.count == 2 && told.last?.text.hasPrefix("100 of 100 frames were covered completely") == true)
        #expect(
            result.fault?.what.hasSuffix(
                "the search for faces was too slow: 100 of 100 frames were covered completely") == true,
            "\(String(describing: result.fault))")
        #expect(result.fault?.remedy.hasPrefix("Choose a smaller 'detectionSize', or leave it out.") == true)
    }

    /// Of a run of one frame nobody can say that its searches are too slow.
    @Test(arguments: [1, 29]) func aFewLateFramesSayNothingOfARun(count: Int) throws {
        let gate = DispatchSemaphore(value: 0)
        let detector = FakeDetector { _, _, _ in
            gate.wait()
            gate.signal()
            return []
        }
        let result = try rawShares(
            count, #"{ "privacy": true, "lookAheadSeconds": 0, "waitMs": 0, "detectionSize": 320 }"#, detector
        ) { gate.signal() }
        #expect(result.shares.count == count && result.shares.allSatisfy { $0 < Self.chance })
        #expect(result.fault == nil, "\(String(describing: result.fault))")
        #expect(!result.events.contains { $0.name == "search-late" })
        #expect(result.events.last { $0.name == "privacy" }?.details["starting"]?.asInt == count)
    }

    /// Frames that wait to be looked ahead when the run is stopped went nowhere.
    @Test(arguments: [true, false]) func countsOnlyWhatWentOut(isDrained: Bool) throws {
        let detector = FakeDetector { call, _, _ in call < 6 ? [.at(60, 40, 40, 40)] : [] }
        let driver = try HarnessedFaceEffect.driver(
            #"{ "privacy": true, "lookAheadSeconds": 0.2, "holdSeconds": 0.05, "effect": "replace" }"#, Self.format,
            detector)
        var noise = Noise(5)
        for _ in 0..<20 { try driver.send(try driver.makeFrame { noise.fill(&$0) }) }
        if isDrained { try driver.drain() }
        var count = 0
        while driver.takeFrame() != nil { count += 1 }
        try driver.stop()
        #expect(isDrained ? count == 20 : (1..<20).contains(count), "\(count)")
        let events = driver.takeEvents()
        let told = try #require(events.last { $0.name == "privacy" })
        #expect(told.text.hasPrefix("\(count) frames: "), "\(told.text)")
        let modes = PrivacyGuard.Mode.allCases.map { told.details[$0.name]?.asInt ?? -100 }
        #expect(modes.reduce(0, +) == count, "\(told.text)")
    }

    @Test func aDetectorThatDiesMidwayCoversAllFromThenOn() throws {
        let detector = FakeDetector { call, _, _ in
            if call >= 3 { throw FrameHostError(.broken, what: "gone") }
            return [.at(60, 40, 40, 40)]
        }
        let result = try rawShares(8, #"{ "privacy": true, "lookAheadSeconds": 0 }"#, detector)
        #expect(result.shares[..<3].allSatisfy { $0 > 0.5 })
        #expect(result.shares[3...].allSatisfy { $0 < Self.chance }, "\(result.shares)")
    }

    @Test func waitsForTheFirstDetectionAndCoversTheFaceInTheFirstFrame() throws {
        let detector = FakeDetector { _, _, _ in
            Thread.sleep(forTimeInterval: 0.1)
            return [.at(60, 40, 40, 40)]
        }
        // A wait that outlasts any machine: it ends with the answer.
        let driver = try HarnessedFaceEffect.driver(
            #"{ "privacy": true, "lookAheadSeconds": 0, "waitMs": 60000 }"#, Self.format, detector)
        var noise = Noise(3)
        let frame = try driver.makeFrame { noise.fill(&$0) }
        let before = frame.planeBytes[0]
        try driver.send(frame)
        let after = try driver.nextFrame().planeBytes[0]
        // Inside the face's own box nothing is left but chance; far from it all is.
        var same = 0
        for y in 40..<80 { for x in 60..<100 where before[y * 160 + x] == after[y * 160 + x] { same += 1 } }
        #expect(Double(same) / 1600 < Self.chance)
        #expect(Array(before[..<(160 * 10)]) == Array(after[..<(160 * 10)]))
        try driver.stop()
    }

    /// The detector comes back when thirty frames are through, and not before: were one of them to wait for it, the
    /// test would not end.
    @Test(
        .timeLimit(.minutes(60)),
        arguments: [#"{ "privacy": true, "lookAheadSeconds": 0 }"#, "{}", #"{ "latency": "none" }"#])
    func aLiveChainIsNotHeldUpByABusyDetector(options: String) throws {
        let gate = DispatchSemaphore(value: 0)
        let detector = FakeDetector { call, _, _ in
            if call == 0 { gate.wait() }
            return [.at(60, 40, 40, 40)]
        }
        let driver = try HarnessedFaceEffect.driver(options, Self.format, isLive: true, detector)
        var noise = Noise(7)
        let shares = try (0..<30).map { _ in try Self.rawShare(driver, &noise) }
        #expect(detector.calls == 0, "it is still in its first search")
        let isPrivate = options.contains("privacy")
        #expect(shares.allSatisfy { isPrivate ? $0 < Self.chance : $0 == 1 }, "\(shares)")
        gate.signal()
        // Back again: the face alone is covered, as soon as a search is done within a frame's wait.
        // No bound but the test's own.
        while true {
            usleep(1000)
            let share = try Self.rawShare(driver, &noise)
            if share > 0.5, share < 1 { break }
        }
        if isPrivate {
            // Most frames were late, which a person must hear of.
            #expect(throws: FrameHostError.self) { try driver.stop() }
        } else {
            try driver.stop()
        }
    }

    @Test(arguments: [
        (
            #"{ "privacy": true, "lookAheadSeconds": 0, "effect": "box" }"#,
            "'privacy' needs an effect that covers faces, but 'box' does not cover them. Use 'pixelate', 'blur' or 'replace'."
        ),
        (
            #"{ "privacy": true, "lookAheadSeconds": 0, "draw": false }"#,
            "'privacy' needs \"draw\": true. Leave 'draw' out to cover faces, or leave 'privacy' out of the chain file."
        ),
        (
            #"{ "privacy": true, "lookAheadSeconds": 0, "blocks": 40 }"#,
            "'blocks' must be from 2 to 12 with 'privacy', but is 40: smaller blocks leave a face recognisable. Use at most 12."
        ),
        (
            #"{ "privacy": true, "lookAheadSeconds": 0, "effect": "blur", "strength": 0.1 }"#,
            "'strength' must be from 0.4 to 1 for 'blur' with 'privacy', but is 0.1: a weaker blur leaves a face recognisable. Use at least 0.4."
        ),
    ])
    func refusesWhatWouldNotCover(options: String, text: String) throws {
        let error = #expect(throws: FrameHostErrors.self) {
            _ = try StageDriver(FaceEffect.self, options: options, input: .video(Self.format))
        }
        #expect(error?.errors.first.map { "\($0.what). \($0.remedy)" } == text)
    }

    @Test func aLiveChangeCannotSwitchCoveringOff() throws {
        let driver = try HarnessedFaceEffect.driver(
            #"{ "privacy": true, "lookAheadSeconds": 0 }"#, Self.format, FakeDetector { _, _, _ in [] })
        #expect(throws: FrameHostErrors.self) { try driver.set(#"{ "draw": false }"#) }
        #expect(throws: FrameHostErrors.self) { try driver.set(#"{ "effect": "smooth" }"#) }
        try driver.set(#"{ "effect": "replace" }"#)
        try driver.stop()
    }
}
