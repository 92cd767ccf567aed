// SPDX-License-Identifier: Apache-2.0

import Foundation
import FrameSupport
import Testing

@testable import ControlServer
@testable import FrameCore

@Suite struct ViewerUnitsTests {
    private let sets: [UInt8] = [0, 0, 0, 1, 0x67, 1, 2, 0, 0, 0, 1, 0x68, 3]

    private func annexB(_ bytes: [UInt8], _ framing: EncodedFormat.Framing, isKeyframe: Bool) throws -> [UInt8] {
        var header = StageUnit.Header()
        header.isKeyframe = isKeyframe
        let video = VideoFormat(.i420, width: 64, height: 64, frameRate: Rational(30))
        let format = EncodedFormat(codec: .h264, framing: framing, parameterSets: sets, video: video)
        return try ViewerUnits.annexB(StageUnit(header, bytes: bytes), format)
    }

    @Test func putsParameterSetsBeforeAKeyframeThatHasNone() throws {
        let idr: [UInt8] = [0, 0, 1, 0x65, 9]
        #expect(try annexB(idr, .annexB, isKeyframe: true) == sets + idr)
        #expect(try annexB(idr, .annexB, isKeyframe: false) == idr)
        let whole: [UInt8] = [0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1, 0x67, 7, 0, 0, 1, 0x65, 9]
        #expect(try annexB(whole, .annexB, isKeyframe: true) == whole)
        // What looks like one behind the first slice is that slice's.
        let late: [UInt8] = [0, 0, 1, 0x65, 9, 0, 0, 1, 0x67]
        #expect(try annexB(late, .annexB, isKeyframe: true) == sets + late)
    }

    @Test func takesSizesForStartCodes() throws {
        let bytes: [UInt8] = [0, 0, 0, 2, 0x41, 5, 0, 0, 0, 1, 0x06]
        #expect(try annexB(bytes, .lengthPrefixed, isKeyframe: false) == [0, 0, 0, 1, 0x41, 5, 0, 0, 0, 1, 0x06])
        #expect(try annexB([], .lengthPrefixed, isKeyframe: false) == [])
    }

    /// A VPS, an SPS and a PPS before an IDR or a CRA that has none.
    @Test(arguments: [19, 21] as [UInt8]) func putsParameterSetsOfH265BeforeAKeyframe(type: UInt8) throws {
        let sets: [UInt8] = [0, 0, 0, 1, 0x40, 1, 7, 0, 0, 0, 1, 0x42, 1, 7, 0, 0, 0, 1, 0x44, 1, 7]
        let slice: [UInt8] = [0, 0, 0, 1, type << 1, 1, 0x80]
        var header = StageUnit.Header()
        header.isKeyframe = true
        let video = VideoFormat(.i420, width: 64, height: 64, frameRate: Rational(30))
        let format = EncodedFormat(codec: .h265, parameterSets: sets, video: video)
        #expect(try ViewerUnits.annexB(StageUnit(header, bytes: slice), format) == sets + slice)
        #expect(try ViewerUnits.annexB(StageUnit(header, bytes: sets + slice), format) == sets + slice)
    }

    @Test(arguments: [[0], [0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 2, 1], [255, 255, 255, 255, 1], [0, 0, 0, 1, 9, 0]])
    func refusesSizesThatDoNotFit(bytes: [UInt8]) {
        #expect(throws: FrameHostError.self) { try annexB(bytes, .lengthPrefixed, isKeyframe: false) }
    }
}

@Suite struct UnitFlowTests {
    private static let ms: Int64 = 1_000_000

    private func offer(_ flow: inout UnitFlow, _ isKeyframe: Bool = false, gap: Bool = false, at time: Int64 = 0)
        -> UnitFlow.Verdict
    {
        flow.offer(isKeyframe: isKeyframe, followsGap: gap, bytes: 100, now: time * Self.ms)
    }

