// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import CropOrient

/// One component of a picture in floating point, turned and scaled by the definitions, a sample at a time.
private struct SlowPlane: Equatable {
    var width: Int
    var height: Int
    var samples: [Double]

    init(width: Int, height: Int, _ sample: (Int, Int) -> Double) {
        self.width = width
        self.height = height
        samples = (0..<height).flatMap { y in (0..<width).map { x in sample(x, y) } }
    }

    subscript(x: Int, y: Int) -> Double { samples[y * width + x] }

    func part(x: Int, y: Int, width: Int, height: Int) -> SlowPlane {
        SlowPlane(width: width, height: height) { self[x + $0, y + $1] }
    }

    /// Mirrored left to right if so, then turned clockwise.
    func turned(_ orientation: Orientation) -> SlowPlane {
        var result =
            orientation.isMirrored ? SlowPlane(width: width, height: height) { self[width - 1 - $0, $1] } : self
        for _ in 0..<orientation.quarterTurns {
            let before = result
            result = SlowPlane(width: before.height, height: before.width) { before[$1, before.height - 1 - $0] }
        }
        return result
    }

    /// Bilinear, centres to centres.
    func scaled(width: Int, height: Int) -> SlowPlane {
        func place(_ index: Int, _ count: Int, _ among: Int) -> (Int, Int, Double) {
            let position = min(max((Double(index) + 0.5) * Double(among) / Double(count) - 0.5, 0), Double(among - 1))
            let first = Int(position)
            return (first, min(first + 1, among - 1), position - Double(first))
        }
        return SlowPlane(width: width, height: height) { x, y in
            let (left, right, across) = place(x, width, self.width)
            let (top, bottom, down) = place(y, height, self.height)
            return (self[left, top] * (1 - across) + self[right, top] * across) * (1 - down)
                + (self[left, bottom] * (1 - across) + self[right, bottom] * across) * down
        }
    }
}

/// The whole stage against a slow reference, at sizes where every kind of edge and remainder occurs.
@Suite struct CropOrientReferenceTests {
    private static let smallSizes = (1...7).flatMap { width in (1...5).map { (width, $0) } }
    private static let sizes = [(97, 55), (33, 17), (16, 16), (65, 2), (2, 97), (64, 48)]
    private static let results = [
        #"{ "size": "1x1", "fit": "stretch" }"#, ##"{ "size": "5x4", "fit": "contain", "color": "#ffffff" }"##,
        #"{ "size": "5x4", "fit": "fill" }"#, ##"{ "aspect": "1:1", "fit": "contain", "color": "#ffffff" }"##,
    ]
    private static let moreResults = [
        #"{ "size": "13x31", "fit": "stretch" }"#, #"{ "size": "97x54", "fit": "fill" }"#,
        #"{ "aspect": "9:16", "fit": "stretch" }"#,
        #"{ "aspect": "9:16", "fit": "fill" }"#, ##"{ "size": "97x54", "fit": "contain", "color": "#ffffff" }"##,
    ]

    @Test(arguments: [PixelFormat.i420, .nv12, .bgra], Orientation.allCases)
    func isWhatTheDefinitionsSay(pixels: PixelFormat, orientation: Orientation) throws {
        func format(_ size: (Int, Int)) -> VideoFormat {
            VideoFormat(pixels, width: size.0, height: size.1, orientation: orientation)
        }
        for (index, size) in Self.smallSizes.enumerated() {
            // All of them over the eight orientations.
            for result in ["{}", Self.results[(index + Int(orientation.rawValue)) % Self.results.count]] {
                try check(format(size), result)
            }
        }
        for size in Self.sizes {
            for result in ["{}"] + Self.results + Self.moreResults { try check(format(size), result) }
        }
    }

    private func check(_ format: VideoFormat, _ text: String) throws {
        let driver = try StageDriver(CropOrient.self, options: text, input: .video(format))
        let output = try #require(driver.outputFormat?.video)
        let geometry = try Geometry(driver.stage.options, of: format)
        let frame = try driver.makeFrame { noise(&$0) }
        let input = frame.planeBytes
        try driver.send(frame)
        let planes = try driver.nextFrame().planeBytes
        for plane in planes.indices {
            let unit = format.pixelFormat == .bgra ? 4 : format.pixelFormat == .nv12 && plane == 1 ? 2 : 1
            for component in 0..<unit {
                let source = samples(input[plane], component, unit, format, plane)
                let ours = samples(planes[plane], component, unit, output, plane)
                let (expected, tolerance) = reference(source, geometry, output, plane, component)
                let worst = zip(ours.samples, expected.samples).reduce(0.0) { max($0, abs($1.0 - $1.1)) }
                if ours.samples.count != expected.samples.count || worst > tolerance {
                    Issue.record("\(format) \(text), plane \(plane): \(worst) away, \(tolerance) allowed")
                }
            }
        }
    }

    private func samples(_ bytes: [UInt8], _ component: Int, _ unit: Int, _ format: VideoFormat, _ plane: Int)
        -> SlowPlane
    {
        let width = format.pixelFormat.rowBytes(plane: plane, width: format.width) / unit
        return SlowPlane(width: width, height: format.pixelFormat.rows(plane: plane, height: format.height)) {
            Double(bytes[($1 * width + $0) * unit + component])
        }
    }

    /// What a component should be, and how far off it may be: weights in steps of 1/128 and two roundings in each step
    /// of scaling.
    private func reference(
        _ source: SlowPlane, _ geometry: Geometry, _ output: VideoFormat, _ plane: Int, _ component: Int
    ) -> (SlowPlane, Double) {
        let shift = plane > 0 ? 1 : 0
        func half(_ value: Int) -> Int { (value + shift) >> shift }
        let from = geometry.source
        var picture = source.part(
            x: from.x >> shift, y: from.y >> shift, width: half(from.width), height: half(from.height))
        let to = geometry.target
        let isSideways = geometry.orientation.quarterTurns % 2 == 1
        let (width, height) = isSideways ? (to.height, to.width) : (to.width, to.height)
        var (stepWidth, stepHeight) = (from.width, from.height)
        var tolerance = 0.0
        while (stepWidth, stepHeight) != (width, height) {
            // To less than half in halves.
            stepWidth = stepWidth > 2 * width ? (stepWidth + 1) / 2 : width
            stepHeight = stepHeight > 2 * height ? (stepHeight + 1) / 2 : height
            picture = picture.scaled(width: half(stepWidth), height: half(stepHeight))
            tolerance += 2.5
        }
        picture = picture.turned(geometry.orientation)
        let bars = plane > 0 ? 128.0 : output.pixelFormat == .bgra ? 255 : 235
        let whole = SlowPlane(width: half(output.width), height: half(output.height)) { x, y in
            let (x, y) = (x - (to.x >> shift), y - (to.y >> shift))
            return (0..<picture.width).contains(x) && (0..<picture.height).contains(y) ? picture[x, y] : bars
        }
        return (whole, tolerance)
    }
}

/// Pixels that tell every place apart.
func noise(_ frame: inout Frame) {
    var state: UInt32 = 12345
    for plane in 0..<frame.planeCount {
        frame.withMutablePlane(plane) { memory in
            for y in 0..<memory.height {
                let row = memory.row(y)
                for x in 0..<row.count {
                    state = state &* 1_664_525 &+ 1_013_904_223
                    row[x] = UInt8(truncatingIfNeeded: state >> 24)
                }
            }
        }
    }
}
