// SPDX-License-Identifier: Apache-2.0

import FrameCore
import LiveInput
import Reports

/// What a network source reports of its stream, most of it once.
struct NetworkReports {
    private let options: NetworkSourceOptions
    private let address: NetworkAddress
    private let figures: NetworkFigures
    private let context: StageContext
    private var reported = Reported()
    /// Of the last picture.
    private var shape: PictureShape?
    /// Since when access units have waited for a keyframe.
    var keyframeSince: Int64?

    init(
        _ options: NetworkSourceOptions, _ address: NetworkAddress, _ figures: NetworkFigures, _ context: StageContext
    ) {
        (self.options, self.address, self.figures, self.context) = (options, address, figures, context)
    }

    /// - Parameters:
    ///   - isFresh: Whether the connection has given nothing yet.
    ///   - isGiven: Whether it is a picture that is given, with parts that the decoder guessed.
    mutating func noteDamage(isFresh: Bool, isGiven: Bool = false) {
        figures.add(figures.damaged)
        // What a decoder cannot use before a connection's first picture is not damaged: the connection began in the
        // middle.
        guard !isFresh else { return }
        if isGiven { figures.add(figures.concealed) }
        let count = figures.damaged.load(ordering: .relaxed)
        guard reported.isNextPower("stream-damaged", of: count) else { return }
        let frame = figures.given.load(ordering: .relaxed)
        context.post(
            "stream-damaged", level: .warning,
            text:
                "'\(address.shown)' has \(count == 1 ? "a damaged packet or picture" : "\(count) damaged packets and pictures so far, the last") at picture \(frame)\(isGiven ? ", of which the decoder guessed parts" : "").",
            details: ["damaged": .number(count), "frame": .number(frame)])
    }

    /// Says at the end how many pictures had guessed parts.
    func reportConcealment() {
        let (damaged, concealed) = (
            figures.damaged.load(ordering: .relaxed), figures.concealed.load(ordering: .relaxed)
        )
        guard concealed > 0 else { return }
        context.post(
            "stream-damaged", level: .warning,
            text:
                "\(damaged) \(damaged == 1 ? "packet or picture" : "packets and pictures") of '\(address.shown)' \(damaged == 1 ? "was" : "were") damaged. Of \(concealed) \(concealed == 1 ? "picture that was" : "pictures that were") given the decoder had to guess parts.",
            details: ["damaged": .number(damaged), "concealed": .number(concealed)])
    }

    mutating func reportDrops() {
        context.post(
            "packets-dropped", once: &reported, level: .warning,
            text:
                "The chain is slower than '\(address.shown)': packets up to a keyframe are dropped, and counted in the figure 'dropped'. Set the sender to a smaller size or rate, or use faster stages."
        )
    }

    mutating func reportMissed(_ reader: NetworkReader) {
        let (missed, segments) = reader.missed
        if reported.isNextPower("segments-missed", of: segments) {
            context.post(
                "segments-missed", level: .warning,
                text:
                    "\(segments) \(segments == 1 ? "segment" : "segments") of '\(address.shown)' \(segments == 1 ? "has" : "have") been left out so far: the server does not have what its playlist names, or no longer. Check the server, and how long it keeps segments.",
                details: ["missed": .number(segments)])
        }
        guard reported.isNextPower("packets-missed", of: missed) else { return }
        let remedy =
            options.transport == .udp
            ? "Set \"transport\": \"tcp\", or raise 'latencyMs' or 'bufferBytes'."
            : "The server leaves out what its connection does not take: set it to a lower bitrate, or use a faster network."
        context.post(
            "packets-missed", level: .warning,
            text:
                "\(missed) RTP \(missed == 1 ? "packet" : "packets") of '\(address.shown)' \(missed == 1 ? "has" : "have") been lost so far: pictures or sound are damaged. \(remedy)",
            details: ["missed": .number(missed)])
    }

