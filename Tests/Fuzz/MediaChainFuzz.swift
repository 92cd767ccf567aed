// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

@testable import FileSource
@testable import RTSPSink
@testable import Rate
@testable import Recorder
@testable import X264Encoder

/// A file, as the bytes say, through file-source and x264-encoder into recorder and rtsp-sink, or without the encoder
/// where the file's H.264 goes on as it is; in this process and on simulated time.
///
/// The first byte chooses options. Below 128 the file is a Matroska file made here from the numbers that follow
/// (``NumberedMatroska``): any times, durations, sizes, rates and shapes on pictures that decode. From 128 on the rest
/// is the file, as it is.
@c(LLVMFuzzerTestOneInput)
public func fuzzMediaChain(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard count > 2, let bytes else { return 0 }
    let input = UnsafeBufferPointer(start: bytes, count: count)
    let file = input[0] < 128 ? NumberedMatroska.make(from: input[2...]) : Array(input[2...])
    let path = Scratch.shared.write(file)
    do { try ChainUnderTest(path: path, choice: Int(input[0] & 127) << 8 | Int(input[1])).run() } catch {
        precondition(error is FrameHostError || error is FrameHostErrors, "a fault without a sentence: \(error)")
    }
    return 0
}

/// Where the file lies, and what is recorded.
private struct Scratch {
    static let shared = Scratch()
    let folder: String

    init() {
        let root = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        folder = "\(root)/framehost-fuzz-\(getpid())"
        mkdir(folder, 0o700)
        atexit {
            for name in ["in", "out.mp4", "out.mov", "out.mkv"] { unlink("\(Scratch.shared.folder)/\(name)") }
            rmdir(Scratch.shared.folder)
        }
    }

    func write(_ bytes: [UInt8]) -> String {
        let path = "\(folder)/in"
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        defer { close(file) }
        precondition(file >= 0 && Glibc.write(file, bytes, bytes.count) == bytes.count, "no scratch file")
        return path
    }
}

/// The stages, driven one after the other.
private struct ChainUnderTest {
    let path: String
    let choice: Int

    /// Steps of the source, most: a `loop` has no end.
    private static let mostSteps = 400
    private static let mostPixels = 128 * 128

    private func has(_ bit: Int) -> Bool { choice >> bit & 1 == 1 }