    @Test func beginsWithAKeyframe() {
        var flow = UnitFlow()
        #expect(offer(&flow) == .leaveOut(wantsKeyframe: true))
        #expect(offer(&flow, true) == .send(followsGap: true))
        #expect(flow.number == 1)
        #expect(offer(&flow) == .send(followsGap: false))
        #expect(flow.number == 2)
    }

    @Test func waitsForAKeyframeAfterALoss() {
        var flow = UnitFlow()
        _ = offer(&flow, true)
        #expect(offer(&flow, gap: true) == .leaveOut(wantsKeyframe: true))
        #expect(offer(&flow) == .leaveOut(wantsKeyframe: true))
        #expect(offer(&flow, true) == .send(followsGap: true))
    }

    /// A viewer that answers late gets nothing until it has caught up, then a keyframe.
    @Test func aLateViewerIsSentNothingUntilItHasCaughtUp() {
        var flow = UnitFlow()
        _ = offer(&flow, true, at: 0)
        for time in stride(from: 33, through: 495, by: 33) {
            #expect(offer(&flow, at: Int64(time)) == .send(followsGap: false))
        }
        #expect(offer(&flow, at: 528) == .leaveOut(wantsKeyframe: false))
        #expect(offer(&flow, true, at: 561) == .leaveOut(wantsKeyframe: false), "it could not show that either")
        flow.shown(14)
        #expect(offer(&flow, at: 594) == .leaveOut(wantsKeyframe: true))
        #expect(offer(&flow, true, at: 627) == .send(followsGap: true))
    }

    @Test func aViewerThatAnswersInTimeGetsAll() {
        var flow = UnitFlow()
        _ = offer(&flow, true)
        for number in 2...1000 as ClosedRange<UInt32> {
            #expect(offer(&flow, at: Int64(number) * 33) == .send(followsGap: false))
            // Five units behind, some answers for several at once.
            if number > 6, number % 2 == 0 { flow.shown(number - 5) }
        }
    }

    @Test func hasABoundOfUnitsAndBytes() {
        var flow = UnitFlow()
        _ = offer(&flow, true)
        for _ in 1..<UnitFlow.mostInFlight { #expect(offer(&flow) == .send(followsGap: false)) }
        #expect(offer(&flow) == .leaveOut(wantsKeyframe: false))
        flow.shown(99)
        #expect(offer(&flow, true) == .leaveOut(wantsKeyframe: false), "that number was never sent")
        var large = UnitFlow()
        _ = large.offer(isKeyframe: true, followsGap: false, bytes: UnitFlow.mostBytes, now: 0)
        #expect(large.offer(isKeyframe: false, followsGap: false, bytes: 1, now: 0) != .send(followsGap: false))
        large.shown(1)
        #expect(large.offer(isKeyframe: true, followsGap: false, bytes: 1, now: 0) == .send(followsGap: true))
    }

    @Test func leavesOutWhileTheSocketTakesNothing() {
        var flow = UnitFlow()
        _ = offer(&flow, true)
        let verdict = flow.offer(isKeyframe: true, followsGap: false, bytes: 1, isCongested: true, now: 0)
        #expect(verdict == .leaveOut(wantsKeyframe: false))
        #expect(offer(&flow) == .leaveOut(wantsKeyframe: true))
        #expect(offer(&flow, true) == .send(followsGap: true))
    }

    @Test func beginsAnewAfterAPause() {
        var flow = UnitFlow()
        _ = offer(&flow, true)
        flow.restart()
        #expect(offer(&flow) == .leaveOut(wantsKeyframe: true))
        #expect(offer(&flow, true) == .send(followsGap: true))
        #expect(flow.number == 2, "numbers go on")
    }
}

/// A fan-out with its thread, and what a viewer got.
private final class RunningUnits {
    let run = FakeRun()
    let fanOut: UnitFanOut
    private let thread: NamedThread

    final class Viewer: Sendable {
        let got = Locked<[UInt64]>([])
        let gaps = Locked<[UInt64]>([])
        let fault = Locked<FrameHostError?>(nil)
        let number = Locked(0)

