// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import FileSource

@Suite struct LiveTimelineTests {
    private let ms: Int64 = 1_000_000
    private func time(_ milliseconds: Int64) -> MediaTime { MediaTime(nanoseconds: milliseconds * ms) }

    @Test func smoothsLateItemsByTheStreamsTimes() {
        var line = LiveTimeline(.arrival)
        #expect(line.place(time(900), now: 5000 * ms) == .init(time: 5000 * ms))
        #expect(line.place(time(940), now: 5057 * ms) == .init(time: 5040 * ms))
        #expect(line.place(time(980), now: 5081 * ms) == .init(time: 5080 * ms))
    }

    @Test func catchesUpWithABurstAndLiesNeverAhead() {
        var line = LiveTimeline(.arrival)
        for number in Int64(0)..<50 {
            let now = 1000 * ms + number * 2 * ms
            #expect(line.place(time(number * 40), now: now).time == now)
        }
        // Live from here on: as far behind as the burst's end.
        #expect(line.place(time(50 * 40), now: (1098 + 40) * ms).time == (1098 + 40) * ms)
        #expect(line.place(time(51 * 40), now: (1098 + 90) * ms).time == (1098 + 80) * ms)
    }

    @Test func placesABurstWhereItWasTaken() {
        var line = LiveTimeline(.arrival)
        line.begin(age: time(2000), now: 9000 * ms)
        for number in Int64(0)...50 {
            #expect(line.place(time(number * 40), now: 9000 * ms) == .init(time: (7000 + number * 40) * ms))
        }
        #expect(line.place(time(2040), now: 9040 * ms) == .init(time: 9040 * ms))
        // No further back than two minutes, whatever a sender says.
        line.begin(age: MediaTime.max, now: 200_000 * ms)
        #expect(line.place(time(0), now: 200_000 * ms).time == 80_000 * ms)
    }

    /// The first picture of an RTSP connection has no time, and more of the burst comes while it is placed.
    @Test func keepsTheDistancesOfABurstWhoseFirstItemHasNoTime() {
        var line = LiveTimeline(.arrival)
        line.begin(age: time(80), now: 9000 * ms, period: time(40))
        var placed = [line.place(nil, now: 9000 * ms).time]
        line.begin(age: time(1100), now: 9001 * ms, period: time(40))
        for number in Int64(0)..<27 {
            placed.append(line.place(time(number * 40), now: (9001 + 20 * number) * ms, isBehind: true).time)
        }
        #expect(zip(placed.dropFirst(), placed).allSatisfy { $0 - $1 >= 20 * ms }, "\(placed)")
    }

    /// What a connection's burst has from before is not shown a second time, and nothing is squeezed: the sound beside it has
    /// the same place on the clock from the first item on.
    @Test func leavesOutWhatWasStoodInFor() {
        var line = LiveTimeline(.arrival)
        for number in Int64(0)...25 { _ = line.place(nil, now: (8000 + number * 40) * ms) }
        line.begin(age: time(800), now: 9011 * ms, period: time(40), isStoodIn: true)
        let first = line.placeOfLeftOut(nil, now: 9010 * ms)
        var given: [Int64] = []
        var offsets = Set<Int64?>()
        for number in Int64(0)...30 {
            let now = max(9011, 8211 + number * 40)
            let leftOut = line.placeOfLeftOut(time(5000 + number * 40), now: now * ms)
            offsets.insert(line.offset)
            if leftOut == nil { given.append(line.place(time(5000 + number * 40), now: now * ms).time) }
        }
        #expect(first == 8171 * ms && given.count == 11, "\(given.count)")
        #expect(zip(given.dropFirst(), given).allSatisfy { $0 - $1 == 40 * ms } && given[0] > 9000 * ms, "\(given)")
        #expect(offsets == [(8211 - 5000) * ms])
        // Where nothing was shown meanwhile, everything is given.
        line.begin(age: time(800), now: 20_000 * ms, period: time(40))
        let leftOut = line.placeOfLeftOut(time(0), now: 20_000 * ms)
        #expect(leftOut == nil)
    }

