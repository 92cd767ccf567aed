// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// Plays several files one after the other, as one input: a ``FileSource`` for each, of which one reads at a time.
///
/// Pictures are converted to the format of the first file. Times go on without a gap: where the files have sound, by the lengths
/// that are found beforehand (``FileSpan``), since the sound's reader goes by these too; else by the pictures themselves.
final class FileList {
    let parts: [FileSource]
    /// What the chain gets of all of them.
    private(set) var format: VideoFormat
    /// Where they lie on the chain's timeline; empty where the pictures decide.
    let spans: [FileSpan]
    private let context: StageContext
    private let loops: Bool
    private let isPaced: Bool
    private var current = 0
    private var passes = 0
    private var account = InputAccount()
    /// Where the newest item ends on the chain's timeline.
    private var end = MediaTime.zero
    /// Where the pass begins.
    private var passBegin = MediaTime.zero

    /// [control thread] Opens all files.
    ///
    /// - Throws: ``FrameHostErrors``: what is wrong with each.
    init(_ options: FileSourceOptions, _ context: StageContext) throws {
        self.context = context
        loops = options.loop
        isPaced = options.pace == .realtime
        var faults: [FrameHostError] = []
        var parts: [FileSource] = []
        var formats: [MediaFormat] = []
        for (index, path) in options.path.all.enumerated() {
            var own = options
            own.path = FilePaths(path)
            own.loop = false
            let part = FileSource(options: own, context: context)
            part.isPart = true
            do {
                formats.append(try part.negotiate())
                parts.append(part)
            } catch {
                var fault = FrameHostError.wrap(error)
                if ["", "path"].contains(fault.place.description) { fault.place = options.path.place(index) }
                faults.append(fault)
            }
        }
        guard faults.isEmpty, let first = parts.first?.track else { throw FrameHostErrors(faults) }
        self.parts = parts
        var format = first.format
        let others = parts.dropFirst().compactMap { $0.track?.format }
        if others.contains(where: { $0.timeBase != format.timeBase }) { format.timeBase = .nanoseconds }
        if others.contains(where: { $0.frameRate != format.frameRate }) { format.frameRate = Rational(0) }
        self.format = format
        let hasSound = parts.contains { $0.file.map { FileList.hasSound($0) } ?? false }
        let found =
            !hasSound
            ? []
            : parts.map { part in
                part.file.flatMap { file in part.track.flatMap { FileSpan(file, track: $0.index) } }
            }
        spans = !found.contains(nil) ? FileSpan.joined(found.compactMap { $0 }) : []
        // Of the last one all is given, as of a single file.
        if !loops { for (part, span) in zip(parts, spans).dropLast() { part.measured = span } }
        if options.decode {
            for part in parts.dropFirst() { part.convert(to: format, as: parts[0]) }
            noteConversions()
        } else {
            try checkUnits(formats, options)
        }
    }

    /// What the files demand together, of which one reads at a time.
    func demand(_ declared: StageDemand) -> StageDemand {
        var demand = declared
        let parts = parts.map(\.demand)
        (demand.floor, demand.padding, demand.cost) = (parts[0].floor, parts[0].padding, parts[0].cost)
        demand.ownBytes = parts.map(\.ownBytes).max() ?? 0
        demand.slabBytes = parts.map(\.slabBytes).max() ?? 0
        demand.isPaced = isPaced
        guard !loops else { return demand }
        let lengths = parts.map(\.expectedDuration)
        if !lengths.contains(nil) { demand.expectedDuration = lengths.reduce(.zero) { $0 + $1! } }
        let items = parts.map(\.expectedItems)
        if !items.contains(nil) { demand.expectedItems = items.reduce(0) { $0 + $1! } }
        return demand
    }

    private static func hasSound(_ file: MediaFile) -> Bool {
        (0..<file.trackCount).contains { file.parameters($0).codec_type == AVMEDIA_TYPE_AUDIO }
    }

