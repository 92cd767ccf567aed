// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import LiveStates

/// Every event in every state, and what comes of it.
@Suite struct LiveStateTests {
    private typealias Action = LiveState.Action

    private enum Event {
        case opened, given, lost(String), refused(String), stoodIn
    }

    private struct Row {
        let event: Event
        let now: Int64
        let action: Action?
        let phase: LiveState.Phase
        let isStreaming: Bool

        init(_ event: Event, at now: Int64, _ action: Action?, _ phase: LiveState.Phase, streams: Bool = false) {
            (self.event, self.now, self.action, self.phase, isStreaming) = (event, now, action, phase, streams)
        }
    }

    private static func play(_ state: LiveState, _ rows: [Row]) {
        var state = state
        for (index, row) in rows.enumerated() {
            let action: Action?
            switch row.event {
            case .opened:
                state.opened()
                action = nil
            case .given: action = state.given(now: row.now)
            case .lost(let reason): action = state.lost(reason, now: row.now)
            case .refused(let reason): action = state.refused(reason)
            case .stoodIn:
                state.stoodIn(now: row.now, period: 40_000_000)
                action = nil
            }
            #expect(action == row.action, "row \(index)")
            #expect(state.phase == row.phase && state.isAway == (row.phase != .connected), "row \(index)")
            #expect(state.isStreaming == row.isStreaming, "row \(index)")
        }
    }

    @Test func isThereLostAndBack() {
        Self.play(
            LiveState(isThere: true, whileLost: .hold, canStandIn: true, now: 0),
            [
                Row(.opened, at: 1, nil, .connected), Row(.given, at: 2, nil, .connected, streams: true),
                Row(.given, at: 3, nil, .connected, streams: true),
                Row(.lost("a"), at: 10, .sayLost("a"), .away), Row(.lost("b"), at: 11, nil, .away),
                Row(.refused("x"), at: 12, .sayRefused("x"), .away), Row(.refused("x"), at: 13, nil, .away),
                Row(.refused("y"), at: 14, .sayRefused("y"), .away), Row(.stoodIn, at: 15, nil, .away),
                // A connection that breaks before it has given anything.
                Row(.opened, at: 20, nil, .away), Row(.lost("c"), at: 21, nil, .away),
                Row(.opened, at: 30, nil, .away),
                Row(.given, at: 35, .sayBack(isFirst: false, after: 25), .connected, streams: true),
                Row(.given, at: 36, nil, .connected, streams: true),
                // Said anew for another loss.
                Row(.lost("a"), at: 40, .sayLost("a"), .away), Row(.refused("x"), at: 41, .sayRefused("x"), .away),
                Row(.opened, at: 42, nil, .away),
                Row(.given, at: 47, .sayBack(isFirst: false, after: 7), .connected, streams: true),
            ])
    }

    @Test func waitsForWhatWasNeverThere() {
        Self.play(
            LiveState(isThere: false, whileLost: .slate, canStandIn: true, now: 5),
            [
                Row(.refused("x"), at: 6, .sayRefused("x"), .waiting), Row(.refused("x"), at: 7, nil, .waiting),
                Row(.opened, at: 8, nil, .waiting),
                // Nothing was there that could be lost.
                Row(.lost("a"), at: 9, nil, .waiting), Row(.stoodIn, at: 10, nil, .waiting),
                Row(.opened, at: 11, nil, .waiting),
                Row(.given, at: 15, .sayBack(isFirst: true, after: 10), .connected, streams: true),
                Row(.lost("a"), at: 20, .sayLost("a"), .away), Row(.opened, at: 21, nil, .away),
                Row(.given, at: 22, .sayBack(isFirst: false, after: 2), .connected, streams: true),
            ])
    }

    @Test func failsWhereNothingIsShown() {
        Self.play(
            LiveState(isThere: true, whileLost: .stop, canStandIn: true, now: 0),
            [
                Row(.opened, at: 1, nil, .connected), Row(.lost("a"), at: 2, .fail("a"), .away),
                Row(.lost("a"), at: 3, nil, .away),
            ])
    }

    @Test func losesAConnectionThatGaveNothing() {
        Self.play(
            LiveState(isThere: true, whileLost: .hold, canStandIn: false, now: 0),
            [Row(.opened, at: 1, nil, .connected), Row(.lost("a"), at: 2, .sayLost("a"), .away)])
    }

