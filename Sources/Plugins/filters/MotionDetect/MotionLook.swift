// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Looks for motion in frames of one format that lie the same way: brings them to the detector, and what it finds back.
final class MotionLook {
    private let format: VideoFormat
    private let orientation: Orientation
    private let reducer: LumaReducer
    private let small: UnsafeMutablePointer<UInt8>
    let detector: MotionDetector
    private let paint: Paint

    /// - Parameter grid: That of the format's size.
    init(_ grid: CellGrid, _ format: VideoFormat, _ orientation: Orientation, _ options: MotionDetectOptions) {
        (self.format, self.orientation) = (format, orientation)
        reducer = LumaReducer(format, grid)
        small = .allocate(capacity: grid.width * grid.height)
        small.initialize(repeating: 0, count: grid.width * grid.height)
        detector = MotionDetector(grid, settings: options.settings)
        paint = Paint(RGBColor(red: 255, green: 220, blue: 0), for: format)
        ignore(options.ignore)
    }

    deinit { small.deallocate() }

    /// Whether frames of this format that lie this way belong to what was seen so far.
    func fits(_ format: VideoFormat, _ orientation: Orientation) -> Bool {
        format.width == self.format.width && format.height == self.format.height
            && format.pixelFormat == self.format.pixelFormat && format.color == self.format.color
            && orientation == self.orientation
    }

    /// Takes live options.
    func change(_ options: MotionDetectOptions) {
        detector.settings = options.settings
        ignore(options.ignore)
    }

    private func ignore(_ areas: [IgnoredArea]) {
        let (columns, rows) = (detector.grid.columns, detector.grid.rows)
        var cells = [Bool](repeating: false, count: detector.grid.count)
        for area in areas {
            let scan = PolygonScan(
                area.polygon.outline(width: columns, height: rows, lying: orientation), width: columns, height: rows)
            for row in scan.rows {
                scan.spans(ofRow: row) { for column in $0 { cells[row * columns + column] = true } }
            }
        }
        detector.ignore(cells)
    }

    /// [stage thread] Looks at a frame, unless the last one was just before. Allocates nothing.
    func take(_ frame: borrowing Frame, time: Int64) {
        if frame.isSubstitute { return detector.pause() }
        if frame.isDiscontinuity { detector.pause() }
        guard detector.isDue(time) else { return }
        frame.withPicture { reducer.reduce($0, into: small) }
        detector.take(small, time: time)
    }

    // MARK: What was found

    /// The share of the picture that the largest thing moves; 0 where nothing does.
    var largestShare: Float {
        var cells: Float = 0
        for track in detector.tracks where track.isMotion { cells = max(cells, track.cells) }
        return cells / Float(detector.grid.count)
    }

    /// What moves, in pixels of the stored picture.
    func areas(isMotion: Bool) -> MotionAreas {
        var areas = MotionAreas(pictureWidth: format.width, pictureHeight: format.height)
        areas.isMotion = isMotion
        let grid = detector.grid
        let (width, height) = (
            Float(format.width) / Float(grid.columns), Float(format.height) / Float(grid.rows)
        )
        for track in detector.tracks where track.isMotion {
            var area = MotionAreas.Area()
            area.id = track.id
            (area.x, area.y) = (track.box.left * width, track.box.top * height)
            (area.width, area.height) = (track.box.width * width, track.box.height * height)
            area.share = track.cells / Float(grid.count)
            areas.append(area)
        }
        return areas
    }

    /// What moves, in fractions of the upright picture, for programs.
    var fractions: [JSONNode] {
        func number(_ value: Double) -> JSONNode { .number((min(max(value, 0), 1) * 1000).rounded() / 1000) }
        return areas(isMotion: true).map { area in
            let (width, height) = (Double(format.width), Double(format.height))
            let (x, y) = (Double(area.x), Double(area.y))
            let (first, second) = (
                upright(x, y), upright(min(x + Double(area.width), width), min(y + Double(area.height), height))
            )
            return [
                "x": number(min(first.x, second.x)), "y": number(min(first.y, second.y)),
                "width": number(abs(first.x - second.x)), "height": number(abs(first.y - second.y)),
            ]
        }
    }

    /// Where a point of the stored picture lies in the upright one, in fractions of its sides.
    private func upright(_ x: Double, _ y: Double) -> (x: Double, y: Double) {
        let (stored, y) = (x / Double(format.width), y / Double(format.height))
        let x = orientation.isMirrored ? 1 - stored : stored
        return switch orientation.quarterTurns {
        case 1: (1 - y, x)
        case 2: (1 - x, 1 - y)
        case 3: (y, 1 - x)
        default: (x, y)
        }
    }

    /// [stage thread] Draws a box around each area.
    func draw(_ areas: MotionAreas, on frame: inout Frame) {
        let thickness = max(min(format.width, format.height) / 240 * 2, 2)
        frame.withCanvas { canvas in
            for area in areas {
                canvas.outline(
                    x: Int(area.x), y: Int(area.y), width: Int(area.width), height: Int(area.height),
                    thickness: thickness, paint)
            }
        }
    }
}
