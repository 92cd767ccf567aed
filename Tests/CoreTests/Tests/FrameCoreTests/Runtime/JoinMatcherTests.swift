// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// What joins decide from the heads of their queues; milliseconds throughout.
@Suite struct JoinMatcherTests {
    /// Plays whole inputs through a matcher, each item as soon as asked for, and says what was given: a line for each
    /// merge, `33+33`, `67+-`; what was left out as `!1:50`.
    private static func play(
        _ match: JoinMatch = .nearest, _ inputs: [[Int64]], rates: [Int64]? = nil, lead: Int = 0,
        whenEnded: JoinEnd = .lead, hold: Bool = false, order: [Int]? = nil
    ) -> [String] {
        let frameTimes = rates ?? inputs.map { _ in 33 }
        var matcher = JoinMatcher(
            JoinRule(
                match: match, lead: lead, whenEnded: whenEnded, hold: hold,
                frameTimes: frameTimes.map { $0 * 1_000_000 }))
        var rest = inputs.map { $0[...] }
        var heads = inputs.map { _ in Int64?.none }
        var lines: [String] = []
        // Who brings the next item when the join waits: any order must give the same.
        var turns = order ?? Array(inputs.indices)
        for _ in 0..<10_000 {
            for index in inputs.indices {
                matcher.inputs[index] = .init(
                    head: heads[index].map { $0 * 1_000_000 }, hasEnded: rest[index].isEmpty)
            }
            switch matcher.next() {
            case .end: return lines
            case .drop(let input):
                lines.append("!\(input):\(heads[input]!)")
                heads[input] = nil
            case .merge:
                lines.append(
                    inputs.indices.map { index in
                        guard matcher.takes(index) else { return matcher.repeats(index) ? "=" : "-" }
                        defer { heads[index] = nil }
                        return "\(heads[index]!)"
                    }.joined(separator: "+"))
            case .wait:
                guard let turn = turns.first(where: { heads[$0] == nil && !rest[$0].isEmpty }) else {
                    return lines + ["stands still"]
                }
                heads[turn] = rest[turn].removeFirst()
                turns.append(turns.remove(at: turns.firstIndex(of: turn)!))
            }
        }
        return lines + ["never ends"]
    }

    /// The same clip as MP4 and as Matroska, whose times are whole milliseconds.
    @Test func pairsTheSameClipFromMP4AndMatroska() {
        let exact = (0..<89).map { Int64($0) * 1_000_000_000 / 30 }
        let rounded = exact.map { ($0 + 500_000) / 1_000_000 * 1_000_000 }
        var matcher = JoinMatcher(JoinRule(frameTimes: [33_333_333, 33_000_000]))
        var merges = 0
        for index in 0..<89 {
            matcher.inputs = [.init(head: exact[index]), .init(head: rounded[index])]
            if matcher.next() == .merge, matcher.takes(0), matcher.takes(1) { merges += 1 }
        }
        #expect(merges == 89)
    }

