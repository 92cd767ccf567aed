// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Glibc
import Testing

@testable import ALSASource
@testable import Audio
@testable import Recorder
@testable import X264Encoder

/// What a camera sees and a microphone hears in the same hour: each ten seconds a flash and a beep, the first after five.
private enum Hour {
    static let seconds = 3600
    static let rate = 16_000
    static let picturesPerSecond = 5
    /// When it begins on the timeline, nanoseconds.
    static let begin: Int64 = 1_000_000_000
    static let beepSeconds = 0.2
    /// Each seven minutes the sound card overruns, by 0.3 s; each five the camera stands still for two seconds: both
    /// between two flashes.
    static let overrunEvery = 420.0
    static let overrunSeconds = 0.3
    static let stallEvery = 300.0
    static let stallSeconds = 2.0

    /// Whether the camera gives nothing at this second of the hour.
    static func isStalled(_ second: Double) -> Bool {
        second > stallSeconds && second.truncatingRemainder(dividingBy: stallEvery) < stallSeconds
    }

    /// How long ago the last flash began.
    static func sinceFlash(_ second: Double) -> Double { (second + 5).truncatingRemainder(dividingBy: 10) }
}

/// A card whose crystal is wrong, on a simulated clock. It hears the beeps of the hour.
private final class SimulatedHourCard: SoundCard {
    let name = "simulated"
    let title = "simulated"
    let stableName = "simulated"
    let format = CardFormat(samples: .float, rate: Hour.rate, channels: 1, period: 160, buffer: 8000)
    private let clock: ManualClock
    private let ppm: Double
    /// Frames that were read.
    private var position = 0
    private var overruns = 0
    private var random: UInt64 = 7

    /// - Parameter ppm: How much faster than its nominal rate.
    init(ppm: Double, clock: ManualClock) { (self.ppm, self.clock) = (ppm, clock) }

    private var trueRate: Double { Double(Hour.rate) * (1 + ppm * 1e-6) }
    /// When a frame is captured, seconds of the hour.
    private func second(of frame: Int) -> Double { Double(frame) / trueRate }
    private var captured: Int { Int(Double(clock.now() - Hour.begin) / 1e9 * trueRate) / format.period * format.period }
    private static func instant(_ second: Double) -> Int64 { Hour.begin + Int64((second * 1e9).rounded(.up)) }

    func start() { position = captured }

    func wait(milliseconds: Int32) throws(CardFault) -> Bool {
        let next = second(of: position + format.period)
        if next >= Double(overruns + 1) * Hour.overrunEvery {
            overruns += 1
            clock.advance(to: Self.instant(next + Hour.overrunSeconds))
            throw CardFault(call: "snd_pcm_avail_update", errno: EPIPE)
        }
        clock.advance(to: Self.instant(next) + 1000)
        return true
    }

    func look() -> CardStatus {
        random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        let jitter = (Double(random >> 33) / Double(1 << 31) - 0.5) * 0.001
        return CardStatus(
            stamp: Self.instant(second(of: captured) + jitter), available: min(captured - position, format.buffer))
    }

    func read(_ bytes: UnsafeMutableRawPointer, frames: Int) -> Int {
        let samples = bytes.assumingMemoryBound(to: Float.self)
        let sinceFlash = Hour.sinceFlash(second(of: position))
        if sinceFlash < Hour.beepSeconds || sinceFlash > 9.9 {
            for index in 0..<frames {
                let time = Hour.sinceFlash(second(of: position + index))
                samples[index] = time < Hour.beepSeconds ? Float(0.8 * sin(2 * Double.pi * 1000 * time)) : 0
            }
        } else {
            samples.update(repeating: 0, count: frames)
        }
        position += frames
        return frames
    }

    func resume() -> Bool { true }
    func close() {}
}

/// `alsa-source` with that card, for a driver; the device's name is the card's error in ppm.
private final class HourMicrophone: Source {
    static let info = ALSASource.info
    private let source: ALSASource
    var options: ALSASourceOptions

    init(options: ALSASourceOptions, context: StageContext) {
        self.options = options
        source = ALSASource(options: options, context: context) { _, options in
            SimulatedHourCard(ppm: Double(options.device)!, clock: context.clock as! ManualClock)
        }
    }

    var demand: StageDemand { source.demand }
    func negotiate() throws -> MediaFormat { try source.negotiate() }
    func start() throws { try source.start() }
    func produce(_ output: Output) throws -> SourceProgress { try source.produce(output) }
    func stop() { source.stop() }
}

/// Its sound as a source of a chain that runs as fast as it can: `alsa-source` reads a simulated clock, the chain its
/// own.
private final class HourSound: Source {
    static let info = StageInfo(id: "hour-sound", summary: "Gives an hour's beeps.", output: .audio)

    struct Options: StageOptions {
        @Option(help: "How much faster than its nominal rate the card is.") var ppm = "0"
    }

    var options: Options
    private var driver: StageDriver<HourMicrophone>!

    init(options: Options, context: StageContext) { self.options = options }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.slabBytes = 1 << 20
        return demand
    }

    func negotiate() -> MediaFormat { .audio(AudioFormat(sampleRate: Hour.rate, channelCount: 1)) }

    func start() throws {
        driver = try StageDriver(
            HourMicrophone.self,
            options: #"{ "device": "\#(options.ppm)", "sampleRate": \#(Hour.rate), "channels": 1 }"#,
            clock: ManualClock(at: Hour.begin))
    }

    func produce(_ output: Output) throws -> SourceProgress {
        _ = try driver.produce()
        while let heard = driver.takeAudioBlock() {
            guard heard.pts.seconds < Double(Hour.seconds) else { return .ended }
            var block = try output.makeAudioBlock(sampleCount: heard.sampleCount)
            block.withMutableSamples { to in heard.withSamples { _ = to.update(fromContentsOf: $0) } }
            (block.pts, block.duration) = (heard.pts, heard.duration)
            block.isDiscontinuity = heard.isDiscontinuity
            try output.emit(block)
        }
        return .more
    }

    func stop() throws { try driver?.stop() }
}

