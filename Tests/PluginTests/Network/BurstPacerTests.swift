// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import FileSource

@Suite struct BurstPacerTests {
    private let ms: Int64 = 1_000_000
    private func time(_ milliseconds: Int64) -> MediaTime { MediaTime(nanoseconds: milliseconds * ms) }

    @Test func spreadsABurstAtTwiceItsSpeed() {
        var pacer = BurstPacer()
        for number in Int64(0)..<50 {
            // All are there at once; the caller waits for each one's moment.
            let now = 1000 * ms + max(number - 1, 0) * 20 * ms
            #expect(pacer.place(time(number * 40), now: now, isUrgent: false) == 1000 * ms + number * 20 * ms)
        }
    }

    @Test func doesNotHoldUpWhatComesInItsTime() {
        var pacer = BurstPacer()
        for number in Int64(0)..<50 {
            // 7 ms early and 8 ms late in turn.
            let now = 1000 * ms + number * 40 * ms + (number % 2 == 0 ? -7 : 8) * ms
            #expect(pacer.place(time(number * 40), now: now, isUrgent: false) == now)
        }
    }

    @Test func waitsNoLongerThanAStreamsTimesCanBeTrusted() {
        var pacer = BurstPacer()
        #expect(pacer.place(time(0), now: 0, isUrgent: false) == 0)
        #expect(pacer.place(time(60_000), now: 0, isUrgent: false) == 50 * ms)
        #expect(pacer.place(time(0), now: 50 * ms, isUrgent: false) == 50 * ms)
        #expect(pacer.place(MediaTime.min, now: 60 * ms, isUrgent: false) == 60 * ms)
        #expect(pacer.place(MediaTime.max, now: 60 * ms, isUrgent: false) == 110 * ms)
    }

    @Test func doesNotWaitWithoutRoomOrTimesOrForAnotherConnections() {
        var pacer = BurstPacer()
        _ = pacer.place(time(0), now: 0, isUrgent: false)
        #expect(pacer.place(time(40), now: 0, isUrgent: true) == 0)
        #expect(pacer.place(time(80), now: 0, isUrgent: false) == 20 * ms)
        #expect(pacer.place(nil, now: 1 * ms, isUrgent: false) == 1 * ms)
        #expect(pacer.place(time(160), now: 1 * ms, isUrgent: false) == 1 * ms)
        pacer.begin()
        #expect(pacer.place(time(200), now: 1 * ms, isUrgent: false) == 1 * ms)
    }
}
