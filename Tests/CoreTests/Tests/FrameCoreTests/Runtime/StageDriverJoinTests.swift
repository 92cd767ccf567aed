// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// A join in the driver gets what it would get in a chain.
@Suite struct StageDriverJoinTests {
    private static func grey(_ rate: Int32) -> MediaFormat {
        .video(VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(rate)))
    }

    private func ms(_ milliseconds: Int) -> MediaTime { MediaTime(nanoseconds: Int64(milliseconds) * 1_000_000) }

    /// Pairs of PTS in milliseconds that the stage was given; -1 for an input without an item.
    private func pairs(_ driver: StageDriver<PairNoter>) -> [[Int]] { driver.stage.pairs }

    @Test func givesWhatIsNearestOnceNothingNearerCanCome() throws {
        let driver = try StageDriver(PairNoter.self, inputs: [Self.grey(25), Self.grey(25)])
        try driver.send(driver.makeFrame(input: 0, pts: ms(0)), to: 0)
        #expect(pairs(driver).isEmpty, "an item of the other input may be near")
        try driver.send(driver.makeFrame(input: 1, pts: ms(7)), to: 1)
        #expect(pairs(driver) == [[0, 7]])
        try driver.send(driver.makeFrame(input: 1, pts: ms(90)), to: 1)
        try driver.send(driver.makeFrame(input: 0, pts: ms(40)), to: 0)
        #expect(pairs(driver) == [[0, 7], [40, -1]])
        try driver.send(driver.makeFrame(input: 0, pts: ms(80)), to: 0)
        #expect(pairs(driver).last == [80, 90])
        try driver.drain()
        #expect(driver.hasJoinEnded)
        try driver.stop()
        #expect(driver.stage.drains == 1)
        var times: [Int64] = []
        while let frame = driver.takeFrame() { times.append(frame.pts.nanoseconds / 1_000_000) }
        #expect(times == [0, 40, 80])
    }

    @Test func countsWhatMatchesNothing() throws {
        let driver = try StageDriver(PairNoter.self, inputs: [Self.grey(25), Self.grey(25)])
        for time in [0, 40, 80] { try driver.send(driver.makeFrame(input: 1, pts: ms(time)), to: 1) }
        try driver.send(driver.makeFrame(input: 0, pts: ms(80)), to: 0)
        #expect(pairs(driver) == [[80, 80]])
        #expect(driver.dropCount(.unmatched) == 2)
    }

    @Test func givesTheNewestAgainWhereTheRuleSaysSo() throws {
        let driver = try StageDriver(
            PairNoter.self, inputs: [Self.grey(30), Self.grey(10)], join: JoinRequest(match: .newest))
        try driver.send(driver.makeFrame(input: 1, pts: ms(0)), to: 1)
        for time in [5, 38, 71] { try driver.send(driver.makeFrame(input: 0, pts: ms(time)), to: 0) }
        #expect(pairs(driver) == [[5, 0], [38, 0], [71, 0]])
        try driver.send(driver.makeFrame(input: 1, pts: ms(100)), to: 1)
        try driver.send(driver.makeFrame(input: 0, pts: ms(104)), to: 0)
        #expect(pairs(driver).last == [104, 100])
    }

    @Test func endsByItsRule() throws {
        let held = try StageDriver(
            PairNoter.self, inputs: [Self.grey(25), Self.grey(25)], join: JoinRequest(hold: true))
        try held.send(held.makeFrame(input: 1, pts: ms(0)), to: 1)
        try held.send(held.makeFrame(input: 0, pts: ms(0)), to: 0)
        try held.end(1)
        #expect(!held.hasJoinEnded)
        try held.send(held.makeFrame(input: 0, pts: ms(40)), to: 0)
        #expect(pairs(held) == [[0, 0], [40, 0]])
        try held.end(0)
        #expect(held.hasJoinEnded)
        #expect(held.stage.drains == 1)
        let first = try StageDriver(
            PairNoter.self, inputs: [Self.grey(25), Self.grey(25)], join: JoinRequest(match: .exact, whenEnded: .first))
        try first.end(1)
        #expect(first.hasJoinEnded)
    }

    @Test func takesAccessUnitsToo() throws {
        let encoded = MediaFormat.encoded(
            EncodedFormat(codec: .h264, video: VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(25))))
        let driver = try StageDriver(
            PairNoter.self, inputs: [Self.grey(25), encoded], join: JoinRequest(match: .exact))
        try driver.send(driver.makeAccessUnit([1, 2, 3], pts: ms(40), input: 1), to: 1)
        try driver.send(driver.makeFrame(input: 0, pts: ms(40)), to: 0)
        #expect(pairs(driver) == [[40, 40]])
    }

    @Test func refusesARuleThatACheckRefuses() {
        let encoded = MediaFormat.encoded(
            EncodedFormat(codec: .h264, video: VideoFormat(.gray8, width: 16, height: 16)))
        do {
            _ = try StageDriver(PairNoter.self, inputs: [Self.grey(25), encoded], join: JoinRequest(match: .newest))
            Issue.record("it took a rule that cannot be")
        } catch {
            #expect(
                "\(error)" == "join.match: 'newest' would leave out access units of '1' that later ones need."
                    + " Use \"nearest\" or \"exact\".")
        }
    }

    @Test func saysWhereOneInputIsFarAheadOfTheOther() throws {
        let driver = try StageDriver(PairNoter.self, inputs: [Self.grey(25), Self.grey(25)])
        var fault: String?
        for number in 0..<40 where fault == nil {
            do { try driver.send(driver.makeFrame(input: 0, pts: ms(40 * number)), to: 0) } catch { fault = "\(error)" }
        }
        #expect(
            fault == "input 0 has 16 items that wait for those of other inputs. Send to the other inputs, or end them.")
    }
}

/// Notes what belongs together; the leading frame goes on.
final class PairNoter: Join {
    static let info = StageInfo(id: "pair-noter", summary: "Notes.", input: .any, output: .sameAsInput)
    typealias Options = NoOptions
    var options: NoOptions
    private(set) var pairs: [[Int]] = []
    private(set) var drains = 0
    init(options: NoOptions, context: StageContext) { self.options = options }
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat { inputs[0] }

    func merge(_ inputs: JoinInputs, _ output: Output) throws {
        var times: [Int] = []
        var leading: Frame?
        for index in 0..<inputs.count {
            switch inputs.take(index) {
            case .frame(let frame):
                times.append(Int(frame.pts.nanoseconds / 1_000_000))
                if index == inputs.lead { leading = consume frame }
            case .accessUnit(let unit): times.append(Int(unit.pts.nanoseconds / 1_000_000))
            case .audioBlock: times.append(-2)
            case .motionBlock: times.append(-2)
            case nil: times.append(-1)
            }
        }
        pairs.append(times)
        if let leading { try output.emit(leading) } else { output.drop(.byStage) }
    }

    func drain(_ output: Output) throws { drains += 1 }
}
