// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Reports

/// The reports of a source about its file, each once, or once more when it changes.
///
/// Used by one thread at a time, first by the control thread.
final class FileReports {
    private let context: StageContext
    private let path: String
    private let track: VideoTrack
    private var reported = Reported()
    private var shape: PictureShape
    private var orientation: Orientation

    init(_ context: StageContext, path: String, track: VideoTrack) {
        self.context = context
        self.path = path
        self.track = track
        orientation = track.format.orientation
        shape = track.shape
    }

    // MARK: At the start

    /// - Parameter offered: The track that the output `audio` gives, by its index; nil where there is no such output.
    func notCarried(_ tracks: [OtherTrack], offered: Int?) { context.reportNotCarried(tracks, offered: offered) }

    func notCarried(sideData names: [String], of kind: String, _ number: Int) {
        for name in names {
            context.post(
                "track-not-carried",
                text: "What the \(kind) track \(number) says beside its packets ('\(name)') is dropped.",
                details: ["kind": .string(kind), "track": .number(number), "codec": .string(name)])
        }
    }

    /// - Parameter isDecoded: Whether pictures are given, not access units.
    func conversion(isDecoded: Bool) {
        let conversion = track.conversion
        if conversion.isConverted || track.converted != nil, isDecoded {
            let name = track.converted ?? conversion.name
            context.post(
                "pixels-converted",
                text: "The pictures are \(name) and are converted to \(conversion.target.rawValue).",
                details: ["from": .string(name), "to": .string(conversion.target.rawValue)])
        }
        if track.hasOddRotation { oddRotation(shownAs: track.format.orientation) }
    }

    private func oddRotation(shownAs orientation: Orientation) {
        context.post(
            "rotation-not-carried", level: .warning,
            text:
                "The file asks for a rotation that is not a multiple of 90°. Its pictures are shown \(orientation) instead."
        )
    }

    // MARK: While it plays

    /// Reports where the pictures change within the file.
    func look(at found: PictureShape) {
        guard found != shape else { return }
        defer { shape = found }
        if found.width != shape.width || found.height != shape.height || found.plainPixels != shape.plainPixels {
            return scaling(found)
        }
        if found.aspect != shape.aspect {
            context.post(
                "aspect-changed",
                text:
                    "The sample aspect ratio changes from \(shape.aspect.ratio) to \(found.aspect.ratio). The pictures are scaled to keep their shape.",
                details: ["from": .string(shape.aspect.ratio), "to": .string(found.aspect.ratio)])
        }
        if found.color.codes != shape.color.codes {
            let first = track.shape.color
            let isKept = found.color.primaries != first.primaries || found.color.transfer != first.transfer
            context.post(
                "color-changed", level: isKept ? .warning : .info,
                text:
                    "The pictures' colour changes from \(shape.color.codes) to \(found.color.codes) (range, then primaries-transfer-matrix in numbers of H.273). Range and matrix are converted to those of the file's first pictures\(isKept ? ", but primaries and transfer are not" : "").",
                details: ["from": .string(shape.color.codes), "to": .string(found.color.codes)])
        }
    }

    private func scaling(_ found: PictureShape) {
        let format = track.format
        let (from, to) = (found.size, "\(format.pixelFormat.rawValue) \(format.width)x\(format.height)")
        let isBack = found.size == track.shape.size
        let how = found.width == format.width && found.height == format.height ? "converted" : "scaled"
        context.post(
            "pictures-scaled",
            text: isBack
                ? "The pictures are \(from) again, as at the start of the file."
                : "The pictures change to \(from) and are \(how) to \(to).",
            details: ["from": .string(from), "to": .string(to)])
    }

    func orientation(_ found: (value: Orientation, isExact: Bool), isFirst: Bool) {
        guard found.value != orientation else { return }
        if !found.isExact { oddRotation(shownAs: found.value) }
        if !isFirst {
            context.post(
                "orientation-changed",
                text: "The orientation is \(found.value) from here on, no longer \(orientation).",
                details: ["from": .string("\(orientation)"), "to": .string("\(found.value)")])
        }
        orientation = found.value
    }