    func run() throws {
        let clock = ManualClock(at: 1_000_000_000)
        var options = #""path": "\#(path)""#
        if has(0) { options += #", "pace": "realtime""# }
        if has(1) { options += #", "loop": true"# }
        if has(6) { options += #", "decode": false"# }
        if has(2) { options += #", "start": 0.1, "duration": 1000"# }
        let source = try StageDriver(FileSource.self, options: "{ \(options) }", clock: clock)
        if let format = source.outputFormat?.encoded { return try passThrough(source, format, clock: clock) }
        guard let video = source.outputFormat?.video, video.width * video.height <= Self.mostPixels else { return }
        let rate =
            try has(3)
            ? StageDriver(
                Rate.self, options: #"{ "rate": 25, "maxGapSeconds": 1 }"#, input: .video(video), clock: clock) : nil
        guard video.pixelFormat == .i420 || video.pixelFormat == .nv12 else { return }
        let encoder = try StageDriver(
            X264Encoder.self,
            options: #"{ "preset": "\#(has(4) ? "veryfast" : "ultrafast")", "threads": 1, "keyframeSeconds": 0.2 }"#,
            input: rate?.outputFormat ?? .video(video), isLive: has(5), slabBytes: 1 << 20, clock: clock)
        let recorder = try recorder(of: encoder.outputFormat, sound: source.stage.audio, clock: clock)
        let stream = try Stream(encoder.outputFormat!.encoded!, clock: clock)
        var steps = 0
        func pass() throws {
            while let unit = encoder.takeAccessUnit() {
                precondition(unit.dts <= unit.pts, "decoded after it is shown")
                stream.publish(unit)
                try recorder.send(unit)
            }
        }
        func encode(_ frame: consuming Frame) throws {
            precondition(MediaTime.range.contains(frame.pts.nanoseconds) && frame.duration >= .zero)
            try encoder.send(frame)
            try pass()
        }
        var latest = MediaTime.min
        var isOver = false
        while !isOver, steps < Self.mostSteps {
            isOver = try source.produce() == .ended
            steps += 1
            while let frame = source.takeFrame() {
                precondition(frame.pts > latest, "the timeline does not rise")
                latest = frame.pts
                guard let rate else {
                    try encode(frame)
                    continue
                }
                try rate.send(frame)
                while let frame = rate.takeFrame() { try encode(frame) }
            }
        }
        try source.stop()
        try rate?.drain()
        while let frame = rate?.takeFrame() { try encode(frame) }
        try encoder.drain()
        try pass()
        try encoder.stop()
        try recorder.drain()
        try recorder.stop()
        recorder.finishJobs()
    }
}

extension ChainUnderTest {
    private func recorder(
        of format: MediaFormat?, sound: (any AudioOrigin)?, clock: ManualClock, slabBytes: Int = 1 << 20
    ) throws -> StageDriver<Recorder> {
        let ending = ["mp4", "mkv", "mov", "mp4"][choice >> 8 & 3]
        return try StageDriver(
            Recorder.self,
            options:
                #"{ "path": "\#(Scratch.shared.folder)/out.\#(ending)", "overwrite": true, "audio": "copy", "finalize": "\#(has(10) ? "always" : "never")" }"#,
            input: format, audio: sound, slabBytes: slabBytes, clock: clock)
    }

    /// The file's access units as they are.
    private func passThrough(_ source: StageDriver<FileSource>, _ format: EncodedFormat, clock: ManualClock) throws {
        let recorder = try recorder(of: .encoded(format), sound: source.stage.audio, clock: clock, slabBytes: 32 << 20)
        let stream = try Stream(format, clock: clock)
        var latest = MediaTime.min
        var isOver = false
        var steps = 0
        while !isOver, steps < Self.mostSteps {
            isOver = try source.produce() == .ended
            steps += 1
            while let unit = source.takeAccessUnit() {
                precondition(unit.dts <= unit.pts, "decoded after it is shown")
                precondition(unit.dts > latest, "the timeline does not rise")
                precondition(MediaTime.range.contains(unit.pts.nanoseconds) && unit.duration >= .zero)
                latest = unit.dts
                stream.publish(unit)
                try recorder.send(unit)
            }
        }
        try source.stop()
        try recorder.drain()
        try recorder.stop()
        recorder.finishJobs()
    }
}

/// What ``RTSPSink`` does with an access unit, without its sockets: packets, times, sender reports.
private final class Stream {
    private let hub: StreamHub
    private var packetizer: NALPacketizer
    private var ring = BlockRing(count: 4)
    private var index: UInt64 = 0

    init(_ format: EncodedFormat, clock: ManualClock) throws {
        guard let sets = NALPacketizer.sets(of: format.parameterSets) else {
            preconditionFailure("no parameter sets")
        }
        hub = StreamHub(
            path: "/a", ssrc: 1, clock: RTPClock(start: .max), canonicalName: "fuzz",
            queueLimits: .init(mostAge: 1 << 30, mostBytes: 1 << 20, mostStillness: 1 << 40), requestKeyframe: {},
            now: { clock.now() },
            unixTime: { clock.unixTime(at: $0) })
        packetizer = NALPacketizer(
            NALPacketizer.Sets(sps: sets.sps, pps: sets.pps), mostPacketBytes: 256, payloadType: 96, ssrc: 1,
            firstSequenceNumber: .max)
    }

    func publish(_ unit: borrowing AccessUnit) {
        if index == 0 || unit.isDiscontinuity {
            hub.setAnchor(captured: MediaTime(nanoseconds: unit.capturedAt), pts: unit.pts)
        }
        let isKeyframe = unit.isKeyframe
        let timestamp = hub.clock.timestamp(ofPTS: unit.pts.nanoseconds)
        unit.withBytes { bytes in
            let plan = packetizer.plan(bytes, isKeyframe: isKeyframe)
            guard plan.packetCount > 0 else { return }
            let block = ring.next()
            block.fill(
                index: index, isKeyframe: isKeyframe, unit: bytes, plannedBytes: plan.byteCount,
                reservedBytes: plan.byteCount,
                timestamp: timestamp, report: hub.senderReport(), packetizer: &packetizer)
            hub.publish(block)
        }
        index += 1
    }
}

/// A Matroska file of raw pictures and PCM sound whose numbers are all taken from a string of bytes. RFC 9559.
private struct NumberedMatroska {
    private var input: Slice<UnsafeBufferPointer<UInt8>>
    private var last: UInt64 = 0

    private static let extremes: [UInt64] = [
        0, 1, 2, 40, 255, 1000, 65_535, 1_000_000, 1 << 31 - 1, 1 << 31, 1 << 32 - 1, 1 << 32, 9_223_372_036_854,
        9_223_372_036_855,
        1 << 53, 9_223_372_036_860_000, 1 << 60, 1 << 61, 1 << 62, 1 << 63 - 1, 1 << 63, .max, 1_261_440_000_000,
        2_147_483_648_000,
    ]

    static func make(from bytes: Slice<UnsafeBufferPointer<UInt8>>) -> [UInt8] {
        var maker = NumberedMatroska(input: bytes)
        return maker.file()
    }

    private init(input: Slice<UnsafeBufferPointer<UInt8>>) { self.input = input }

    private mutating func byte() -> UInt8 { input.popFirst() ?? 0 }

    /// Small, near the one before, extreme, or any.
    private mutating func number() -> UInt64 {
        let kind = byte()
        switch kind & 3 {
        case 0: last = UInt64(kind >> 2)
        case 1: last = last &+ UInt64(kind >> 2)
        case 2: last = Self.extremes[Int(kind >> 2) % Self.extremes.count] &+ UInt64(kind >> 7)
        default: last = (0..<8).reduce(0) { number, _ in number << 8 | UInt64(byte()) }
        }
        return last
    }

    /// One of few where an even byte comes, any number else.
    private mutating func number(orOneOf usual: [UInt64]) -> UInt64 {
        let kind = byte()
        return kind & 1 == 0 ? usual[Int(kind >> 1) % usual.count] : number()
    }

    private mutating func file() -> [UInt8] {
        let header = Self.element(
            0x1a45_dfa3,
            Self.element(0x4282, Array("matroska".utf8)) + Self.element(0x4287, 4) + Self.element(0x4285, 2))
        let info = Self.element(
            0x1549_a966,
            Self.element(0x2a_d7b1, number(orOneOf: [1_000_000, 1, 1_000_000_000]))
                + Self.element(
                    0x4489,
                    Self.bigEndian(
                        number(orOneOf: [Double(2000).bitPattern, Double.infinity.bitPattern, Double.nan.bitPattern]))))
        let (width, height) = (number(orOneOf: [16, 32]), number(orOneOf: [16, 32]))
        let shape = Self.element(
            0xe0,
            Self.element(0xb0, width) + Self.element(0xba, height) + Self.element(0x54b0, number(orOneOf: [16, 32, 1]))
                + Self.element(0x54ba, number(orOneOf: [16, 32, 1])) + Self.element(0x54b2, number(orOneOf: [0, 3]))
                + Self.element(0x2e_b524, Array("I420".utf8)))
        let picture = Self.element(
            0xae,
            Self.element(0xd7, 1) + Self.element(0x73c5, 1) + Self.element(0x83, 1)
                + Self.element(0x86, Array("V_UNCOMPRESSED".utf8))
                + Self.element(0x23_e383, number(orOneOf: [40_000_000, 33_366_667])) + shape)
        let sound = Self.element(
            0xae,
            Self.element(0xd7, 2) + Self.element(0x73c5, 2) + Self.element(0x83, 2)
                + Self.element(0x86, Array("A_PCM/INT/LIT".utf8))
                + Self.element(0x56aa, number(orOneOf: [0])) + Self.element(0x56bb, number(orOneOf: [0]))
                + Self.element(
                    0xe1,
                    Self.element(
                        0xb5,
                        Self.bigEndian(
                            number(orOneOf: [Double(8000).bitPattern, Double(1e300).bitPattern, Double(-1).bitPattern]))
                    )
                        + Self.element(0x9f, number(orOneOf: [1, 2])) + Self.element(0x6264, number(orOneOf: [16, 8]))))
        var clusters: [UInt8] = []
        var count = 0
        while !input.isEmpty, count < 24 {
            count += 1
            clusters += cluster(width, height)
        }
        let tracks = Self.element(0x1654_ae6b, picture + (byte() & 1 == 0 ? sound : []))
        return header + [0x18, 0x53, 0x80, 0x67, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff] + info + tracks
            + clusters
    }

    private mutating func cluster(_ width: UInt64, _ height: UInt64) -> [UInt8] {
        var body = Self.element(0xe7, number())
        let blocks = Int(byte() & 7)
        for index in 0...blocks {
            let kind = byte()
            let isSound = kind & 3 == 3
            let relative = kind & 4 == 0 ? UInt16(index * 40) : UInt16(byte()) << 8 | UInt16(byte())
            let whole =
                width < 64 && height < 64 ? Int(width * height + 2 * ((width + 1) / 2) * ((height + 1) / 2)) : 384
            let size = isSound ? 320 : kind & 8 == 0 ? whole : Int(byte()) * 8
            let block =
                [isSound ? 0x82 : 0x81, UInt8(relative >> 8), UInt8(relative & 255), kind & 16 == 0 ? 0x80 : 0]
                + [UInt8](repeating: kind, count: size)
            if kind & 32 == 0 {
                body += Self.element(0xa3, block)
            } else {
                var group = block
                group[3] = 0
                body += Self.element(0xa0, Self.element(0xa1, group) + Self.element(0x9b, number()))
            }
        }
        return Self.element(0x1f43_b675, body)
    }

    // MARK: EBML (RFC 8794)

    private static func element(_ id: UInt32, _ body: [UInt8]) -> [UInt8] {
        let name = bigEndian(UInt64(id)).drop { $0 == 0 }
        return name + [0x08 | UInt8(truncatingIfNeeded: body.count >> 32 & 7)] + bigEndian(UInt64(body.count)).suffix(4)
            + body
    }

    private static func element(_ id: UInt32, _ number: UInt64) -> [UInt8] { element(id, bigEndian(number)) }

    private static func bigEndian(_ number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
    }
}
