// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct EventCountTests {
    @Test func goesOnPastItsLargestNumber() {
        let count = EventCount()
        var before = count.seen
        var wraps = 0
        for _ in 0..<(3 * EventCount.eventsBeforeWrap) {
            count.advance()
            #expect(count.seen != before)
            #expect(count.seen == count.glimpse)
            if count.seen < before { wraps += 1 }
            before = count.seen
        }
        #expect(wraps == 1)
    }
}
