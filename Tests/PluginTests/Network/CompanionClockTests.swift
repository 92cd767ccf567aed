// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import FileSource

@Suite struct CompanionClockTests {
    private static let second: Int64 = 1_000_000_000

    private func look(
        _ clock: inout CompanionClock, at given: Double?, _ pictures: StreamClock.Place, now: Double
    ) -> CompanionClock.Verdict {
        clock.look(at: given.map { MediaTime(seconds: $0) }, pictures, now: Int64(now * 1e9), isPacedByStream: true)
    }

    @Test func waitsForThePicturesAndGoesWithThem() {
        var clock = CompanionClock()
        let (early, there) = (
            look(&clock, at: 100, .unknown, now: 5), look(&clock, at: 100, .offset(-95 * Self.second), now: 5)
        )
        #expect(early == .wait && there == .here(isStep: false))
        #expect(clock.time(MediaTime(seconds: 100)) == MediaTime(seconds: 5))
        let over = look(&clock, at: 100, .over, now: 5)
        #expect(over == .drop(ahead: nil))
    }

    /// A small move of the pictures is followed at once. A step is another timeline once it has lasted, and is said with the
    /// next packet that has its place.
    @Test func followsAStepOnceItHasLasted() {
        var clock = CompanionClock()
        var verdicts = [look(&clock, at: 1, .offset(0), now: 1)]
        verdicts.append(look(&clock, at: 1.04, .offset(Self.second / 4), now: 1.04))
        verdicts.append(look(&clock, at: 1.08, .offset(-20 * Self.second), now: 1.08))
        verdicts.append(look(&clock, at: 1.08, .offset(-20 * Self.second), now: 1.2))
        // The pictures are back where they were: no step.
        verdicts.append(look(&clock, at: 1.08, .offset(Self.second / 4), now: 1.22))
        #expect(
            verdicts == [.here(isStep: false), .here(isStep: false), .wait, .wait, .here(isStep: false)])
        verdicts = [look(&clock, at: 21, .offset(-19 * Self.second), now: 2)]
        verdicts.append(look(&clock, at: 21, .offset(-19 * Self.second), now: 2.21))
        verdicts.append(look(&clock, at: 21.04, .offset(-19 * Self.second), now: 2.24))
        #expect(verdicts == [.wait, .here(isStep: true), .here(isStep: false)])
    }

    @Test func leavesOutWhatIsFarFromNow() {
        var clock = CompanionClock()
        var verdicts = [look(&clock, at: -130, .offset(0), now: 1)]
        verdicts.append(look(&clock, at: 100, .offset(0), now: 1))
        verdicts.append(look(&clock, at: 100, .offset(0), now: 4.1))
        verdicts.append(look(&clock, at: nil, .offset(0), now: 4.2))
        #expect(verdicts[0] == .drop(ahead: nil) && verdicts[3] == .here(isStep: false))
        // What waits is judged by when the first one did.
        #expect(verdicts[1] == .wait && verdicts[2] == .drop(ahead: 100 * Self.second - Int64(4.1 * 1e9)))
    }

    /// The times of both tracks step ahead, and the sound says so first: it waits for the pictures' new place, since what is
    /// placed by the old one would lie ahead of all that comes.
    @Test func waitsForAStepOfThePictures() {
        var clock = CompanionClock()
        func look(_ given: Double, _ offset: Int64, _ now: Double) -> CompanionClock.Verdict {
            clock.look(
                at: MediaTime(seconds: given), .offset(offset * Self.second), now: Int64(now * 1e9),
                isPacedByStream: false)
        }
        var verdicts = [look(1, 0, 1.1), look(4.02, 0, 1.12), look(4.02, 0, 1.14), look(4.02, -3, 1.16)]
        #expect(verdicts == [.here(isStep: false), .wait, .wait, .wait])
        verdicts = [look(4.02, -3, 1.37), look(4.04, -3, 1.38)]
        #expect(verdicts == [.here(isStep: true), .here(isStep: false)])
    }

    /// Whatever the times, nothing overflows.
    @Test func takesEveryTimeThereIs() {
        let ends = [MediaTime.range.lowerBound, 0, MediaTime.range.upperBound]
        for given in ends {
            for offset in ends {
                for now in ends {
                    var clock = CompanionClock()
                    _ = clock.look(at: MediaTime(nanoseconds: given), .offset(offset), now: now, isPacedByStream: true)
                    _ = clock.look(
                        at: MediaTime(nanoseconds: given), .offset(-offset), now: now, isPacedByStream: false)
                    #expect(MediaTime.range.contains(clock.time(MediaTime(nanoseconds: given)).nanoseconds))
                }
            }
        }
    }
}
