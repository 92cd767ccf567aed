// SPDX-License-Identifier: Apache-2.0

import CodedVideo
import FrameCore
import FrameSupport
import LiveInput
import Shared

/// What a chain is planned for: the stream that is there, or the one that is expected.
final class NetworkPlan {
    private let options: NetworkSourceOptions
    private let address: NetworkAddress
    private let context: StageContext
    private(set) var reader: NetworkReader?
    private(set) var format: VideoFormat?
    private(set) var planned: StreamTerms?
    private(set) var encoded: EncodedFormat?
    private(set) var slate: Slate?

    /// [control thread] Opens nothing.
    init(_ options: NetworkSourceOptions, _ address: NetworkAddress, _ context: StageContext) {
        (self.options, self.address, self.context) = (options, address, context)
    }

    /// What the stage waits for to be planned.
    private struct Opening {
        var expected: (stream: RememberedStream, isRemembered: Bool)?
        /// Whether a connection is made; the chain begins without the stream where none is.
        var connects = true
    }
    private var opening: Result<Opening, any Error>?

    /// [control thread] Begins to connect.
    func begin() { opening = Result { try open() } }

    /// [control thread] Opens nothing where the stream may be missing.
    private func open() throws -> Opening {
        slate = try Slate(
            color: options.slateColor, picturePath: options.slatePicture.map(context.resolve), text: options.slateText)
        let login = try options.login.map { try ServerLogin.read($0, resolve: context.resolve) }
        let settings = NetworkInput.Settings(
            address: address, login: login,
            trust: try CertificateTrust(verify: options.verify, caFile: options.caFile.map(context.resolve)),
            isDecoded: options.decode, takesSound: context.takenOutputs.contains("audio"), takesUnits: takesUnits,
            transport: options.transport,
            connectSeconds: options.connectSeconds,
            stallSeconds: options.stallSeconds ?? (address.scheme.isPacedByStream ? 20 : 3),
            latencyMs: options.latencyMs, bufferBytes: options.bufferBytes, probeBytes: options.probeBytes,
            analyzeSeconds: options.analyzeSeconds, noBuffer: options.noBuffer)
        if let login, let most = address.scheme.mostLoginBytes, settings.isLoginTooLong, !settings.canUseClient {
            throw NetworkFault.loginTooLong(
                login.encoded.utf8.count, most: most, isOverUDP: address.scheme == .rtsp)
        }
        if address.scheme.isSecured, !options.verify {
            context.note(
                "any server can pose as '\(address.shown)': \"verify\": false accepts any certificate",
                isWarning: true)
        }
        let mayMiss = options.ifMissing == .wait
        let givesUnits = !options.decode || takesUnits
        if options.codec != nil, !givesUnits { throw NetworkFault.codecWithoutUnits(context.stageID) }
        let memory = mayMiss && givesUnits ? StreamMemory(url: options.url) : nil
        let expected = memory.flatMap(expected)
        if let obstacle = memory?.obstacle {
            context.note(
                "what '\(address.shown)' is cannot be remembered for a later start without it: \(obstacle). Name a folder in the variable STATE_DIRECTORY",
                isWarning: true)
        }
        let reader = NetworkReader(
            settings, stageID: context.stageID, failsAtOnce: !mayMiss || (givesUnits && expected == nil),
            memory: memory)
        self.reader = reader
        StreamReaders.add(reader, of: context)
        let opening = Opening(expected: expected, connects: expected == nil && (!mayMiss || givesUnits))
        if opening.connects { try reader.start() }
        return opening
    }

    /// [control thread] Waits for the stream at most `connectSeconds`.
    func negotiate() throws -> MediaFormat {
        let opening = try (self.opening ?? Result { try open() }).get()
        self.opening = nil
        if let expected = opening.expected { return plan(expected.stream, isRemembered: expected.isRemembered) }
        guard opening.connects, let reader else { return planPicturesWithout() }
        let mayMiss = options.ifMissing == .wait
        do {
            let terms = try firstTerms(of: reader)
            return try plan(terms)
        } catch {
            reader.end()
            var fault = FrameHostError.wrap(error)
            fault.isAwaited = mayMiss && fault.code == .unavailable
            if fault.isAwaited, options.codec == nil, options.decode || !context.takenOutputs.contains("audio") {
                fault.remedy +=
                    " To start the chain without the stream, set 'codec'\(options.size == nil ? " and 'size'" : "")."
            }
            throw fault
        }
    }

