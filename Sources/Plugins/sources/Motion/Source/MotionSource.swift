// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Gives motion in the axes of the picture: from a file, from datagrams, or from an IIO device.
///
/// All samples pass one ``SampleGate``, which turns them to these axes and leaves out what is impossible. Then they
/// are cut into blocks of at most 20 ms. docs/design/035-motion.md.
final class MotionSource: Source {
    static let info = StageInfo(
        id: "motion-source",
        summary: "Gives motion from a file, from a phone or program by UDP, or from an IIO device.",
        output: .motion, events: events,
        realTime: StageInfo.RealTime(with: "pace", .string(MotionPace.realtime.rawValue)))

    var options: MotionSourceOptions
    private let context: StageContext
    private var gate: SampleGate
    private var cutter = BlockCutter()
    private var reports: MotionReports
    /// Whether the block that is given next follows a gap in time or a loss.
    private var followsGap = false

    // Of a file.
    private var file: MotionFile?
    private var contents: MotionSample.Contents = []
    private var rate = 0.0
    /// Chain-clock time at which media time 0 is due; nil before the first block.
    private var zeroTime: Int64?

    // Of a live origin.
    private var live: (any LiveMotion)?
    private var samples: [MotionSample] = []

    /// [control thread] Opens nothing.
    init(options: MotionSourceOptions, context: StageContext) {
        self.options = options
        self.context = context
        gate = SampleGate(axes: options.axes ?? .same)
        reports = MotionReports(context)
    }

    // MARK: Setup

    /// [control thread] Opens a file, and looks whether a device is there.
    func negotiate() throws -> MediaFormat {
        if let path = options.path {
            let file = try MotionFile(
                path: context.resolve(path), isRelative: !path.hasPrefix("/"), units: options.units,
                isTurned: options.axes != nil)
            self.file = file
            if options.axes == nil, let axes = file.axes { gate.axes = axes }
            let format = file.format
            (contents, rate) = (format.contents, format.sampleRate)
            return .motion(format)
        }
        let live: any LiveMotion =
            if let place = options.listen {
                MotionListener(place, units: options.units, context: context, reports: reports)
            } else {
                IIOInput(options.device ?? "", rate: options.rate, context: context, reports: reports)
            }
        self.live = live
        return .motion(try live.negotiate())
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.slabBytes = 1 << 20
        demand.ownBytes = BlockCutter.most * MemoryLayout<MotionSample>.stride
        if let path = options.path {
            // Also before the file is open: whether the chain is live is asked first.
            demand.readsFiles = context.filesRead(path)
            demand.isPaced = options.pace == .realtime
            demand.expectedDuration = file?.duration
        } else {
            demand.isLive = true
            demand.isUrgent = true
        }
        if let place = options.listen {
            demand.claims = [
                StageDemand.Claim(
                    "udp \(place.text)", option: "listen", what: "receives at \(place.text), as does",
                    remedy:
                        "Use another port, or leave this stage out and name the other one in 'from' of the stages that need its motion.",
                    remedyBetweenChains:
                        "Use another port, or put the stages of both chains into one file in which only one stage receives."
                )
            ]
        }
        return demand
    }

    /// [setup thread] Opens the socket or device.
    func start() throws { try live?.start() }

    /// [stage thread]
    func stop() {
        live?.stop()
        reports.leftOutAltogether(&gate)
        reports.refusedAltogether()
        file = nil
    }

    // MARK: Blocks

    /// [stage thread] Gives at most one block of a file, or what has come from a live origin since the last call.
    func produce(_ output: Output) throws -> SourceProgress {
        if context.isEnded { return .ended }
        if let file { return try play(file, output) }
        guard let live else { return .ended }
        samples.removeAll(keepingCapacity: true)
        let isGap = try live.take(into: &samples)
        if isGap {
            try flush(output)
            followsGap = true
        }
        for sample in samples {
            guard let checked = gate.pass(sample) else { continue }
            if cutter.isFull(before: checked) { try flush(output) }
            cutter.add(checked)
        }
        try flush(output)
        reports.leftOut(&gate)
        return .more
    }

    private func play(_ file: MotionFile, _ output: Output) throws -> SourceProgress {
        do {
            while let sample = try file.read(given: gate.given) {
                guard let checked = gate.pass(sample) else { continue }
                let isFull = cutter.isFull(before: checked)
                if isFull, try !give(output) { return .ended }
                cutter.add(checked)
                if isFull {
                    reports.leftOut(&gate)
                    return .more
                }
            }
        } catch {
            _ = try give(output)
            reports.leftOutAltogether(&gate)
            throw error
        }
        guard try give(output) else { return .ended }
        reports.leftOutAltogether(&gate)
        guard gate.given > 0 else { throw MotionText.nothingUsable(file.path) }
        return .ended
    }

    /// Gives the block that was cut from a file, in real time when it is due; false when the source must end.
    private func give(_ output: Output) throws -> Bool {
        if let first = cutter.samples.first, options.pace == .realtime {
            let now = MediaTime(nanoseconds: context.clock.now())
            if zeroTime == nil { zeroTime = (now - first.time).nanoseconds }
            guard context.sleep(until: zeroTime! + first.time.nanoseconds) else { return false }
        }
        try flush(output)
        return true
    }

    private func flush(_ output: Output) throws {
        guard let first = cutter.samples.first else { return }
        let block = try cutter.makeBlock(output)
        if options.path == nil { block.capturedAt = first.time.nanoseconds }
        block.isDiscontinuity = followsGap
        followsGap = false
        cutter.clear()
        try output.emit(block)
    }
}