        let refusal = Locked<Refusal?>(nil)

        func take(_ news: UnitFanOut.News) {
            switch news {
            case .unit(let unit):
                got.withLock { $0.append(unit.header.sequenceNumber) }
                if unit.followsGap { gaps.withLock { $0.append(unit.header.sequenceNumber) } }
            case .failed(let error): fault.withLock { $0 = error }
            case .refused(let why): refusal.withLock { $0 = why }
            }
        }
        var units: [UInt64] { got.withLock { $0 } }
    }

    init() throws {
        fanOut = try UnitFanOut(run)
        let fanOut = fanOut
        thread = try NamedThread("test") { fanOut.run() }
    }

    deinit {
        fanOut.close()
        thread.end.wait(milliseconds: 2000)
    }

    func watch(_ stage: String = "h264", _ codec: Codec = .h264, as caller: Caller? = nil) -> Viewer {
        let viewer = Viewer()
        let all: Permit = { _, _ in nil }
        let permit = caller.map { ControlAPI.over(run).permit($0) } ?? all
        let number = fanOut.watch(stage, codec, permit: permit) { viewer.take($0) }
        viewer.number.withLock { $0 = number }
        return viewer
    }

    func wait(_ what: String, _ condition: () -> Bool) throws {
        let deadline = Date() + 120
        while !condition() {
            guard Date() < deadline else { throw LiveClient.Fault(description: "not within 120 s: \(what)") }
            usleep(1000)
        }
    }

    var watchers: Int { run.state.withLock { $0.watchers.count } }
    var asked: Int { run.state.withLock { $0.keyframesAsked } }
}

@Suite struct UnitFanOutTests {
    @Test func watchesAStageOnlyWhileSomebodyLooks() throws {
        let units = try RunningUnits()
        usleep(50_000)
        #expect(units.watchers == 0 && units.asked == 0)
        let viewers = [units.watch(), units.watch()]
        try units.wait("watched") { units.watchers == 1 }
        try units.wait("a keyframe is asked for") { units.asked >= 1 }
        units.run.give(5, isKeyframe: true)
        units.run.give(6, isKeyframe: false)
        for viewer in viewers { try units.wait("units") { viewer.units == [5, 6] } }
        let asked = units.asked
        units.fanOut.unwatch("h264", viewer: viewers[0].number.withLock { $0 })
        units.run.give(7, isKeyframe: false)
        try units.wait("the other one goes on") { viewers[1].units == [5, 6, 7] }
        #expect(viewers[0].units == [5, 6])
        units.fanOut.unwatch("h264", viewer: viewers[1].number.withLock { $0 })
        try units.wait("watched no more") { units.watchers == 0 }
        #expect(units.asked == asked)
    }

    /// A change makes a stage bare that somebody watches, and another one covers it again.
    @Test func whoMayNotSeeOriginalsGetsNoneOfThem() throws {
        let units = try RunningUnits()
        let (everybody, owner) = (
            units.watch(as: .everybody),
            units.watch(as: Caller(way: .password, name: "anna", rights: [.watch, .originals]))
        )
        try units.wait("asked") { units.asked >= 1 }
        units.run.give(0, isKeyframe: true)
        units.run.give(1, isKeyframe: false)
        try units.wait("units") { everybody.units == [0, 1] && owner.units == [0, 1] }
        units.run.state.withLock { $0.originals = ["h264"] }
        units.run.give(2, isKeyframe: false)
        units.run.give(3, isKeyframe: true)
        try units.wait("who may, sees them") { owner.units == [0, 1, 2, 3] }
        try units.wait("who may not, is told") { everybody.refusal.withLock { $0 }?.code == "forbidden" }
        #expect(everybody.units == [0, 1])
        let late = units.watch(as: .everybody)
        try units.wait("who comes now, is told at once") { late.refusal.withLock { $0 }?.place == "h264" }
        // What is kept, and what waits, is from before.
        units.run.state.withLock { $0.originals = [] }
        let next = units.watch(as: .everybody)
        var number: UInt64 = 4
        units.run.give(number, isKeyframe: false)
        try units.wait("from a keyframe on that was made after that") {
            number += 1
            units.run.give(number, isKeyframe: true)
            usleep(20_000)
            return !next.units.isEmpty
        }
        #expect(next.units.first ?? 0 >= 5)
        #expect(late.units.isEmpty && next.refusal.withLock { $0 } == nil)
        try units.wait("who may, goes on") { owner.units.last == number }
    }