    private var takesUnits: Bool { options.decode && context.takenOutputs.contains("units") }

    private func planPicturesWithout() -> MediaFormat {
        let format = plannedWithout()
        self.format = format
        context.note(
            "'\(address.shown)' is opened when the chain runs. The chain is planned for \(format.width)x\(format.height) at \(format.frameRate.short) fps in i420"
        )
        return .video(format)
    }

    /// What a stream that is passed on, and may be missing, is planned for; nil where that is not known, and the chain
    /// begins with the stream.
    private func expected(_ memory: StreamMemory) -> (stream: RememberedStream, isRemembered: Bool)? {
        // Sound that is decoded is converted to what the chain was planned for.
        let takesSound = !options.decode && context.takenOutputs.contains("audio")
        let known = memory.read().flatMap { !takesSound || $0.sound != nil ? $0 : nil }
        guard let codec = options.codec?.codec, let size = options.size else { return known.map { ($0, true) } }
        // Beside decoded pictures 'size' is theirs too, and they may be scaled.
        if let known, known.video.codec == codec,
            options.decode || known.video.video.map({ PictureSize($0.width, $0.height) }) == size
        {
            return (known, true)
        }
        guard !takesSound else { return nil }
        let framing = UnitCoding(codec)?.framing ?? .annexB
        return (RememberedStream(video: EncodedFormat(codec: codec, framing: framing, video: plannedWithout())), false)
    }

    private func plan(_ expected: RememberedStream, isRemembered: Bool) -> MediaFormat {
        var encoded = expected.video
        if let rate = options.rate { encoded.video?.frameRate = rate.rational }
        guard !options.decode else {
            reader?.expectedUnits = encoded
            return planPicturesWithout()
        }
        reader?.expect(encoded, sound: expected.sound, isWritten: !isRemembered)
        format = encoded.video
        self.encoded = encoded
        let why =
            isRemembered
            ? "which it was when it was last there" : "as 'codec', 'size' and 'rate' say"
        context.note("'\(address.shown)' is opened when the chain runs. The chain is planned for \(encoded), \(why)")
        return .encoded(encoded)
    }

    private func firstTerms(of reader: NetworkReader) throws -> StreamTerms {
        // The reader ends within `connectSeconds` unless it looks up a name.
        let limit = MonotonicTime.now() + Int64((options.connectSeconds + 0.5) * 1e9)
        switch reader.queue.look(until: limit, unless: { context.isStopped }) {
        case .opened(let terms): return terms
        case .refused(let fault): throw fault
        default:
            if context.isStopped { throw FrameHostError(.stopped, what: "stopped while connecting") }
            throw NetworkFault.noAnswer(
                address.shown, seconds: options.connectSeconds, mayWait: options.ifMissing == .fail)
        }
    }

    private func plan(_ terms: StreamTerms) throws -> MediaFormat {
        planned = terms
        reader?.planned = terms
        let size = options.size ?? PictureSize(terms.shape.width, terms.shape.height)
        let isScaled = size != PictureSize(terms.shape.width, terms.shape.height)
        var format = terms.video(rate: options.rate?.rational)
        if isScaled {
            format.sampleAspectRatio = Rational(1)
            format = format.resized(to: size)
        }
        self.format = format
        // Who only looks at the pictures need not hear of it.
        let sound =
            terms.leavesSound && (!options.decode || takesUnits)
            ? ", and sound that no stage takes. To use it, link \"from\": \"\(context.stageID).audio\" too" : ""
        context.note("'\(address.shown)' gives \(terms.text)\(isScaled ? ", scaled to \(size)" : "")\(sound)")
        guard !options.decode else { return .video(format) }
        let encoded = terms.encoded(rate: options.rate?.rational)
        reader?.expect(encoded, sound: terms.sound?.format, isWritten: false)
        self.encoded = encoded
        return .encoded(encoded)
    }

    /// The format for a stream that is not there yet: the pictures of every stream can be converted to it.
    private func plannedWithout() -> VideoFormat {
        let size = options.size ?? PictureSize(1280, 720)
        return VideoFormat(
            .i420, width: size.width, height: size.height, frameRate: options.rate?.rational ?? Rational(25),
            color: ColorDescription(range: .video, matrix: 1, primaries: 1, transfer: 1, chromaSiting: 1),
            sampleAspectRatio: Rational(1))
    }
}
