// SPDX-License-Identifier: Apache-2.0

import FrameCore

struct Y4MSinkOptions: StageOptions {
    @Option(help: "A named pipe or file to write; - is standard output. An existing file is replaced.")
    var path = "-"

    func validate() throws(OptionFault) {
        try PipePath.check(path, .output)
    }
}

/// Writes raw video for another program: y4m to standard output or a named pipe.
///
/// A picture is copied and its buffer released before it is written, so that a slow reader holds no buffer.
/// docs/design/020-pictures-and-pipes.md.
final class Y4MSink: Sink {
    static let info = StageInfo(
        id: "y4m-sink", summary: "Writes raw video (y4m) to standard output or a pipe.",
        input: .video(.i420, .nv12, .yuyv, .gray8, .i010, .p010), service: .unbounded,
        // A paused player reads nothing, which is not a fault.
        longestCall: MediaTime(seconds: 86_400),
        events: [
            EventDeclaration(
                "gap",
                "Pictures are missing. y4m stores no times, so the pictures after the gap are too early in the stream.",
                [.number("seconds", "Time from the picture before the gap to the one after it (s).")]),
            OrientationWatch.event,
        ])

    var options: Y4MSinkOptions
    private let context: StageContext
    private let path: PipePath
    private var name: String { path.name }
    private var header: Y4MHeader?
    private var period = MediaTime.zero
    private var writer: PipeWriter?
    /// The line of a picture and its samples.
    private var bytes: UnsafeMutableRawBufferPointer?
    private var hasBegun = false
    private var lastTime: MediaTime?
    private var hasReportedGap = false
    private var lying = OrientationWatch(.up)

    private static let frameLine = Array("FRAME\n".utf8)

    /// [control thread] Opens nothing.
    init(options: Y4MSinkOptions, context: StageContext) {
        self.options = options
        self.context = context
        path = PipePath(options.path, .output, context)
    }

    deinit { bytes?.deallocate() }

    /// [control thread]
    func negotiate(_ input: MediaFormat) throws {
        guard let video = input.video, let header = Y4MHeader(video) else {
            throw FrameHostError(.broken, what: "y4m-sink needs video")
        }
        guard video.frameRate.numerator > 0 else { throw PipeFault.noRateToWrite() }
        if video.orientation != .up {
            context.note(
                "the pictures have the orientation '\(video.orientation)', which y4m cannot store; to turn them upright, put 'crop-orient' before this stage",
                isWarning: true)
        }
        if path.path != nil { try context.checkWritable(options.path, option: "path") }
        self.header = header
        lying = OrientationWatch(video.orientation)
        period = TimeBase(video.frameRate.denominator, video.frameRate.numerator).time(ofTicks: 1)
    }

    private var byteCount: Int {
        Self.frameLine.count + (header.map { $0.format.byteCount(width: $0.width, height: $0.height) } ?? 0)
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.ownBytes = byteCount
        demand.claims = path.claims(remedy: "Give one of them a pipe made with 'mkfifo'.")
        demand.writesFiles = path.path.map { [$0] } ?? []
        return demand
    }

    /// [setup thread] Opens the pipe, takes memory for a picture.
    func start() throws {
        writer =
            try path.path.map { try PipeWriter(path: $0, context.files, as: context.stageID) { context.isEnded } }
            ?? PipeWriter()
        // Aligned so that the samples after the line are aligned too.
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: byteCount + 2, alignment: 64)
        memory.baseAddress!.advanced(by: 2).copyMemory(from: Self.frameLine, byteCount: Self.frameLine.count)
        bytes = memory
    }

    /// [stage thread] Writes one picture; waits for its reader.
    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        guard case .frame(let frame) = consume input, let bytes else {
            throw FrameHostError(.broken, what: "y4m-sink was handed access units")
        }
        look(at: frame.pts)
        if let notice = lying.notice(frame) {
            context.post(
                "orientation-not-carried", level: .warning,
                text:
                    "\(notice) y4m cannot store that, so players show them turned wrongly. To have all pictures upright, put a 'crop-orient' with a 'size' before this stage."
            )
        }
        let samples = bytes.baseAddress! + 2 + Self.frameLine.count
        Y4MPicture.pack(frame, to: samples.assumingMemoryBound(to: UInt8.self))
        letGo(frame)
        try begin()
        try write(UnsafeRawBufferPointer(rebasing: bytes[2...]))
        return .delivered
    }

    private func letGo(_ frame: consuming Frame) {}

    /// [stage thread] Even a stream without a picture gets its header.
    func drain() throws {
        try begin()
        guard let writer else { return }
        try look(at: writer.finish { context.isStopped })
    }

    /// [stage thread]
    func stop() throws {
        defer { writer = nil }
        let code = writer?.close() ?? 0
        guard code == 0 else { throw PipeFault.writeFailed(name, code) }
    }

    private func begin() throws {
        guard !hasBegun, let header else { return }
        hasBegun = true
        let line = Array(header.line.utf8)
        try line.withUnsafeBytes { try write($0) }
    }

    private func write(_ bytes: UnsafeRawBufferPointer) throws {
        guard let writer else { return }
        try look(at: writer.write(bytes) { context.isStopped })
    }

    private func look(at end: PipeWriter.End) throws {
        switch end {
        case .written: return
        case .stopped: throw FrameHostError(.stopped, what: "stopped while writing to \(name)")
        case .readerGone: throw PipeFault.readerGone(name)
        case .failed(let code): throw PipeFault.writeFailed(name, code)
        }
    }

    /// Looks for missing pictures: after one, the stream is ahead of its time.
    private func look(at time: MediaTime) {
        defer { lastTime = time }
        guard let lastTime, !hasReportedGap, (time - lastTime).nanoseconds > period.nanoseconds / 2 * 3 else { return }
        hasReportedGap = true
        context.post(
            "gap", level: .warning,
            text:
                "Pictures are missing: one came \((time - lastTime).seconds) s after the one before it. y4m stores no times, so the pictures after the gap are too early in the stream. To fill gaps, put a stage 'rate' before this one. Later gaps are not reported.",
            details: ["seconds": .number((time - lastTime).seconds)])
    }
}