    private func noteConversions() {
        guard let first = parts[0].track else { return }
        for part in parts.dropFirst() {
            guard let track = part.track else { continue }
            if track.format.orientation != first.format.orientation {
                context.note(
                    "the pictures of '\(part.path)' are stored \(track.format.orientation), those of '\(parts[0].path)' \(first.format.orientation), and a recording has one orientation. To turn all of them upright, put a 'crop-orient' with \"anyOrientation\": true after this stage",
                    isWarning: true)
            }
            let (light, other) = (first.format.color, track.format.color)
            if light.isHDR || other.isHDR, light.transfer != other.transfer {
                context.note(
                    "the brightness of '\(part.path)' (\(other.transferText)) is not converted to that of '\(parts[0].path)' (\(light.transferText)), so its pictures will be too bright or too dark. Convert the files that are HDR to SDR first, each in a run of its own with 'convert' and an encoder",
                    isWarning: true)
            }
            let isSame =
                track.format.width == first.format.width && track.format.height == first.format.height
                && track.format.pixelFormat == first.format.pixelFormat && track.shape.hasSamples(of: first.format)
                && track.shape.geometry == first.shape.geometry
            guard !isSame else { continue }
            context.note(
                "the pictures of '\(part.path)' (\(track.shape.size), \(track.shape.color.codes)) are converted to those of '\(parts[0].path)' (\(first.shape.size), \(first.shape.color.codes))"
            )
        }
    }

    /// The header of a recording and a description of a stream hold for all access units.
    private func checkUnits(_ formats: [MediaFormat], _ options: FileSourceOptions) throws {
        guard let first = formats.first?.encoded else { return }
        let faults = formats.enumerated().dropFirst().compactMap { index, format -> FrameHostError? in
            guard let encoded = format.encoded,
                encoded.codec != first.codec || encoded.parameterSets != first.parameterSets
                    || encoded.video?.width != first.video?.width || encoded.video?.height != first.video?.height
            else { return nil }
            return FrameHostError(
                .invalidMedia, place: options.path.place(index),
                what:
                    encoded.codec != first.codec
                    ? "the pictures of '\(parts[index].path)' are \(encoded.codec), but those of '\(parts[0].path)' are \(first.codec), so they cannot go on behind these as they are"
                    : "the \(encoded.codec) of '\(parts[index].path)' has other parameters than that of '\(parts[0].path)', so it cannot go on behind it as it is",
                remedy: "Leave 'decode' out and put an encoder after this stage, or encode the files alike first.")
        }
        let hiding = parts.indices.compactMap { index in
            parts[index].hiddenText(atBegin: loops || index > 0, atEnd: loops || index < parts.count - 1).map {
                FrameHostError(
                    .invalidMedia, place: options.path.place(index), what: $0,
                    remedy:
                        "Leave 'decode' out and put an encoder after this stage, play the file alone, or encode it anew first."
                )
            }
        }
        if !(faults + hiding).isEmpty { throw FrameHostErrors(faults + hiding) }
        noteShapes()
    }

    /// The header of a recording has one shape of pixels and one orientation.
    private func noteShapes() {
        guard let first = parts[0].track else { return }
        for part in parts.dropFirst() {
            guard let track = part.track else { continue }
            if track.format.orientation != first.format.orientation {
                context.note(
                    "the pictures of '\(part.path)' are stored \(track.format.orientation), those of '\(parts[0].path)' \(first.format.orientation), but a recording has one orientation. To turn all of them upright, leave 'decode' out, and put a 'crop-orient' with \"anyOrientation\": true and an encoder after this stage",
                    isWarning: true)
            }
            let (aspect, other) = (first.shape.geometry.pixelAspect, track.shape.geometry.pixelAspect)
            if abs(aspect / other - 1) > 0.001 {
                context.note(
                    "the pixels of '\(part.path)' have another shape (\(track.shape.aspect.ratio)) than those of '\(parts[0].path)' (\(first.shape.aspect.ratio)), but a recording has one, so its pictures will be distorted. To have them fitted, leave 'decode' out and put an encoder after this stage",
                    isWarning: true)
            }
        }
    }