    /// How long a keyframe may take, nanoseconds.
    private static let keyframePatience: Int64 = 10_000_000_000

    mutating func reportMissingKeyframe() {
        let now = context.clock.now()
        let since = keyframeSince ?? now
        keyframeSince = since
        guard now - since >= Self.keyframePatience else { return }
        let count = figures.skipped.load(ordering: .relaxed)
        context.post(
            "keyframe-missing", once: &reported, level: .warning,
            text:
                "'\(address.shown)' has had no keyframe for 10 s, so nothing of it is given: \(count) access units were left out so far. Set the sender to send keyframes (IDR), no intra refresh; or leave 'decode' out and put an encoder after this stage.",
            details: ["skipped": .number(count)])
    }

    mutating func reportSets() {
        context.post(
            "parameter-sets-changed", once: &reported, level: .warning,
            text:
                "The parameter sets (SPS and PPS, of AV1 the sequence header) of '\(address.shown)' have changed. The stream has the new ones, but the header of a recording and the SDP keep the old ones. If a player shows a damaged picture from there on, leave 'decode' out and put an encoder after this stage."
        )
    }

    /// Reports where the pictures change.
    mutating func look(at found: PictureShape, _ format: VideoFormat, isPlanned: Bool) {
        defer { shape = found }
        let isScaled = found.width != format.width || found.height != format.height
        lookAtColor(found, format)
        guard shape.map({ $0.width != found.width || $0.height != found.height }) ?? (isScaled && !isPlanned)
        else { return }
        let (from, to) = ("\(found.width)x\(found.height)", "\(format.width)x\(format.height)")
        context.post(
            "pictures-scaled",
            text: isScaled
                ? "The pictures are \(from) and are scaled to \(to)."
                : "The pictures are \(from) and are no longer scaled.",
            details: ["from": .string(from), "to": .string(to)])
    }

    /// Reports where range or matrix begin to be converted, and where they end to be.
    private func lookAtColor(_ found: PictureShape, _ format: VideoFormat) {
        let isConverted = !found.hasSamples(of: format)
        guard isConverted != (shape.map { !$0.hasSamples(of: format) } ?? false),
            !PixelConversion(found.pixels).isRGB
        else { return }
        let (from, to) = (found.color.codes, format.color.codes)
        context.post(
            "color-changed",
            text: isConverted
                ? "The pictures' colour is \(from) and is converted to \(to) (range, then primaries-transfer-matrix in numbers of H.273)."
                : "The pictures' colour is \(from) and is no longer converted.",
            details: ["from": .string(from), "to": .string(to)])
    }

    func isBack(_ isFirst: Bool, _ after: Int64, _ terms: StreamTerms?) {
        context.recovering = nil
        context.post(
            "stream-back",
            text:
                "'\(address.shown)' is \(isFirst ? "there" : "back") after \(after / 1_000_000) ms: \(terms?.text ?? "").",
            details: ["awayMs": .number(Int(after / 1_000_000))])
    }

    /// Reports that the stream is lost, or fails where the run must end.
    func isLost(_ action: LiveState.Action?) throws {
        guard let action else { return }
        figures.isStreaming.store(false, ordering: .relaxed)
        figures.add(figures.losses)
        switch action {
        case .fail(let reason):
            throw FrameHostError(
                .unavailable, what: "'\(address.shown)' is lost: \(reason)",
                remedy:
                    "Check its server or sender. To keep the chain running until the stream is back, set \"whileLost\": \"hold\"."
            )
        case .sayLost(let reason):
            context.recovering = "'\(address.shown)' is lost: \(reason)"
            context.post(
                "stream-lost", level: .warning,
                text: "'\(address.shown)' is lost: \(reason). It is opened again when it is back.",
                details: ["reason": .string(reason), "shown": .string(options.whileLost.rawValue)])
        case .sayBack, .sayRefused: break
        }
    }
}
