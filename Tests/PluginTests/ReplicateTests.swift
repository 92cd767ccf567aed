// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Replicate

/// A picture that is a function of the place, so that every transform of it is known without sampling: y, u and v at
/// (x, y) of the picture's own pixels.
private func smooth(_ x: Double, _ y: Double) -> [Double] {
    [120 + 60 * sin(x / 17) + 40 * cos(y / 23), 128 + 70 * cos(x / 41), 128 + 60 * sin(y / 37 + x / 90)]
}

/// A place of the output for one copy: what it shows there, computed step by step from the words of the manual.
private struct SlowCopy {
    var cell: (x: Double, y: Double, width: Double, height: Double)
    var own = (x: 0.0, y: 0.0, scale: 1.0, degrees: 0.0, mirror: false)
    var step = (x: 0.0, y: 0.0, scale: 1.0, degrees: 0.0)
    var index = 0

    /// Where (x, y) of the output lies in a picture of this size.
    func source(_ x: Double, _ y: Double, _ size: (Double, Double)) -> (Double, Double) {
        // Seen from the middle of the cell; then each step undone, then the copy's own change.
        var (px, py) = (x - cell.x - cell.width / 2, y - cell.y - cell.height / 2)
        func undo(_ dx: Double, _ dy: Double, _ scale: Double, _ degrees: Double) {
            (px, py) = (px - dx, py - dy)
            let angle = -degrees * .pi / 180
            (px, py) = (px * cos(angle) - py * sin(angle), px * sin(angle) + py * cos(angle))
            (px, py) = (px / scale, py / scale)
        }
        for _ in 0..<index { undo(step.x, step.y, step.scale, step.degrees) }
        let fit = min(cell.width / size.0, cell.height / size.1)
        undo(own.x, own.y, own.scale * fit, own.degrees)
        if own.mirror { px = -px }
        return (px + size.0 / 2, py + size.1 / 2)
    }
}

@Suite struct ReplicateTests {
    private func driver(_ options: String, _ format: VideoFormat) throws -> StageDriver<Replicate> {
        try StageDriver(Replicate.self, options: options, input: .video(format))
    }

    /// Fills a frame, component by component, from a value for each sample's place.
    private func fill(_ frame: inout Frame, _ value: (_ component: Int, _ x: Int, _ y: Int) -> Double) {
        let isPair = frame.format.pixelFormat == .nv12
        for plane in 0..<frame.planeCount {
            frame.withMutablePlane(plane) { target in
                for y in 0..<target.height {
                    let row = target.row(y)
                    for index in row.indices {
                        let component = isPair && plane == 1 ? 1 + index % 2 : plane
                        row[index] = UInt8(
                            min(max(value(component, isPair && plane == 1 ? index / 2 : index, y).rounded(), 0), 255))
                    }
                }
            }
        }
    }

    private func fillSmooth(_ frame: inout Frame) {
        fill(&frame) { component, x, y in
            let step = component == 0 ? 1.0 : 2
            return smooth((Double(x) + 0.5) * step, (Double(y) + 0.5) * step)[component]
        }
    }

    /// Which copy lies on top at (x, y) of the output, -1 for none, and what place of the picture it shows there.
    private static func top(of copies: [SlowCopy], _ x: Double, _ y: Double) -> (copy: Int, u: Double, v: Double) {
        var top = (copy: -1, u: 0.0, v: 0.0)
        for (number, copy) in copies.enumerated() {
            let (u, v) = copy.source(x, y, (320, 180))
            if u >= 0, u < 320, v >= 0, v < 180 { top = (number, u, v) }
        }
        return top
    }

    private static let wide = (x: 0.0, y: 0.0, width: 320.0, height: 180.0)