    /// The sound of all files for a recorder; nil where it is not of one kind.
    func carriedTracks() -> CarriedList? {
        guard !loops, !spans.isEmpty else { return nil }
        for (index, part) in parts.enumerated() {
            part.audio = part.file.map {
                CarriedTracks($0, range: spans[index].range(isFirst: index == 0), context: context)
            }
        }
        let all = parts.compactMap(\.audio)
        guard let first = all.first else { return nil }
        if let other = all.indices.first(where: { !all[$0].tracks.elementsEqual(first.tracks) { $0.isLike($1) } }) {
            guard !context.takenOutputs.contains("audio") else { return nil }
            context.note(
                "the sound of '\(parts[other].path)' differs from that of '\(parts[0].path)', so a recorder does not carry it along. To keep it, link \"from\": \"\(context.stageID).audio\" to an 'audio-encoder', and link the encoder to the recorder",
                isWarning: true)
            return nil
        }
        return first.tracks.isEmpty ? nil : CarriedList(all, spans)
    }

    /// [control thread] The tags of the first file, with the chapters of all. Says which tags of the others are left out.
    func tags() -> MediaTags? {
        let all = parts.compactMap { part in
            part.file.flatMap { file in part.track.map { part.tags(file, $0) } }
        }
        guard !loops, var first = all.first else { return all.first }
        if !spans.isEmpty {
            for (tags, span) in zip(all, spans).dropFirst() {
                first.chapters += tags.chapters.map { $0.moved(by: span.joint - span.begin) }
            }
        }
        context.noteTagsLeftOut(all, isWithChapters: spans.isEmpty)
        return first
    }

    // MARK: While it plays

    /// [setup thread]
    func start() throws { try parts[0].start() }

    /// [stage thread] One step of the file that plays, or the change to the next one.
    func produce(_ output: Output) throws -> SourceProgress {
        let part = parts[current]
        if try part.produce(output) == .more { return .more }
        end = max(end, part.givenEnd)
        guard !context.isEnded, !context.isStopped else { return .ended }
        add(context.inputAccount)
        part.rest()
        current += 1
        if current == parts.count {
            guard loops, part.shown > 0 || passes == 0, end > passBegin else {
                if !loops { context.inputAccount = account }
                return .ended
            }
            (current, passes) = (0, passes + 1)
            passBegin = end
        }
        try parts[current].begin(again: passes > 0, after: part, at: place)
        return .more
    }

    /// Where the next file begins: not before the newest item ends.
    private var place: (joint: MediaTime, begin: MediaTime?) {
        guard !spans.isEmpty else { return (end, nil) }
        return (max(passBegin + spans[current].joint, end), spans[current].begin)
    }

    private func add(_ one: InputAccount?) {
        guard let one else { return }
        account.given += one.given
        account.damaged += one.damaged
        account.promised = one.promised.flatMap { promised in
            passes > 0 || (current > 0 && account.promised == nil) ? nil : (account.promised ?? 0) + promised
        }
        account.shortfall = account.shortfall ?? one.shortfall
        account.hasEnded = one.hasEnded
    }

    /// [stage thread]
    func stop() { for part in parts { part.stop() } }
}

extension StageContext {
    /// Says which tags of the files of a list are left out, where those of the first are kept.
    ///
    /// - Parameter isWithChapters: Whether the chapters of the others are left out too.
    func noteTagsLeftOut(_ all: [MediaTags], isWithChapters: Bool) {
        guard let first = all.first else { return }
        var names: [String] = []
        func add(_ name: String) { if !names.contains(name) { names.append(name) } }
        for other in all.dropFirst() {
            for tag in other.tags where first.tags[tag.key] != tag.value { add(tag.key) }
            for tag in other.track.tags where first.track.tags[tag.key] != tag.value { add("\(tag.key) of the track") }
            if isWithChapters, !other.chapters.isEmpty { add("the chapters") }
        }
        guard !names.isEmpty else { return }
        note(
            "the tags of a list are those of '\(first.name)'; of the other files what differs is left out: \(names.joined(separator: ", "))"
        )
    }
}