    /// The session of a viewer ends.
    @Test func whoseLoginHasEndedGetsNothing() throws {
        let units = try RunningUnits()
        let lives = Locked(true)
        var caller = Caller(way: .password, name: "anna", rights: .watch)
        caller.isAlive = { lives.withLock { $0 } }
        let viewer = units.watch(as: caller)
        try units.wait("asked") { units.asked >= 1 }
        units.run.give(0, isKeyframe: true)
        try units.wait("a unit") { viewer.units == [0] }
        lives.withLock { $0 = false }
        units.run.give(1, isKeyframe: false)
        try units.wait("told") { viewer.refusal.withLock { $0 }?.status == 401 }
        #expect(viewer.units == [0])
    }

    @Test func whoJoinsSoonAfterAKeyframeBeginsThere() throws {
        let units = try RunningUnits()
        let first = units.watch()
        try units.wait("asked") { units.asked >= 1 }
        for number in 10...15 as ClosedRange<UInt64> { units.run.give(number, isKeyframe: number == 10) }
        try units.wait("units") { first.units.count == 6 }
        let asked = units.asked
        let second = units.watch()
        try units.wait("from the keyframe on") { second.units == [10, 11, 12, 13, 14, 15] }
        #expect(second.gaps.withLock { $0 } == [10])
        units.run.give(16, isKeyframe: false)
        try units.wait("and on") { second.units.last == 16 && first.units.last == 16 }
        #expect(units.asked == asked, "no keyframe was needed")
    }

    /// However many want one, the encoder is asked once a second.
    @Test func asksForAKeyframeAtMostOnceASecond() throws {
        let units = try RunningUnits()
        let begin = MonotonicTime.now()
        let first = units.watch()
        try units.wait("asked") { units.asked >= 1 }
        units.run.give(0, isKeyframe: true)
        for number in 1...40 as ClosedRange<UInt64> { units.run.give(number, isKeyframe: false) }
        try units.wait("units") { first.units.count == 41 }
        let asked = units.asked
        let others = (0..<20).map { _ in units.watch() }
        for _ in 0..<100 { units.fanOut.wantKeyframe("h264") }
        try units.wait("asked again") { units.asked > asked }
        units.run.give(41, isKeyframe: true)
        for viewer in others { try units.wait("all go on") { viewer.units.last == 41 } }
        let askedInAll = units.asked
        usleep(1_200_000)
        #expect(units.asked == askedInAll)
        // Counted from the beginning: one that was noted late may be followed soon by the next.
        for (number, time) in units.run.state.withLock({ $0.keyframeTimes }).enumerated() {
            #expect(time - begin >= Int64(number) * 1_000_000_000)
        }
    }

    @Test func aStageThatMakesNoKeyframesGivesTheGroupItIsIn() throws {
        let units = try RunningUnits()
        units.run.state.withLock { $0.makesKeyframes = false }
        let first = units.watch()
        try units.wait("asked") { units.asked >= 1 }
        for number in 0...99 as ClosedRange<UInt64> { units.run.give(number, isKeyframe: number == 0) }
        try units.wait("units") { first.units.count == 100 }
        let second = units.watch()
        try units.wait("the whole group") { second.units == Array(0...99) }
    }

