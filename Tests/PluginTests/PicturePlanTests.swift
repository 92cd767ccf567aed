// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared
import Testing

@testable import PictureFiles
@testable import Pictures

/// Sizes, parts and places of a file's picture; nothing is painted.
@Suite struct PicturePlanTests {
    private func plan(
        _ width: Int?, _ height: Int?, fit: PictureForm.Fit = .contain, turns: Int = 0, mirrored: Bool = false,
        of stored: (Int, Int), aspect: Rational = Rational(0), lying: Orientation = .up
    ) throws -> PicturePlan {
        var form = PictureForm()
        (form.width, form.height, form.fit) = (width, height, fit)
        (form.quarterTurns, form.isMirrored) = (turns, mirrored)
        var format = VideoFormat(.i420, width: stored.0, height: stored.1)
        format.sampleAspectRatio = aspect
        return try PicturePlan(form, of: format, lying: lying)
    }

    @Test func keepsThePicturesOwnSize() throws {
        let plan = try plan(nil, nil, of: (1280, 720))
        #expect(plan.size == PictureSize(1280, 720) && plan.scaled == plan.size && plan.fillsAll)
        #expect(plan.region == Rectangle(width: 1280, height: 720) && plan.orientation == .up)
    }

    @Test func keepsTheShapeWhereOneSideIsNamed() throws {
        #expect(try plan(640, nil, of: (1280, 720)).size == PictureSize(640, 360))
        #expect(try plan(nil, 100, of: (1280, 720)).size == PictureSize(178, 100))
        #expect(try plan(1920, nil, of: (1280, 720)).size == PictureSize(1920, 1080), "a side is what it says")
        #expect(try plan(1, nil, of: (1280, 720)).size == PictureSize(1, 1))
        #expect(try plan(nil, 640, of: (1280, 720), lying: .right).size == PictureSize(360, 640))
        #expect(try plan(nil, 640, turns: 1, of: (1280, 720)).size == PictureSize(360, 640))
        for (width, height) in [(640, nil), (nil, 101), (3, nil)] as [(Int?, Int?)] {
            #expect(try plan(width, height, of: (1279, 719)).fillsAll, "no line of grey by rounding")
        }
    }

