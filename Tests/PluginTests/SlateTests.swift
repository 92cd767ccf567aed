// SPDX-License-Identifier: Apache-2.0

import CTurboJPEG
import Foundation
import FrameCore
import Testing

@testable import FileSource
@testable import LiveInput
@testable import V4L2Source

/// What `v4l2-source` and `network-source` show in the place of their pictures.
@Suite struct SlateTests {
    private let clock = ManualClock(at: 50_000_000_000)

    /// The first picture of a camera that is not there.
    private func slate(_ options: String) throws -> Frame {
        let camera = ScriptedCamera()
        camera.nodes = []
        camera.clock = clock
        let driver = try DeviceCallsInUse.$current.withValue(camera) {
            try StageDriver(
                V4L2Source.self, options: #"{ "ifMissing": "wait", "rate": 25, \#(options) }"#, clock: clock)
        }
        for _ in 0..<100 {
            if let frame = driver.takeFrame() { return frame }
            _ = try driver.produce()
        }
        throw FrameHostError(.broken, what: "no frame came")
    }

    private func fault(_ options: String) -> String {
        do {
            _ = try slate(options)
            return ""
        } catch { return FrameHostError.wrap(error).description }
    }

    @Test func showsAPictureByItsAlphaUndistorted() throws {
        // Half of it is green, half lets the colour through.
        let png = TestPNG(width: 2, height: 1) { x, _ in x == 0 ? (0, 255, 0, 255) : (0, 0, 255, 0) }
        let path = try png.write()
        defer { try? FileManager.default.removeItem(atPath: path) }
        let frame = try slate(##""size": "64x64", "slateColor": "#ff0000", "slatePicture": "\##(path)""##)
        let isSubstitute = frame.isSubstitute
        #expect(isSubstitute)
        // BT.601: green 145, red 81.
        frame.withPlane(0) { plane in
            for y in 0..<64 {
                let isPicture = (16..<48).contains(y)
                #expect(plane.row(y)[0..<32].allSatisfy { $0 == (isPicture ? 145 : 81) }, "row \(y)")
                #expect(plane.row(y)[32..<64].allSatisfy { $0 == 81 }, "row \(y)")
            }
        }
        frame.withPlane(2) { plane in
            #expect(plane.row(16)[0] == 34 && plane.row(16)[31] == 240 && plane.row(0)[0] == 240)
        }
    }

    @Test func readsJPEGToo() throws {
        let handle = tjInitCompress()
        defer { tjDestroy(handle) }
        let pixels = [UInt8](repeating: 200, count: 16 * 16 * 3)
        var bytes: UnsafeMutablePointer<UInt8>?
        var count: UInt = 0
        tjCompress2(
            handle, pixels, 16, 0, 16, Int32(TJPF_RGB.rawValue), &bytes, &count, Int32(TJSAMP_444.rawValue), 95, 0)
        defer { tjFree(bytes) }
        let folder = try ScratchFolder()
        let data = Data(UnsafeBufferPointer(start: bytes, count: Int(count)))
        try data.write(to: URL(fileURLWithPath: folder.file("slate.jpg")))
        let frame = try slate(#""size": "32x32", "slatePicture": "\#(folder.file("slate.jpg"))""#)
        frame.withPlane(0) { plane in
            #expect((0..<32).allSatisfy { plane.row($0).allSatisfy { (186...190).contains($0) } })
        }
        try data.prefix(data.count / 2).write(to: URL(fileURLWithPath: folder.file("half.jpg")))
        #expect(
            fault(#""size": "32x32", "slatePicture": "\#(folder.file("half.jpg"))""#).contains(
                "half.jpg cannot be read as JPEG: "))
    }

    @Test(arguments: ["Back soon", "Back\\nsoon", "A line that is much too long for letters of a usual size"])
    func writesWordsInTheMiddle(text: String) throws {
        let frame = try slate(##""size": "320x180", "slateColor": "#000000", "slateText": "\##(text)""##)
        var (bright, left, right) = (0, 320, 0)
        frame.withPlane(0) { plane in
            for y in 0..<180 {
                for x in 0..<320 where plane.row(y)[x] > 120 {
                    bright += 1
                    (left, right) = (min(left, x), max(right, x))
                }
            }
        }
        #expect(bright > 150)
        #expect(left >= 10 && right <= 310 && abs(left - (319 - right)) <= 6, "\(left) to \(right)")
    }

    @Test func refusesAPictureThatCannotBeRead() throws {
        let folder = try ScratchFolder()
        let path = folder.file("slate.txt")
        try Data("no picture".utf8).write(to: URL(fileURLWithPath: path))
        let text = fault(#""slatePicture": "\#(path)""#)
        #expect(text.hasPrefix("slatePicture: \(path) cannot be read as PNG: "), "\(text)")
        #expect(text.hasSuffix("Name a PNG or JPEG file."))
        #expect(fault(#""slatePicture": "/nowhere/at-all.jpg""#).hasPrefix("slatePicture: /nowhere/at-all.jpg "))
    }

    /// In each format that a stream may be planned for, and of the pixels that share a sample the mean.
    @Test(arguments: PixelFormat.allCases) func isDrawnInAnyFormat(pixels: PixelFormat) throws {
        let format = VideoFormat(
            pixels, width: 64, height: 36,
            color: ColorDescription(
                range: pixels.isRGB ? .full : .video, matrix: 6, primaries: 1, transfer: 13, chromaSiting: 1))
        let plain = try Slate(color: RGBColor(red: 0, green: 0, blue: 255)).drawn(for: format)
        let written = try Slate(color: RGBColor(red: 0, green: 0, blue: 255), text: "x").drawn(for: format)
        for plane in 0..<plain.picture.planeCount {
            let (one, other) = (plain.picture[plane], written.picture[plane])
            #expect(memcmp(one.base, other.base, one.rowBytes) == 0, "the first row has no letter")
            let middle = other.rows / 2
            let differs = (middle - 2...middle + 2).contains { row in
                memcmp(one.base + row * one.strideBytes, other.base + row * other.strideBytes, one.rowBytes) != 0
            }
            #expect(differs, "plane \(plane)")
        }
    }

    @Test func networkSourceHasItToo() throws {
        let driver = try StageDriver(
            NetworkSource.self,
            options:
                ##"{ "url": "rtsp://127.0.0.1:9/none", "ifMissing": "wait", "size": "320x180", "whileLost": "slate", "slateColor": "#000000", "slateText": "Off air" }"##,
            clock: ChainClock())
        var bright = 0
        for _ in 0..<200 where bright == 0 {
            _ = try driver.produce()
            guard let frame = driver.takeFrame() else { continue }
            frame.withPlane(0) { plane in
                for y in 60..<120 { bright += plane.row(y).count { $0 > 150 } }
            }
        }
        #expect(bright > 100)
        try driver.stop()
    }
}
