// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared
import Testing

@testable import Compositor

/// Drives a join by the clock: each picture of an input has one luma in all its pixels.
final class ClockedDriver<S: Join> {
    let driver: StageDriver<S>
    let clock: ManualClock
    private let start: Int64 = 1_000_000_000

    init(_ type: S.Type, _ options: String, _ formats: [VideoFormat]) throws {
        clock = ManualClock(at: start)
        driver = try StageDriver(
            type, options: options, inputs: formats.map(MediaFormat.video), isLive: true, clock: clock)
    }

    convenience init(_ type: S.Type, _ formats: [VideoFormat]) throws { try self.init(type, "{}", formats) }

    static func format(_ width: Int = 64, _ height: Int = 48, _ rate: Rational = Rational(25)) -> VideoFormat {
        VideoFormat(.i420, width: width, height: height, frameRate: rate)
    }

    /// Chain time by milliseconds from the begin.
    func advance(to ms: Double) throws {
        clock.advance(to: start + Int64((ms * 1e6).rounded()))
        try driver.tick()
        collect()
    }

    func send(_ input: Int, luma: UInt8, isSubstitute: Bool = false, isMirrored: Bool = false) throws {
        let now = MediaTime(nanoseconds: clock.now())
        try driver.send(
            try driver.makeFrame(input: input, pts: now) { frame in
                frame.isSubstitute = isSubstitute
                frame.isMirroredInPreviews = isMirrored
                for plane in 0..<3 {
                    frame.withMutablePlane(plane) { pixels in
                        for y in 0..<pixels.height { pixels.row(y).update(repeating: plane == 0 ? luma : 128) }
                    }
                }
            }, to: input)
        collect()
    }

    /// A picture that came.
    struct Picture {
        /// PTS from the begin.
        var ms: Double
        var width: Int
        var height: Int
        var isMirrored: Bool
        /// Row by row.
        var luma: [UInt8]

        func luma(_ x: Int, _ y: Int) -> UInt8 { luma[y * width + x] }
    }

    private var pictures: [Picture] = []

    /// The driver has buffers for 32.
    private func collect() {
        while let frame = driver.takeFrame() {
            let (width, height) = (frame.format.width, frame.format.height)
            pictures.append(
                Picture(
                    ms: Double(frame.pts.nanoseconds - start) / 1e6, width: width, height: height,
                    isMirrored: frame.isMirroredInPreviews,
                    luma: frame.withPlane(0) { plane in (0..<height).flatMap { plane.row($0)[0..<width] } }))
        }
    }

    /// What came since.
    func take() -> [Picture] {
        defer { pictures = [] }
        return pictures
    }

    struct Shown: Equatable {
        var ms: Double
        var luma: UInt8
    }

    /// What came since, each with the luma at a place.
    func shown(x: Int = 32, y: Int = 24) -> [Shown] { take().map { Shown(ms: $0.ms, luma: $0.luma(x, y)) } }
}

