// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Shared

/// Shows pictures: one, those of a folder, or those whose names match a pattern, each for a while.
///
/// Every picture is converted once, to the format and size of the chain. A picture that is shown for several frames
/// lies in one buffer of the pool, which its frames share. docs/design/020-pictures-and-pipes.md.
final class ImageSource: Source {
    static let info = StageInfo(
        id: "image-source", summary: "Shows still pictures: one, a folder, or those that match a pattern.",
        output: .anyVideo, longestCall: MediaTime(seconds: 10), events: events,
        realTime: StageInfo.RealTime(with: "live", .bool(true)))

    var options: ImageSourceOptions
    private let context: StageContext
    private let path: String
    private let rate: FrameRate
    private var list: ImageList?
    private var measures = ImageMeasures()
    private var format: VideoFormat?
    private var reader: StillReader?
    private var composer: AlphaComposer?
    private var converter: ScalingConverter?

    /// The index in `list` of the next picture.
    private var next = 0
    /// The picture that is shown; nil where the next one must be read first.
    private var shown: Frame?
    /// For how many more frames it stays; nil: until the run ends.
    private var framesLeft: Int?
    /// Pictures of this pass that were shown.
    private var shownInPass = 0
    /// How many pictures were begun, in all passes. The end of each is a multiple of `seconds`, so that rounding does
    /// not add up.
    private var begun = 0
    private var count: Int64 = 0
    private var orientation: Orientation?
    private var leftOut = LeftOutPictures()
    private var pace = LivePace()

    /// [control thread] Opens nothing.
    init(options: ImageSourceOptions, context: StageContext) {
        self.options = options
        self.context = context
        path = context.resolve(options.path)
        rate = options.rate
    }

    /// One frame's time.
    private var tick: TimeBase { TimeBase(rate.rational.denominator, rate.rational.numerator) }

    // MARK: Setup

    /// [control thread] Lists the pictures, measures them without decoding, and looks at the first.
    func negotiate() throws -> MediaFormat {
        // From here on libav prints nothing by itself.
        _ = LibavText.during {}
        let list = try ImageList(path, order: options.order, isRelative: !options.path.hasPrefix("/"))
        let reader = try StillReader()
        measures = ImageMeasures(list.paths, reader)
        guard let first = measures.first else {
            let fault = measures.faults.first
            if list.kind == .picture, let fault { throw fault }
            throw ImageFault.noneReadable(
                path, tried: min(list.paths.count, ImageMeasures.most), of: list.paths.count,
                first: fault?.description ?? "")
        }
        let size = options.size ?? PictureSize(first.measure.width, first.measure.height)
        var format = Self.format(options.format, size, rate: rate)
        if first.measure.pixels <= Self.mostPixelsAtCheck,
            let picture = try? reader.read(first.path, mostPixels: Self.mostPixelsAtCheck)
        {
            format.orientation = picture.statedOrientation ?? .up
        }
        format.timeBase = options.live ? .nanoseconds : tick
        (self.list, self.format) = (list, format)
        note(list, size)
        return .video(format)
    }

    /// The most pixels of a picture that is decoded before the plan has counted its memory, in order to find its
    /// orientation.
    private static let mostPixelsAtCheck = 1 << 26

    /// BT.709 from 720 rows on, BT.601 for fewer, both in video range; RGB in full range. test-source does the same.
    private static func format(_ pixels: PixelFormat, _ size: PictureSize, rate: FrameRate) -> VideoFormat {
        let code = ColorDescription().assumedMatrix(height: size.height)
        let color = ColorDescription(
            range: pixels.isRGB ? .full : .video, matrix: pixels.isRGB ? 0 : code, primaries: pixels.isRGB ? 1 : code,
            transfer: pixels.isRGB ? 13 : code, chromaSiting: pixels.isRGB || pixels == .gray8 ? 0 : 1)
        return VideoFormat(
            pixels, width: size.width, height: size.height, frameRate: rate.rational, color: color,
            sampleAspectRatio: Rational(1))
    }

    private func note(_ list: ImageList, _ size: PictureSize) {
        if list.kind != .picture {
            let others = measures.differing(from: size)
            let unit = list.paths.count == 1 ? "picture" : "pictures"
            // Of a very long list only the first are measured.
            let known = list.paths.count > ImageMeasures.most ? "at least \(others)" : "\(others)"
            let how =
                others == 0
                ? "" : ", \(known) of another size and scaled to \(size), with bars where the shape differs"
            context.note("\(list.paths.count) \(unit)\(how)")
        } else if options.size != nil, measures.differing(from: size) > 0 {
            context.note("the picture is scaled to \(size), with bars where the shape differs")
        }
        if let fault = measures.faults.first {
            let number = measures.faults.count
            context.note(
                number == 1
                    ? "a picture cannot be read and is left out: \(fault.what)"
                    : "\(list.paths.count > ImageMeasures.most ? "at least " : "")\(number) pictures cannot be read and are left out; the first: \(fault.what)",
                isWarning: true)
        }
        if !list.unreadableNames.isEmpty {
            let pronouns = list.unreadableNames.count == 1 ? "it is" : "they are"
            context.note("\(ImageFault.noUTF8(list.unreadableNames).what); \(pronouns) left out", isWarning: true)
        }
        if isForEver {
            context.note(
                list.kind != .picture
                    ? "the pictures repeat until the run is ended"
                    : "the picture is shown until the run is ended"
                        + (options.loop ? "" : "; set 'seconds' to show it for a limited time"))
        }
    }