    func interlacing(isUndone: Bool) {
        context.post(
            "interlaced", once: &reported, level: isUndone ? .info : .warning,
            text: isUndone
                ? "The pictures are interlaced and are deinterlaced."
                : "The pictures are interlaced and are passed on unchanged. To deinterlace them, set \"deinterlace\": true."
        )
    }

    func packetsBeforeKeyframe(_ count: Int) {
        guard count > 0 else { return }
        context.post(
            "keyframe-missing", once: &reported, level: .warning,
            text:
                "'\(path)' does not start with a keyframe: \(Self.count(count, "packet")) before the first keyframe cannot be shown.",
            details: ["packets": .number(count)])
    }

    /// Reports pictures that refer to some before the keyframe at which reading begins.
    func leadingPictures(_ leading: LeadingPictures) {
        guard leading.leftOut > 0 else { return }
        context.post(
            "keyframe-missing", once: &reported,
            text:
                "'\(path)' is begun at a keyframe that others are shown before: \(Self.count(leading.leftOut, "picture")) behind it cannot be decoded there and \(leading.leftOut == 1 ? "is" : "are") left out.",
            details: ["packets": .number(leading.leftOut)])
    }

    func impossibleTimes(_ times: TrackTimes) {
        guard let first = times.firstImpossible else { return }
        context.post(
            "times-impossible", once: &reported, level: .warning,
            text:
                "'\(path)' gives a picture the time \(first), in ticks of \(times.timeBase) s, but a time must lie within 73 years of 0. Such pictures are shown directly after the picture before them.",
            details: ["ticks": .number(first)])
    }

    /// Reports that the file's times begin anew, as where recordings were joined.
    func step(_ step: InputTimeline.Step) {
        let seconds = abs(step.by.seconds)
        let length = seconds < 10 ? "\((seconds * 100).rounded() / 100)" : "\(Int64(clamping: Int(seconds.rounded())))"
        context.post(
            "times-step",
            text:
                "The times of '\(path)' step \(step.by < .zero ? "back" : "ahead") by \(length) s, as where recordings were joined. All of its tracks go on without a gap.",
            details: ["seconds": .number(step.by.seconds), "atSeconds": .number(step.at.seconds)])
    }

    /// Reports, at the end, single times that were far from their neighbours.
    func outliers(_ count: Int, first: MediaTime) {
        context.post(
            "times-corrected", level: .warning,
            text: count == 1
                ? "1 packet of '\(path)' had a time far from those around it, \(first.seconds) s; it is played between its neighbours."
                : "\(count) packets of '\(path)' had times far from those around them, the first \(first.seconds) s; each is played between its neighbours.",
            details: ["packets": .number(count), "firstSeconds": .number(first.seconds)])
    }

    /// Reports that a file of a list has grown since the list was opened.
    func grows(beyond end: MediaTime) {
        context.post(
            "file-grew", level: .warning,
            text:
                "'\(path)' has grown since the list was opened: it is played up to \(end.shortSeconds) s, as long as it was. Play it again once it is complete, or play it alone.",
            details: ["endSeconds": .number(end.seconds)])
    }

    /// Reports new parameter sets of access units that are passed on.
    func parameterSetsChange() {
        context.post(
            "parameter-sets-changed", once: &reported, level: .warning,
            text:
                "The parameter sets (SPS and PPS, of AV1 the sequence header) of '\(path)' change in the middle of the file. The stream has the new ones, but the header of a recording and the SDP keep the old ones. If a player shows a damaged picture from there on, leave 'decode' out and put an encoder after this stage."
        )
    }

    /// Reports, in real time, that nothing comes for a long time.
    func waiting(_ time: MediaTime, at end: MediaTime) {
        context.post(
            "gap", level: .warning,
            text:
                "'\(path)' has no picture for \(Int64(time.seconds.rounded())) s from \(end.seconds) s on. With \"pace\": \"realtime\" the chain waits that long.",
            details: ["seconds": .number(time.seconds), "atSeconds": .number(end.seconds)])
    }

