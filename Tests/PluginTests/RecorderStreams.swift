// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation

@testable import Recorder
@testable import Recordings

/// Streams for recorders and what comes back from their files, packet by packet.
enum RecorderStreams {
    struct Unit: Equatable {
        var pts: MediaTime
        var dts: MediaTime
        var duration: MediaTime
        var isKeyframe: Bool
        var bytes: [UInt8]
    }

    static let video = VideoFormat(
        .i420, width: 160, height: 120, frameRate: Rational(25), timeBase: TimeBase(1, 12_800))

    /// Parameter sets of a 160x120 stream, so that files of made-up access units open.
    static let parameterSets: [UInt8] = [
        0, 0, 0, 1, 0x67, 0x42, 0xC0, 0x0A, 0xDA, 0x0A, 0x11, 0xA1, 0, 0, 3, 0, 1, 0, 0, 3, 0, 0x32, 0x0F, 0x12, 0x26,
        0xA0, 0, 0, 0, 1,
        0x68, 0xCE, 0x0F,
        0x2C, 0x80,
    ]

    static func format(bitrateKbps: Int? = nil, reorderDepth: Int = 0) -> EncodedFormat {
        EncodedFormat(
            codec: .h264, parameterSets: parameterSets, video: video, reorderDepth: reorderDepth,
            bitrateKbps: bitrateKbps)
    }

    /// A picture that nobody decodes: one NAL unit that says its number.
    static func payload(_ number: Int, bytes: Int, isKeyframe: Bool) -> [UInt8] {
        [0, 0, 0, 1, isKeyframe ? 0x65 : 0x41] + Array("unit \(number) ".utf8) + [UInt8](repeating: 0xAB, count: bytes)
    }

    /// Pictures 40 ms apart without B-frames, a keyframe where `isKey` says.
    static func steady(_ count: Int, bytes: Int = 100, from start: Double = 0, isKey: (Int) -> Bool) -> [Unit] {
        let tick = video.timeBase
        let first = tick.ticks(of: MediaTime(seconds: start))
        return (0..<count).map { number in
            let time = tick.time(ofTicks: first + Int64(number) * 512)
            return Unit(
                pts: time, dts: time, duration: tick.time(ofTicks: 512), isKeyframe: isKey(number),
                bytes: payload(number, bytes: bytes, isKeyframe: isKey(number)))
        }
    }

    /// NAL units of a payload with start codes of four bytes.
    static func nalUnits(annexB bytes: [UInt8]) -> [[UInt8]] {
        var units: [[UInt8]] = []
        var begin: Int?
        var index = 0
        while index < bytes.count {
            let isLong = index + 3 < bytes.count && bytes[index...(index + 3)].elementsEqual([0, 0, 0, 1])
            let isShort = index + 2 < bytes.count && bytes[index...(index + 2)].elementsEqual([0, 0, 1])
            if isLong || isShort {
                if let begin { units.append(Array(bytes[begin..<index])) }
                index += isLong ? 4 : 3
                begin = index
            } else {
                index += 1
            }
        }
        if let begin { units.append(Array(bytes[begin...])) }
        return units
    }

    /// The size that stands before a NAL unit in a container.
    static func size(_ count: Int) -> [UInt8] {
        stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: count >> $0) }
    }

    /// One packet as a file has it.
    struct Packet: Equatable {
        var track: Int
        var pts: Int64
        var dts: Int64
        var duration: Int64
        var isKeyframe: Bool
        var bytes: [UInt8]
    }

    /// All packets of a file in the order of reading, and each track's tick.
    static func packets(of path: String) throws -> (packets: [Packet], ticks: [TimeBase]) {
        let file = try RecordingReader(path)
        var packets: [Packet] = []
        while let packet = try file.next() {
            let about = packet.pointee
            packets.append(
                Packet(
                    track: Int(about.stream_index), pts: about.pts, dts: about.dts, duration: about.duration,
                    isKeyframe: about.flags & 1 != 0,
                    bytes: Array(UnsafeBufferPointer(start: about.data, count: Int(about.size)))))
        }
        return (packets, (0..<file.streamCount).map { TimeBase(file.stream($0).pointee.time_base) })
    }

    /// Files in a folder by name, left-overs too.
    static func names(in folder: ScratchFolder, _ path: String = "") -> [String] {
        FolderListing.names(in: path.isEmpty ? folder.path : folder.file(path)).sorted()
    }
}

extension StageDriver where S == Recorder {
    convenience init(
        recording options: String, _ format: EncodedFormat, isLive: Bool = false, audio: (any AudioOrigin)? = nil
    ) throws {
        try self.init(Recorder.self, options: options, input: .encoded(format), isLive: isLive, audio: audio)
    }

    func send(_ unit: RecorderStreams.Unit) throws {
        let made = try makeAccessUnit(unit.bytes, pts: unit.pts, dts: unit.dts, isKeyframe: unit.isKeyframe)
        made.duration = unit.duration
        try send(made)
    }

    /// Ends the run and waits for the files.
    func finish() throws {
        try drain()
        try stop()
        finishJobs()
    }
}
