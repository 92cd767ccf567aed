// SPDX-License-Identifier: Apache-2.0

import FrameCore
import PictureFiles
import Recordings
import Reports
import Shared

/// Writes pictures as JPEG or PNG files: each one, or one every so many seconds; or the newest in the place of the one
/// before.
///
/// A file has its name when it is complete. docs/design/044-stills.md.
final class ImageSink: Sink {
    static let info = StageInfo(
        id: "image-sink", summary: "Writes pictures as JPEG or PNG files.",
        input: .video(.i420, .nv12, .yuyv, .bgra, .rgb24, .gray8, .i010, .p010), service: .unbounded, events: events)

    var options: ImageSinkOptions
    private let context: StageContext
    private let files: ImageFiles
    private let own: OwnRecordings
    private let retention: RetentionPolicy
    private let figures = Locked(Figures())
    private var schedule: PictureSchedule
    private var encoder: PictureEncoderState?
    /// While pictures cannot be written: when the next one is tried, by the chain's clock.
    private var retryAt: Int64?
    /// The reason why the first picture was lost.
    private var firstFault: FrameHostError?
    /// How many pictures have come without a keyframe among them; nil once there was one, or once that was said.
    private var withoutKeyframe: Int? = 0
    private var nextRetention = Int64.min
    private var reported = Reported()

    /// Counts, for people and programs.
    private struct Figures {
        var written: UInt64 = 0
        var lost: UInt64 = 0
        /// Of them, since pictures last could be written.
        var lostNow: UInt64 = 0
        var removed: UInt64 = 0
        var path = ""
    }

    /// Nanoseconds between two tries while pictures cannot be written.
    private static let pause: Int64 = 250_000_000
    /// Two groups of pictures of a usual stream.
    private static let mostWithoutKeyframe = 600
    private static let second: Int64 = 1_000_000_000

    /// [control thread] Opens nothing.
    init(options: ImageSinkOptions, context: StageContext) throws {
        self.options = options
        self.context = context
        // Two chains may each have an 'image-sink' that writes into one folder.
        let owner = "\(context.chainName)/\(context.stageID)"
        files = try ImageFiles(options, folder: context.folder, owner: owner, files: context.files)
        own = OwnRecordings(files.pattern, holder: ImageFiles.holder, recorder: owner, run: context.files.id)
        retention = RetentionPolicy(seconds: options.keepSeconds, megabytes: options.keepMegabytes)
        schedule = PictureSchedule(everySeconds: options.everySeconds)
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.writesFiles = files.single.map { [$0] } ?? []
        if files.single == nil { demand.claims = [files.pattern.claim] }
        return demand
    }

    /// [control thread] Checks the place of the files and the size of the pictures, and creates nothing.
    func negotiate(_ input: MediaFormat) throws {
        guard let format = input.video else { throw FrameHostError(.broken, what: "image-sink needs raw video") }
        _ = try PicturePlan(options.form, of: format, lying: format.orientation)
        if let fault = files.fault { throw fault }
    }

    /// [setup thread] Takes the encoder's handles, and looks at the files that are there.
    func start() throws {
        encoder = try PictureEncoderState()
        if retention.isOn {
            _ = own.look(now: context.clock.moment)
            files.lastMark = own.highestNumber
        } else if files.single == nil {
            files.lastMark = own.highestNumberOfNewest()
        }
        context.showFigures { [figures] in
            let now = figures.withLock { $0 }
            return [
                "written": .number(now.written), "lost": .number(now.lost), "removed": .number(now.removed),
                "path": .string(now.path),
            ]
        }
    }

    /// [stage thread] Live options take effect with the next picture.
    func optionsChanged() throws {
        let changed = PictureSchedule(everySeconds: options.everySeconds)
        guard changed.period != schedule.period else { return }
        lose(schedule.end())
        schedule = changed
    }