/// The camera of the hour.
private final class HourCamera: Source {
    static let info = StageInfo(id: "hour-camera", summary: "Gives an hour's flashes.", output: .video(.i420))

    var options = NoOptions()
    private var count = 0

    init(options: NoOptions, context: StageContext) {}

    func negotiate() -> MediaFormat {
        .video(VideoFormat(.i420, width: 64, height: 48, frameRate: Rational(Int32(Hour.picturesPerSecond))))
    }

    func produce(_ output: Output) throws -> SourceProgress {
        let second = Double(count) / Double(Hour.picturesPerSecond)
        guard second < Double(Hour.seconds) else { return .ended }
        defer { count += 1 }
        guard !Hour.isStalled(second), var frame = try output.makeFrame() else { return .more }
        let isFlash = (count + 5 * Hour.picturesPerSecond) % (10 * Hour.picturesPerSecond) == 0
        for plane in 0..<3 {
            frame.withMutablePlane(plane) { plane in
                let value: UInt8 = plane.height == 48 ? (isFlash ? 235 : 16) : 128
                for y in 0..<plane.height { plane.row(y).update(repeating: value) }
            }
        }
        frame.pts = MediaTime(nanoseconds: Hour.begin + Int64(count) * 1_000_000_000 / Int64(Hour.picturesPerSecond))
        try output.emit(frame)
        return .more
    }
}

/// An hour of `alsa-source` with a wrong crystal, through the encoder into a recording beside pictures that stall, on a
/// simulated clock.
@Suite(.needsFFmpeg) struct LipSyncHourTests {
    @Test(.timeLimit(.minutes(60)), arguments: [200, -200]) func staysWithinFiveMilliseconds(ppm: Int) throws {
        let folder = try ScratchFolder()
        let chain = try Chain(request(ppm: ppm, folder.path))
        let result = chain.run()
        #expect(result.isSuccess, "\(result)")
        let (flashes, beeps) = try heardAndSeen(folder)
        #expect(
            flashes.count == Hour.seconds / 10 && beeps.count == Hour.seconds / 10, "\(flashes.count), \(beeps.count)")
        let offsets = zip(flashes, beeps).map { ($1 - $0) * 1000 }
        let (least, most) = (offsets.min() ?? .nan, offsets.max() ?? .nan)
        print("\(ppm) ppm: sound − picture \(least) to \(most) ms over an hour")
        #expect(least >= -5 && most <= 5)
        // A whole hour: nothing was moved together.
        #expect(abs((flashes.last ?? 0) - (flashes.first ?? 0) - Double(Hour.seconds - 10)) < 0.001)
    }

    private func request(ppm: Int, _ folder: String) throws -> ChainRequest {
        func stage<S: Stage>(_ type: S.Type, _ id: String, _ options: String = "{}", from: [Int]) throws -> StageRequest
        {
            let members = try JSONReader.read(Array(options.utf8), file: "options").asObject ?? []
            return StageRequest(id: id, type: StageType(type), options: members, from: from)
        }
        return ChainRequest(
            file: "hour.json", folder: folder,
            stages: [
                try stage(HourCamera.self, "camera", from: []),
                try stage(
                    X264Encoder.self, "h264", #"{ "preset": "ultrafast", "keyframeSeconds": 2, "threads": 1 }"#,
                    from: [0]),
                try stage(HourSound.self, "microphone", #"{ "ppm": "\#(ppm)" }"#, from: []),
                try stage(AudioEncoder.self, "aac", #"{ "codec": "aac", "bitrateKbps": 48 }"#, from: [2]),
                try stage(Recorder.self, "rec", #"{ "path": "hour.mp4" }"#, from: [1, 3]),
            ])
    }

    /// When each flash and each beep begins, as ffmpeg plays the file.
    private func heardAndSeen(_ folder: ScratchFolder) throws -> (flashes: [Double], beeps: [Double]) {
        try ClipMaker.ffmpeg(
            "-copyts", "-i", folder.file("hour.mp4"),
            "-map", "0:v", "-vf", "signalstats,metadata=print:key=lavfi.signalstats.YAVG:file=\(folder.file("luma"))",
            "-f", "null", "-", "-map", "0:a", "-af",
            "silencedetect=noise=-10dB:d=1,ametadata=print:key=lavfi.silence_end:file=\(folder.file("silence"))",
            "-f", "null", "-")
        var flashes: [Double] = []
        var (time, wasWhite) = (0.0, false)
        for line in try String(contentsOfFile: folder.file("luma"), encoding: .utf8).split(separator: "\n") {
            if let range = line.range(of: "pts_time:") { time = Double(line[range.upperBound...]) ?? .nan }
            guard let range = line.range(of: "YAVG=") else { continue }
            let isWhite = (Double(line[range.upperBound...]) ?? 0) > 128
            if isWhite, !wasWhite { flashes.append(time) }
            wasWhite = isWhite
        }
        let beeps = try String(contentsOfFile: folder.file("silence"), encoding: .utf8).split(separator: "\n")
            .compactMap { line in line.range(of: "lavfi.silence_end=").flatMap { Double(line[$0.upperBound...]) } }
        return (flashes, beeps)
    }
}
