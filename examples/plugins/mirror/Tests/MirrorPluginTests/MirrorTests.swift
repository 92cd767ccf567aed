// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import MirrorPlugin

@Suite struct MirrorTests {
    /// One frame through the filter; gives the first row of each plane. Sample `x` of a row goes in as `x`.
    private func firstRows(_ format: PixelFormat, width: Int, options: String = "{}") throws -> [[UInt8]] {
        let video = VideoFormat(format, width: width, height: 4, frameRate: Rational(30))
        let driver = try StageDriver(Mirror.self, options: options, input: .video(video))
        try driver.send(driver.makeFrame { paint(&$0) })
        return takeRows(driver)
    }

    private func paint(_ frame: inout Frame) {
        for index in 0..<frame.planeCount {
            frame.withMutablePlane(index) { plane in
                for y in 0..<plane.height {
                    plane.withRow(y) { row in for x in row.indices { row[x] = UInt8(x) } }
                }
            }
        }
    }

    /// The first row of each plane of what came out; nothing when no frame did.
    private func takeRows(_ driver: StageDriver<Mirror>) -> [[UInt8]] {
        guard let frame = driver.takeFrame() else { return [] }
        return (0..<frame.planeCount).map { index in frame.withPlane(index) { Array($0.row(0)) } }
    }

    @Test func mirrorsEveryPlaneOfI420() throws {
        #expect(try firstRows(.i420, width: 8) == [[7, 6, 5, 4, 3, 2, 1, 0], [3, 2, 1, 0], [3, 2, 1, 0]])
    }

    @Test func keepsChromaPairsTogetherInNV12() throws {
        #expect(try firstRows(.nv12, width: 8) == [[7, 6, 5, 4, 3, 2, 1, 0], [6, 7, 4, 5, 2, 3, 0, 1]])
    }

    @Test func mirrorsOddWidths() throws {
        #expect(try firstRows(.i420, width: 5) == [[4, 3, 2, 1, 0], [2, 1, 0], [2, 1, 0]])
        #expect(try firstRows(.nv12, width: 5) == [[4, 3, 2, 1, 0], [4, 5, 2, 3, 0, 1]])
    }

    @Test func leavesColourInPlaceWhenAsked() throws {
        #expect(try firstRows(.i420, width: 4, options: #"{ "lumaOnly": true }"#) == [[3, 2, 1, 0], [0, 1], [0, 1]])
    }

    @Test func changesLumaOnlyWhileRunning() throws {
        let driver = try StageDriver(Mirror.self, input: .video(VideoFormat(.i420, width: 4, height: 2)))
        try driver.set(#"{ "lumaOnly": true }"#)
        try driver.send(driver.makeFrame { paint(&$0) })
        #expect(takeRows(driver) == [[3, 2, 1, 0], [0, 1], [0, 1]])
    }

    @Test func passesTimeAndSequenceNumberThrough() throws {
        let driver = try StageDriver(Mirror.self, input: .video(VideoFormat(.nv12, width: 4, height: 2)))
        let pts = MediaTime(nanoseconds: 123_456_789)
        _ = try driver.makeFrame()
        try driver.send(driver.makeFrame(pts: pts))
        guard let frame = driver.takeFrame() else {
            Issue.record("no frame came out")
            return
        }
        #expect(frame.pts == pts)
        #expect(frame.sequenceNumber == 1)
    }
}
