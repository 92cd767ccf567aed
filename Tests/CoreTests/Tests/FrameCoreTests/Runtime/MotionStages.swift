// SPDX-License-Identifier: Apache-2.0

import Glibc

@testable import FrameCore

/// Gives samples of motion each 4 ms, some in one block; the rotation rate about x counts them.
final class MotionTicker: Source {
    static let info = StageInfo(id: "motion-ticker", summary: "Moves.", output: .motion)

    struct Options: StageOptions {
        @Option(help: "Samples.") var count = 100
        @Option(help: "Samples of a block.") var each = 1
        @Option(help: "Live.") var live = false
        @Option(help: "Ends with a pause instead of its end.") var falls = false
    }

    var options: Options
    private let context: StageContext
    private var next = 0

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isLive = options.live
        demand.slabBytes = 64 << 10
        return demand
    }

    func negotiate() -> MediaFormat {
        .motion(MotionFormat(contents: .rotationRate, sampleRate: 250))
    }

    func produce(_ output: Output) throws -> SourceProgress {
        guard next < options.count else {
            if options.falls, context.sleep(until: context.clock.now() + 5_000_000) { return .more }
            return .ended
        }
        let samples = (next..<min(next + options.each, options.count)).map { number in
            var sample = MotionSample(time: MediaTime(nanoseconds: Int64(number) * 4_000_000))
            sample.contents = .rotationRate
            sample.rotationRate.x = Float(number)
            return sample
        }
        next += samples.count
        try output.emit(output.makeMotionBlock(samples.span))
        return .more
    }
}

/// A filter that notes with each picture what it had got of its motion by then.
final class MotionReader: MultiFilter {
    static let info = StageInfo(
        id: "motion-reader", summary: "Reads motion.", input: .anyVideo, furtherInputs: .motion, output: .sameAsInput)

    struct Options: StageOptions {
        @Option(help: "Name under which the entries are found.") var log = ""
        @Option(help: "How far ahead it looks.") var aheadMs = 8
        @Option(help: "How long it waits for motion in a live chain.") var waitMs = 100
        @Option(help: "The picture at which it fails.") var failsAt = -1
    }

    struct Entry: Equatable {
        var milliseconds: Int
        /// The time of the last sample, in milliseconds; nil before the first.
        var newest: Int?
    }

    private static let logs = Locked<[String: [Entry]]>([:])
    static func log(_ name: String) -> [Entry] { logs.withLock { $0[name] ?? [] } }

    var options: Options
    private var newest: MediaTime?
    private var hasFellowsOnly = true
    private var pictures = 0

    init(options: Options, context: StageContext) { self.options = options }

    func negotiate(_ format: VideoFormat, further: [MediaFormat]) throws {
        hasFellowsOnly = further.allSatisfy { $0.motion != nil }
        guard hasFellowsOnly else { throw FrameHostError(.broken, what: "an input is no motion") }
    }

    var lookAhead: MediaTime { MediaTime(nanoseconds: Int64(options.aheadMs) * 1_000_000) }
    var longestWait: MediaTime { MediaTime(nanoseconds: Int64(options.waitMs) * 1_000_000) }

    func receive(_ item: consuming Sample, from index: Int) throws {
        guard case .motionBlock(let block) = consume item else { return }
        for place in 0..<block.sampleCount {
            let sample = block[place]
            guard Float(sample.time.nanoseconds / 4_000_000) == sample.rotationRate.x, index > 0 else {
                throw FrameHostError(.broken, what: "a sample was changed on its way")
            }
            newest = sample.time
        }
    }

    func process(_ frame: inout Frame) throws -> Verdict {
        if pictures == options.failsAt { throw FrameHostError(.broken, what: "asked to fail") }
        pictures += 1
        let entry = Entry(
            milliseconds: Int(frame.pts.nanoseconds / 1_000_000), newest: newest.map { Int($0.nanoseconds / 1_000_000) }
        )
        Self.logs.withLock { $0[options.log, default: []].append(entry) }
        return .forward
    }
}