/// Pictures that lie otherwise than their format says.
@Suite struct UprightPlacementTests {
    /// The upper left quarter of the upright picture is bright, in whichever way it is stored.
    @Test(arguments: Orientation.allCases) func drawsThePictureUpright(orientation: Orientation) {
        let stored = VideoFormat(.i420, width: 32, height: 16)
        let source = ScratchPicture(.i420, width: 32, height: 16)
        let (width, height) = orientation.swapsSides ? (16, 32) : (32, 16)
        for y in 0..<16 {
            for x in 0..<32 {
                // Mirrored first, then turned clockwise.
                let column = orientation.isMirrored ? 31 - x : x
                let (right, down) =
                    switch orientation.quarterTurns {
                    case 1: (15 - y, column)
                    case 2: (31 - column, 15 - y)
                    case 3: (y, 31 - column)
                    default: (column, y)
                    }
                let luma = source.picture[0]
                luma.base.storeBytes(
                    of: right < width / 2 && down < height / 2 ? 200 : 20, toByteOffset: y * luma.strideBytes + x,
                    as: UInt8.self)
            }
        }
        let output = VideoFormat(.i420, width: 64, height: 64)
        let target = ScratchPicture(.i420, width: 64, height: 64)
        var placement = UprightPlacement(
            of: stored, into: Rectangle(x: 0, y: 0, width: 64, height: 64), .contain, output: output)
        placement.draw(source.picture, orientation, into: target.picture)
        let area = placement.area(orientation)
        #expect((area.width, area.height) == (orientation.swapsSides ? (32, 64) : (64, 32)))
        let luma = target.picture[0]
        func at(_ x: Int, _ y: Int) -> UInt8 {
            luma.base.load(fromByteOffset: y * luma.strideBytes + x, as: UInt8.self)
        }
        let (w, h) = (area.width, area.height)
        #expect(at(area.x + w / 4, area.y + h / 4) == 200)
        for (x, y) in [(3, 1), (1, 3), (3, 3)] { #expect(at(area.x + x * w / 4, area.y + y * h / 4) == 20) }
    }

    /// Pixels of 4:3 in an output with the same pixels fill it, and are not squeezed once more.
    @Test(arguments: [Fit.contain, .fill]) func anAnamorphicPictureFillsAnOutputOfItsOwnShape(fit: Fit) {
        var format = VideoFormat(.i420, width: 64, height: 48, sampleAspectRatio: Rational(4, 3))
        let whole = Rectangle(width: 64, height: 48)
        let placement = UprightPlacement(of: format, into: whole, fit, output: format).usual
        #expect(placement.isWhole && placement.from == whole && placement.to == whole)
        // Square pixels among those of 4:3: as high, and three quarters as wide.
        let output = format
        format.sampleAspectRatio = Rational(1)
        var square = UprightPlacement(of: format, into: whole, .contain, output: output)
        #expect(square.usual.to == Rectangle(x: 8, y: 0, width: 48, height: 48))
        // On its side: 48x64 in the height of 48 is 36 wide, 27 of the output's pixels.
        #expect(square.area(.right) == Rectangle(x: 18, y: 0, width: 28, height: 48))
    }

    /// White in full range beside white in video range.
    @Test func aMosaicShowsInputsOfOtherRangesAndMatrices() throws {
        let first = VideoFormat(
            .i420, width: 64, height: 48, frameRate: Rational(25), color: ColorDescription(range: .video, matrix: 1))
        var second = first
        second.color = ColorDescription(range: .full, matrix: 6)
        let driver = try ClockedDriver(Mosaic.self, #"{ "layout": "row", "fit": "stretch" }"#, [first, second])
        try driver.send(0, luma: 235)
        try driver.send(1, luma: 255)
        try driver.advance(to: 40)
        let picture = try #require(driver.take().last)
        #expect(picture.luma(10, 24) == 235 && picture.luma(50, 24) == 235)
        let notes = driver.driver.takeEvents().map(\.text)
        #expect(
            notes.contains(
                "the pictures of '1' differ from those of '0' in colour matrix or range, and are converted to them."),
            "\(notes)")
    }

    @Test func aMosaicKeepsTheShapeOfAnamorphicPictures() throws {
        let format = VideoFormat(
            .i420, width: 64, height: 48, frameRate: Rational(25), sampleAspectRatio: Rational(4, 3))
        let driver = try ClockedDriver(
            Mosaic.self, #"{ "places": [ { "input": "0", "x": 0, "y": 0, "width": 1, "height": 1 } ] }"#,
            [format, format])
        try driver.send(0, luma: 200)
        try driver.advance(to: 40)
        let picture = try #require(driver.take().last)
        #expect(driver.driver.outputFormat?.video?.sampleAspectRatio == Rational(4, 3))
        #expect(picture.luma(1, 24) == 200 && picture.luma(62, 24) == 200 && picture.luma(32, 1) == 200)
    }

    /// The output is upright and stays so: what a camera says in its stream does not turn it.
    @Test func aSwitchGivesUprightPictures() throws {
        let driver = try ClockedDriver(
            SourceSwitch.self, [ClockedDriver<SourceSwitch>.format(), ClockedDriver<SourceSwitch>.format()])
        try driver.advance(to: 0)
        let frame = try driver.driver.makeFrame(input: 0, pts: MediaTime(nanoseconds: driver.clock.now())) { frame in
            frame.orientation = .right
            frame.withMutablePlane(0) { plane in
                for y in 0..<plane.height { plane.row(y).update(repeating: 200) }
            }
        }
        try driver.driver.send(frame, to: 0)
        try driver.advance(to: 40)
        let pictures = driver.take()
        // 64x48 becomes 48x64, and that fits as 36x48: the edges are background.
        let picture = try #require(pictures.first)
        #expect(picture.luma(32, 24) == 200 && picture.luma(3, 24) < 50 && picture.luma(60, 24) < 50)
    }
}

@Suite struct SourceSwitchTests {
    private typealias Driver = ClockedDriver<SourceSwitch>

