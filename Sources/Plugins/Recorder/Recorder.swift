import FrameCore

/// Writes access units to an MP4, MOV or MKV file.
///
/// The file is made when the first keyframe arrives, and plays whatever ends the run. Time stamps come back from it as they were given, to
/// the container's tick.
final class Recorder: Sink {
    static let info = StageInfo(
        id: "recorder", summary: "Writes encoded video to an MP4, MOV or MKV file.", input: .encoded(.h264), service: .unbounded)

    var options: RecorderOptions
    private let context: StageContext
    private let path: String
    private let container: Container
    private var format: EncodedFormat?
    private var muxer: MuxerHandle?
    private var orientation = Orientation.up
    private var hasReportedOrientation = false
    private var hasBegun = false

    /// [control thread] Opens nothing.
    init(options: RecorderOptions, context: StageContext) {
        self.options = options
        self.context = context
        path = context.resolve(options.path)
        container = Container(path: options.path) ?? .mp4
    }

    /// [control thread] Looks at the place of the file and creates nothing.
    func negotiate(_ input: MediaFormat) throws {
        guard let format = input.encoded, format.framing == .annexB, !format.parameterSets.isEmpty else {
            throw FrameHostError(.broken, what: "the recorder takes H.264 with start codes and parameter sets, and was offered \(input)")
        }
        if let fault = RecordingFault.ofPath(path, overwrite: options.overwrite) { throw fault }
        guard container.carriesOrientation || format.video.orientation == .up else {
            throw FrameHostError(
                .invalidConfiguration, what: "a Matroska file cannot say that its pictures are to be shown \(format.video.orientation)",
                remedy: "Record to .mp4 or .mov, or put a 'crop-orient' before the encoder, which turns the pictures.")
        }
        self.format = format
    }

    /// [stage thread] Writes one access unit.
    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        switch consume input {
        case .accessUnit(let unit): return try record(unit)
        case .frame: throw FrameHostError(.broken, what: "the recorder was handed a raw frame")
        }
    }

    /// [stage thread] Finishes the file.
    func drain() throws { try finish() }

    /// [stage thread] Finishes the file with what it has, also when the run was stopped or has failed elsewhere.
    func stop() throws {
        try finish()
        guard !hasBegun, format != nil else { return }
        hasBegun = true
        context.log("nothing came to be recorded; '\(path)' was not written", level: .warning)
    }

    private func record(_ unit: consuming AccessUnit) throws -> SinkVerdict {
        if muxer == nil {
            // What comes before the first keyframe cannot be decoded.
            guard unit.isKeyframe else { return .dropped(.untilKeyframe) }
            try begin(unit)
        }
        if unit.orientation != orientation { reportOrientation(unit) }
        do { try muxer!.write(unit) } catch { throw failed(error) }
        return .delivered
    }

    private func begin(_ unit: borrowing AccessUnit) throws {
        guard let format else { throw FrameHostError(.broken, what: "the recorder was handed an access unit before its format") }
        orientation = container.carriesOrientation ? unit.orientation : .up
        hasBegun = true
        do {
            muxer = try MuxerHandle(
                path: path, container: container, format: format, orientation: orientation, overwrite: options.overwrite)
        } catch { throw failed(error) }
        context.post("recording-did-start", text: "recording to '\(path)'", details: ["path": .string(path)])
    }

    private func finish() throws {
        guard let muxer else { return }
        do { try muxer.finish() } catch { throw failed(error) }
        self.muxer = nil
        let seconds = RecordingFault.shortSeconds(muxer.span.seconds)
        context.post(
            "recording-did-stop", text: "'\(path)' has \(RecordingFault.count(muxer.frames)) (\(seconds) s, \(muxer.savedBytes) bytes)",
            details: [
                "path": .string(path), "frames": .number(muxer.frames), "bytes": .number(muxer.savedBytes),
                "seconds": .number(muxer.span.seconds),
            ])
    }

    private func failed(_ error: any Error) -> any Error {
        let saved = muxer?.savedFrames ?? 0
        muxer = nil
        context.post(
            "recording-did-fail", level: .error, text: "\(FrameHostError.wrap(error))",
            details: ["path": .string(path), "savedFrames": .number(saved)])
        return error
    }

    private func reportOrientation(_ unit: borrowing AccessUnit) {
        guard !hasReportedOrientation else { return }
        hasReportedOrientation = true
        context.post(
            "orientation-not-carried", level: .warning,
            text: "from frame \(unit.sequenceNumber) on the pictures are to be shown \(unit.orientation);"
                + " '\(path)' keeps saying \(orientation)")
    }
}
