// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

/// What `MarkFilter` says of a frame.
struct Mark: FrameMetadata, Equatable {
    static let metadataName = "mark"
    var number: UInt64
    var text: String
}

/// Says of each frame its number; turns every third and lets a gap come before every tenth.
final class MarkFilter: Filter {
    static let info = StageInfo(
        id: "mark", summary: "Marks.", input: .anyVideo, output: .sameAsInput, metadata: [Mark.self])
    typealias Options = NoOptions
    var options: NoOptions
    private let context: StageContext
    private var slot: MetadataSlot<Mark>!

    init(options: NoOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    func start() { slot = context.slot(for: Mark.self) }

    func process(_ frame: inout Frame) throws -> Verdict {
        let number = frame.sequenceNumber
        frame[slot] = Mark(number: number, text: "a text of frame \(number) that lies on the heap")
        frame.orientation = number % 3 == 0 ? .right : .up
        if number % 10 == 0 { frame.isDiscontinuity = true }
        frame.isMirroredInPreviews = number % 7 == 0
        frame.duration = MediaTime(nanoseconds: Int64(number) + 1)
        return .forward
    }
}

/// An encoder that holds pictures and reorders them: of each group the last comes first. Sets what only it knows: PTS,
/// DTS, keyframe; in the payload the picture's number.
final class ReorderingEncoder: Transform {
    static let info = StageInfo(
        id: "reordering-encoder", summary: "Reorders.", input: .video(.gray8), output: .encoded(.h264), delay: 9)

    struct Options: StageOptions {
        @Option(help: "Pictures before the one they are coded after.", range: 0...8) var bframes = 3
        @Option(help: "Drops every n-th picture, from the first on.", range: 0...1000) var dropEvery = 0
        @Option(help: "Times are off by so many nanoseconds.", range: -1000...1000) var off = 0
    }

    private struct Picture {
        var number: UInt64
        var pts: MediaTime
    }

    var options: Options
    private var waiting: [Picture] = []
    private var lastAccepted: [MediaTime] = [MediaTime(nanoseconds: -1)]

    init(options: Options, context: StageContext) { self.options = options }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.delay = options.bframes
        return demand
    }
    var held: Int { waiting.count }

    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        .encoded(EncodedFormat(codec: .h264, video: input.video!, reorderDepth: options.bframes == 0 ? 0 : 1))
    }

    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame(let frame) = consume input else { return }
        if options.dropEvery > 0, Int(frame.sequenceNumber) % options.dropEvery == 0 {
            return output.drop(.byStage)
        }
        waiting.append(Picture(number: frame.sequenceNumber, pts: frame.pts))
        lastAccepted.append(frame.pts)
        if waiting.count > options.bframes { try emitAll(output) }
    }

    func drain(_ output: Output) throws { try emitAll(output) }

    private func emitAll(_ output: Output) throws {
        if let last = waiting.popLast() { waiting.insert(last, at: 0) }
        while !waiting.isEmpty {
            let picture = waiting.removeFirst()
            var unit = try output.makeAccessUnit(byteCount: 8)
            unit.withMutableBytes { $0.storeBytes(of: picture.number, as: UInt64.self) }
            unit.pts = MediaTime(nanoseconds: picture.pts.nanoseconds + Int64(options.off))
            // The time of the picture accepted before: no unit is decoded later than it is shown.
            unit.dts = MediaTime(nanoseconds: lastAccepted.removeFirst().nanoseconds + Int64(options.off))
            unit.isKeyframe = true
            try output.emit(unit)
        }
    }
}

/// A decoder that gives the pictures in the order of their times, one `depth` late, and sets nothing but the time.
final class SortingDecoder: Transform {
    static let info = StageInfo(
        id: "sorting-decoder", summary: "Sorts.", input: .encoded(.h264), output: .video(.gray8), delay: 8)

    struct Options: StageOptions {
        @Option(help: "Pictures held.", range: 0...8) var depth = 4
    }

    var options: Options
    private var waiting: [MediaTime] = []
    init(options: Options, context: StageContext) { self.options = options }
    var held: Int { waiting.count }
    func negotiate(_ input: MediaFormat) throws -> MediaFormat { .video(input.encoded!.video!) }

    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .accessUnit(let unit) = consume input else { return }
        waiting.append(unit.pts)
        waiting.sort()
        if waiting.count > options.depth { try give(output) }
    }

    func drain(_ output: Output) throws { while !waiting.isEmpty { try give(output) } }

    private func give(_ output: Output) throws {
        guard let frame = try output.makeFrame() else { return }
        frame.pts = waiting.removeFirst()
        try output.emit(frame)
    }
}

/// Remembers what items say of themselves, and what `MarkFilter` said of their picture.
final class MarkSink: Sink {
    static let info = StageInfo(
        id: "mark-sink", summary: "Remembers.", input: .any, service: .unbounded, metadata: [Mark.self])

    struct Options: StageOptions {
        @Option(help: "Name under which the log is found.") var log = ""
    }

    struct Entry: Sendable {
        /// Of the picture that was encoded; of a frame its own number.
        var picture: UInt64
        var mark: Mark?
        var number: UInt64
        var duration: MediaTime
        var capturedAt: Int64
        var orientation: Orientation
        var isDiscontinuity: Bool
        var isMirrored: Bool

        /// All that `MarkFilter` and the source said is of this picture.
        var isWhole: Bool {
            number == picture && mark?.number == picture && mark?.text.contains(" \(picture) ") ?? false
                && duration.nanoseconds == Int64(picture) + 1 && capturedAt > 0
                && orientation == (picture % 3 == 0 ? .right : .up) && isDiscontinuity == (picture % 10 == 0)
                && isMirrored == (picture % 7 == 0)
        }
    }

    private static let logs = Locked<[String: [Entry]]>([:])
    static func log(_ name: String) -> [Entry] { logs.withLock { $0[name] ?? [] } }

    var options: Options
    private let context: StageContext
    private var slot: MetadataSlot<Mark>!
    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    func start() { slot = context.slot(for: Mark.self) }

    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        let entry: Entry
        switch consume input {
        case .accessUnit(let unit):
            entry = Entry(
                picture: unit.withBytes { $0.load(as: UInt64.self) }, mark: unit[slot], number: unit.sequenceNumber,
                duration: unit.duration, capturedAt: unit.capturedAt, orientation: unit.orientation,
                isDiscontinuity: unit.isDiscontinuity, isMirrored: unit.isMirroredInPreviews)
        case .frame(let frame):
            entry = Entry(
                picture: UInt64(frame.pts.nanoseconds / 1_000_000), mark: frame[slot], number: frame.sequenceNumber,
                duration: frame.duration, capturedAt: frame.capturedAt,
                orientation: frame.orientation, isDiscontinuity: frame.isDiscontinuity,
                isMirrored: frame.isMirroredInPreviews)
        case .audioBlock: return .dropped(.byStage)
        case .motionBlock: return .dropped(.byStage)
        }
        Self.logs.withLock { $0[options.log, default: []].append(entry) }
        return .delivered
    }
}