    private var isForEver: Bool { options.loop || (list?.kind == .picture && options.seconds == nil) }

    /// Whether a picture may be shown for more than one frame.
    private var holds: Bool {
        list?.kind == .picture && (options.seconds == nil || options.loop)
            || options.seconds.map { $0 * rate.rational.value > 1 } ?? false
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isLive = options.live
        let list = self.list ?? (try? ImageList(path, order: options.order, isRelative: false))
        demand.readsFiles = list.map { $0.paths.count <= Self.mostNamed ? $0.paths : [] } ?? []
        // The picture that is shown, and the one that is being made.
        demand.floor = holds ? 2 : 0
        demand.ownBytes = measures.ownBytes
        guard let list, !isForEver else { return demand }
        let frames = options.seconds.map { Self.frames($0 * Double(list.paths.count), rate) } ?? Int64(list.paths.count)
        demand.expectedItems = Int(frames)
        demand.expectedDuration = tick.time(ofTicks: frames)
        return demand
    }

    /// How many files the plan compares with those that other stages write.
    private static let mostNamed = 1000

    /// How many frames there are up to a time. Options bound seconds and rate, and the list bounds the files.
    private static func frames(_ seconds: Double, _ rate: FrameRate) -> Int64 {
        Int64(min(max((seconds * rate.rational.value).rounded(), 1), 0x1p53))
    }

    /// [setup thread]
    func start() throws {
        guard let format, let list else {
            throw FrameHostError(.broken, what: "image-source was started before its pictures were listed")
        }
        leaveOutUnreadable(list)
        reader = try StillReader()
        composer = format.pixelFormat == .bgra ? nil : try AlphaComposer(onto: options.color)
        converter = ScalingConverter(to: format)
        orientation = format.orientation
    }

    /// [stage thread] Pictures that were left out are a fault of the run, reported once.
    func stop() throws {
        shown = nil
        reader = nil
        composer = nil
        converter = nil
        if let fault = leftOut.takeFault() { throw fault }
    }

    // MARK: Frames

    /// [stage thread] One frame; none where the next picture could not be read.
    func produce(_ output: Output) throws -> SourceProgress {
        if framesLeft == 0 { shown = nil }
        if shown == nil {
            guard try beginPicture(output) else { return .ended }
            if shown == nil { return .more }
        }
        var missed: Int64 = 0
        if options.live {
            guard let late = pace.wait(tick, context) else { return .ended }
            missed = late
        }
        guard let frame = takeShown() else { return .more }
        if options.live {
            frame.capturedAt = context.clock.now()
            frame.pts = MediaTime(nanoseconds: frame.capturedAt)
            frame.duration = tick.time(ofTicks: 1)
            frame.isDiscontinuity = missed > 0
        } else {
            frame.pts = tick.time(ofTicks: count)
            frame.duration = tick.time(ofTicks: count + 1) - frame.pts
        }
        count += 1
        try output.emit(frame)
        return .more
    }

    /// The last frame of a picture is the buffer itself, so that a stage that writes need not copy it.
    private func takeShown() -> Frame? {
        guard let picture = shown.take() else { return nil }
        if let left = framesLeft {
            framesLeft = left - 1
            if left <= 1 { return picture }
        }
        let frame = picture.share()
        shown = consume picture
        return frame
    }

    /// Reads the next picture into `shown`, which stays empty where the picture cannot be read; false at the end.
    private func beginPicture(_ output: Output) throws -> Bool {
        guard let list else { return false }
        guard next < list.paths.count else { return try beginPass() }
        let path = list.paths[next]
        next += 1
        guard let frame = try read(path, output) else { return true }
        shown = consume frame
        shownInPass += 1
        begun += 1
        framesLeft = framesOfPicture(list)
        return true
    }

    private func framesOfPicture(_ list: ImageList) -> Int? {
        guard let seconds = options.seconds else { return list.kind == .picture ? nil : 1 }
        let (begin, end) = (Double(begun - 1) * seconds, Double(begun) * seconds)
        let before = begun == 1 ? 0 : Self.frames(begin, rate)
        return max(Int(Self.frames(end, rate) - before), 1)
    }

    private func beginPass() throws -> Bool {
        guard options.loop, shownInPass > 0 else {
            if shownInPass == 0, count == 0 { throw ImageFault.nothingShown(path, isOne: list?.kind == .picture) }
            return false
        }
        next = 0
        shownInPass = 0
        // A folder that has become empty is shown as it was before.
        if let again = try? ImageList(path, order: options.order, isRelative: false) {
            list = again
            leaveOutUnreadable(again)
        }
        return true
    }