    fileprivate static var placements: [(String, [SlowCopy])] {
        let cells = (0..<4).map { SlowCopy(cell: (Double($0 % 2) * 160, Double($0 / 2) * 90, 160, 90)) }
        var turned = SlowCopy(cell: wide)
        turned.own = (30, -18, 0.5, 30, false)
        var mirrored = SlowCopy(cell: wide)
        mirrored.own = (-40.5, 10.25, 1.3, -75, true)
        let spiral = (0..<5).map { index in
            var copy = SlowCopy(cell: wide)
            copy.own = (0, -54, 0.35, 0, false)
            copy.step = (10, 0, 0.9, 40)
            copy.index = index
            return copy
        }
        let moved = (0..<3).map { index in
            var copy = SlowCopy(cell: wide)
            copy.step = (20, 12, 1, 0)
            copy.index = index
            return copy
        }
        return [
            (#"{ "grid": "2x2" }"#, cells),
            (#"{ "grid": "1x1", "first": { "x": 30, "y": "-10%", "scale": 0.5, "rotate": 30 } }"#, [turned]),
            (
                #"{ "grid": "1x1", "first": { "x": -40.5, "y": 10.25, "scale": 1.3, "rotate": -75, "mirror": true } }"#,
                [mirrored]
            ),
            (
                #"{ "grid": "1x1", "copies": 5, "first": { "y": "-30%", "scale": 0.35 }, "step": { "x": 10, "rotate": 40, "scale": 0.9 } }"#,
                spiral
            ),
            (#"{ "grid": "1x1", "copies": 3, "step": { "x": 20, "y": 12 } }"#, moved),
        ]
    }

    /// Y, U and V of what comes out.
    private func components(_ options: String, _ format: PixelFormat) throws -> [[UInt8]] {
        let driver = try driver(
            options, VideoFormat(format, width: 320, height: 180, color: ColorDescription(matrix: 1)))
        try driver.send(driver.makeFrame { fillSmooth(&$0) })
        let planes = try driver.nextFrame().planeBytes
        guard format == .nv12 else { return planes }
        return [planes[0]]
            + (0..<2).map { component in
                planes[1].enumerated().filter { $0.offset % 2 == component }.map(\.element)
            }
    }

    @Test(arguments: 0..<5) func makesTheSameOfBothFormats(index: Int) throws {
        let (planar, interleaved) = try (
            components(Self.placements[index].0, .i420), components(Self.placements[index].0, .nv12)
        )
        for component in 0..<3 {
            // libyuv halves interleaved chroma by another filter where a side is odd.
            let most = zip(planar[component], interleaved[component]).map { abs(Int($0) - Int($1)) }.max()!
            #expect(most <= (component == 0 ? 0 : 4), "\(most)")
        }
    }

    @Test(arguments: 0..<5) func placesCopiesAsASlowComputationDoes(index: Int) throws {
        let (options, copies) = Self.placements[index]
        let planes = try components(options, .i420)
        var edges: [Double] = []
        for component in 0..<3 {
            let step = component == 0 ? 1 : 2
            // Each third row: the computation takes its time.
            for y in stride(from: component, to: 180 / step, by: 3) {
                for x in 0..<320 / step {
                    // The mean over 4x4 places of the sample; which copies they see.
                    var (sum, seen) = (0.0, Set<Int>())
                    for part in 0..<16 {
                        let px = (Double(x) + (Double(part % 4) + 0.5) / 4) * Double(step)
                        let py = (Double(y) + (Double(part / 4) + 0.5) / 4) * Double(step)
                        let (top, u, v) = Self.top(of: copies, px, py)
                        sum += (top < 0 ? (component == 0 ? 16 : 128) : smooth(u, v)[component]) / 16
                        seen.insert(top)
                    }
                    // What has another copy, or none, within a sample around it counts as an edge.
                    for around in 0..<9 {
                        let px = (Double(x + around % 3) - 0.5) * Double(step)
                        let py = (Double(y + around / 3) - 0.5) * Double(step)
                        seen.insert(Self.top(of: copies, px, py).copy)
                    }
                    let got = planes[component][y * (320 / step) + x]
                    let error = abs(Double(got) - sum)
                    if seen.count == 1 {
                        #expect(error <= 3, "component \(component) at \(x),\(y): \(got), not \(sum)")
                    } else {
                        edges.append(error)
                    }
                }
            }
        }
        // Along edges coverage is estimated: right on average, and never far off.
        if !edges.isEmpty {
            #expect(edges.reduce(0, +) / Double(edges.count) < 8 && edges.max()! < 110, "\(edges.max()!)")
        }
    }

    /// Noise shows every wrong place and weight: what lies well inside the copy is the bilinear mean of the four
    /// samples around, by doubles.
    @Test(arguments: [
        (0.8, 30.0, 3.25, -7.5, false), (1, 0, 0.5, 0.25, false), (1.7, -200, 40, 12.5, true), (0.6, 0, 0, 0, true),
        (0.97, 90, -1.3, 0, false),
    ])
    func interpolatesNoiseAsDoublesDo(scale: Double, degrees: Double, x: Double, y: Double, mirror: Bool) throws {
        let (width, height) = (640, 362)
        var copy = SlowCopy(cell: (0, 0, Double(width), Double(height)))
        copy.own = (x, y, scale, degrees, mirror)
        let change = #""x": \#(x), "y": \#(y), "scale": \#(scale), "rotate": \#(degrees), "mirror": \#(mirror)"#
        let driver = try driver(
            "{ \"grid\": \"1x1\", \"first\": { \(change) } }", VideoFormat(.i420, width: width, height: height))
        var before: [[UInt8]] = []
        try driver.send(
            driver.makeFrame {
                TextTests.fill(&$0)
                before = $0.planeBytes
            })
        let after = try driver.nextFrame().planeBytes
        var (worst, count) = (0.0, 0)
        for component in 0..<3 {
            let side = component == 0 ? 1 : 2
            let (columns, rows) = (width / side, height / side)
            for row in 0..<rows {
                for column in 0..<columns {
                    let (px, py) = ((Double(column) + 0.5) * Double(side), (Double(row) + 0.5) * Double(side))
                    let (u, v) = copy.source(px, py, (Double(width), Double(height)))
                    let (atX, atY) = (u / Double(side) - 0.5, v / Double(side) - 0.5)
                    guard atX >= 2, atY >= 2, atX < Double(columns - 3), atY < Double(rows - 3) else { continue }
                    let (left, top) = (Int(atX), Int(atY))
                    let (fx, fy) = (atX - Double(left), atY - Double(top))
                    func at(_ x: Int, _ y: Int) -> Double { Double(before[component][(top + y) * columns + left + x]) }
                    let wanted =
                        (at(0, 0) * (1 - fx) + at(1, 0) * fx) * (1 - fy) + (at(0, 1) * (1 - fx) + at(1, 1) * fx) * fy
                    worst = max(worst, abs(Double(after[component][row * columns + column]) - wanted))
                    count += 1
                }
            }
        }
        #expect(worst <= 2, "\(worst)")
        #expect(count > width * height / 4)
    }

    @Test(arguments: [PixelFormat.i420, .nv12], [(320, 180), (61, 37), (2, 3), (1, 1)])
    func leavesASingleWholeCopyAlone(format: PixelFormat, size: (Int, Int)) throws {
        let driver = try driver(#"{ "grid": "1x1" }"#, VideoFormat(format, width: size.0, height: size.1))
        var before: [[UInt8]] = []
        try driver.send(
            driver.makeFrame {
                TextTests.fill(&$0)
                before = $0.planeBytes
            })
        #expect(try driver.nextFrame().planeBytes == before)
    }

    @Test(arguments: [(17, 9), (64, 1), (1, 50), (3, 3)]) func takesOddSizes(width: Int, height: Int) throws {
        let options =
            ##"{ "grid": "3x2", "size": "31x23", "first": { "rotate": 33, "hue": 20, "tint": "#80ff20", "opacity": 0.5 } }"##
        let driver = try driver(options, VideoFormat(.i420, width: width, height: height))
        try driver.send(driver.makeFrame { TextTests.fill(&$0) })
        let frame = try driver.nextFrame()
        #expect((frame.format.width, frame.format.height) == (31, 23))
        #expect(Set(frame.planeBytes[0]).count > 1)
    }

    @Test func showsEachCopyAtItsTime() throws {
        let driver = try driver(
            #"{ "grid": "4x4", "step": { "delay": 1 } }"#, VideoFormat(.i420, width: 320, height: 180))
        #expect(driver.stage.demand.hold == 15)
        for frame in 0..<40 {
            try driver.send(driver.makeFrame { TextTests.fill(&$0, value: UInt8(20 + frame * 4)) })
            let result = try driver.nextFrame()
            #expect(result.sequenceNumber == UInt64(frame))
            #expect(driver.keptBuffers == min(frame + 1, 15))
            let luma = result.planeBytes[0]
            for copy in 0..<16 {
                let middle = (copy / 4 * 45 + 22) * 320 + copy % 4 * 80 + 40
                #expect(Int(luma[middle]) == 20 + max(frame - copy, 0) * 4, "copy \(copy) of frame \(frame)")
            }
        }
        try driver.stop()
        #expect(driver.keptBuffers == 0)
    }

    @Test func showsWholePicturesOfEarlierFrames() throws {
        let options = #"{ "grid": "1x1", "copies": 2, "first": { "opacity": 1 }, "step": { "delay": 3, "x": 40 } }"#
        let driver = try driver(options, VideoFormat(.i420, width: 64, height: 48))
        for frame in 0..<6 {
            try driver.send(driver.makeFrame { TextTests.fill(&$0, value: UInt8(100 + frame)) })
            let luma = try driver.nextFrame().planeBytes[0]
            #expect(luma[10] == UInt8(100 + frame) && luma[50] == UInt8(100 + max(frame - 3, 0)))
        }
    }

    /// A change, what it multiplies red, green and blue by, and how far it turns hues.
    fileprivate struct Change: CustomTestStringConvertible {
        var options: String
        var factors: [Double]
        var degrees = 0.0
        var testDescription: String { options }

        static let all = [
            Change(options: #""gain": 0.5"#, factors: [0.5, 0.5, 0.5]),
            Change(options: ##""tint": "#ff8040""##, factors: [1.0, 0.50196, 0.25098]),
            Change(options: #""hue": 120"#, factors: [1.0, 1.0, 1.0], degrees: 120),
            Change(
                options: ##""gain": 0.8, "tint": "#80ff80", "hue": -30"##, factors: [0.40157, 0.8, 0.40157],
                degrees: -30),
        ]
    }

    @Test(arguments: Change.all) fileprivate func changesColoursAsAFloatComputationDoes(change: Change) throws {
        let (factors, degrees) = (change.factors, change.degrees)
        let matrices: [(UInt8, Double, Double, ColorRange)] = [(1, 0.2126, 0.0722, .video), (6, 0.299, 0.114, .full)]
        for (matrix, kr, kb, range) in matrices {
            for rgb in [[0.7, 0.3, 0.2], [0.2, 0.6, 0.4], [0.5, 0.5, 0.5], [0, 0, 0.8]] {
                let format = VideoFormat(
                    .i420, width: 64, height: 48, color: ColorDescription(range: range, matrix: matrix))
                let isVideo = range == .video
                let driver = try driver("{ \"grid\": \"1x1\", \"first\": { \(change.options) } }", format)
                let before = TextTests.yuv(rgb[0], rgb[1], rgb[2], kr: kr, kb: kb, isVideo: isVideo)
                try driver.send(driver.makeFrame { fill(&$0) { component, _, _ in before[component] } })
                var wanted = TextTests.yuv(
                    rgb[0] * factors[0], rgb[1] * factors[1], rgb[2] * factors[2], kr: kr, kb: kb, isVideo: isVideo)
                let (u, v, angle) = (wanted[1] - 128, wanted[2] - 128, degrees * .pi / 180)
                wanted[1] = 128 + u * cos(angle) - v * sin(angle)
                wanted[2] = 128 + u * sin(angle) + v * cos(angle)
                let planes = try driver.nextFrame().planeBytes
                for component in 0..<3 {
                    let got = Set(planes[component])
                    #expect(got.count == 1)
                    #expect(
                        abs(Double(got.first!) - min(max(wanted[component], 0), 255)) <= 2,
                        "\(rgb) \(component): \(got), \(wanted)")
                }
            }
        }
    }

    @Test func addsFromCopyToCopy() throws {
        // Grey 200: opacity halves from copy to copy over black, gain likewise.
        let options =
            #"{ "grid": "4x1", "first": { "scale": 4 }, "step": { "gain": 0.5, "opacity": 0.5 }, "each": [{}, {}, { "gain": 2 }] }"#
        let driver = try driver(
            options, VideoFormat(.i420, width: 64, height: 64, color: ColorDescription(range: .full, matrix: 6)))
        try driver.send(driver.makeFrame { fill(&$0) { component, _, _ in component == 0 ? 100 : 128 } })
        let luma = try driver.nextFrame().planeBytes[0]
        // Each copy is as wide as the picture and lies about the middle of its cell: see what lies over each other at
        // the far right.
        var wanted = 0.0
        for (gain, opacity, middle) in [(1.0, 1.0, 8.0), (0.5, 0.5, 24), (0.5, 0.25, 40), (0.125, 0.125, 56)]
        where abs(60.5 - middle) < 32 {
            wanted = wanted * (1 - opacity) + 100 * gain * opacity
        }
        #expect(abs(Double(luma[32 * 64 + 60]) - wanted) <= 2, "\(luma[32 * 64 + 60]), \(wanted)")
    }

    @Test func changesWhileRunning() throws {
        let driver = try driver(
            #"{ "grid": "2x2", "step": { "delay": 2 } }"#, VideoFormat(.i420, width: 64, height: 48))
        func send(_ value: UInt8) throws -> [UInt8] {
            try driver.send(driver.makeFrame { TextTests.fill(&$0, value: value) })
            return try driver.nextFrame().planeBytes[0]
        }
        for value in 0..<10 { _ = try send(100 + UInt8(value)) }
        // A level not there before is made of what is held.
        try driver.set(##"{ "first": { "scale": 0.2 }, "background": "#ffffff" }"##)
        let luma = try send(110)
        #expect(luma[0] == 235 && luma[12 * 64 + 16] == 110 && luma[36 * 64 + 48] == 104)
        let error = #expect(throws: FrameHostError.self) { try driver.set(#"{ "step": { "delay": 3 } }"#) }
        #expect(
            error?.description
                == "a copy would be 9 frames late, but the longest delay at the start was 6 frames, and a running chain cannot exceed it. Lower 'delay' in 'first', 'step' or 'each', or set the longer delay in the chain file and restart the chain."
        )
        #expect(try send(120)[12 * 64 + 16] == 120)
    }

    @Test(arguments: [
        (#"{ "first": { "scael": 2 } }"#, "first", "scael: no such key. Did you mean 'scale'?"),
        (#"{ "first": { "scale": 20 } }"#, "first", "scale: 20 must be from 0.01 to 16. Use 16 or less."),
        (
            #"{ "each": [{ "tint": "red" }] }"#, "each",
            ##"value 1 of the list: tint: "red" must be a colour in the form "#rrggbb". Write two hex digits each for red, green and blue, such as "#20a0ff"."##
        ),
        (
            #"{ "grid": "9x9" }"#, "grid",
            #""9x9" must be a grid of 1 to 64 cells. Write columns and rows, such as "4x4", or leave the key out for "2x2"."#
        ),
        (
            #"{ "step": { "delay": 300 } }"#, "step",
            "a copy would be 900 frames late, but a delay must be at most 600 frames. Lower 'delay' in 'first', 'step' or 'each', or set fewer 'copies' in the chain file."
        ),
        (
            #"{ "copies": 1, "each": [{}, {}] }"#, "each",
            "'each' has 2 entries, but there is 1 copy. Remove 1 entry from 'each', or set 'copies' to 2 in the chain file."
        ),
    ])
    func saysWhatIsWrong(options: String, key: String, text: String) {
        let errors = #expect(throws: FrameHostErrors.self) {
            _ = try driver(options, VideoFormat(.i420, width: 64, height: 48))
        }
        #expect(errors?.errors.count == 1)
        #expect(errors?.description.hasSuffix(": \(key): \(text)") == true, "\(errors?.description ?? "")")
    }
}
