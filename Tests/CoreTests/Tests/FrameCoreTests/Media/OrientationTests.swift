// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct OrientationTests {
    /// Where a point (x to the right, y down, about the centre) of the stored picture lies in the upright one.
    private func place(_ orientation: Orientation, _ x: Int, _ y: Int) -> [Int] {
        var (x, y) = (orientation.isMirrored ? -x : x, y)
        for _ in 0..<orientation.quarterTurns { (x, y) = (-y, x) }
        return [x, y]
    }

    @Test func bringsTheFirstRowAndColumnWhereExifSays() {
        // Exif 2.32, table 6: where row 0 and column 0 of the stored picture are in the upright one.
        let sides: [Orientation: (row: String, column: String)] = [
            .up: ("top", "left"), .upMirrored: ("top", "right"), .down: ("bottom", "right"),
            .downMirrored: ("bottom", "left"),
            .leftMirrored: ("left", "top"), .right: ("right", "top"), .rightMirrored: ("right", "bottom"),
            .left: ("left", "bottom"),
        ]
        let names: [[Int]: String] = [[0, -1]: "top", [0, 1]: "bottom", [-1, 0]: "left", [1, 0]: "right"]
        for orientation in Orientation.allCases {
            #expect(names[place(orientation, 0, -1)] == sides[orientation]!.row, "\(orientation.rawValue)")
            #expect(names[place(orientation, -1, 0)] == sides[orientation]!.column, "\(orientation.rawValue)")
        }
    }

    @Test func isMadeFromItsMirroringAndTurns() {
        for orientation in Orientation.allCases {
            for turns in [-8, -4, 0, 4, 400] {
                #expect(
                    Orientation(quarterTurns: orientation.quarterTurns + turns, mirrored: orientation.isMirrored)
                        == orientation)
            }
        }
        #expect(Set(Orientation.allCases.map { place($0, 1, 2) }).count == 8)
    }

    /// One orientation after another is again one of the eight: turns add up, and a mirroring turns later turns around.
    @Test func composesToOneOfTheEight() {
        for first in Orientation.allCases {
            for second in Orientation.allCases {
                let turns = (second.isMirrored ? -first.quarterTurns : first.quarterTurns) + second.quarterTurns
                let both = Orientation(quarterTurns: turns, mirrored: first.isMirrored != second.isMirrored)
                let between = place(first, 1, 2)
                #expect(
                    place(both, 1, 2) == place(second, between[0], between[1]),
                    "\(first.rawValue) then \(second.rawValue)")
            }
        }
    }

    @Test func swapsSidesForOddTurnsAlone() {
        #expect(Orientation.allCases.filter(\.swapsSides) == [.leftMirrored, .right, .rightMirrored, .left])
    }

    @Test func isWrittenForPeople() {
        #expect(
            Orientation.allCases.map(\.description) == [
                "upright", "mirrored, turned 0°", "turned 180°", "mirrored, turned 180°", "mirrored, turned 270°",
                "turned 90°",
                "mirrored, turned 90°", "turned 270°",
            ])
    }
}
