// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// In what order a sink takes from several inputs.
@Suite struct TimeOrderTests {
    private func order(_ inputs: [QueueHead], longestWait: Int64? = nil) -> TimeOrder {
        var order = TimeOrder(count: inputs.count, longestWait: longestWait)
        order.inputs = inputs
        return order
    }

    private func item(_ time: Int64, isPressed: Bool = false) -> QueueHead {
        QueueHead(orderTime: time, isPressed: isPressed)
    }

    private let none = QueueHead()
    private let ended = QueueHead(hasEnded: true)

    @Test func takesTheLowestTimeAndOfEqualOnesTheFirst() {
        var some = order([item(5), item(3), item(3)])
        #expect(some.next(now: 0) == .take(1))
        some.inputs = [item(5), item(5), none]
        some.inputs[2].hasEnded = true
        #expect(some.next(now: 0) == .take(0))
        some = order([item(-21), item(0)])
        #expect(some.next(now: 0) == .take(0), "priming comes before the first picture")
    }

    /// A transform may only give what is before an item in its turn.
    @Test func saysWhetherAnItemComesInItsTurn() {
        var some = order([item(5), item(3)], longestWait: 1000)
        #expect(some.next(now: 0) == .take(1) && some.isInTurn)
        some.inputs = [item(5, isPressed: true), none]
        #expect(some.next(now: 0) == .take(0) && !some.isInTurn, "the other input may still give an earlier one")
        some.inputs = [item(6), ended]
        #expect(some.next(now: 0) == .take(0) && some.isInTurn)
        some.inputs = [item(7), none]
        #expect(some.next(now: 10) == .wait(until: 1010))
        #expect(some.next(now: 1010) == .take(0) && some.isInTurn, "nobody waits for the other any more")
    }

    @Test func waitsForAnInputWithoutAnItemUntilItEnds() {
        var some = order([item(5), none])
        #expect(some.next(now: 0) == .wait(until: nil))
        #expect(some.next(now: 1 << 60) == .wait(until: nil), "a chain that is not live waits as long as it takes")
        some.inputs[1] = ended
        #expect(some.next(now: 0) == .take(0))
        some.inputs = [ended, ended]
        #expect(some.next(now: 0) == .end)
        some.inputs = [none, ended]
        #expect(some.next(now: 0) == .wait(until: nil))
    }

    @Test func aLiveChainWaitsOnceForAnInputThatIsSilent() {
        var some = order([item(5), none], longestWait: 1000)
        #expect(some.next(now: 70) == .wait(until: 1070))
        #expect(some.next(now: 500) == .wait(until: 1070))
        #expect(some.next(now: 1070) == .take(0))
        some.inputs[0] = item(6)
        #expect(some.next(now: 1071) == .take(0), "nobody waits for it any more")
        some.inputs = [item(7), item(2)]
        #expect(some.next(now: 1072) == .take(1), "what comes late is taken all the same")
        some.inputs[1] = none
        #expect(some.next(now: 1073) == .wait(until: 2073), "it has given an item: it is waited for again")
        some.inputs[0] = none
        #expect(some.next(now: 1500) == .wait(until: nil))
        some.inputs[0] = item(8)
        #expect(some.next(now: 1600) == .wait(until: 2600), "nothing waited in between")
    }

    @Test func aLiveChainDoesNotWaitForAnInputThatIsMoreThanAWaitBehind() {
        var some = order([item(5000), none], longestWait: 1000)
        #expect(some.next(now: 0) == .wait(until: 1000))
        #expect(some.next(now: 1000) == .take(0))
        some.inputs = [item(5040), item(3999)]
        #expect(some.next(now: 1001) == .take(1))
        some.inputs[1] = none
        #expect(some.next(now: 1002) == .take(0), "it is 1001 behind: pictures would wait as long for it again")
        some.inputs = [item(5080), item(4100)]
        #expect(some.next(now: 1003) == .take(1))
        some.inputs[1] = none
        #expect(some.next(now: 1004) == .wait(until: 2004), "it has left something out, and is 940 behind")
    }

    @Test func anItemWaitsNoLongerBecauseAnotherInputGivesSomething() {
        var some = order([item(500), none], longestWait: 1000)
        #expect(some.next(now: 0) == .wait(until: 1000))
        some.inputs[1] = item(100)
        #expect(some.next(now: 600) == .take(1))
        some.inputs[1] = none
        #expect(some.next(now: 601) == .wait(until: 1000))
        some.inputs[1] = item(200)
        #expect(some.next(now: 999) == .take(1))
        some.inputs[1] = none
        #expect(some.next(now: 1000) == .take(0))
    }

    @Test func waitsForNobodyThatAFullQueueKeepsFromGiving() {
        var some = order([item(5, isPressed: true), none])
        #expect(some.next(now: 0) == .take(0))
        some = order([item(5), none])
        #expect(some.next(now: 0) == .wait(until: nil))
        some = order([item(5), item(7, isPressed: true), none])
        #expect(some.next(now: 0) == .take(0), "the order of what is there stays")
        some.inputs[0].keepsTurn = true
        #expect(some.next(now: 0) == .take(1), "a picture does not go ahead with the motion")
    }

    @Test func saysForWhatItemsWait() {
        var some = order([none, none, none])
        #expect(some.awaited == 0)
        some.inputs = [none, item(3), ended]
        #expect(some.awaited == 0b001)
        some.inputs = [item(3), none, none]
        #expect(some.awaited == 0b110)
    }

    @Test func aClockNearItsEndDoesNotTrap() {
        var some = order([item(.max), none], longestWait: 1000)
        #expect(some.next(now: .max - 10) == .wait(until: nil))
        some.inputs = [item(.max), item(.min)]
        #expect(some.next(now: .max) == .take(1))
        some = order([item(.min), none], longestWait: 1000)
        #expect(some.next(now: 0) == .wait(until: 1000))
        #expect(some.next(now: 1000) == .take(0))
        some.inputs = [none, item(.max)]
        #expect(some.next(now: 1000) == .wait(until: 2000))
    }
}
