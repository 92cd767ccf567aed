// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct SourceTimesTests {
    /// The PTS it comes to have.
    private func place(_ pts: Int64, _ times: inout SourceTimes, duration: Int64 = 10) -> Int64 {
        var header = ItemHeader(.frame, metadata: nil)
        header.pts = MediaTime(nanoseconds: pts)
        header.duration = MediaTime(nanoseconds: duration)
        _ = times.place(&header, isLive: false, rate: nil)
        return header.pts.nanoseconds
    }

    @Test func goesOnWhereTheInstanceBeforeEnded() {
        var times = SourceTimes()
        #expect([0, 10].map { place($0, &times) } == [0, 10])
        times.beginAnew()
        #expect([0, 10].map { place($0, &times) } == [20, 30])
        times.beginAnew()
        #expect(place(-5, &times) == 40)
    }

    /// However often an instance follows that has the latest times there are.
    @Test func staysWithinWhatSumsOfTimesHaveRoomFor() {
        var times = SourceTimes()
        let most: Int64 = 1 << 61
        for _ in 0..<8 {
            for pts in [-most, 0, most] { #expect((-most...most).contains(place(pts, &times, duration: most))) }
            times.beginAnew()
        }
    }
}