    /// [stage thread] Encodes a picture, lets it go, and writes the file.
    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        guard case .frame(let frame) = consume input, let encoder else {
            throw FrameHostError(.broken, what: "image-sink was handed no picture, or was not started")
        }
        let pts = frame.pts
        if options.keyframesOnly, !look(for: frame.isKeyframe) { return .idle }
        guard schedule.isDue(pts) else { return .idle }
        let now = context.clock.now()
        if let retryAt, now < retryAt { return miss(pts) }
        let moment = ImageFiles.Moment(
            unixTime: context.clock.unixTime(at: frame.capturedAt), clock: frame.capturedAt, made: context.clock.moment)
        let form = options.form
        let format = frame.format
        let plan = try PicturePlan(form, of: format, lying: frame.orientation)
        // Of a file, the same bytes whenever it is read.
        let takenAt = context.isLiveChain ? moment.unixTime : nil
        let bytes = try frame.withPicture { try encoder.make($0, format, plan, form, takenAt: takenAt) }
        // A slow disk holds no buffer.
        _ = consume frame
        do {
            let file = try files.write(bytes, moment, syncs: (options.everySeconds ?? 0) >= 1)
            written(file, pts, now)
            return .delivered
        } catch {
            failed(FrameHostError.wrap(error), now)
            return miss(pts)
        }
    }

    /// [stage thread] No picture follows.
    ///
    /// - Throws: ``FrameHostError`` where pictures were lost.
    func drain() throws {
        lose(schedule.end())
        reportNoKeyframe()
        let counts = figures.withLock { $0 }
        guard counts.lost > 0, let firstFault else { return }
        throw FrameHostError(
            .unavailable,
            what:
                "\(counts.lost) of \(counts.written + counts.lost) pictures could not be written: \(firstFault.what)",
            remedy: firstFault.remedy, reason: firstFault.reason)
    }

    /// [stage thread] Frees the encoder.
    func stop() { encoder = nil }

    /// Whether the picture is a keyframe. Says so where none ever is, as of a camera's raw pictures.
    private func look(for isKeyframe: Bool) -> Bool {
        if isKeyframe {
            withoutKeyframe = nil
        } else if let count = withoutKeyframe {
            withoutKeyframe = count + 1
            if count + 1 == Self.mostWithoutKeyframe { reportNoKeyframe() }
        }
        return isKeyframe
    }

    private func reportNoKeyframe() {
        guard options.keyframesOnly, let count = withoutKeyframe, count > 0 else { return }
        withoutKeyframe = nil
        context.post(
            "no-keyframes", level: .warning,
            text:
                "None of the first \(count) pictures was a keyframe, so none was written. Only 'file-source' and 'network-source' say which pictures were keyframes. Set \"keyframesOnly\": false, or 'everySeconds' instead."
        )
    }

    // MARK: Outcomes

    private func written(_ file: (path: String, bytes: Int, mark: RecordingMark?), _ pts: MediaTime, _ now: Int64) {
        lose(schedule.took(pts))
        if let mark = file.mark, retention.isOn { own.complete(mark, at: context.clock.moment) }
        let lost = figures.withLock { figures in
            figures.written += 1
            figures.path = file.path
            defer { figures.lostNow = 0 }
            return figures.lostNow
        }
        if retryAt != nil {
            retryAt = nil
            context.recovering = nil
            context.post(
                "images-resumed", text: "Pictures are written again, from '\(file.path)' on; \(lost) were lost.",
                details: ["lost": .number(lost), "path": .string(file.path)])
        }
        if reported.isDue("image-written", now: now, every: Self.second) {
            context.post(
                "image-written", level: .debug, text: "'\(file.path)' is complete.",
                details: ["path": .string(file.path), "bytes": .number(file.bytes)])
        }
        if retention.isOn, now >= nextRetention { removeOldFiles() }
    }

    /// A picture that was due is not written. Of a grid of times a later one may take its place.
    private func miss(_ pts: MediaTime) -> SinkVerdict {
        let lost = schedule.missed(pts)
        lose(lost)
        return lost > 0 ? .dropped(.byStage) : .idle
    }

    private func failed(_ fault: FrameHostError, _ now: Int64) {
        firstFault = firstFault ?? fault
        let isFirst = retryAt == nil
        retryAt = now + Self.pause
        if retention.isOn, now >= nextRetention { removeOldFiles() }
        guard isFirst else { return }
        context.recovering = fault.what
        context.post(
            "images-failing", level: .warning,
            text: "Pictures are lost until they can be written again: \(fault.what). \(fault.remedy)",
            details: ["reason": .string(fault.what)])
    }

    private func lose(_ count: Int) {
        guard count > 0 else { return }
        figures.withLock { figures in
            figures.lost += UInt64(count)
            figures.lostNow += UInt64(count)
        }
    }

    // MARK: Old files

    /// Looks at the files, at most once a second, and for at most a twentieth of the time.
    private func removeOldFiles() {
        let begin = context.clock.now()
        let removal = own.removeExcess(retention, now: context.clock.moment, context.files)
        let end = context.clock.now()
        nextRetention = end + max(Self.second, 20 * (end - begin))
        if let first = removal.removed.first {
            let count = removal.removed.count
            let bytes = removal.removed.reduce(0) { RetentionPolicy.sum($0, $1.bytes) }
            figures.withLock { $0.removed += UInt64(count) }
            context.post(
                "images-removed", level: .debug,
                text:
                    "'\(first.path)'\(count == 1 ? " was" : " and \(count - 1) more were") removed: 'keepSeconds' or 'keepMegabytes' was reached.",
                details: ["path": .string(first.path), "files": .number(count), "bytes": .number(bytes)])
        }
        if let text = removal.kept.text, let first = removal.kept.first {
            context.post(
                "images-not-removed", once: &reported, level: .warning, text: text,
                details: [
                    "path": .string(first.path), "files": .number(removal.kept.count),
                    "bytes": .number(removal.kept.bytes),
                ])
        }
        if let strangers = removal.strangers {
            context.post(
                "images-not-removed", once: &reported, as: "strangers", level: .warning,
                text:
                    "\(strangers.count == 1 ? "1 file has a name" : "\(strangers.count) files have names") of this stage's pattern, but no mark that this stage made \(strangers.count == 1 ? "it" : "them") there on this machine, such as '\(strangers.example)'. 'keepSeconds' and 'keepMegabytes' neither count nor remove such files (\(strangers.bytes) bytes). Remove them yourself, or move them to another folder.",
                details: [
                    "path": .string(strangers.example), "files": .number(strangers.count),
                    "bytes": .number(strangers.bytes),
                ])
        }
    }
}
