// SPDX-License-Identifier: Apache-2.0

internal import CStageLink

/// The host's side of a filter that runs in a process of its own: a filter like any other.
///
/// Each frame is copied into memory that the process sees, and back from there where the filter changes it. So the frame
/// itself is whole whatever the process does.
final class IsolatedFilter: Filter {
    typealias Options = NoOptions
    static let info = StageInfo(
        id: "isolated-filter", summary: "A filter in a process of its own.", input: .anyVideo, output: .sameAsInput)

    var options = NoOptions()
    private let type: StageType
    private let request: IsolationRequest
    private let written: [JSONNode.Member]
    private let context: StageContext
    private var layout: BufferLayout?
    private var stage: IsolatedStage?
    private var asked: StageDemand
    private var modifies = false
    private var metadata: CarriedMetadata?
    private var onDeath = IsolationRequest.OnDeath.drop
    private var deadline: Int64 = 0
    /// When processes ended within the last minute.
    private var deaths: [Int64] = []
    /// Whether frames were dropped since the last one that the filter had.
    private var owesGap = false
    private var failures = FrameFailures()
    /// Too many deaths were counted while no frame was at hand: the next frame tells.
    private var tooManyDeaths: (any Error)?

    private static let firstCall: Int64 = 5_000_000_000
    private static let minute: Int64 = 60_000_000_000

    init(options: NoOptions, context: StageContext) throws {
        throw FrameHostError(.broken, what: "an isolated filter is made of a stage type")
    }

    /// [control thread] Starts nothing yet.
    init(_ type: StageType, _ request: IsolationRequest, _ members: [JSONNode.Member], _ context: StageContext) {
        (self.type, self.request, written, self.context) = (type, request, members, context)
        asked = StageDemand()
        asked.access = type.info.access
        asked.outputBuffers = .sameAsInput
    }

    var demand: StageDemand { asked }

    // MARK: Before frames come

    func negotiate(_ format: VideoFormat) throws {
        let buffers = min(type.info.hold, 60) + 2
        let stage = IsolatedStage(
            StageBrief(
                request: request, type: type, stage: context.stageID, folder: context.folder,
                chain: context.chainName, isLive: context.isLiveChain, inputs: context.inputIDs, format: format,
                buffers: buffers),
            options: written, context)
        let (demand, notes) = try stage.negotiate()
        (layout, self.stage) = (BufferLayout(format), stage)
        for note in notes { context.note(note.text, isWarning: note.isWarning) }
        try take(demand, format, bytes: buffers * BufferLayout(format).byteCount)
    }

    private func take(_ demand: StageDemand, _ format: VideoFormat, bytes: Int) throws {
        if demand.delay > 0 {
            throw FrameHostError(
                .invalidConfiguration, place: "isolate",
                what:
                    "'\(type.info.id)' keeps frames back with these options, and such a filter has no process of its own yet",
                remedy: "Leave 'isolate' out.")
        }
        if demand.mustNotBePassed, request.onDeath == .pass {
            throw FrameHostError(
                .invalidConfiguration, place: "isolate.onDeath",
                what: "'pass' would let frames go on unchanged, which the options of '\(context.stageID)' forbid",
                remedy: "Use \"cover\" or \"drop\".")
        }
        if demand.mustNotBePassed, let file = demand.writesFiles.first {
            throw FrameHostError(
                .invalidConfiguration, place: "isolate",
                what:
                    "'\(context.stageID)' keeps what it hides in '\(file)', and a new process would read that file even if the present areas could not be written into it",
                remedy: "Leave 'isolate' out, or the file.")
        }
        asked = demand
        modifies = demand.access == .modify
        onDeath = request.onDeath ?? (demand.mustNotBePassed ? .cover : .pass)
        if onDeath == .cover { asked.access = .modify }
        // The process reads copies. Buffers of the chain are never in its hands.
        (asked.hold, asked.workers) = (0, 0)
        asked.ownBytes = AvailableMemory.sum(demand.ownBytes, bytes)
        deadline = Self.deadline(request, type.info, format)
        context.note(
            "runs in a process of its own\(request.sandbox == .usual ? ", without network" : ""); each frame is copied to it\(modifies ? " and back" : "")"
        )
    }

    private static func deadline(_ request: IsolationRequest, _ info: StageInfo, _ format: VideoFormat) -> Int64 {
        if let asked = request.deadlineMs { return Int64(asked) * 1_000_000 }
        let rate = format.frameRate.value
        let frames = rate > 0 ? MediaTime(seconds: 4 / rate).nanoseconds : 0
        // A stage that says nothing declares a second.
        let declared = info.longestCall > MediaTime(seconds: 1) ? info.longestCall.nanoseconds : 0
        return max(100_000_000, frames, declared)
    }

