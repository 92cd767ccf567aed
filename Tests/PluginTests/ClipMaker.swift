// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FileSource
@testable import Recorder
@testable import X264Encoder

/// What one picture of a clip has beside its pixels.
struct ClipPicture: Equatable {
    var pts: MediaTime
    var duration: MediaTime
}

/// A folder of its own for one test, gone with the value.
final class ScratchFolder {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appending(path: "framehost-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func file(_ name: String) -> String { "\(path)/\(name)" }
}

/// A program the tests use where it is installed.
enum Tool {
    static let ffmpeg = find("ffmpeg")

    /// A program without which a test does less, except in CI.
    static func optional(_ name: String) throws -> String? {
        let found = find(name)
        if found == nil, ProcessInfo.processInfo.environment["CI"] == "true" { throw Failed(status: 127) }
        return found
    }

    static func find(_ name: String) -> String? {
        let folders = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
        return folders.map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    struct Failed: Error { var status: Int32 }

    static func run(_ path: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failed(status: process.terminationStatus) }
    }
}

extension Trait where Self == ConditionTrait {
    /// Skips by name where ffmpeg is missing, except in CI: there the test runs, and fails for want of it.
    static var needsFFmpeg: Self {
        .enabled(
            if: Tool.ffmpeg != nil || ProcessInfo.processInfo.environment["CI"] == "true", "ffmpeg is not installed")
    }
}

/// What a source gave: one picture and all that came with it.
struct PlayedPicture: Equatable {
    var pts: MediaTime
    var orientation: Orientation
    var isDiscontinuity: Bool
    /// Of all samples.
    var hash: UInt64
}

/// Makes clips with our own encoder and recorder or with ffmpeg, and reads them with our own source.
enum ClipMaker {
    /// Runs ffmpeg.
    static func ffmpeg(_ arguments: String...) throws { try ffmpeg(arguments: arguments) }

    /// Runs ffmpeg. It codes on one thread: with more of them the bytes depend on how many processors there are.
    static func ffmpeg(arguments: [String]) throws {
        let program = try #require(Tool.ffmpeg, "ffmpeg is not installed: make test-packages")
        let result = ["-threads", "1"] + arguments.suffix(1)
        try Tool.run(program, ["-nostdin", "-v", "error", "-y"] + arguments.dropLast() + result)
    }

    /// Moving pictures, for ffmpeg's `-i`.
    static func moving(_ size: String = "160x120", rate: Int = 25, count: Int = 50) -> String {
        "testsrc2=size=\(size):rate=\(rate),trim=end_frame=\(count)"
    }

    /// Pictures of a file, by our own source, until it ends or there are `most`.
    static func play(_ path: String, options: String = "", atMost most: Int = .max) throws -> (
        format: VideoFormat, pictures: [PlayedPicture], events: [Event]
    ) {
        let source = try StageDriver(FileSource.self, options: #"{ "path": "\#(path)"\#(options) }"#)
        var pictures: [PlayedPicture] = []
        var isOver = false
        while !isOver, pictures.count < most {
            isOver = try source.produce() == .ended
            while let frame = source.takeFrame() {
                pictures.append(
                    PlayedPicture(
                        pts: frame.pts, orientation: frame.orientation, isDiscontinuity: frame.isDiscontinuity,
                        hash: hash(frame)))
            }
        }
        try source.stop()
        return (source.outputFormat!.video!, pictures, source.takeEvents())
    }

    /// FNV-1a over all samples.
    static func hash(_ frame: borrowing Frame) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for index in 0..<frame.planeCount {
            frame.withPlane(index) { plane in
                for y in 0..<plane.height {
                    for byte in plane.row(y) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
                }
            }
        }
        return hash
    }

    /// A picture with a bar that moves with `number`.
    static func paint(_ frame: inout Frame, _ number: Int) {
        for plane in 0..<frame.planeCount {
            frame.withMutablePlane(plane) { plane in
                for y in 0..<plane.height {
                    let row = plane.row(y)
                    for x in 0..<plane.rowBytes { row[x] = (x + number * 4) % 64 < 16 ? 200 : UInt8(40 + y % 100) }
                }
            }
        }
    }

    /// Encodes pictures at these times and records them.
    static func record(
        to path: String, _ format: VideoFormat, _ pictures: [ClipPicture], encoder options: String = "{}"
    ) throws {
        let encoder = try StageDriver(X264Encoder.self, options: options, input: .video(format))
        let recorder = try StageDriver(Recorder.self, options: #"{ "path": "\#(path)" }"#, input: encoder.outputFormat)
        func pass() throws { while let unit = encoder.takeAccessUnit() { try recorder.send(unit) } }
        for (number, picture) in pictures.enumerated() {
            let frame = try encoder.makeFrame(pts: picture.pts) {
                $0.duration = picture.duration
                $0.orientation = format.orientation
                paint(&$0, number)
            }
            try encoder.send(frame)
            try pass()
        }
        try encoder.drain()
        try pass()
        try encoder.stop()
        try recorder.drain()
        try recorder.stop()
        recorder.finishJobs()
    }

    /// Pictures at a constant rate, in whole ticks.
    static func steady(_ count: Int, _ format: VideoFormat, from start: Int64 = 0) -> [ClipPicture] {
        let step = format.timeBase.ticks(of: MediaTime(seconds: 1 / format.frameRate.value))
        return (0..<Int64(count)).map {
            let begin = format.timeBase.time(ofTicks: start + $0 * step)
            return ClipPicture(pts: begin, duration: format.timeBase.time(ofTicks: step))
        }
    }

    /// All pictures of a file, by our own source, and what it said of them.
    static func read(_ path: String, options: String = "") throws -> (
        format: VideoFormat, pictures: [ClipPicture], events: [Event]
    ) {
        let source = try StageDriver(FileSource.self, options: #"{ "path": "\#(path)"\#(options) }"#)
        var pictures: [ClipPicture] = []
        var isOver = false
        while !isOver {
            isOver = try source.produce() == .ended
            while let frame = source.takeFrame() {
                pictures.append(ClipPicture(pts: frame.pts, duration: frame.duration))
            }
        }
        try source.stop()
        return (source.outputFormat!.video!, pictures, source.takeEvents())
    }
}