    /// Reports damage as it is found: the 1st, 10th, 100th … packet or picture.
    ///
    /// - Parameter time: Of the picture that is about to be given.
    func damage(_ count: Int, at time: MediaTime) {
        guard reported.isNextPower("file-damaged", of: count) else { return }
        let place = count == 1 ? "at" : "in \(Self.count(count, "place")) so far, the last at"
        context.post(
            "file-damaged", level: .warning,
            text: "'\(path)' is damaged \(place) \(time.seconds) s; what can be decoded is played.",
            details: ["damaged": .number(count), "atSeconds": .number(time.seconds)])
    }

    // MARK: At the end

    /// - Parameters:
    ///   - concealed: How many of them are pictures that were given.
    ///   - first: The time of the first of those.
    func damageAltogether(_ count: Int, concealed: Int, first: MediaTime?) {
        guard count > 0, reported.isFirst("file-damaged altogether") else { return }
        var guessed = ""
        if concealed > 0 {
            guessed =
                " Of \(Self.count(concealed, "picture")) that \(concealed == 1 ? "was" : "were") given the decoder had to guess parts"
                + (first.map { ", \(concealed == 1 ? "" : "the first ")at \($0.seconds) s" } ?? "") + "."
        }
        context.post(
            "file-damaged", level: .warning,
            text:
                "\(Self.count(count, "packet or picture", "packets or pictures")) of '\(path)' \(count == 1 ? "was" : "were") damaged;"
                + " the rest was played.\(guessed)",
            details: ["damaged": .number(count), "concealed": .number(concealed)])
    }

    func impossibleTimesAltogether(_ times: TrackTimes) {
        guard times.impossible > 0, let first = times.firstImpossible else { return }
        context.post(
            "times-impossible", level: .warning,
            text:
                times.impossible == 1
                ? "1 time stamp of '\(path)' was impossible, \(first) in ticks of \(times.timeBase) s: a time must lie within 73 years of 0. It counts as directly after the picture before it, or as the start where there is none."
                : "\(times.impossible) time stamps of '\(path)' were impossible, the first \(first) in ticks of \(times.timeBase) s: a time must lie within 73 years of 0. Each counts as directly after the picture before it, or as the start where there is none.",
            details: ["ticks": .number(first), "pictures": .number(times.impossible)])
    }

    func timelineIsFull() {
        context.post(
            "timeline-full", level: .warning,
            text:
                "'\(path)' is played only up to here: the times of its next pictures lie more than 73 years from 0, where the chain's timeline ends. Correct its time stamps to play the rest."
        )
    }

    func endsEarly(_ shortfall: FileShortfall) {
        context.post(
            "file-incomplete", level: .warning, text: "\(shortfall.text(path)).", details: shortfall.details)
    }

    /// Reports how many pictures had to be copied, where the decoder writes into the chain's pool.
    func copies(_ copied: Int, shared: Int) {
        guard copied + shared > 0 else { return }
        context.post(
            "decoded-in-place", level: .debug,
            text:
                "\(Self.count(shared, "picture")) \(shared == 1 ? "was" : "were") decoded into the chain's buffers; \(copied) \(copied == 1 ? "was" : "were") copied there.",
            details: ["inPlace": .number(shared), "copied": .number(copied)])
    }

    private static func count(_ number: Int, _ one: String, _ many: String? = nil) -> String {
        "\(number) \(number == 1 ? one : many ?? one + "s")"
    }
}

extension StageContext {
    /// Reports tracks of a file that nobody takes.
    func reportNotCarried(_ tracks: [OtherTrack], offered: Int? = nil) {
        for track in tracks {
            let remedy = track.index == offered ? " To use it, link \"from\": \"\(stageID).audio\"." : ""
            post(
                "track-not-carried",
                text: "The \(track.kind) track \(track.number) (\(track.codecText)) is dropped.\(remedy)",
                details: ["kind": .string(track.kind), "track": .number(track.number), "codec": .string(track.codec)])
        }
    }
}

extension PictureShape {
    /// `yuv420p 640x480`.
    var size: String { "\(PixelConversion(pixels).name) \(width)x\(height)" }
}

extension ColorDescription {
    /// `video 1-1-1`: range, primaries, transfer, matrix in the numbers of H.273.
    var codes: String { "\(range.rawValue) \(primaries)-\(transfer)-\(matrix)" }
}

extension Rational {
    /// `16:11`.
    var ratio: String { isZero ? "unknown" : "\(numerator):\(denominator)" }
}