    private func leaveOutUnreadable(_ list: ImageList) {
        for name in list.unreadableNames { leftOut.add(name, ImageFault.nameIsNotUTF8(), context) }
    }

    /// The picture as a frame of the chain; nil where it cannot be read, or no buffer is free.
    private func read(_ path: String, _ output: Output) throws -> Frame? {
        guard let reader, let converter else { return nil }
        do {
            var picture = try reader.read(path, mostPixels: measures.mostPixels)
            let found = picture.statedOrientation ?? .up
            if let composer, picture.hasAlpha { picture = try composer.compose(picture) }
            guard var frame = try output.makeFrame() else {
                // A live source tries again when the next frame is due.
                next -= 1
                _ = pace.wait(tick, context)
                return nil
            }
            try converter.convert(picture, PictureShape(picture, aspect: Rational(1)), into: &frame)
            frame.orientation = found
            look(at: found, path)
            return frame
        } catch let fault as FrameHostError where fault.code != .stopped {
            leftOut.add(path, fault, context)
            return nil
        }
    }

    private func look(at found: Orientation, _ path: String) {
        guard found != orientation else { return }
        if count > 0 {
            context.post(
                "orientation-changed",
                text:
                    "The orientation changes from \(orientation ?? .up) to \(found) at '\(path)'. To turn each picture upright, add 'crop-orient'.",
                details: ["to": .string("\(found)")])
        }
        orientation = found
    }
}

/// The sizes of a list's pictures; of a very long list only those of the first ones.
struct ImageMeasures {
    private(set) var first: (path: String, measure: StillReader.Measure)?
    private(set) var faults: [FrameHostError] = []
    private var sizes: [PictureSize: Int] = [:]
    private(set) var mostPixels = 0
    private var mostBytes = 0

    /// How many pictures are measured before a run. Each takes some tenths of a millisecond.
    static let most = 2000

    init() {}

    init(_ paths: [String], _ reader: StillReader) {
        for path in paths.prefix(Self.most) {
            do {
                let measure = try reader.measure(path)
                guard VideoFormat.sides.contains(measure.width), VideoFormat.sides.contains(measure.height) else {
                    throw FileFault.tooLarge(path, width: measure.width, height: measure.height)
                }
                if first == nil { first = (path, measure) }
                sizes[PictureSize(measure.width, measure.height), default: 0] += 1
                mostPixels = max(mostPixels, measure.pixels)
                mostBytes = max(mostBytes, measure.byteCount + measure.fileBytes)
            } catch { faults.append(FrameHostError.wrap(error)) }
        }
    }

    /// How many pictures have another size.
    func differing(from size: PictureSize) -> Int { sizes.reduce(0) { $0 + ($1.key == size ? 0 : $1.value) } }

    /// Bytes of a decoded picture, its file, and what is composed from it where it has alpha.
    var ownBytes: Int { mostBytes + AlphaComposer.bytes(pixels: mostPixels) }
}

/// Pictures that could not be shown. Each is reported once.
struct LeftOutPictures {
    private var names: [String] = []
    private var known: Set<String> = []
    private var count = 0
    /// How many names are kept, and listed in the last sentence.
    private static let mostListed = 5
    private static let mostKnown = 10_000

    mutating func add(_ path: String, _ fault: FrameHostError, _ context: StageContext) {
        guard known.count < Self.mostKnown, known.insert(path).inserted else { return }
        count += 1
        if names.count < Self.mostListed { names.append(path) }
        context.post(
            "picture-damaged", level: .warning, text: Self.text(path, fault), details: ["path": .string(path)])
    }

    /// Says what is wrong and that the file is left out, and names it once: most faults do that already.
    static func text(_ path: String, _ fault: FrameHostError) -> String {
        guard fault.what.firstRange(of: "'\(path)'") != nil else { return "'\(path)' is left out: \(fault)" }
        var told = fault
        told.what += "; the file is left out"
        return "\(told)"
    }

    /// The fault for all of them, once.
    mutating func takeFault() -> FrameHostError? {
        defer { count = 0 }
        return count > 0 ? ImageFault.leftOut(names, count: count) : nil
    }
}

/// When the frames of a live source are due: by the chain clock, without drift.
struct LivePace {
    private var origin: Int64?
    private var slot: Int64 = 0

    /// Sleeps until the next frame is due. Skips each frame that would come a whole period or more too late.
    ///
    /// - Returns: How many were skipped; nil when the run ends.
    mutating func wait(_ tick: TimeBase, _ context: StageContext) -> Int64? {
        let begin = origin ?? context.clock.now()
        origin = begin
        let passed = MediaTime(nanoseconds: context.clock.now() - begin)
        let nearest = tick.ticks(of: passed)
        let missed = max((tick.time(ofTicks: nearest) > passed ? nearest - 1 : nearest) - slot, 0)
        slot += missed
        guard context.sleep(until: begin + tick.time(ofTicks: slot).nanoseconds) else { return nil }
        slot += 1
        return missed
    }
}