    @Test func takesTheNearestWithinHalfAFrameAndLeavesOutTheRest() {
        #expect(
            Self.play(.nearest, [[0, 33, 66, 100], [10, 55, 90, 130]]) == ["0+10", "33+-", "66+55", "100+90"])
        #expect(Self.play(.nearest, [[0, 33], [17, 50]]) == ["0+-", "33+17"])
    }

    @Test func givesEveryFrameOfTheLeadingInputWhateverThePhase() {
        for phase in Int64(0)..<33 {
            let a = (0..<60).map { Int64($0) * 33 }
            let b = (0..<60).map { Int64($0) * 33 + phase }
            let given = Self.play(.nearest, [a, b]).filter { !$0.hasPrefix("!") }
            #expect(given.count == 60)
            #expect(given.count { $0.hasSuffix("+-") } <= 1, "\(phase): \(given)")
        }
    }

    @Test func takesTheNearestOfAFasterInput() {
        #expect(
            Self.play(.nearest, [[0, 40, 80], [0, 20, 40, 60, 80, 100]], rates: [40, 20]) == [
                "0+0", "!1:20", "40+40", "!1:60", "80+80",
            ])
        // Both 31 and 51 lie within half a frame of 40.
        #expect(Self.play(.nearest, [[0, 40], [0, 11, 31, 51]], rates: [40, 20]).last == "40+31")
    }

    @Test func leavesASlowerInputOutWhereItHasNone() {
        #expect(
            Self.play(.nearest, [[0, 33, 66, 100], [0, 100]], rates: [33, 100]) == ["0+0", "33+-", "66+-", "100+100"])
    }

    @Test func letsTheInputLeadThatTheFileNames() {
        #expect(
            Self.play(.nearest, [[0, 20, 40, 60], [0, 40]], rates: [20, 40], lead: 1) == ["0+0", "!0:20", "40+40"])
    }

    /// What is decided does not hang on whose item came first.
    @Test func decidesTheSameInAnyOrderOfArrival() {
        let inputs: [[Int64]] = [[0, 33, 66, 100, 133], [5, 28, 70, 71, 140], [0, 66, 133]]
        let all = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
            .map { Self.play(.nearest, inputs, rates: [33, 33, 66], order: $0).filter { !$0.hasPrefix("!") } }
        #expect(Set(all).count == 1, "\(all)")
        #expect(all[0].count == 5)
    }

    // MARK: News of what was dropped

    /// An item of the window's first half was dropped: another one may lie in its second half.
    @Test func waitsPastTheWindowForNewsOfADroppedItem() {
        var matcher = JoinMatcher(JoinRule(frameTimes: [40, 40]))
        matcher.inputs = [.init(head: 100), .init(nothingUpTo: 100)]
        #expect(matcher.next() == .wait)
        matcher.inputs[1].nothingUpTo = 119
        #expect(matcher.next() == .wait)
        matcher.inputs[1].nothingUpTo = 120
        #expect(matcher.next() == .merge)
        #expect(!matcher.takes(1))
        // So too where the leading item was dropped: what belonged to it goes when no later one can want it.
        matcher.inputs = [.init(nothingUpTo: 140), .init(head: 141)]
        #expect(matcher.next() == .wait)
        matcher.inputs[0].nothingUpTo = 161
        #expect(matcher.next() == .drop(1))
    }

    @Test func measuresAnUnknownRateByTheLeadingInputsLastStep() {
        let lines = Self.play(.nearest, [[0, 100, 200, 300], [0, 60, 149, 251]], rates: [0, 0])
        #expect(lines == ["0+0", "100+60", "!1:149", "200+-", "300+251"], "\(lines)")
    }

    // MARK: Newest

    @Test func neverWaitsForOthersUnderNewest() {
        var matcher = JoinMatcher(JoinRule(match: .newest, frameTimes: [33, 33, 33]))
        matcher.inputs = [.init(head: 100), .init(), .init(head: 7)]
        #expect(matcher.next() == .merge)
        #expect(matcher.takes(0) && !matcher.takes(1) && matcher.takes(2))
        #expect(matcher.repeats(1))
        matcher.inputs = [.init(), .init(head: 120), .init(head: 120)]
        #expect(matcher.next() == .wait)
    }

    // MARK: Equal times

    @Test func givesEachTimeThatAnyInputHasUnderExact() {
        #expect(
            Self.play(.exact, [[0, 33, 67], [0, 34, 67]], whenEnded: .last) == ["0+0", "33+-", "-+34", "67+67"])
    }

    @Test func takesTheNewsOfADroppedItemAtItsWordUnderExact() {
        var matcher = JoinMatcher(JoinRule(match: .exact, frameTimes: [40, 40]))
        matcher.inputs = [.init(head: 100), .init(nothingUpTo: 100)]
        #expect(matcher.next() == .merge)
    }

    // MARK: The end

    @Test(arguments: [JoinMatch.nearest, .exact]) func endsAsTheFileSays(match: JoinMatch) {
        let short: [Int64] = [0, 33]
        let long: [Int64] = [0, 33, 66, 99]
        #expect(Self.play(match, [long, short], whenEnded: .lead) == ["0+0", "33+33", "66+-", "99+-"])
        #expect(Self.play(match, [short, long], whenEnded: .lead) == ["0+0", "33+33"])
        #expect(Self.play(match, [long, short], whenEnded: .first) == ["0+0", "33+33"])
        #expect(Self.play(match, [short, long], whenEnded: .first) == ["0+0", "33+33"])
        #expect(Self.play(match, [short, long], whenEnded: .last) == ["0+0", "33+33", "-+66", "-+99"])
        #expect(Self.play(match, [long, short], whenEnded: .lead, hold: true) == ["0+0", "33+33", "66+=", "99+="])
        #expect(Self.play(match, [short, long], whenEnded: .last, hold: true) == ["0+0", "33+33", "=+66", "=+99"])
    }

    /// An input that is dropped to its end: whether the last items of the others are given does not hang on chance.
    @Test func givesItemsAsOldAsWhatWasDroppedBeforeTheEnd() {
        for match in [JoinMatch.nearest, .exact] {
            var matcher = JoinMatcher(JoinRule(match: match, whenEnded: .first, frameTimes: [40, 40]))
            matcher.inputs = [.init(head: 100), .init(nothingUpTo: 130, hasEnded: true)]
            #expect(matcher.next() == .merge, "\(match)")
            matcher.inputs[0].head = 140
            #expect(matcher.next() == .end, "\(match)")
        }
    }

    @Test func staysWithinTheRangeOfTimes() {
        for time in [Int64(-1) << 61, 0, 1 << 61] {
            var matcher = JoinMatcher(JoinRule(frameTimes: [Int64.max / 8, 0]))
            matcher.inputs = [.init(head: time), .init(head: time)]
            #expect(matcher.next() == .merge)
            matcher.inputs = [.init(nothingUpTo: .min), .init(head: time)]
            #expect(matcher.next() != .merge)
        }
    }
}