    /// An offset that was a little too late falls by a sixteenth of a period with each item.
    @Test func fallsSlowlyWhereItemsComeALittleEarlier() {
        var line = LiveTimeline(.arrival)
        line.begin(now: 0, period: time(40))
        var placed = (Int64(0)..<5).map { line.place(time($0 * 40), now: (1000 + $0 * 40) * ms).time }
        placed += (Int64(5)..<30).map { line.place(time($0 * 40), now: (974 + $0 * 40) * ms).time }
        #expect(zip(placed.dropFirst(), placed).allSatisfy { $0 - $1 >= 35 * ms }, "\(placed)")
        #expect(placed.last == (974 + 29 * 40) * ms)
        // What is wrong by more falls at once.
        #expect(line.place(time(1200), now: (1000 + 800) * ms).time == (974 + 29 * 40 + 1) * ms)
        #expect(line.place(time(2000), now: 2600 * ms).time == 2600 * ms)
    }

    @Test func followsASlowClock() {
        var line = LiveTimeline(.arrival)
        var late: Int64 = 0
        // The peer's second lasts 1.001 of ours: after an hour it would be 3.6 s late.
        for number in Int64(0)..<90_000 {
            let now = number * 40_040_000
            late = now - line.place(time(number * 40), now: now).time
            #expect(late >= 0 && late <= 10 * ms)
        }
        #expect(line.jumps == 0)
    }

    @Test func doesNotTakeABacklogForASlowClock() {
        var line = LiveTimeline(.arrival)
        line.begin(age: time(8000), now: 9000 * ms)
        // 200 pictures that were there at once, given at twice their speed.
        for number in Int64(0)..<200 {
            let placement = line.place(time(number * 40), now: 9000 * ms + number * 20 * ms, isBehind: number > 0)
            #expect(placement == .init(time: 1000 * ms + number * 40 * ms))
        }
    }

    @Test(arguments: [LiveTimeline.Pace.arrival, .stream]) func beginsAnewWhereTheStreamStoodStill(
        pace: LiveTimeline.Pace
    ) {
        var line = LiveTimeline(pace)
        _ = line.place(time(0), now: 0)
        #expect(line.place(time(40), now: 3000 * ms) == .init(time: 3000 * ms, isJump: true))
        #expect(line.place(time(80), now: 3040 * ms) == .init(time: 3040 * ms))
        #expect(line.jumps == 1)
    }

    /// What a network that stood still has held up comes at once: it is where it was captured, and nothing is off
    /// meanwhile.
    @Test func keepsWhatWasHeldUpWhereItBelongs() {
        var line = LiveTimeline(.arrival)
        var given: [Int64] = []
        for number in Int64(0)..<200 {
            // Nothing comes from 2 s to 4.5 s.
            let now = (50...112).contains(number) ? 4500 + (number - 50) * 2 : number * 40
            if line.isLate(time(number * 40), now: now * ms) { line.expectBurst(time((112 - number) * 40)) }
            given.append(line.place(time(number * 40), now: now * ms, isBehind: number < 112).time)
        }
        #expect(zip(given.dropFirst(), given).allSatisfy { $0 - $1 == 40 * ms }, "\(given)")
        #expect(line.jumps == 0)
    }

    @Test func paysAStreamsBurstsOutInItsOwnTime() {
        var line = LiveTimeline(.stream)
        for number in Int64(0)..<150 {
            #expect(line.place(time(number * 40), now: 0).time == number * 40 * ms)
        }
        #expect(line.place(time(60_000), now: 0).isJump)
    }

    @Test func risesAcrossConnections() {
        var line = LiveTimeline(.arrival)
        _ = line.place(time(10_000), now: 500 * ms)
        line.begin(now: 0)
        #expect(line.place(time(0), now: 500 * ms).time == 501 * ms)
        line.begin(now: 0)
        #expect(line.place(nil, now: 400 * ms).time == 502 * ms)
        #expect(line.place(time(77), now: 600 * ms).time == 600 * ms)
    }

    @Test(arguments: [Int64.min, -(1 << 61), 0, 1 << 61, .max], [Int64(0), 1 << 60])
    func takesAnyTimes(given: Int64, now: Int64) {
        for pace in [LiveTimeline.Pace.arrival, .stream] {
            var line = LiveTimeline(pace)
            _ = line.place(MediaTime(nanoseconds: given), now: now)
            let last = line.place(MediaTime(nanoseconds: -given.magnitude.asInt64), now: now).time
            #expect(line.place(MediaTime(nanoseconds: given), now: now).time > last)
        }
    }
}

extension UInt64 { fileprivate var asInt64: Int64 { Int64(clamping: self) } }