    func start() throws {
        metadata = CarriedMetadata(type.info.metadata, context.layout)
        guard let stage else { return }
        context.showFigures { [weak stage] in stage?.figures ?? .object([]) }
        try stage.start()
    }

    func stop() throws {
        guard let stage else { return }
        var refusal: (any Error)?
        let link = stage.present()
        if let link {
            link.isLeaving.store(true, ordering: .relaxed)
            if case .reply(let reply) = link.call(FH_OP_STOP, nanoseconds: Self.firstCall),
                reply.verdict == FH_FAILED.rawValue
            {
                refusal = LinkWords.faults(link.text(of: reply))
            }
        }
        stage.end(politely: link != nil)
        if let refusal = refusal ?? failures.summary(isLive: context.isLiveChain) { throw refusal }
    }

    // MARK: Frames

    func process(_ frame: inout Frame) throws -> Verdict {
        if let tooManyDeaths {
            self.tooManyDeaths = nil
            throw tooManyDeaths
        }
        guard let layout, let link = try present() else { return letBy(&frame) }
        guard let buffer = link.freeBuffer else {
            return try lost(link, "it keeps more frames than it declares", &frame)
        }
        if owesGap { frame.isDiscontinuity = true }
        let memory = link.buffer(buffer, byteCount: layout.byteCount)
        frame.copyPixels(to: memory, layout)
        let present = metadata?.write(frame.record.pointee.header, to: link.callText) ?? 0
        let answer = link.call(
            FH_OP_FRAME, buffer: buffer, item: fh_item(frame.record.pointee.header, metadata: present),
            nanoseconds: link.isFirstCall ? max(deadline, Self.firstCall) : deadline, stop: context.stop)
        switch answer {
        case .stopped: throw FrameHostError(.stopped, what: "stopped while the stage's process had a frame")
        case .failed(let reason): return try lost(link, reason, &frame)
        case .reply(let reply) where reply.verdict == FH_FAULT.rawValue:
            if let event = failures.count(LinkWords.faults(link.text(of: reply)).errors[0], now: context.clock.now()) {
                context.post("frame-failed", level: .error, text: event.text, details: event.details)
            }
            return letBy(&frame)
        case .reply(let reply):
            owesGap = false
            failures.noteDone()
            if modifies, reply.verdict == FH_FORWARD.rawValue { frame.copyPixels(from: memory, layout) }
            return try take(reply, link, &frame)
        }
    }

    /// The present process. A chain that is not live waits for it: no frame of a file goes by because a process is slow to
    /// start.
    private func present() throws -> StageLink? {
        while let stage {
            for _ in 0..<stage.takeFailedStarts() { try countDeath("never started") }
            if let link = stage.present() { return link }
            guard !context.isLiveChain else { return nil }
            if context.isStopped {
                throw FrameHostError(.stopped, what: "stopped while the stage's process was starting")
            }
            context.waiting { stage.wait(seconds: 0.1) }
        }
        return nil
    }

    private func take(
        _ reply: fh_reply, _ link: StageLink, _ frame: inout Frame
    ) throws -> Verdict {
        switch reply.verdict {
        case FH_FORWARD.rawValue:
            reply.item.fill(&frame.record.pointee.header)
            metadata?.read(link.replyText, present: reply.item.metadata, into: &frame.record.pointee.header)
            return .forward
        case FH_DROP.rawValue: return .drop(DropReason(rawValue: Int(reply.reason)) ?? .byStage)
        case FH_FAILED.rawValue:
            throw LinkWords.faults(link.text(of: reply)).errors[0]
        default: return try lost(link, "it answered with a verdict that does not exist", &frame)
        }
    }

    /// The process has ended with this frame in its hands, or is to be ended for the reason.
    private func lost(_ link: StageLink, _ reason: String?, _ frame: inout Frame) throws -> Verdict {
        guard let stage else { return letBy(&frame) }
        let text = stage.lose(link, reason)
        try countDeath(text)
        context.post(
            "stage-lost", level: .warning, text: "The process of the stage \(text). \(Self.consequence(onDeath))",
            details: stage.details)
        return letBy(&frame)
    }

    /// - Throws: Where processes end too often.
    private func countDeath(_ text: String) throws {
        let now = context.clock.now()
        deaths.removeAll { now - $0 > Self.minute }
        deaths.append(now)
        guard deaths.count > request.deathsPerMinute else { return }
        deaths.removeAll()
        throw FrameHostError(
            .broken, what: "its process ended \(request.deathsPerMinute + 1) times within a minute; the last \(text)",
            remedy: "Report this to the plugin's author, or raise \"deathsPerMinute\".")
    }

