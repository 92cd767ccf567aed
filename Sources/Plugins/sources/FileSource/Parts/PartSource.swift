// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Options of ``PartSource``.
struct PartSourceOptions: StageOptions {
    @Option(help: "The files that part-sink has written, in order.") var parts: [String] = []
    @Option(help: "The file that the parts were made from. A recorder may copy its sound. Default: no sound.")
    var path = ""
    @Option(
        help: "Number of the video track in that file. Default: the first track that can be played.", range: 1...1000)
    var track: Int? = nil
    @Option(help: "Where in the file the parts start, like 'start' of file-source.", range: 0...1_000_000, unit: "s")
    var start = 0.0
    @Option(help: "How much of the file the parts have. Default: up to its end.", range: 0.001...1_000_000, unit: "s")
    var duration: Double? = nil

    func validate() throws(OptionFault) {
        if parts.isEmpty {
            throw OptionFault(
                "'parts' must name at least one file", remedy: "Name the files that part-sink has written.",
                options: ["parts"])
        }
    }
}

/// Gives the access units of parts one after the other, with the times that they have in a whole run, and the sound of
/// the file that they were made of.
final class PartSource: Source {
    static let info = StageInfo(
        id: "part-source", summary: "Joins what part-sink has kept. Used by `framehost batch --parts`.",
        output: .encoded(.h264), events: FileSource.events)

    var options: PartSourceOptions
    private let context: StageContext
    private let path: String
    private var file: MediaFile?
    private var track: VideoTrack?
    private var audio: CarriedTracks?
    /// The part that is being read. Only one is open, as a film may have more parts than a process may open files.
    private var reader: PartReader?
    private var next = 0
    private var format: EncodedFormat?
    /// The stage that hid something of the pictures of a part.
    private var guardian: String?
    private var count = 0
    private var largest = 0
    private var lastDTS = Int64.min

    /// [control thread] Opens nothing.
    init(options: PartSourceOptions, context: StageContext) {
        self.options = options
        self.context = context
        path = options.path.isEmpty ? "" : context.resolve(options.path)
    }

    /// [control thread] Looks at each part, and at the sound.
    func negotiate() throws -> MediaFormat {
        for part in options.parts {
            let reader = try PartReader(context.resolve(part), as: context.stageID)
            if let format, format != reader.format {
                throw FrameHostError(
                    .invalidMedia, place: "parts",
                    what: "'\(part)' has another format or other parameter sets than the parts before it",
                    remedy:
                        "Remove the folder '\(FileNames.folder(of: context.resolve(part)))', and start the batch again with --retry, with the same version of the encoder's library on all machines."
                )
            }
            format = format ?? reader.format
            guardian = guardian ?? reader.guardian
            // Each of them is at least a head.
            (count, largest) = (count + reader.count, max(largest, reader.largest))
        }
        guard let format else { throw FrameHostError(.broken, what: "part-source has no parts") }
        if !path.isEmpty { try offerSoundAndTags() }
        return .encoded(format)
    }

    private func offerSoundAndTags() throws {
        let file = try MediaFile(path: path)
        let track = try VideoTrack(file, number: options.track)
        let timeline = FileTimeline(
            timeBase: track.format.timeBase, origin: track.origin, start: options.start, duration: options.duration)
        let audio = CarriedTracks(file, range: timeline.timeRange, context: context)
        if !audio.tracks.isEmpty { context.offerAudio(audio) }
        var tags = file.tags(track: track.index, sounds: audio.indices, range: timeline.timeRange)
        tags.track.hdr = track.hdr
        context.offerTags(tags, withheld: guardian.map { .guarded(by: $0) })
        (self.file, self.track, self.audio) = (file, track, audio)
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.readsFiles = options.parts.map(context.resolve) + (path.isEmpty ? [] : [path])
        demand.slabBytes = max(2 * largest + 1 << 20, 4 << 20)
        demand.expectedItems = count
        return demand
    }

    /// [control thread] Reports which tracks are not carried along.
    func start() throws {
        guard let file, let track else { return }
        FileReports(context, path: path, track: track).notCarried(
            file.lostTracks(besides: track.index).filter { audio?.isCarried($0) != true }, offered: audio?.indices.first
        )
    }

    /// [stage thread] Closes the files.
    func stop() {
        reader = nil
        file = nil
    }

    /// [stage thread] One access unit, or the step to the next part. Waits for the disk.
    func produce(_ output: Output) throws -> SourceProgress {
        if reader == nil {
            guard next < options.parts.count else {
                audio?.endPictures()
                return .ended
            }
            reader = try PartReader(context.resolve(options.parts[next]), as: context.stageID)
            next += 1
        }
        guard let part = reader, let head = try part.next() else {
            reader = nil
            return .more
        }
        var unit = try output.makeAccessUnit(byteCount: Int(head.size))
        try unit.withMutableBytes { try part.read(into: $0) }
        // Where pictures are reordered and their rate varies, the first decode times of a part can lie before the
        // last one of the part before it. They are raised, but never above the unit's PTS.
        let dts = lastDTS == .min ? head.dts : max(head.dts, lastDTS + 1)
        guard dts <= head.pts else { throw PartReader.notWhole(part.path) }
        lastDTS = dts
        unit.pts = MediaTime(nanoseconds: head.pts)
        unit.dts = MediaTime(nanoseconds: dts)
        unit.duration = MediaTime(nanoseconds: head.duration)
        unit.orientation = head.orientation
        unit.entry = head.entry
        unit.isDiscontinuity = head.isDiscontinuity
        try output.emit(unit)
        return .more
    }
}