    @Test func showsSamplesSquare() throws {
        #expect(try plan(nil, nil, of: (720, 576), aspect: Rational(16, 11)).size == PictureSize(1047, 576))
        #expect(try plan(nil, nil, of: (720, 480), aspect: Rational(8, 9)).size == PictureSize(640, 480))
        #expect(
            try plan(nil, nil, of: (720, 576), aspect: Rational(16, 11), lying: .left).size == PictureSize(576, 1047))
        #expect(try plan(nil, 288, of: (720, 576), aspect: Rational(64, 45)).size == PictureSize(512, 288))
        // Half as wide as stored: the middle half of the rows.
        let plan = try plan(100, 100, fit: .fill, of: (400, 400), aspect: Rational(1, 2))
        #expect(plan.region == Rectangle(x: 0, y: 100, width: 400, height: 200))
    }

    @Test func cutsEvenlyWhatStandsOver() throws {
        #expect(
            try plan(360, 360, fit: .fill, of: (1280, 720)).region == Rectangle(x: 280, y: 0, width: 720, height: 720)
        )
        #expect(
            try plan(640, 180, fit: .fill, of: (1280, 720)).region
                == Rectangle(x: 0, y: 180, width: 1280, height: 360))
        // Of the stored picture, which lies on its side.
        let plan = try plan(360, 360, fit: .fill, of: (1280, 720), lying: .right)
        #expect(plan.region == Rectangle(x: 280, y: 0, width: 720, height: 720) && plan.orientation == .right)
        #expect(plan.fillsAll)
    }

    @Test func putsAllOfItInTheMiddle() throws {
        let plan = try plan(640, 640, of: (1280, 720))
        #expect(
            plan.scaled == PictureSize(640, 360) && plan.place == Rectangle(x: 0, y: 140, width: 640, height: 360))
        #expect(!plan.fillsAll)
        let turned = try self.plan(640, 640, turns: 1, of: (1280, 720))
        #expect(turned.scaled == PictureSize(640, 360))
        #expect(turned.place == Rectangle(x: 140, y: 0, width: 360, height: 640))
        // A small one is enlarged to touch two sides.
        #expect(try self.plan(100, 300, of: (10, 10)).scaled == PictureSize(100, 100))
    }

    @Test func turnsAndMirrorsAfterItWasBroughtUpright() throws {
        for lying in Orientation.allCases {
            #expect(try plan(nil, nil, of: (4, 2), lying: lying).orientation == lying)
            let turned = try plan(nil, nil, turns: 1, of: (4, 2), lying: lying).orientation
            #expect(turned == Orientation(quarterTurns: lying.quarterTurns + 1, mirrored: lying.isMirrored))
        }
        #expect(try plan(nil, nil, turns: 1, mirrored: true, of: (4, 2)).orientation == .leftMirrored)
    }

    @Test func makesTooLargeAPictureAsLargeAsAFileCanHaveIt() throws {
        #expect(try plan(nil, nil, of: (65_536, 2048)).size == PictureSize(16_384, 512))
        #expect(try plan(nil, nil, of: (65_536, 1)).size == PictureSize(16_384, 1))
    }

    @Test func saysWhatCannotBe() throws {
        func text(_ width: Int?, _ height: Int?, of stored: (Int, Int) = (1280, 720), quality: Int = 90, turns: Int = 0)
            -> String
        {
            var form = PictureForm()
            (form.width, form.height, form.quality, form.quarterTurns) = (width, height, quality, turns)
            do {
                _ = try PicturePlan(form, of: VideoFormat(.i420, width: stored.0, height: stored.1), lying: .up)
                return ""
            } catch { return "\(error)" }
        }
        #expect(
            text(0, nil) == "width: must be from 1 to 16384, but is 0. Use a number in this range, or leave it out.")
        #expect(
            text(nil, 16_385)
                == "height: must be from 1 to 16384, but is 16385. Use a number in this range, or leave it out.")
        #expect(text(.max, .min).hasPrefix("width: must be from 1 to 16384, but is 9223372036854775807."))
        #expect(text(nil, nil, quality: 0) == "quality: must be from 1 to 100, but is 0. Use 90, the usual value.")
        #expect(
            text(nil, nil, turns: 4)
                == "quarterTurns: must be from 0 to 3, but is 4. Use a number in this range: each quarter turn is clockwise."
        )
        #expect(
            text(nil, 100, of: (1000, 2))
                == "height: at this height the picture would be 50000 pixels wide, but a side can have at most 16384. Use a smaller height, or set both width and height."
        )
        #expect(
            text(16_384, 16_384)
                == "width: a picture of 16384x16384 has 268435456 pixels, but must have at most 67108864. Set a smaller width or height."
        )
    }

    /// Whatever is asked for, of whatever picture: the parts lie within the pictures.
    @Test func staysWithinThePictures() throws {
        let sides = [1, 2, 3, 100, 719, 1280, 16_384, 65_536]
        let wanted: [Int?] = [nil, 1, 2, 99, 640, 16_384]
        var made = 0
        for width in sides {
            for height in sides {
                for aspect in [Rational(0), Rational(1, 10_000), Rational(10_000), Rational(4, 3)] {
                    for (across, down) in wanted.flatMap({ one in wanted.map { (one, $0) } }) {
                        for fit in PictureForm.Fit.allCases {
                            for turns in 0...1 {
                                guard
                                    let plan = try? plan(
                                        across, down, fit: fit, turns: turns, of: (width, height), aspect: aspect)
                                else { continue }
                                made += 1
                                let region = plan.region
                                let isRight =
                                    region.x >= 0 && region.y >= 0 && region.width >= 1 && region.height >= 1
                                    && region.x + region.width <= width && region.y + region.height <= height
                                    && plan.place.x >= 0 && plan.place.y >= 0
                                    && plan.place.x + plan.place.width <= plan.size.width
                                    && plan.place.y + plan.place.height <= plan.size.height
                                    && plan.scaled.width >= 1 && plan.scaled.height >= 1
                                if !isRight { Issue.record("\(plan) of \(width)x\(height)") }
                            }
                        }
                    }
                }
            }
        }
        #expect(made > 10_000)
    }

    @Test func reducesInStepsThatLibyuvDoesExactly() {
        func steps(_ from: PictureSize, _ to: PictureSize) -> [PictureSize] {
            var (size, all): (PictureSize, [PictureSize]) = (from, [])
            repeat {
                size = PlaneReducer.step(from: size, to: to)
                all.append(size)
            } while size != to
            return all
        }
        #expect(steps(PictureSize(1280, 720), PictureSize(640, 360)) == [PictureSize(640, 360)])
        #expect(steps(PictureSize(1280, 720), PictureSize(320, 180)) == [PictureSize(320, 180)])
        #expect(
            steps(PictureSize(16_384, 16_384), PictureSize(1, 1)).map(\.width) == [2048, 256, 32, 4, 1])
        // Only one side: by halves, since libyuv's boxes want both.
        #expect(steps(PictureSize(100, 10), PictureSize(20, 10)).map(\.width) == [50, 25, 20])
        #expect(steps(PictureSize(10, 10), PictureSize(400, 300)) == [PictureSize(400, 300)])
    }
}
