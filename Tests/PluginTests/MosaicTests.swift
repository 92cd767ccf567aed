// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import Compositor

@Suite struct MosaicTests {
    private typealias Driver = ClockedDriver<Mosaic>

    /// Four rates that never meet, for ten minutes; the third input freezes in the second one.
    @Test func showsTheNewestOfEachForTenMinutes() throws {
        let rates = [Rational(25), Rational(30), Rational(15), Rational(30_000, 1001)]
        let formats = rates.map { Driver.format(32, 24, $0) }
        let driver = try Driver(Mosaic.self, #"{ "size": "64x48", "rate": 30, "lostSeconds": 1 }"#, formats)
        let tick = 1000.0 / 30
        let steps = rates.map { 1000 / $0.value }
        func isFrozen(_ input: Int, _ ms: Double) -> Bool { input == 2 && (60_000..<70_000).contains(ms) }
        var next = [0, 0, 0, 0]
        var newest: [UInt8?] = [nil, nil, nil, nil]
        var newestAt = [0.0, 0, 0, 0]
        var count = 0
        var wrong = 0
        var slates = 0
        var last = -tick
        while count < 18_000 {
            let input = next.indices.min { Double(next[$0]) * steps[$0] < Double(next[$1]) * steps[$1] }!
            let ms = Double(next[input]) * steps[input]
            // Ticks before it come first; the first is with the first picture.
            while count > 0, Double(count) * tick < ms {
                try driver.advance(to: Double(count) * tick + 0.0005)
                check()
            }
            try driver.advance(to: ms)
            check()
            if !isFrozen(input, ms) {
                let luma = UInt8(20 + next[input] % 200)
                try driver.send(input, luma: luma)
                check()
                (newest[input], newestAt[input]) = (luma, ms)
            }
            next[input] += 1
        }
        func check() {
            for picture in driver.take() {
                let ms = picture.ms
                if count > 0, abs(ms - last - tick) > 0.001 { wrong += 1 }
                last = ms
                for input in 0..<4 {
                    let luma = picture.luma(input % 2 * 32 + 3, input / 2 * 24 + 3)
                    let age = ms - newestAt[input]
                    // A picture is noticed at the tick that follows it.
                    if age >= 1000 + tick {
                        slates += 1
                        if luma == newest[input] { wrong += 1 }
                    } else if count > 10, age < 1000, luma != newest[input] {
                        wrong += 1
                    }
                }
                count += 1
            }
        }
        #expect(wrong == 0)
        #expect((265...275).contains(slates), "nine seconds of thirty: \(slates)")
        let events = driver.driver.takeEvents().filter { $0.name.hasPrefix("input-") }
        #expect(
            events.map(\.text) == [
                "mosaic: '2' gives no pictures; this stage goes on without it.", "mosaic: '2' gives pictures again.",
            ])
    }

    @Test func placesWhatItIsTold() throws {
        let driver = try Driver(
            Mosaic.self,
            #"{ "places": [ { "input": "1" }, { "input": "0", "x": 0.5, "y": 0.5, "width": 0.5, "height": 0.5 } ] }"#,
            [Driver.format(), Driver.format()])
        try driver.send(0, luma: 50)
        try driver.send(1, luma: 100)
        try driver.advance(to: 40)
        let picture = try #require(driver.take().last)
        for (x, y, luma) in [(2, 2, UInt8(100)), (62, 2, 100), (30, 40, 100), (34, 26, 50), (62, 46, 50)] {
            #expect(picture.luma(x, y) == luma, "\(x), \(y)")
        }
    }

    @Test func changesItsLayoutWhileItRuns() throws {
        let driver = try Driver(
            Mosaic.self, #"{ "layout": "row", "fit": "stretch" }"#, [Driver.format(), Driver.format()])
        try driver.send(0, luma: 50)
        try driver.send(1, luma: 100)
        try driver.advance(to: 40)
        #expect(driver.shown(x: 60, y: 24).last?.luma == 100)
        try driver.driver.set(#"{ "layout": "inset" }"#)
        try driver.advance(to: 80)
        try driver.send(1, luma: 100)
        try driver.advance(to: 120)
        #expect(driver.shown(x: 60, y: 4).last?.luma == 50)
        #expect {
            try driver.driver.set(#"{ "places": [ { "input": "nobody" } ] }"#)
        } throws: { "\($0)".contains("'nobody' must be an input of this stage") }
        try driver.advance(to: 160)
        #expect(driver.shown(x: 60, y: 4).last?.luma == 50, "the old places stay")
    }

    @Test(arguments: 1...16) func placesEveryNumberOfInputsInsideThePicture(count: Int) {
        let ids = (0..<count).map { "\($0)" }
        for layout in [MosaicLayout.grid, .row, .inset] {
            let areas = layout.places(of: ids).map { $0.area(640, 360) }
            #expect(areas.count == count)
            #expect(
                areas.allSatisfy { $0.x >= 0 && $0.y >= 0 && $0.x + $0.width <= 640 && $0.y + $0.height <= 360 },
                "\(layout) \(areas)")
            guard layout != .inset else { continue }
            for (index, area) in areas.enumerated() {
                for other in areas[..<index] {
                    #expect(
                        area.x >= other.x + other.width || other.x >= area.x + area.width
                            || area.y >= other.y + other.height || other.y >= area.y + area.height)
                }
            }
        }
    }

    @Test func refusesPlacesOutsideThePicture() {
        for places in [
            #"[ { "input": "0", "x": 0.6, "width": 0.5 } ]"#, #"[ { "input": "0", "x": -1 } ]"#,
            #"[ { "input": "0", "z": 1 } ]"#, #"[ { "x": 0 } ]"#, #"[ { "input": "0", "width": 1e300 } ]"#,
        ] {
            #expect(throws: (any Error).self, "\(places)") {
                _ = try Driver(Mosaic.self, #"{ "places": \#(places) }"#, [Driver.format(), Driver.format()])
            }
        }
    }
}
