// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import FrameCore

@Suite struct MotionAreasTests {
    private static func areas(_ count: Int) -> MotionAreas {
        var areas = MotionAreas(pictureWidth: 640, pictureHeight: 360)
        areas.isMotion = true
        for index in 0..<count {
            var area = MotionAreas.Area()
            area.id = UInt32(index)
            (area.x, area.y, area.width, area.height) = (Float(index), 2, 30, 40)
            area.share = 0.25
            areas.append(area)
        }
        return areas
    }

    @Test func hasAtMostSoMany() {
        #expect(Self.areas(50).count == MotionAreas.most)
        #expect(Self.areas(50).last?.id == UInt32(MotionAreas.most - 1))
    }

    @Test func isTheSameAfterJSON() throws {
        let areas = Self.areas(3)
        let copy = try JSONDecoder().decode(MotionAreas.self, from: JSONEncoder().encode(areas))
        #expect(copy == areas)
        #expect(copy != Self.areas(2))
    }
}
