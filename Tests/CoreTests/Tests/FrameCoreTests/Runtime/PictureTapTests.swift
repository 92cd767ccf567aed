// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import Testing

@testable import FrameCore

/// Pictures that are copied out of a running chain.
@Suite struct PictureTapTests {
    /// A paced source whose pixels are the frame's number, a filter that looks, a sink.
    private func sketch(_ log: String, source: String = "", filter: String = "{}") throws -> ChainSketch {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100000000, "everyMs": 1\#(source)}"#)
        try sketch.add(ProbeFilter.self, "mid", options: filter)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "\#(log)"}"#)
        return sketch
    }

    /// Whether every pixel is the one that the source painted into the frame of that number, `more` added.
    private func isPainted(_ picture: StagePicture, more: UInt8 = 0) -> Bool {
        let value = UInt8(truncatingIfNeeded: picture.sequenceNumber) &+ more
        return (0..<picture.planeCount).allSatisfy { index in
            picture.withPlane(index) { plane in
                (0..<plane.height).allSatisfy { y in plane.row(y).allSatisfy { $0 == value } }
            }
        }
    }

    // MARK: What is given

    @Test(arguments: ["src", "mid"]) func givesTheNextPictureWithItsPixels(stage: String) throws {
        let driver = try RunningChainDriver(sketch("picture-\(stage)"))
        var last: UInt64?
        for _ in 0..<50 {
            let picture = try #require(try driver.chain.picture(of: stage, within: 120))
            #expect(isPainted(picture), "frame \(picture.sequenceNumber)")
            #expect(last.map { picture.sequenceNumber > $0 } ?? true, "the next one, not one of before")
            #expect(picture.pts.nanoseconds == Int64(picture.sequenceNumber) * 1_000_000)
            #expect(picture.capturedAt > 0 && !picture.isSubstitute && picture.orientation == .up)
            last = picture.sequenceNumber
        }
        #expect(driver.finish().isSuccess)
        #expect(driver.chain.ledger.isBalanced)
    }

    /// Nobody looks at the picture that a paused stage gives once it goes on.
    @Test func givesNothingToWhoHasGivenUp() throws {
        let driver = try RunningChainDriver(sketch("picture-late"))
        let runner = try #require(driver.chain.graph.runner(id: "src"))
        #expect(driver.answer { driver.chain.pause(stage: "src", isDropping: true, reply: $0) }.isOK)
        let inbox = PictureInbox()
        try driver.chain.askPicture(of: "src", for: inbox)
        inbox.withdraw("src")
        #expect(try driver.chain.picture(of: "src", within: 0.05) == nil)
        #expect(driver.answer { driver.chain.resume(stage: "src", reply: $0) }.isOK)
        driver.waitForFrames(driver.chain.progress.captured + 50)
        #expect(!runner.pictures.hasGiven(within: .max, now: ChainClock.system.now()))
        #expect(driver.chain.status.state == .streaming)
        #expect(inbox.take(within: 0) == nil)
        // Who asks again is given the next one.
        try driver.chain.askPicture(of: "src", for: inbox)
        #expect(inbox.take(within: 120)?.picture != nil)
        #expect(driver.finish().isSuccess)
    }

    /// The tap lies behind the stage: what a writer has painted is in the picture, what comes after it is not.
    @Test func givesWhatTheStageGivesAndNotWhatItGets() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100000000, "everyMs": 1}"#)
        try sketch.add(AddOne.self, "one")
        try sketch.add(AddOne.self, "two")
        try sketch.add(CopyTransform.self, "copy")
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "picture-writers"}"#)
        let driver = try RunningChainDriver(sketch)
        for (stage, more) in [("src", 0), ("one", 1), ("two", 2), ("copy", 2)] {
            let picture = try #require(try driver.chain.picture(of: stage, within: 120))
            #expect(isPainted(picture, more: UInt8(more)), "\(stage)")
        }
        #expect(driver.finish().isSuccess)
    }

    @Test func saysHowTheFrameLies() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100000000, "everyMs": 1}"#)
        try sketch.add(TapMarker.self, "mark")
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "picture-lies"}"#)
        let driver = try RunningChainDriver(sketch)
        #expect(try driver.chain.picture(of: "mark", within: 120)?.orientation == .right)
        #expect(driver.finish().isSuccess)
    }

    /// Frames that are passed on are of the format of the pool they come from.
    @Test func givesPicturesOfAStageThatOnlySaysAnotherRate() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100000000, "everyMs": 1}"#)
        try sketch.add(RateSayer.self, "rate")
        try sketch.add(ProbeFilter.self, "behind")
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "picture-rate"}"#)
        let driver = try RunningChainDriver(sketch)
        for stage in ["rate", "behind"] {
            let picture = try #require(try driver.chain.picture(of: stage, within: 120), "\(stage)")
            #expect(picture.format.frameRate == Rational(7), "\(stage): as its link says")
            #expect(isPainted(picture))
        }
        #expect(driver.finish().isSuccess)
    }

    // MARK: Several at once

    @Test func givesOneCopyToAllWhoAsk() throws {
        let driver = try RunningChainDriver(sketch("picture-many"))
        // While nothing comes, all of them ask for the same frame.
        #expect(driver.answer { driver.chain.pause(stage: "src", reply: $0) }.isOK)
        let inboxes = (0..<20).map { _ in PictureInbox() }
        for inbox in inboxes {
            for stage in ["src", "mid"] { try driver.chain.askPicture(of: stage, for: inbox) }
            // Once more changes nothing.
            try driver.chain.askPicture(of: "mid", for: inbox)
        }
        #expect(driver.answer { driver.chain.resume(stage: "src", reply: $0) }.isOK)
        var given: [String: [ObjectIdentifier]] = [:]
        for inbox in inboxes {
            for _ in 0..<2 {
                let arrival = try #require(inbox.take(within: 120))
                let picture = try #require(arrival.picture)
                #expect(isPainted(picture))
                given[arrival.stage, default: []].append(ObjectIdentifier(picture))
            }
            #expect(inbox.take(within: 0) == nil, "one picture for each stage")
        }
        #expect(given.keys.sorted() == ["mid", "src"])
        for (stage, pictures) in given {
            #expect(pictures.count == inboxes.count && Set(pictures).count == 1, "\(stage): one copy")
        }
        #expect(driver.finish().isSuccess)
    }

    /// Whoever looks at a picture for long keeps that one only: others get the next in memory of their own.
    @Test func doesNotWriteIntoAPictureThatIsLookedAt() throws {
        let driver = try RunningChainDriver(sketch("picture-kept"))
        var kept: [(picture: StagePicture, number: UInt64)] = []
        for _ in 0..<10 {
            let picture = try #require(try driver.chain.picture(of: "mid", within: 120))
            kept.append((picture, picture.sequenceNumber))
        }
        for (picture, number) in kept {
            #expect(picture.sequenceNumber == number)
            #expect(isPainted(picture))
        }
        #expect(Set(kept.map { ObjectIdentifier($0.picture) }).count == 10)
        #expect(driver.finish().isSuccess)
    }

    /// In the plain run a stress of locks and memory; under the thread sanitizer it shows that the stage's thread and
    /// the askers' have an order.
    @Test func givesAThousandPicturesToFourAskers() throws {
        let driver = try RunningChainDriver(sketch("picture-thousand"))
        let (right, wrong) = (Locked(0), Locked<[String]>([]))
        let askers = try (0..<4).map { number in
            try TestThread("asker \(number)") {
                for index in 0..<250 {
                    let stage = index % 2 == number % 2 ? "src" : "mid"
                    do {
                        guard let picture = try driver.chain.picture(of: stage, within: 120) else {
                            wrong.withLock { $0.append("none of \(stage)") }
                            return
                        }
                        if isPainted(picture) {
                            right.withLock { $0 += 1 }
                        } else {
                            wrong.withLock { $0.append("\(stage): frame \(picture.sequenceNumber)") }
                        }
                    } catch {
                        wrong.withLock { $0.append("\(error)") }
                        return
                    }
                }
            }
        }
        for asker in askers { asker.join(within: 600) }
        #expect(right.now == 1000 && wrong.now == [], "\(wrong.now)")
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(driver.chain.ledger.isBalanced)
        let numbers = RecordingSink.log("picture-thousand").entries.map(\.sequence)
        #expect(numbers == Array(0..<UInt64(numbers.count)), "no frame is lost to those who look")
    }

    // MARK: Chains that stand, change and end

    @Test func waitsForAChainThatIsPausedAndGivesNothingInTime() throws {
        let driver = try RunningChainDriver(sketch("picture-paused"))
        driver.waitForFrames(3)
        #expect(driver.answer { driver.chain.pause(stage: "src", reply: $0) }.isOK)
        // What was on its way comes first.
        var late = 0
        while try driver.chain.picture(of: "mid", within: 0.05) != nil { late += 1 }
        #expect(late < 10, "a source that is paused gives nothing")
        #expect(driver.answer { driver.chain.resume(stage: "src", reply: $0) }.isOK)
        #expect(try driver.chain.picture(of: "mid", within: 120) != nil)
        #expect(driver.finish().isSuccess)
    }

    /// Each asks at an inbox of its own and goes.
    @Test func keepsNobodyWhoHasGivenUp() throws {
        let driver = try RunningChainDriver(sketch("picture-gone"))
        driver.waitForFrames(1)
        #expect(driver.answer { driver.chain.pause(stage: "src", reply: $0) }.isOK)
        _ = try driver.chain.picture(of: "mid", within: 0.05)
        for _ in 0..<50 { #expect(try driver.chain.picture(of: "mid", within: 0) == nil) }
        #expect(try #require(driver.chain.graph.runner(id: "mid")).pictures.waiting.count <= 1)
        #expect(driver.answer { driver.chain.resume(stage: "src", reply: $0) }.isOK)
        #expect(try driver.chain.picture(of: "mid", within: 120) != nil)
        #expect(driver.finish().isSuccess)
    }

    @Test func givesPicturesOfAFilterThatLetsThemBy() throws {
        let driver = try RunningChainDriver(sketch("picture-bypassed"))
        #expect(driver.answer { driver.chain.pause(stage: "mid", reply: $0) }.isOK)
        let picture = try #require(try driver.chain.picture(of: "mid", within: 120))
        #expect(isPainted(picture))
        #expect(driver.finish().isSuccess)
    }

    @Test func givesAPictureOfTheNewStageWhereTheOldOneIsReplaced() throws {
        var plain = try sketch("picture-replaced")
        plain.request.spare = 8
        let driver = try RunningChainDriver(plain)
        #expect(driver.answer { driver.chain.pause(stage: "src", reply: $0) }.isOK)
        let given = Locked<StagePicture?>(nil)
        let asked = Locked(false)
        let asker = try TestThread("asker") {
            asked.set(true)
            let picture = try? driver.chain.picture(of: "mid", within: 120)
            given.set(picture)
        }
        #expect(eventually { asked.now })
        let changed = driver.change(to: try plain.setting("mid", #"{"keep": 1}"#))
        #expect(changed.isOK, "\(changed.error)")
        #expect(driver.answer { driver.chain.resume(stage: "src", reply: $0) }.isOK)
        asker.join(within: 600)
        #expect(given.now.map { isPainted($0) } == true)
        #expect(driver.finish().isSuccess)
    }

    @Test func isRefusedOnceTheStageHasGone() throws {
        var plain = try sketch("picture-gone")
        plain.request.spare = 8
        var longer = plain
        try longer.add(ProbeFilter.self, "late", from: ["src"], link: LinkRequest(queue: 1))
        try longer.add(RecordingSink.self, "second", options: #"{"log": "picture-gone-late"}"#)
        let driver = try RunningChainDriver(longer)
        driver.waitForFrames(3)
        #expect(driver.answer { driver.chain.pause(stage: "src", reply: $0) }.isOK)
        let refusal = Locked("")
        let asker = try TestThread("asker") {
            // It may have one of the frames on their way.
            do { while try driver.chain.picture(of: "late", within: 3600) != nil {} } catch { refusal.set("\(error)") }
        }
        let changed = driver.change(to: plain)
        #expect(changed.isOK, "\(changed.error)")
        asker.join()
        #expect(refusal.now.hasPrefix("late: no such stage."), "\(refusal.now)")
        #expect(driver.finish().isSuccess)
    }

    @Test func givesNothingOnceTheChainHasEnded() throws {
        let driver = try RunningChainDriver(sketch("picture-ended"))
        #expect(driver.answer { driver.chain.pause(stage: "src", reply: $0) }.isOK)
        let isOver = Locked(false)
        let asker = try TestThread("asker") {
            // It may have one of the frames on their way; then there is none to wait for.
            while (try? driver.chain.picture(of: "mid", within: 3600)) != nil {}
            isOver.set(true)
        }
        #expect(driver.finish().isSuccess)
        asker.join()
        #expect(isOver.now)
        #expect(try driver.chain.picture(of: "src", within: 3600) == nil)
        // Whoever waits at an inbox is told as well.
        let inbox = PictureInbox()
        try driver.chain.askPicture(of: "src", for: inbox)
        let arrival = try #require(inbox.take(within: 3600))
        #expect(arrival.stage == "src" && arrival.picture == nil)
    }

    @Test func tellsWhoeverWaitsAtAnInboxThatTheChainHasEnded() throws {
        let driver = try RunningChainDriver(sketch("picture-inbox-ended"))
        #expect(driver.answer { driver.chain.pause(stage: "src", reply: $0) }.isOK)
        let inbox = PictureInbox()
        try driver.chain.askPicture(of: "mid", for: inbox)
        #expect(driver.finish().isSuccess)
        #expect(inbox.take(within: 3600)?.stage == "mid")
    }

    @Test func answersEmptyWhereTheFormatHasChangedAndGivesTheNewOneThen() throws {
        let small = VideoFormat(.gray8, width: 16, height: 8)
        let large = VideoFormat(.gray8, width: 32, height: 8)
        let pool = try TestPool(2, large).pool
        let (tap, inbox) = (PictureTap(), PictureInbox())
        let ask = PictureInbox.Ask(inbox: inbox, stage: "it")
        try tap.ask(ask, format: small)
        guard let frame = pool.tryLease() else { throw FrameHostError(.exhausted, what: "no buffer") }
        frame.sequenceNumber = 5
        tap.see(frame)
        let first = try #require(inbox.take(within: 0))
        #expect(first.stage == "it" && first.picture == nil)
        // Not asked again: not answered again.
        tap.see(frame)
        #expect(inbox.take(within: 0) == nil)
        try tap.ask(ask, format: large)
        tap.see(frame)
        let second = try #require(inbox.take(within: 0)?.picture)
        #expect(second.format == large && second.sequenceNumber == 5)
    }

    // MARK: Who cannot be asked

    @Test func namesTheNearestStageThatGivesPictures() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100000000, "everyMs": 1}"#)
        try sketch.add(ProbeFilter.self, "mid")
        try sketch.add(UnitEncoder.self, "enc", options: #"{"gop": 10}"#)
        try sketch.add(UnitSink.self, "file", options: #"{"log": "picture-units"}"#)
        let driver = try RunningChainDriver(sketch)
        for (stage, text) in [
            ("enc", "gives no pictures. Ask for the pictures of 'mid'."),
            ("file", "gives no pictures. Ask for the pictures of 'mid'."),
            ("mit", "mit: no such stage. Did you mean 'mid'?"),
        ] {
            do {
                _ = try driver.chain.picture(of: stage)
                Issue.record("\(stage) gave a picture")
            } catch let fault as FrameHostError {
                #expect(fault.description.hasSuffix(text), "\(fault)")
                #expect(fault.code == .invalidConfiguration)
            }
        }
        #expect(driver.finish().isSuccess)
    }

    // MARK: The inbox

    @Test func keepsTheNewestOfEachStage() throws {
        let format = VideoFormat(.gray8, width: 16, height: 8)
        let inbox = PictureInbox()
        let pictures = try (0..<3).map { _ in try StagePicture(format) }
        inbox.put("a", pictures[0])
        inbox.put("b", pictures[1])
        inbox.put("a", pictures[2])
        #expect(inbox.take(within: 0)?.picture === pictures[2])
        #expect(inbox.take(within: 0)?.picture === pictures[1])
        #expect(inbox.take(within: 0) == nil)
    }

    @Test func isWokenForSomethingElse() throws {
        let inbox = PictureInbox()
        let waker = try TestThread("waker") { inbox.wake() }
        #expect(inbox.take(within: 3600) == nil)
        waker.join()
        // Only that one wait.
        inbox.wake()
        inbox.put("a", nil)
        #expect(inbox.take(within: 3600)?.stage == "a")
    }
}

/// Passes frames on, and says that they come at seven a second.
private final class RateSayer: Transform {
    static let info = StageInfo(
        id: "rate-sayer", summary: "Says another rate.", input: .video(.gray8), output: .video(.gray8))
    typealias Options = NoOptions
    var options: NoOptions
    init(options: NoOptions, context: StageContext) { self.options = options }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.outputBuffers = .sameAsInput
        return demand
    }

    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        var video = input.video!
        video.frameRate = Rational(7)
        return .video(video)
    }

    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame(let frame) = consume input else { return }
        try output.emit(frame)
    }
}