    @Test func saysWhyThereIsNone() throws {
        let units = try RunningUnits()
        let viewer = units.watch("cam")
        try units.wait("it is told") { viewer.fault.withLock { $0?.what } == "gives no access units" }
        let other = units.watch("h264", .h265)
        try units.wait("it is told") {
            other.fault.withLock {
                $0?.description
                    == "h264: an H.265 preview needs H.265, but this stage gives H.264. Open the preview with \"kind\": \"h264\"."
            }
        }
    }

    /// Whoever watches learns that the stage in its place gives another codec, and who wants that gets its units.
    @Test func aStageMayGiveAnotherCodecThanTheOneBeforeIt() throws {
        let units = try RunningUnits()
        let viewer = units.watch()
        try units.wait("watched") { units.watchers == 1 }
        units.run.give(1, isKeyframe: true)
        try units.wait("units") { viewer.units == [1] }
        units.run.state.withLock { $0.format.codec = .h265 }
        for inbox in units.run.state.withLock({ $0.watchers }) { inbox.end("h264") }
        try units.wait("it is told") {
            viewer.fault.withLock { $0?.what } == "an H.264 preview needs H.264, but this stage gives H.265"
        }
        units.fanOut.unwatch("h264", viewer: viewer.number.withLock { $0 })
        let next = units.watch("h264", .h265)
        try units.wait("watched") { units.watchers == 1 }
        units.run.give(2, isKeyframe: true)
        try units.wait("units") { next.units == [2] }
        units.run.state.withLock { $0.format.codec = Codec(rawValue: "vp9") }
        for inbox in units.run.state.withLock({ $0.watchers }) { inbox.end("h264") }
        try units.wait("it is told") {
            next.fault.withLock {
                $0?.description.hasSuffix(
                    "gives vp9. Preview a stage that gives H.264 or H.265, or a stage with raw pictures as JPEG.")
            }
                == true
        }
    }

    /// A stage that was replaced is watched anew: it said so, or is silent.
    @Test func watchesTheStageInItsPlace() throws {
        let units = try RunningUnits()
        let viewer = units.watch()
        try units.wait("watched") { units.watchers == 1 }
        units.run.give(1, isKeyframe: true)
        try units.wait("units") { viewer.units == [1] }
        for inbox in units.run.state.withLock({ $0.watchers }) { inbox.end("h264") }
        try units.wait("watched again") { units.run.state.withLock { $0.watched } >= 2 }
        units.run.give(2, isKeyframe: true)
        try units.wait("units") { viewer.units == [1, 2] }
        let watched = units.run.state.withLock { $0.watched }
        try units.wait("silence") { units.run.state.withLock { $0.watched } > watched }
    }
}

@Suite struct LiveVideoTests {
    private func unit(_ number: UInt64, isKeyframe: Bool) -> UnitFanOut.News {
        var header = StageUnit.Header()
        header.sequenceNumber = number
        header.isKeyframe = isKeyframe
        return .unit(UnitFanOut.Unit(header: header, piece: .init([UInt8(number)]), followsGap: false))
    }

    @Test func watchesPausesAndGoesOnWithAKeyframe() {
        var session = LiveSession()
        let request = PreviewRequest(stage: "h264", kind: .h264)
        #expect(session.take(.open(preview: 4, request), now: 0) == [.watch(1, stage: "h264", .h264)])
        #expect(session.take(.open(preview: 4, request), now: 0) == [], "it is open")
        #expect(session.take(unit(1, isKeyframe: false), for: 1, now: 0) == [.wantKeyframe(stage: "h264")])
        let head = LiveHead(kind: .h264, followsGap: true, preview: 4, number: 1, sequenceNumber: 2, capturedAt: 0)
        #expect(session.take(unit(2, isKeyframe: true), for: 1, now: 0) == [.binary(head, .init([2]))])
        #expect(session.take(.shown(preview: 4, number: 1), now: 0) == [])
        #expect(session.take(.pause(preview: 4), now: 0) == [.unwatch(1)])
        #expect(session.take(.pause(preview: 4), now: 0) == [])
        #expect(session.take(unit(3, isKeyframe: true), for: 1, now: 0) == [])
        #expect(session.take(.resume(preview: 4), now: 0) == [.watch(2, stage: "h264", .h264)])
        #expect(session.take(.resume(preview: 4), now: 0) == [])
        #expect(session.take(unit(4, isKeyframe: true), for: 1, now: 0) == [], "of before the pause")
        #expect(session.take(unit(5, isKeyframe: true), for: 2, now: 0).count == 1)
        // The same number for another kind is another preview.
        #expect(session.take(.open(preview: 4, PreviewRequest(stage: "h264")), now: 0).first == .unwatch(2))
        #expect(session.take(.close(preview: 4), now: 0) == [])
    }

