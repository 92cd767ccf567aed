// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

/// An encoder in the small: each frame's first pixel as an access unit, a keyframe every `gop`. It numbers the units
/// that it gives, so a frame that was lost before it leaves no hole.
final class UnitEncoder: Transform {
    static let info = StageInfo(
        id: "unit-encoder", summary: "Encodes.", input: .video(.gray8), output: .encoded(.h264))

    struct Options: StageOptions {
        @Option(help: "Frames from keyframe to keyframe.", range: 1...1_000_000) var gop = 10
        @Option(help: "Bytes of a unit.", range: 9...1_000_000) var bytes = 100
        @Option(help: "Throws at this frame, after its answer.", range: -1...100_000) var failAfter = -1
    }

    var options: Options
    private var isWished = false
    private var count = 0
    init(options: Options, context: StageContext) { self.options = options }

    func keyframeRequested() { isWished = true }

    func negotiate(_ input: MediaFormat) throws -> MediaFormat {
        guard let video = input.video else { throw FrameHostError(.broken, what: "no video") }
        return .encoded(EncodedFormat(codec: .h264, video: video))
    }

    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame(let frame) = consume input else { return }
        let number = count
        count += 1
        var unit = try output.makeAccessUnit(byteCount: options.bytes)
        unit.withMutableBytes { $0[0] = frame.withPlane(0) { $0.row(0)[0] } }
        unit.pts = frame.pts
        unit.dts = frame.pts
        unit.sequenceNumber = UInt64(number)
        unit.isKeyframe = number % options.gop == 0 || isWished
        isWished = false
        try output.emit(unit)
        if number == options.failAfter { throw FrameHostError(.callFailed, what: "the encoder was told to fail") }
    }
}

/// Takes access units; wishes for a keyframe when it has seen the unit `wishAt`, and remembers what keyframes came.
final class UnitSink: Sink {
    static let info = StageInfo(id: "unit-sink", summary: "Takes units.", input: .encoded(.h264), service: .unbounded)

    struct Options: StageOptions {
        @Option(help: "Unit after which a keyframe is wished for.", range: -1...100_000) var wishAt = -1
        @Option(help: "Name under which keyframes are found.") var log = ""
    }

    private static let logs = Locked<[String: [UInt64]]>([:])
    static func keyframes(_ name: String) -> [UInt64] { logs.withLock { $0[name] ?? [] } }

    var options: Options
    private let context: StageContext

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        guard case .accessUnit(let unit) = consume input else { return .dropped(.byStage) }
        if Int(unit.sequenceNumber) == options.wishAt { for _ in 0..<10 { context.keyframeRequest?.raise() } }
        if !options.log.isEmpty, unit.isKeyframe {
            Self.logs.withLock { $0[options.log, default: []].append(unit.sequenceNumber) }
        }
        return .delivered
    }
}
