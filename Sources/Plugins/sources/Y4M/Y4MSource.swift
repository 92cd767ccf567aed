// SPDX-License-Identifier: Apache-2.0

import FrameCore

struct Y4MSourceOptions: StageOptions {
    @Option(help: "A named pipe or file to read; - is standard input.") var path = "-"

    @Option(
        help: "Frames per second, in place of the stream's own rate.", range: FrameRate(1, 1000)...FrameRate(100_000))
    var rate: FrameRate? = nil

    func validate() throws(OptionFault) {
        try PipePath.check(path, .input)
    }
}

/// Reads raw video that another program writes: y4m from standard input or a named pipe.
///
/// Frame `k` has the PTS `k / rate`. docs/design/020-pictures-and-pipes.md.
final class Y4MSource: Source {
    static let info = StageInfo(
        id: "y4m-source", summary: "Reads raw video (y4m) from standard input or a pipe.",
        output: .video(.i420, .yuyv, .gray8, .i010))

    var options: Y4MSourceOptions
    private let context: StageContext
    private let path: PipePath
    private var name: String { path.name }
    private var reader: PipeReader?
    private var header: Y4MHeader?
    private var tick = TimeBase.nanoseconds

    private enum Part { case line, picture }
    private var part = Part.line
    private var line: [UInt8] = []
    /// The samples of one picture as they come.
    private var samples: UnsafeMutableRawBufferPointer?
    private var filled = 0
    private var pictures = 0

    /// The most bytes of the line before a picture: `FRAME`, and parameters that are not used.
    private static let mostLineBytes = 1024
    /// Seconds that `check` and the start wait for a stream to begin.
    private static let patience = 30

    /// [control thread] Opens nothing.
    init(options: Y4MSourceOptions, context: StageContext) {
        self.options = options
        self.context = context
        path = PipePath(options.path, .input, context)
    }

    deinit { samples?.deallocate() }

    // MARK: Setup

    /// [control thread] Waits for the header and reads it. Reads nothing after it, except what a pipe gives together
    /// with it.
    func negotiate() throws -> MediaFormat {
        let reader = try PipeReader(path.path, of: context)
        let header = try readHeader(reader)
        guard let rate = options.rate?.rational ?? (header.rate.isZero ? nil : header.rate) else {
            throw PipeFault.noRate(name)
        }
        if header.isInterlaced {
            context.note(
                "the pictures are interlaced and are passed on unchanged; deinterlace them in the program that writes them (ffmpeg: '-vf bwdif')",
                isWarning: true)
        }
        (self.reader, self.header) = (reader, header)
        let format = header.videoFormat(rate: rate)
        tick = format.timeBase
        return .video(format)
    }

    private func readHeader(_ reader: PipeReader) throws -> Y4MHeader {
        var line: [UInt8] = []
        let mostTurns = Self.patience * 1000 / Int(PipeReader.wait)
        var turns = 0
        while true {
            switch reader.readLine(into: &line, atMost: Y4MHeader.mostBytes) {
            case .whole:
                do throws(Y4MHeader.Fault) { return try Y4MHeader(line) } catch { throw PipeFault.header(error, name) }
            case .tooLong: throw PipeFault.header(Y4MHeader.fault(ofLongLine: line), name)
            case .nothing:
                turns += 1
                if turns >= mostTurns { throw PipeFault.noHeader(name, seconds: Self.patience) }
            case .ended:
                guard line.isEmpty else {
                    throw PipeFault.header(
                        Y4MHeader.Fault(what: "ends within its first line", remedy: Y4MHeader.makeIt), name)
                }
                throw PipeFault.empty(name)
            case .failed(let code): throw PipeFault.readFailed(name, code)
            }
        }
    }

    private var pictureBytes: Int { header.map { $0.format.byteCount(width: $0.width, height: $0.height) } ?? 0 }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.ownBytes = pictureBytes
        demand.claims = path.claims(
            remedy:
                "Leave this stage out and name the other one in 'from' of the stages that need its pictures, or name a pipe made with 'mkfifo'."
        )
        demand.readsFiles = path.path.map { [$0] } ?? []
        return demand
    }

    /// [setup thread] Takes memory for a picture.
    func start() {
        samples = .allocate(byteCount: pictureBytes, alignment: 64)
        line.reserveCapacity(Self.mostLineBytes + 1)
    }

    /// [stage thread]
    func stop() { reader = nil }

    // MARK: Pictures

    /// [stage thread] Reads a picture, or a part of one. No wait is longer than ``PipeReader/wait``.
    func produce(_ output: Output) throws -> SourceProgress {
        if context.isEnded { return .ended }
        guard let reader, let samples else { return .ended }
        if part == .line {
            switch reader.readLine(into: &line, atMost: Self.mostLineBytes) {
            case .whole: try beginPicture()
            case .tooLong: throw PipeFault.noFrame(name, picture: pictures)
            case .nothing: return .more
            case .ended: return try end()
            case .failed(let code): throw PipeFault.readFailed(name, code)
            }
        }
        while filled < samples.count {
            switch reader.read(into: samples.baseAddress! + filled, samples.count - filled) {
            case .bytes(let count): filled += count
            case .nothing: return .more
            case .ended: return try end()
            case .failed(let code): throw PipeFault.readFailed(name, code)
            }
            if context.isEnded { return .ended }
        }
        try emit(samples, output)
        return .more
    }

    private func beginPicture() throws {
        guard line.starts(with: Self.frameWord), line.count == 5 || line[5] == 32 else {
            throw PipeFault.noFrame(name, picture: pictures)
        }
        line.removeAll(keepingCapacity: true)
        part = .picture
        filled = 0
    }

    private static let frameWord = Array("FRAME".utf8)

    private func emit(_ samples: UnsafeMutableRawBufferPointer, _ output: Output) throws {
        guard var frame = try output.makeFrame() else { return }
        Y4MPicture.unpack(samples.baseAddress!.assumingMemoryBound(to: UInt8.self), to: &frame)
        frame.pts = tick.time(ofTicks: Int64(pictures))
        frame.duration = tick.time(ofTicks: Int64(pictures) + 1) - frame.pts
        pictures += 1
        part = .line
        try output.emit(frame)
    }

    /// The writer has closed its end.
    private func end() throws -> SourceProgress {
        if part == .line, line.isEmpty {
            guard pictures > 0 else { throw PipeFault.noPicture(name) }
            return .ended
        }
        throw PipeFault.cut(name, picture: pictures, bytes: part == .line ? 0 : filled, of: pictureBytes)
    }
}