    /// Both inputs give a picture every 40 ms, the second 15 ms later: lumas 50 and 100.
    private func play(
        _ driver: Driver, from begin: Int, to end: Int, first: Bool = true, second: Bool = true
    ) throws {
        for tick in begin..<end {
            try driver.advance(to: Double(tick) * 40)
            if first { try driver.send(0, luma: 50) }
            try driver.advance(to: Double(tick) * 40 + 15)
            if second { try driver.send(1, luma: 100) }
            try driver.advance(to: Double(tick) * 40 + 20.1)
        }
    }

    @Test func switchesAtAPictureAndGoesOnWithoutAGap() throws {
        let driver = try Driver(SourceSwitch.self, [Driver.format(), Driver.format()])
        try play(driver, from: 0, to: 20)
        #expect(driver.shown().map(\.luma) == [UInt8](repeating: 50, count: 20))
        try driver.driver.command("switch", arguments: ["to": "1"])
        try play(driver, from: 20, to: 40)
        let shown = driver.shown()
        #expect(shown.allSatisfy { $0.luma == 100 })
        #expect((19...21).contains(shown.count))
        #expect(zip(shown.dropFirst(), shown).allSatisfy { (37.4...42.6).contains($0.ms - $1.ms) })
        let events = driver.driver.takeEvents().filter { $0.name == "input-switched" }
        #expect(events.map(\.text) == ["The output shows '1' instead of '0': by command."])
        #expect(events.first?.details["reason"] == "command")
    }