extension MediaTags.Chapter {
    fileprivate func moved(by shift: MediaTime) -> MediaTags.Chapter {
        MediaTags.Chapter(begin: max(begin + shift, .zero), end: end + shift, tags: tags)
    }
}

extension FileSpan {
    /// What a reader of the file's sound gives, in time that begins with the span; of the first, in the file's own.
    func range(isFirst: Bool) -> FileTimeRange { FileTimeRange(begin: nil, end: end, shift: isFirst ? .zero : begin) }
}

extension ColorDescription {
    /// `HDR with PQ`.
    fileprivate var transferText: String {
        switch transfer {
        case 16: "HDR with PQ"
        case 18: "HDR with HLG"
        default: "SDR"
        }
    }
}

extension AudioTrackFormat {
    /// Whether packets of the other one can follow its own in one track.
    fileprivate func isLike(_ other: AudioTrackFormat) -> Bool {
        (codec, timeBase, sampleRate, channelCount, extradata) == (
            other.codec, other.timeBase, other.sampleRate, other.channelCount, other.extradata
        )
    }
}

/// The sound of the files of a list, for a recorder that carries it along unchanged.
final class CarriedList: AudioOrigin {
    private let all: [CarriedTracks]
    private let spans: [FileSpan]

    init(_ all: [CarriedTracks], _ spans: [FileSpan]) { (self.all, self.spans) = (all, spans) }

    var tracks: [AudioTrackFormat] { all[0].tracks }
    var hasGivenAllPictures: Bool { all[all.count - 1].hasGivenAllPictures }

    func open(track: Int) throws -> any AudioReader {
        Reader(try all.map { try $0.open(track: track) }, spans, tracks[track].timeBase)
    }

    /// The first packet of a file that is heard, and the one before it.
    static func begin(_ reader: any AudioReader) throws -> [AudioPacket] {
        var before: [AudioPacket] = []
        while let packet = try reader.next() {
            if packet.pts.plus(packet.duration) > 0 { return before + [packet] }
            before = [packet]
        }
        return []
    }

    /// One file's packets after the other's. Where a file begins with a packet that is only decoded and not heard, that one takes
    /// the place of the last one before, so that the first that is heard is decoded as in its file.
    private final class Reader: AudioReader {
        private let readers: [any AudioReader]
        private let spans: [FileSpan]
        private let timeBase: TimeBase
        private var current = 0
        /// What was read of the current file and of the next one, in advance.
        private var pending: [AudioPacket] = []
        private var following: [AudioPacket]?
        private var last: Int64?

        init(_ readers: [any AudioReader], _ spans: [FileSpan], _ timeBase: TimeBase) {
            (self.readers, self.spans, self.timeBase) = (readers, spans, timeBase)
        }

        func next() throws -> AudioPacket? {
            while current < readers.count {
                if following == nil {
                    following = current + 1 < readers.count ? try CarriedList.begin(readers[current + 1]) : []
                }
                guard let packet = try pending.isEmpty ? readers[current].next() : pending.removeFirst() else {
                    current += 1
                    pending = following ?? []
                    following = nil
                    continue
                }
                let (pts, dts) = (packet.pts.plus(joint(current)), packet.dts.plus(joint(current)))
                if let last, dts <= last { continue }
                if let first = following?.first {
                    let next = timeBase.time(ofTicks: first.pts.plus(joint(current + 1)))
                    let duration = timeBase.time(ofTicks: packet.duration)
                    if timeBase.time(ofTicks: pts).gives(wayTo: next, lasting: duration) { continue }
                }
                last = dts
                return AudioPacket(bytes: packet.bytes, pts: pts, dts: dts, duration: packet.duration)
            }
            return nil
        }

        private func joint(_ index: Int) -> Int64 { timeBase.ticks(of: spans[index].joint) }
    }
}

extension MediaTime {
    /// Whether a packet of sound at this time is left out before one of the next file, which lies over half of it: packets follow
    /// each other at the distance at which they are played.
    func gives(wayTo next: MediaTime, lasting duration: MediaTime) -> Bool {
        self + MediaTime(nanoseconds: duration.nanoseconds / 2) >= next
    }
}
