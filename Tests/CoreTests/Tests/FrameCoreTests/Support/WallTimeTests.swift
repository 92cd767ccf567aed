// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct WallTimeTests {
    @Test func writesTimesAsRFC3339() {
        #expect(WallTime.text(0) == "1970-01-01T00:00:00.000Z")
        #expect(WallTime.text(951_782_400_000_000_000) == "2000-02-29T00:00:00.000Z")
        #expect(WallTime.text(1_795_396_923_456_789_012) == "2026-11-23T01:22:03.456Z")
        #expect(WallTime.text(1_795_396_923_456_789_012, digits: 6) == "2026-11-23T01:22:03.456789Z")
        #expect(WallTime.text(1_795_396_923_000_000_001, digits: 9) == "2026-11-23T01:22:03.000000001Z")
    }

    @Test func hasEveryMomentOfItsRange() {
        #expect(WallTime.text(-1) == "1969-12-31T23:59:59.999Z")
        #expect(WallTime.text(.min) == "1677-09-21T00:12:43.145Z")
        #expect(WallTime.text(.max) == "2262-04-11T23:47:16.854Z")
    }
}