    private static func consequence(_ onDeath: IsolationRequest.OnDeath) -> String {
        switch onDeath {
        case .pass: "Frames go on without it until another process has taken over."
        case .drop: "Frames are dropped until another process has taken over."
        case .cover: "Frames are covered until another process has taken over."
        }
    }

    /// While there is no process, or for a frame that it could not process.
    private func letBy(_ frame: inout Frame) -> Verdict {
        failures.noteLetBy()
        switch onDeath {
        case .pass: return .forward
        case .drop:
            owesGap = true
            return .drop(.failed)
        case .cover:
            frame.cover()
            return .forward
        }
    }

    // MARK: Between frames

    func releaseCaches() { _ = stage?.present()?.call(FH_OP_RELEASE_CACHES, nanoseconds: deadline) }

    func command(_ name: String, arguments: JSONNode) throws {
        do {
            try ask(FH_OP_COMMAND, ["name": .string(name), "arguments": arguments])
        } catch let found as FrameHostErrors { throw found.errors[0] }
    }

    /// [stage thread] Sets live options in the process, and in those that follow it.
    func set(_ members: [JSONNode.Member], _ place: OptionPlace) throws {
        do {
            try ask(FH_OP_SET, JSONNode(.object(members)))
        } catch let found as FrameHostErrors {
            throw FrameHostErrors(
                found.errors.map {
                    var fault = $0
                    fault.place = place(fault.place.description, TextPlace(line: 0, column: 0))
                    return fault
                })
        }
        stage?.keep(members)
    }

    private func ask(_ operation: fh_op, _ words: JSONNode) throws {
        guard let stage, let link = stage.present() else {
            throw FrameHostError(
                .exhausted, what: "the stage has no process at present", remedy: "Ask again in a moment.")
        }
        guard let count = link.write(words) else {
            throw FrameHostError(
                .invalidConfiguration,
                what: "this is longer than the \(FH_LINK_TEXT) bytes that an isolated stage can take",
                remedy: "Write less at once.")
        }
        switch link.call(operation, textBytes: count, nanoseconds: max(deadline, Self.firstCall), stop: context.stop) {
        case .reply(let reply):
            if reply.verdict == FH_FAILED.rawValue { throw LinkWords.faults(link.text(of: reply)) }
        case .stopped: throw FrameHostError(.stopped, what: "stopped while the stage's process was asked")
        case .failed(let reason):
            let text = stage.lose(link, reason)
            context.post(
                "stage-lost", level: .warning, text: "The process of the stage \(text).", details: stage.details)
            do { try countDeath(text) } catch { tooManyDeaths = error }
            throw FrameHostError(.broken, what: "its process \(text)", remedy: "Report this to the plugin's author.")
        }
    }
}

extension Frame {
    /// Copies the pixels to a buffer of the same format.
    fileprivate func copyPixels(to memory: UnsafeMutableRawPointer, _ layout: BufferLayout) {
        for index in 0..<planeCount {
            let plane = mutablePlane(index)
            Self.copy(plane, to: memory + layout.offsets[index], stride: layout.strides[index], isBack: false)
        }
    }

    /// Copies them back.
    fileprivate func copyPixels(from memory: UnsafeMutableRawPointer, _ layout: BufferLayout) {
        for index in 0..<planeCount {
            let plane = mutablePlane(index)
            Self.copy(plane, to: memory + layout.offsets[index], stride: layout.strides[index], isBack: true)
        }
    }

    private static func copy(_ plane: MutablePlane, to memory: UnsafeMutableRawPointer, stride: Int, isBack: Bool) {
        let base = UnsafeMutableRawPointer(plane.baseAddress)
        if plane.strideBytes == stride {
            let count = max(0, (plane.height - 1) * stride + plane.rowBytes)
            if isBack {
                base.copyMemory(from: memory, byteCount: count)
            } else {
                memory.copyMemory(from: base, byteCount: count)
            }
            return
        }
        for row in 0..<plane.height {
            let (own, other) = (base + row * plane.strideBytes, memory + row * stride)
            if isBack {
                own.copyMemory(from: other, byteCount: plane.rowBytes)
            } else {
                other.copyMemory(from: own, byteCount: plane.rowBytes)
            }
        }
    }

    /// Makes the whole picture grey.
    fileprivate mutating func cover() {
        let paint = Paint(RGBColor(red: 128, green: 128, blue: 128), for: format)
        let (width, height) = (format.width, format.height)
        withCanvas { $0.fill(x: 0, y: 0, width: width, height: height, paint) }
    }
}