    @Test func saysAtMost16Reasons() {
        var state = LiveState(isThere: false, whileLost: .hold, canStandIn: true, now: 0)
        let said = (0..<40).map { state.refused("\($0)") }.filter { $0 != nil }
        #expect(said.count == 16)
    }

    @Test func isAwaySinceItGaveLast() {
        var state = LiveState(isThere: true, whileLost: .hold, canStandIn: false, now: 0)
        _ = state.lost("a", now: 1000, since: 400)
        let first = state.given(now: 2000)
        #expect(first == .sayBack(isFirst: false, after: 1600))
        // Lost already.
        _ = state.lost("b", now: 3000)
        _ = state.lost("c", now: 4000, since: 3500)
        let second = state.given(now: 5000)
        #expect(second == .sayBack(isFirst: false, after: 2000))
    }

    // MARK: Looking for it

    @Test(arguments: [true, false]) func isLookedForSoonAndThenLessOften(isThere: Bool) {
        let ms: Int64 = 1_000_000
        var state = LiveState(isThere: isThere, whileLost: .hold, canStandIn: false, now: 0)
        if isThere { _ = state.lost("a", now: 0) }
        for next in [100, 300, 700, 1500, 2500, 3500] as [Int64] {
            #expect(state.nextTry == next * ms && state.nextTurn == state.nextTry)
            state.missed(now: state.nextTry)
        }
        // Soon again, also where it was opened and gave nothing.
        _ = state.lost("b", now: 5000 * ms)
        #expect(state.nextTry == 5100 * ms)
        state.missed(now: 5100 * ms)
        _ = state.given(now: 5200 * ms)
        _ = state.lost("c", now: 6000 * ms)
        #expect(state.nextTry == 6100 * ms)
    }

    @Test func hasItsTurnForEitherReason() {
        var state = LiveState(isThere: true, whileLost: .hold, canStandIn: true, now: 0)
        _ = state.lost("a", now: 0, next: 20_000_000)
        #expect(state.nextTurn == 20_000_000)
        state.stoodIn(now: 80_000_000, period: 40_000_000)
        #expect(state.nextTurn == 100_000_000)
        state.missed(now: 100_000_000)
        #expect(state.nextTurn == 120_000_000)
    }

    // MARK: Stand-ins

    @Test(arguments: [
        (WhileLost.hold, true, true), (.slate, true, true), (.stop, true, false), (.hold, false, false),
        (.stop, false, false),
    ]) func standsInOnlyWhereThatIsShown(whileLost: WhileLost, canStandIn: Bool, isShown: Bool) {
        var state = LiveState(isThere: false, whileLost: whileLost, canStandIn: canStandIn, now: 100)
        #expect(state.isStandInDue(now: 100) == isShown && !state.isStandInDue(now: 99))
        #expect(state.patience(now: 100, most: 50) == (isShown ? 0 : 50))
        state.stoodIn(now: 100, period: 40_000_000)
        #expect(!state.isStandInDue(now: 40_000_099))
        #expect(state.isStandInDue(now: 40_000_100) == isShown)
        #expect(state.patience(now: 40_000_090, most: 50) == (isShown ? 10 : 50))
        _ = state.given(now: 50_000_000)
        #expect(!state.isStandInDue(now: .max) && state.patience(now: 60_000_000, most: 50) == 50)
    }

    @Test func standsInFromTheNextItemOnAndNotTooOften() {
        var state = LiveState(isThere: true, whileLost: .hold, canStandIn: true, now: 0)
        _ = state.lost("a", now: 1000, next: 1500)
        #expect(!state.isStandInDue(now: 1499) && state.isStandInDue(now: 1500))
        state.stoodIn(now: 1500, period: 0)
        #expect(!state.isStandInDue(now: 10_001_499) && state.isStandInDue(now: 10_001_500))
        _ = state.given(now: 20_000_000)
        // The next item was due long ago.
        _ = state.lost("b", now: 30_000_000, next: 10)
        #expect(!state.isStandInDue(now: 29_999_999) && state.isStandInDue(now: 30_000_000))
    }
}
