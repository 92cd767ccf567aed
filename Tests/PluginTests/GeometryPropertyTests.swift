// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared
import Testing

/// Where `rectangle` of a stored picture of `size` is shown, by the definition of an orientation: mirrored, then turned.
private func shown(_ rectangle: Rectangle, _ orientation: Orientation, _ size: PictureSize) -> Rectangle {
    var result = rectangle
    var (width, height) = (size.width, size.height)
    if orientation.isMirrored { result.x = width - result.x - result.width }
    for _ in 0..<orientation.quarterTurns {
        result = Rectangle(
            x: height - result.y - result.height, y: result.x, width: result.height, height: result.width)
        swap(&width, &height)
    }
    return result
}

@Suite struct OrientationGeometryTests {
    private static let stored = PictureSize(5, 3)
    private static let part = Rectangle(x: 1, y: 0, width: 2, height: 1)

    @Test(arguments: Orientation.allCases) func findsAShownPartInTheStoredPicture(_ orientation: Orientation) {
        let there = shown(Self.part, orientation, Self.stored)
        let size = Self.stored.turned(by: orientation)
        #expect(orientation.stored(there, shown: size) == Self.part)
        #expect(size.turned(by: orientation) == Self.stored)
        #expect(there.clipped(to: size) == there)
    }

    @Test(arguments: Orientation.allCases, Orientation.allCases) func composes(
        _ first: Orientation, _ next: Orientation
    ) {
        let twice = shown(shown(Self.part, first, Self.stored), next, Self.stored.turned(by: first))
        #expect(shown(Self.part, first.then(next), Self.stored) == twice)
    }
}

@Suite struct PictureGeometryTests {
    @Test(arguments: Orientation.allCases) func bringsAPictureUprightWithoutAChangeOfItsShape(
        _ orientation: Orientation
    ) {
        // PAL 16:9.
        let stored = PictureGeometry(
            PictureSize(720, 576), sampleAspectRatio: Rational(64, 45), orientation: orientation)
        let upright = stored.upright
        #expect(upright.orientation == .up && upright.size == stored.size.turned(by: orientation))
        let (before, after) = (stored.shownSides, upright.shownSides)
        #expect(abs(before.width / before.height / (after.width / after.height) - 1) < 1e-9)
        #expect(upright.upright == upright)
    }

    @Test func takesUnknownAndImpossiblePixelsForSquareOnes() {
        for aspect in [Rational(0), Rational(-1, 2), Rational(.max), Rational(1)] {
            #expect(PictureGeometry(PictureSize(4, 2), sampleAspectRatio: aspect).pixelAspect == 1)
        }
    }
}

/// Sides from 1 to 4000 in pixels of all shapes: what holds of every fit.
@Suite struct PicturePlacementTests {
    private struct Case {
        var picture: Rectangle
        var place: Rectangle
        var pixelAspect: Double
        /// Width over height of the whole picture, in pixels of the place.
        var shape: Double { Double(picture.width) / Double(picture.height) * pixelAspect }
    }

    private func each(_ body: (Case) -> Void) {
        var random = SplitRandom(state: 37)
        for _ in 0..<20_000 {
            func side() -> Int {
                1 << Int.random(in: 0...11, using: &random) + Int.random(in: 0...1900, using: &random)
            }
            let corner = (2 * Int.random(in: 0...50, using: &random), 2 * Int.random(in: 0...50, using: &random))
            body(
                Case(
                    picture: Rectangle(width: side(), height: side()),
                    place: Rectangle(x: corner.0, y: corner.1, width: side(), height: side()),
                    pixelAspect: [1, 64.0 / 45, 8.0 / 9, 0.25, 4].randomElement(using: &random)!))
        }
    }

    private func holds(_ inner: Rectangle, _ outer: Rectangle) -> Bool {
        inner.x >= outer.x && inner.y >= outer.y && inner.x + inner.width <= outer.x + outer.width
            && inner.y + inner.height <= outer.y + outer.height && !inner.isEmpty
    }

    @Test(arguments: [1, 2]) func containsAllOfThePicture(step: Int) {
        each { item in
            let placed = PicturePlacement(
                item.picture, pixelAspect: item.pixelAspect, into: item.place, .contain, step: step)
            #expect(placed.source == item.picture)
            let target = placed.target
            #expect(holds(target, item.place), "\(item)")
            #expect(target.x % step == 0 && target.y % step == 0)
            #expect(target.width == item.place.width || target.height == item.place.height)
            // The other side is that of the picture's shape, but for the rounding to whole steps.
            let (wide, high) = (Double(target.width), Double(target.height))
            #expect(
                abs(wide - high * item.shape) <= Double(step) || abs(high - wide / item.shape) <= Double(step),
                "\(item)")
            // In the middle.
            let left = 2 * (target.x - item.place.x) + target.width - item.place.width
            let top = 2 * (target.y - item.place.y) + target.height - item.place.height
            #expect(abs(left) < 2 * step && abs(top) < 2 * step, "\(item)")
        }
    }

    @Test(arguments: [1, 2]) func fillsAllOfThePlace(step: Int) {
        each { item in
            let placed = PicturePlacement(
                item.picture, pixelAspect: item.pixelAspect, into: item.place, .fill, step: step)
            #expect(placed.target == item.place)
            let source = placed.source
            #expect(holds(source, item.picture), "\(item)")
            #expect(source.width == item.picture.width || source.height == item.picture.height)
            let shape = Double(item.place.width) / Double(item.place.height) / item.pixelAspect
            let (wide, high) = (Double(source.width), Double(source.height))
            #expect(abs(wide - high * shape) <= Double(step) || abs(high - wide / shape) <= Double(step), "\(item)")
            let aligned = source.aligned(to: 2)
            #expect(aligned.x % 2 == 0 && aligned.y % 2 == 0 && holds(aligned, item.picture), "\(item)")
        }
    }

    @Test func stretchesAllOfThePictureOverAllOfThePlace() {
        each { item in
            let placed = PicturePlacement(item.picture, pixelAspect: item.pixelAspect, into: item.place, .stretch)
            #expect(placed.source == item.picture && placed.target == item.place)
        }
    }

    @Test func placesNothingIntoNothing() {
        let (picture, nothing) = (Rectangle(width: 4, height: 2), Rectangle(width: 0, height: 0))
        for fit in Fit.allCases {
            #expect(PicturePlacement(picture, pixelAspect: 1, into: nothing, fit).target.isEmpty)
            #expect(PicturePlacement(nothing, pixelAspect: 1, into: picture, fit).source.isEmpty)
        }
    }

    @Test func takesNearlyEqualShapesForEqualWhereItIsAsked() {
        let (picture, place) = (Rectangle(width: 648, height: 480), Rectangle(width: 640, height: 480))
        #expect(PicturePlacement(picture, pixelAspect: 1, into: place, .contain, tolerance: 0.02).target == place)
        #expect(PicturePlacement(picture, pixelAspect: 1, into: place, .contain).target.height == 474)
    }
}
