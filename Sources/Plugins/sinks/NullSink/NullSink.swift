// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// What the sink prints at its end.
enum NullReport: String, OptionChoice {
    case none
    /// `pingpong_ns p50=<ns> p99=<ns>`: from ``Frame/capturedAt`` to the arrival here.
    case latency
    /// Prints nothing; shows as figures the latency since the time of capture that the stream carries.
    case stream
}

struct NullSinkOptions: StageOptions {
    @Option(
        help:
            "How to report the time since capture: latency prints its median and 99th percentile at the end, in nanoseconds (pingpong_ns p50=… p99=…). stream shows it as figures, from the stamps that x264-encoder writes with \"stamp\": true."
    ) var report = NullReport.none
    @Option(
        help:
            "Where to write the input before it is dropped: a file, or - for standard output. Rows of pictures have no padding."
    )
    var dump: String? = nil

    /// Whether the dump goes to standard output.
    var isOutput: Bool { dump.map { $0 == "-" || StandardStream.output.paths.contains($0) } ?? false }

    func validate() throws(OptionFault) {
        if dump == "" {
            throw OptionFault("'dump' is empty", remedy: "Name a file, or - for standard output.", options: ["dump"])
        }
        if isOutput, report == .latency {
            throw OptionFault(
                "'dump' and 'report' both write to standard output",
                remedy: "Name a file in 'dump', or leave 'report' out.", options: ["dump", "report"])
        }
    }
}

/// Drops its input: for tests, for measurements, and as the end of a branch that only counts.
final class NullSink: Sink {
    static let info = StageInfo(
        id: "null-sink", summary: "Drops its input. Can measure or dump it first.", input: .any)

    var options: NullSinkOptions
    private let context: StageContext
    private var latencies: LatencySamples?
    private var streamLatency: StreamLatency?
    private var dump: RawDump?
    /// Written before a dump of access units, so that it plays.
    private var parameterSets: [UInt8] = []
    private var takesMotion = false

    /// [control thread] Opens nothing.
    init(options: NullSinkOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isDivisible = options.dump == nil && options.report == .none
        demand.showsNothing = options.dump == nil
        if let path = options.dump, !options.isOutput { demand.writesFiles = [context.resolve(path)] }
        if options.isOutput || options.report == .latency {
            // Several stages may write lines to one output, but samples cannot be mixed with lines.
            demand.claims = [
                StandardStream.output.claim(
                    option: options.isOutput ? "dump" : "report", terms: options.isOutput ? nil : "lines",
                    remedy: options.isOutput
                        ? "Write the dump to a file." : "Leave 'report' out, or make the other stage write to a file.")
            ]
        }
        return demand
    }

    /// [control thread] Looks whether the dump can be written, and writes nothing.
    func negotiate(_ input: MediaFormat) throws {
        if options.report == .stream, input.encoded?.video == nil {
            throw FrameHostError(
                .invalidConfiguration, place: "report",
                what: "\"stream\" needs encoded video, but the input is \(input)",
                remedy: "Put the stage after an 'x264-encoder' with \"stamp\": true, or use \"latency\".")
        }
        parameterSets = input.encoded?.parameterSets ?? []
        takesMotion = input.motion != nil
        guard let path = options.dump, !options.isOutput else { return }
        try context.checkWritable(path, option: "dump")
    }

    /// [control thread] Reserves the samples, opens the file.
    func start() throws {
        if options.report == .latency { latencies = LatencySamples(capacity: 1_000_000) }
        if options.report == .stream {
            let seen = StreamLatency()
            streamLatency = seen
            context.showFigures { seen.figures }
        }
        guard let path = options.dump else { return }
        dump = try RawDump(path: options.isOutput ? "-" : context.resolve(path), context.files, as: context.stageID)
        try parameterSets.withUnsafeBytes { try dump?.write($0) }
        if takesMotion {
            var heading = MotionLine.heading
            try heading.withUTF8 { try dump?.write(UnsafeRawBufferPointer($0)) }
        }
    }

    /// [stage thread] Only reads. Waits only where `dump` waits.
    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        if latencies == nil, dump == nil, streamLatency == nil { return .delivered }
        switch consume input {
        case .frame(let frame):
            latencies?.add(context.clock.now() - frame.capturedAt)
            try dump?.write(frame)
        case .accessUnit(let unit):
            let now = context.clock.now()
            latencies?.add(now - unit.capturedAt)
            streamLatency?.see(unit, now: context.clock.unixTime(at: now))
            try dump?.write(unit)
        case .audioBlock(let block):
            latencies?.add(context.clock.now() - block.capturedAt)
            try dump?.write(block)
        case .motionBlock(let block):
            latencies?.add(context.clock.now() - block.capturedAt)
            try dump?.write(block)
        }
        return .delivered
    }

    /// [stage thread] Prints the report, closes the file.
    func stop() throws {
        defer {
            latencies = nil
            dump = nil
        }
        if let line = latencies?.report() {
            let bytes = Array("\(line)\n".utf8)
            _ = write(StandardOutput.descriptor, bytes, bytes.count)
        }
        try dump?.close()
    }
}