    @Test func refusesWhatItCannotShow() throws {
        #expect(throws: FrameHostError.self) { _ = try Driver(SourceSwitch.self, [Driver.format()]) }
        #expect {
            _ = try Driver(SourceSwitch.self, #"{ "active": "cam" }"#, [Driver.format(), Driver.format()])
        } throws: { "\($0)".contains("'cam' must be an input of this stage. Use one of its inputs: '0', '1'") }
        let driver = try Driver(SourceSwitch.self, [Driver.format(), Driver.format()])
        try driver.send(0, luma: 50)
        #expect {
            try driver.driver.command("switch", arguments: ["to": "1"])
        } throws: { "\($0)".contains("'1' has not given a picture of its own yet") }
        #expect {
            try driver.driver.command("switch", arguments: ["to": 1])
        } throws: { "\($0)".contains("'to' must be the id of an input, but is 1") }
        #expect { try driver.driver.set(#"{ "active": "x" }"#) } throws: {
            "\($0)".contains("'x' must be an input of this stage")
        }
        try driver.advance(to: 40)
        #expect(driver.shown().allSatisfy { $0.luma == 50 })
    }

    @Test func showsAnotherInputWhenOneIsLostAndTheChosenOneWhenItIsBack() throws {
        let driver = try Driver(SourceSwitch.self, [Driver.format(), Driver.format()])
        try play(driver, from: 0, to: 10)
        try play(driver, from: 10, to: 100, first: false)
        let shown = driver.shown()
        #expect(shown.prefix(58).allSatisfy { $0.luma == 50 }, "its last picture for two seconds")
        #expect(shown.suffix(35).allSatisfy { $0.luma == 100 })
        try play(driver, from: 100, to: 145)
        #expect(driver.shown().allSatisfy { $0.luma == 100 }, "not before it has been back for two seconds")
        try play(driver, from: 145, to: 170)
        #expect(driver.shown().last?.luma == 50)
        let events = driver.driver.takeEvents().filter { $0.name.hasPrefix("input-") }
        #expect(events.map(\.name) == ["input-lost", "input-switched", "input-back", "input-switched"])
        #expect(events[1].text.hasSuffix("'0' is lost.") && events[3].text.hasSuffix("'0' is back."))
    }

    /// It would be left at the next tick.
    @Test func refusesALostInputWhereAnotherOneWouldTakeItsPlace() throws {
        let driver = try Driver(SourceSwitch.self, [Driver.format(), Driver.format()])
        try play(driver, from: 0, to: 10)
        try play(driver, from: 10, to: 70, second: false)
        #expect {
            try driver.driver.command("switch", arguments: ["to": "1"])
        } throws: {
            "\($0)"
                == "arguments.to: '1' is lost, so \"whenLost\": \"next\" would show another input immediately. Switch to it when it is back (event 'input-back'). Set \"whenLost\": \"stay\" in the chain file if its last picture should be shown meanwhile."
        }
        #expect { try driver.driver.set(#"{ "active": "1" }"#) } throws: { "\($0)".contains("'1' is lost") }
        try play(driver, from: 70, to: 75, second: false)
        #expect(driver.shown().allSatisfy { $0.luma == 50 })
        #expect(!driver.driver.takeEvents().contains { $0.name == "input-switched" })
        // With nobody to take its place it is shown, and stays.
        try play(driver, from: 75, to: 130, first: false, second: false)
        try driver.driver.command("switch", arguments: ["to": "1"])
        _ = driver.shown()
        try play(driver, from: 130, to: 135, first: false, second: false)
        #expect(driver.shown().allSatisfy { $0.luma == 100 })
    }

    @Test func showsALostInputsLastPictureWhereItStays() throws {
        let driver = try Driver(SourceSwitch.self, #"{ "whenLost": "stay" }"#, [Driver.format(), Driver.format()])
        try play(driver, from: 0, to: 10)
        try play(driver, from: 10, to: 70, second: false)
        try driver.driver.command("switch", arguments: ["to": "1"])
        _ = driver.shown()
        try play(driver, from: 70, to: 90, second: false)
        let shown = driver.shown()
        #expect(shown.count > 15 && shown.allSatisfy { $0.luma == 100 })
    }

    /// A camera that is away goes on with pictures in the place of its own.
    @Test(arguments: [true, false]) func takesSubstitutesForALoss(stays: Bool) throws {
        let driver = try Driver(
            SourceSwitch.self, stays ? #"{ "whenLost": "stay" }"# : "{}", [Driver.format(), Driver.format()])
        try play(driver, from: 0, to: 10)
        for tick in 10..<20 {
            try driver.advance(to: Double(tick) * 40)
            try driver.send(0, luma: 70, isSubstitute: true)
            try driver.advance(to: Double(tick) * 40 + 15)
            try driver.send(1, luma: 100)
        }
        let last = driver.shown().last
        #expect(last?.luma == (stays ? 70 : 100))
        #expect(driver.driver.takeEvents().contains { $0.name == "input-lost" })
    }

    /// Scaled or as it is: previews mirror the camera that asks for it, and no other.
    @Test(arguments: [(64, 48), (32, 48)]) func keepsWhatPreviewsMirrorWithTheInputItIsOf(size: (Int, Int)) throws {
        let driver = try Driver(SourceSwitch.self, [Driver.format(), Driver.format(size.0, size.1)])
        for tick in 0..<10 {
            if tick == 5 { try driver.driver.command("switch", arguments: ["to": "1"]) }
            try driver.advance(to: Double(tick) * 40)
            try driver.send(0, luma: 50)
            try driver.send(1, luma: 100, isMirrored: true)
        }
        let shown = driver.take()
        #expect(shown.count > 6 && shown.allSatisfy { $0.isMirrored == ($0.luma(16, 24) == 100) })
        #expect(shown.last?.isMirrored == true && shown.first?.isMirrored == false)
    }

    @Test func blendsForAsLongAsItIsAsked() throws {
        let driver = try Driver(SourceSwitch.self, #"{ "fadeSeconds": 0.4 }"#, [Driver.format(), Driver.format()])
        try play(driver, from: 0, to: 5)
        try driver.driver.command("switch", arguments: ["to": "1"])
        _ = driver.shown()
        try play(driver, from: 5, to: 20)
        let lumas = driver.shown().map(\.luma)
        #expect(lumas.first.map { $0 < 60 } ?? false && lumas.last == 100)
        #expect(zip(lumas.dropFirst(), lumas).allSatisfy { $0 >= $1 }, "\(lumas)")
        #expect(lumas.filter { (55...95).contains($0) }.count >= 6, "\(lumas)")
    }

    /// A tick may be of an instant before the command; a fade of no length is a cut.
    @Test(arguments: [#"{ "fadeSeconds": 1e-10 }"#, #"{ "fadeSeconds": 0.5 }"#])
    func cutsWhereAFadeHasNoLength(options: String) throws {
        let driver = try Driver(SourceSwitch.self, options, [Driver.format(), Driver.format()])
        try play(driver, from: 0, to: 5)
        for tick in 5..<40 {
            try driver.advance(to: Double(tick) * 40 + 19)
            try driver.driver.command("switch", arguments: ["to": .string(tick % 2 == 0 ? "0" : "1")])
            try driver.driver.set(#"{ "fadeSeconds": 0 }"#)
            try driver.advance(to: Double(tick) * 40 + 20.1)
        }
        #expect(driver.shown().count > 15)
    }

    /// One pixel of 4:2:0 has no chroma of its own.
    @Test func refusesPicturesOfOnePixel() {
        for size in [(1, 1), (1, 99), (64, 1)] {
            #expect {
                _ = try Driver(SourceSwitch.self, [Driver.format(size.0, size.1), Driver.format()])
            } throws: { "\($0)".contains("the pictures of '0' are \(size.0)x\(size.1)") }
        }
        #expect(throws: Never.self) { _ = try Driver(SourceSwitch.self, [Driver.format(), Driver.format(3, 3)]) }
    }

    @Test func bringsOtherSizesIntoItsOwn() throws {
        let driver = try Driver(SourceSwitch.self, [Driver.format(64, 48), Driver.format(128, 32)])
        try play(driver, from: 0, to: 3)
        try driver.driver.command("switch", arguments: ["to": "1"])
        _ = driver.shown()
        try driver.advance(to: 160)
        try driver.send(1, luma: 100)
        try driver.advance(to: 200)
        let picture = try #require(driver.take().first)
        #expect((picture.width, picture.height) == (64, 48))
        // 4:1 in 4:3: 64x16 in the middle.
        for (y, luma) in [(0, UInt8(16)), (14, 16), (17, 100), (30, 100), (33, 16), (47, 16)] {
            #expect(picture.luma(10, y) == luma, "row \(y)")
        }
    }

    @Test func endsWithTheLastInputAndShowsTheOtherBefore() throws {
        let driver = try Driver(SourceSwitch.self, [Driver.format(), Driver.format()])
        try play(driver, from: 0, to: 5)
        try driver.driver.end(0)
        try play(driver, from: 5, to: 12, first: false)
        #expect(!driver.driver.hasJoinEnded)
        #expect(driver.shown().last?.luma == 100)
        try driver.driver.end(1)
        try driver.advance(to: 600)
        #expect(driver.driver.hasJoinEnded)
    }
}
