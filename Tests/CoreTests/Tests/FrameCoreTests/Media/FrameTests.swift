// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct FrameTests {
    private static let sizes = [(1, 1), (2, 2), (3, 5), (16, 16), (64, 3), (65, 33), (641, 359)]

    @Test(arguments: PixelFormat.allCases)
    func laysPlanesBesideEachOtherAtEverySize(pixelFormat: PixelFormat) throws {
        for (width, height) in Self.sizes {
            let format = VideoFormat(pixelFormat, width: width, height: height)
            let test = try TestPool(2, format)
            var frame = try test.pool.lease()
            var neighbour = try test.pool.lease()
            var bytes = 0
            let planeCount = frame.planeCount
            #expect(planeCount == pixelFormat.planeCount)
            for index in 0..<planeCount {
                frame.withMutablePlane(index) { plane in
                    #expect(plane.strideBytes % 64 == 0 && plane.strideBytes >= plane.rowBytes)
                    #expect(plane.rowBytes == pixelFormat.rowBytes(plane: index, width: width))
                    #expect(plane.height == pixelFormat.rows(plane: index, height: height))
                    bytes += plane.strideBytes * plane.height
                    for y in 0..<plane.height { plane.row(y).update(repeating: UInt8(index + 1)) }
                }
                neighbour.withMutablePlane(index) { plane in
                    for y in 0..<plane.height { plane.row(y).update(repeating: UInt8(index + 101)) }
                }
            }
            #expect(bytes == format.bufferBytes)
            // What was written last has not run into what was written first.
            for index in 0..<planeCount {
                let isWhole = frame.withPlane(index) { plane in
                    (0..<plane.height).allSatisfy { plane.row($0).allSatisfy { $0 == UInt8(index + 1) } }
                }
                #expect(isWhole, "\(format), plane \(index)")
            }
        }
    }

    @Test func givesRowsAsSpans() throws {
        let test = try TestPool(1, VideoFormat(.gray8, width: 5, height: 3))
        var frame = try test.pool.lease()
        frame.withMutablePlane(0) {
            $0.withRow(2) { (row: inout MutableSpan<UInt8>) in for x in row.indices { row[x] = UInt8(x) } }
        }
        let sum = frame.withPlane(0) {
            $0.withRow(2) { (row: Span<UInt8>) in row.indices.reduce(0) { $0 + Int(row[$1]) } }
        }
        #expect(sum == 10)
    }

    @Test func beginsWithAFreshHeaderAndTheFormatsOrientation() throws {
        let test = try TestPool(1, VideoFormat(.gray8, width: 4, height: 4, orientation: .right))
        do {
            let frame = try test.pool.lease()
            frame.pts = MediaTime(nanoseconds: 7)
            frame.sequenceNumber = 8
            frame.orientation = .down
            frame.isDiscontinuity = true
            frame.isKeyframe = true
            frame.isSubstitute = true
            frame.isMirroredInPreviews = true
        }
        let frame = try test.pool.lease()
        let (pts, sequence, orientation, isDiscontinuity) = (
            frame.pts, frame.sequenceNumber, frame.orientation, frame.isDiscontinuity
        )
        #expect(pts == .zero && sequence == 0 && orientation == .right && !isDiscontinuity)
        let (isSubstitute, isMirrored) = (frame.isSubstitute, frame.isMirroredInPreviews)
        let isKeyframe = frame.isKeyframe
        #expect(!isSubstitute && !isMirrored && !isKeyframe)
    }

    @Test func sharesHeaderAndPixels() throws {
        let test = try TestPool(1)
        var frame = try test.pool.lease()
        frame.withMutablePlane(0) { $0.row(1)[2] = 99 }
        frame.pts = MediaTime(nanoseconds: 1)
        frame.duration = MediaTime(nanoseconds: 2)
        frame.capturedAt = 3
        frame.sequenceNumber = 4
        frame.orientation = .leftMirrored
        frame.isDiscontinuity = true
        frame.isKeyframe = true
        frame.isSubstitute = true
        frame.isMirroredInPreviews = true
        let other = frame.share()
        frame.pts = MediaTime(nanoseconds: 1000)
        let header = [other.pts.nanoseconds, other.duration.nanoseconds, other.capturedAt, Int64(other.sequenceNumber)]
        #expect(header == [1, 2, 3, 4], "and the header is its own from then on")
        let (orientation, isDiscontinuity) = (other.orientation, other.isDiscontinuity)
        #expect(orientation == .leftMirrored && isDiscontinuity)
        let (isSubstitute, isMirrored) = (other.isSubstitute, other.isMirroredInPreviews)
        let isKeyframe = other.isKeyframe
        #expect(isSubstitute && isMirrored && isKeyframe)
        let pixel = other.withPlane(0) { $0.row(1)[2] }
        #expect(pixel == 99)
    }

    @Test func copiesPropertiesWithoutPixels() throws {
        let test = try TestPool(2)
        var frame = try test.pool.lease()
        frame.withMutablePlane(0) { $0.row(0)[0] = 1 }
        frame.pts = MediaTime(nanoseconds: 5)
        frame.isMirroredInPreviews = true
        var other = try test.pool.lease()
        other.withMutablePlane(0) { $0.row(0)[0] = 2 }
        other.copyProperties(from: frame)
        let (pts, pixel) = (other.pts.nanoseconds, other.withPlane(0) { $0.row(0)[0] })
        #expect(pts == 5 && pixel == 2)
        let isMirrored = other.isMirroredInPreviews
        #expect(isMirrored)
        other.copyPixels(from: frame)
        let copied = other.withPlane(0) { $0.row(0)[0] }
        #expect(copied == 1)
    }

    @Test func trapsWhenAFrameThatOthersHoldIsWritten() async {
        await #expect(processExitsWith: .failure) {
            let test = try TestPool(1)
            var frame = try test.pool.lease()
            let other = frame.share()
            frame.withMutablePlane(0) { _ in }
            _ = consume other
        }
    }
}