    @Test func unitsOfH265SayWhatTheyAre() {
        var session = LiveSession()
        let request = PreviewRequest(stage: "door", kind: .h265)
        #expect(session.take(.open(preview: 4, request), now: 0) == [.watch(1, stage: "door", .h265)])
        let head = LiveHead(kind: .h265, followsGap: true, preview: 4, number: 1, sequenceNumber: 2, capturedAt: 0)
        #expect(head.bytes[0] == 3)
        #expect(session.take(unit(2, isKeyframe: true), for: 1, now: 0) == [.binary(head, .init([2]))])
        #expect(session.take(.shown(preview: 4, number: 1), now: 0) == [])
        #expect(session.take(.pause(preview: 4), now: 0) == [.unwatch(1)])
        #expect(session.take(.resume(preview: 4), now: 0) == [.watch(2, stage: "door", .h265)])
        #expect(session.take(.close(preview: 4), now: 0) == [.unwatch(2)])
    }

    @Test func endsWithTheReason() {
        var session = LiveSession()
        _ = session.take(.open(preview: 4, PreviewRequest(stage: "cam", kind: .h264)), now: 0)
        let error = FrameHostError(.invalidConfiguration, place: "cam", what: "gives no access units")
        let actions = session.take(UnitFanOut.News.failed(error), for: 1, now: 0)
        #expect(actions.first == .unwatch(1) && actions.count == 2)
        #expect(session.count == 0)
    }

    @Test func goesOverTheSocketAndALateViewerGetsAKeyframe() throws {
        let running = try RunningServer()
        let client = try LiveClient(running.port)
        try client.say(#"{"open":1,"stage":"h264","kind":"h264"}"#)
        while running.run.state.withLock({ $0.keyframesAsked }) == 0 { usleep(1000) }
        running.run.give(0, isKeyframe: true)
        let first = try client.next(2).payload
        #expect(Array(first[..<4]) == [2, 3, 0, 1])
        // Parameter sets, then the unit.
        #expect(Array(first[40...]) == running.run.state.withLock { $0.format.parameterSets } + [0, 0, 0, 1, 0x65, 0])
        // It answers late: a bound of units is on the way, whatever the stage gives, until some are left out.
        func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        var (given, last, sent, shown): (UInt64, UInt64, UInt64, UInt64) = (0, 0, 1, 0)
        var isBehindGap = false
        let deadline = Date() + 120
        while !isBehindGap, Date() < deadline {
            for _ in 0..<200 {
                given += 1
                running.run.give(given, isKeyframe: given % 10 == 0)
            }
            try client.say(#"{"ping":1}"#)
            while let frame = try client.next(), frame.opcode == 2 {
                sent += 1
                #expect(number(frame.payload[4..<8]) == sent)
                #expect(sent - shown <= UInt64(UnitFlow.mostInFlight))
                let unit = number(frame.payload[8..<16])
                if unit != last + 1 {
                    isBehindGap = true
                    #expect(frame.payload[1] & 3 == 3, "a keyframe behind a gap")
                }
                last = unit
            }
            shown = sent
            try client.say(#"{"shown":1,"number":\#(shown)}"#)
        }
        #expect(isBehindGap, "nothing was left out")
        // A client that has gone is watched for no more.
        try client.send(8, [3, 232])
        while running.run.state.withLock({ $0.watchers.count }) > 0 { usleep(1000) }
    }
}
