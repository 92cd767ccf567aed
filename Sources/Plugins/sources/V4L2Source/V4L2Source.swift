// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared
import Glibc
import LiveInput
import Reports

/// Gives the pictures of a camera (Video4Linux).
///
/// The driver writes straight into the chain's buffers where its layout matches (``CaptureQueue``). Otherwise each
/// picture is copied once. A camera that goes away is opened again by its stable id when it is back. Meanwhile
/// ``StandIn`` pictures keep the later stages going.
final class V4L2Source: Source, DeviceStage {
    static let info = StageInfo(
        id: "v4l2-source", summary: "Gives the pictures of a camera (V4L2). Opens it again after it was unplugged.",
        output: .video(.nv12, .i420, .yuyv),
        otherOutput: StageInfo.OtherOutput(where: "format", is: .string("h264"), .encoded(.h264)),
        events: events)

    var options: V4L2SourceOptions
    let context: StageContext
    let calls: any DeviceCalls
    let asked: AskedMode
    /// Whether less than usual is requested, because there is only one processor.
    private let isSpared: Bool
    let figures = CameraFigures()

    // Set from `negotiate` on.
    private var format: VideoFormat?
    private var mode: CameraMode?
    /// For a camera's own H.264.
    var units: CameraUnits?
    private var lends = false
    private var path: String?
    /// Why it could not be opened; empty where it could.
    private var missing = ""
    private var slate: Slate?

    // Set from `start` on; for the stage thread only.
    private(set) var session: CameraSession?
    private var standIn: StandIn?
    private var times = CameraTimes()
    /// The name by which the camera is looked for while it is away.
    private var lookedFor: String?
    /// The stable id of the camera that was chosen, or its path: its number changes when it is plugged in again.
    private var chosenID: String?
    /// Whether the camera is there, and what is shown while it is not.
    private var live = LiveState(isThere: true, whileLost: .hold, canStandIn: false, now: 0)
    var followsGap = false
    private var lastPictureAt: Int64 = 0
    var reported = Reported()
    /// JPEG pictures of an unknown kind since the last one that was decoded.
    private var unknownInARow = 0
    /// The control values that the camera has.
    private var applied = ControlValues()

    /// [control thread] Opens nothing.
    init(options: V4L2SourceOptions, context: StageContext) {
        self.options = options
        self.context = context
        calls = DeviceCallsInUse.current
        // A single processor that also encodes can keep up with a third of the samples.
        isSpared = calls.processors == 1
        asked = AskedMode(
            size: options.size ?? (isSpared ? PictureSize(640, 480) : PictureSize(1280, 720)),
            rate: options.rate?.rational ?? Rational(isSpared ? 15 : 30), pixels: options.format)
    }

    static func devices() throws -> [StageDevice] { CameraReport.all(DeviceCallsInUse.current) }

    // MARK: Setup

    /// [control thread] Asks the camera for its modes, and chooses one. Sets nothing.
    func negotiate() throws -> MediaFormat {
        slate = try Slate(
            color: options.slateColor, picturePath: options.slatePicture.map(context.resolve), text: options.slateText)
        if isSpared, let note = CameraNotes.spared(options, asked) { context.note(note) }
        do {
            // A camera's own H.264 needs the camera at the start.
            let mayWait = options.ifMissing == .fail && options.format != .h264
            let path = try CameraList.path(of: options.device, calls, mayWait: mayWait)
            try choose(CameraSession.open(path, calls))
        } catch let fault as FrameHostError {
            guard options.ifMissing == .wait, fault.code == .unavailable else { throw fault }
            missing = fault.what
            format = asked.plannedWithout
            // A note gets its full stop later.
            let advice = fault.remedy.isEmpty ? "" : ". \(fault.remedy.dropLast())"
            context.note(
                "\(fault.what): the chain starts without the camera, \(options.whileLost == .stop ? "planned for pictures" : "with a slate") of \(asked.size) in i420, and opens the camera as soon as it can\(advice)",
                isWarning: true)
        }
        return units.map { .encoded($0.format) } ?? .video(format!)
    }

    private func choose(_ device: V4L2Device) throws {
        defer { device.close() }
        let path = device.path
        guard let mode = FormatChoice.best(of: device.modes(near: asked), for: asked) else {
            throw CameraFault.noFormat(path, asked: asked.pixels, there: device.formats().map(\.code))
        }
        let layout: DriverLayout
        do {
            layout = try DriverLayout(try device.format(mode.code, mode.size, isSet: false), of: mode)
        } catch let fault as CallFault {
            throw CameraFault.of(fault, path, calls)
        }
        _ = try options.controls.members.isEmpty ? [] : options.controls.settings(device.controls())
        let format = layout.videoFormat(rate: mode.rate)
        (self.path, self.mode, self.format) = (path, mode, format)
        // A name that the user gave is looked for as it is.
        chosenID =
            options.device.flatMap { $0.hasPrefix("/dev/video") ? nil : $0 } ?? CameraList.stableID(of: path, calls)
            ?? path
        let name = "\(device.identity.name) (\(path))"
        if let difference = FormatChoice.difference(mode, asked) {
            context.note("\(name): \(difference)", isWarning: true)
        } else {
            context.note("\(name): \(mode.text)")
        }
        if mode.pixels == .h264 { return try negotiateUnits(device, mode, layout, format) }
        noteCopies(layout, format, device)
    }

    /// Notes whether pictures are copied, and why.
    private func noteCopies(_ layout: DriverLayout, _ format: VideoFormat, _ device: V4L2Device) {
        // Requesting zero buffers changes nothing, and tells what the driver supports.
        let takesOurs = (try? device.requestBuffers(0, .mapped).takesOurs) ?? nil
        lends = layout.fits(format) && takesOurs != false
        context.note(CameraNotes.copies(layout, format, takesOurs: takesOurs))
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isLive = true
        demand.isUrgent = true
        demand.readsFiles = context.filesRead(options.slatePicture)
        demand.floor = lends ? options.buffers : 0
        guard let format else { return demand }
        if let units {
            demand.slabBytes = units.slabBytes
            demand.makesKeyframes = units.makesKeyframes
        }
        if units == nil { demand.ownBytes += StandIn.bytes(format, keepsPicture: options.whileLost == .hold) }
        if mode?.pixels == .mjpeg { demand.cost = format.cost(nanosecondsPerPixel: 3.5) }
        if let path { demand.claims = [CameraNotes.claim(path, calls)] }
        return demand
    }

    /// [setup thread] Opens and sets the camera.
    func start() throws {
        guard let format else {
            throw FrameHostError(.broken, what: "v4l2-source was started before its camera was chosen")
        }
        if units == nil {
            standIn = try StandIn(
                format, slate ?? Slate(color: options.slateColor), keepsPicture: options.whileLost == .hold)
        }
        context.showFigures { [figures] in figures.json }
        lookedFor = options.device
        session = try path.flatMap { try open($0, format) }
        live = LiveState(
            isThere: session != nil, whileLost: options.whileLost, canStandIn: units == nil, now: context.clock.now())
        if live.isAway { context.recovering = missing }
    }

    /// Opens and sets the camera that was chosen; nil where it has gone meanwhile and may be waited for.
    private func open(_ path: String, _ format: VideoFormat) throws -> CameraSession? {
        let session: CameraSession
        do {
            session = try CameraSession(path: path, mode: mode, asked: asked, format: format, calls: calls)
            try setControls(session)
        } catch {
            // It may have gone since it was asked for its modes. A camera's own H.264 needs it at the start.
            guard options.ifMissing == .wait, units == nil, CameraFault.isOfGone(error) else { throw error }
            // It is this one that comes back, and not any other.
            lookedFor = chosenID
            missing = CameraFault.gone(path).what
            context.log(
                "The chain starts without its camera: \(missing). It is opened when it is back.", level: .warning)
            return nil
        }
        if session.mode.rate.value > 0, session.rate.value > 0,
            abs(session.rate.value / session.mode.rate.value - 1) > 0.01
        {
            context.post(
                "rate-differs", level: .warning,
                text:
                    "The camera lists \(session.mode.rate.short) fps, but its driver has set \(session.rate.short) fps. The times of its pictures are right, but the chain is planned for \(session.mode.rate.short) fps. If `framehost devices` lists \(session.rate.short) fps too, set 'rate' to that in the chain file.",
                details: ["listed": .number(session.mode.rate.value), "set": .number(session.rate.value)])
        }
        lookedFor = chosenID
        return session
    }

    /// [stage thread]
    func stop() {
        session?.close()
        session = nil
    }

    // MARK: Controls

    /// [stage thread]
    func optionsChanged() throws { if let session { try setControls(session) } }

    /// Sets the controls whose value has changed.
    private func setControls(_ session: CameraSession) throws {
        let values = options.controls
        let news = values.members.filter { member in
            !applied.members.contains { $0.key == member.key && $0.value.withoutPlaces == member.value.withoutPlaces }
        }
        try session.set(ControlValues(members: news)) { control, asked, got in
            context.post(
                "control-changed", level: .warning,
                text: "The control '\(control.name)' was set to \(asked), but the camera changed it to \(got).",
                details: ["control": .string(control.name), "asked": .number(asked), "value": .number(got)])
        }
        applied = values
    }

    // MARK: One picture

    /// How long one wait for the kernel lasts, so that a stop is noticed.
    private static let wait: Int32 = 50
    /// Without a picture for this long a camera of 2 frames per second or more counts as lost, nanoseconds.
    private static let patience: Int64 = 2_000_000_000

    /// [stage thread] Gives one picture, or none yet.
    func produce(_ output: Output) throws -> SourceProgress {
        if context.isEnded { return .ended }
        guard let session else { return try beAway(output) }
        do {
            try take(session, output)
        } catch let fault as CallFault {
            try lose(fault.text)
        }
        return .more
    }

    private func take(_ session: CameraSession, _ output: Output) throws {
        let before = context.clock.now()
        let queue = try session.queue ?? begin(session, output)
        try queue.refill()
        if queue.queuedCount == 0 {
            // Later stages hold every buffer. Pictures are lost in the driver, and counted when it goes on.
            lastPictureAt = before
            _ = context.sleep(until: before + 2_000_000)
            return
        }
        guard let picture = try context.waiting({ () throws(CallFault) in try queue.next(milliseconds: Self.wait) })
        else {
            let now = context.clock.now()
            if now - lastPictureAt > stallTime {
                try lose("no picture for \((now - lastPictureAt) / 1_000_000) ms")
            } else if now - before < 1_000_000 {
                _ = context.sleep(until: now + 2_000_000)
            }
            return
        }
        let now = context.clock.now()
        lastPictureAt = now
        let time = times.time(picture.filled.time, now: now)
        note(
            missed: times.missed(
                picture.filled.sequence, at: time, period: format?.frameRate.period.nanoseconds ?? 0))
        figures.timesReplaced.store(times.replaced, ordering: .relaxed)
        if units != nil { return try give(picture, queue, at: time, now: now, output) }
        guard let frame = try frame(of: picture, queue, session, output) else { return }
        describe(frame, at: time)
        standIn?.look(at: frame, now: now)
        try output.emit(frame)
    }

    private func describe(_ frame: borrowing Frame, at time: Int64) {
        frame.pts = MediaTime(nanoseconds: time)
        frame.capturedAt = time
        frame.duration = frame.format.frameRate.period
        frame.isMirroredInPreviews = options.isMirroredInPreviews
        frame.isDiscontinuity = followsGap
        followsGap = false
    }

    private func begin(_ session: CameraSession, _ output: Output) throws(CallFault) -> CaptureQueue {
        // Pictures whose colours are converted are copied before.
        let lends = lends && session.colors == nil
        let queue = try session.begin(depth: options.buffers, lender: lends ? output.lender : nil)
        lastPictureAt = context.clock.now()
        times.restart()
        figures.isStreaming.store(true, ordering: .relaxed)
        if lends, !queue.isLent {
            context.post(
                "pictures-copied",
                text:
                    "The driver does not write into the chain's buffers, although it accepted them: each picture is copied once."
            )
        }
        return queue
    }

    /// Nil for a picture that is left out.
    private func frame(
        of picture: CaptureQueue.Picture, _ queue: CaptureQueue, _ session: CameraSession, _ output: Output
    ) throws -> Frame? {
        guard !picture.filled.isDamaged else { return leaveOut(picture, queue, "the driver marks it as damaged") }
        if session.decoder == nil, picture.filled.byteCount < session.layout.leastBytes {
            return leaveOut(
                picture, queue, "it has only \(picture.filled.byteCount) of \(session.layout.leastBytes) bytes")
        }
        if let frame = queue.frame(of: picture) {
            figures.add(figures.lent)
            return frame
        }
        defer { queue.giveBack(picture) }
        guard let bytes = picture.bytes, var frame = try output.makeFrame() else { return nil }
        guard let decoder = session.decoder else {
            session.copy.copy(bytes, to: &frame)
            if let colors = session.colors { frame.withMutablePicture(colors.convert) }
            figures.add(figures.copied)
            return frame
        }
        switch decoder.decode(bytes, to: &frame) {
        case .decoded:
            if let colors = session.colors { frame.withMutablePicture(colors.convert) }
            figures.add(figures.decoded)
            unknownInARow = 0
            return frame
        case .damaged(let words):
            unknownInARow = 0
            noteDamage("its JPEG is damaged: \(words)")
        case .unknown(let words):
            unknownInARow += 1
            guard unknownInARow < Self.mostUnknown else {
                throw FrameHostError(
                    .invalidMedia, what: "the camera gave \(unknownInARow) JPEG pictures in a row, and their \(words)",
                    remedy: "Set 'format' to another one that `framehost devices` lists.")
            }
            noteDamage("its \(words)")
        }
        return nil
    }

    /// A damaged picture may claim a kind of JPEG that the camera does not give; so many in a row are what it gives.
    private static let mostUnknown = 25

    private func leaveOut(_ picture: CaptureQueue.Picture, _ queue: CaptureQueue, _ why: String) -> Frame? {
        queue.giveBack(picture)
        noteDamage(why)
        return nil
    }

    func noteDamage(_ why: String) {
        figures.add(figures.damaged)
        followsGap = true
        units?.stream.lose()
        context.post(
            "picture-damaged", once: &reported, level: .warning,
            text: "A picture was dropped: \(why). Further ones are only counted, in the figure 'damaged'.")
    }

    private func note(missed count: Int) {
        guard count > 0 else { return }
        figures.add(figures.missed, count)
        followsGap = true
        units?.stream.lose()
    }

    private var stallTime: Int64 { max(Self.patience, 4 * (format?.frameRate.period.nanoseconds ?? 0)) }

    // MARK: Away

    private func lose(_ reason: String) throws {
        session?.close()
        session = nil
        applied = ControlValues()
        followsGap = true
        units?.stream.lose()
        figures.isStreaming.store(false, ordering: .relaxed)
        figures.add(figures.losses)
        // The timeline goes on from the last picture.
        let next = times.last.map { $0 + format!.frameRate.period.nanoseconds }
        guard case .sayLost? = live.lost(reason, now: context.clock.now(), next: next) else {
            throw FrameHostError(
                .unavailable, place: path ?? "", what: "the camera is lost: \(reason)",
                remedy:
                    "Start the chain again when the camera is back. Set \"whileLost\": \"hold\" to let the chain go on and open the camera again by itself."
            )
        }
        context.recovering = "the camera is lost: \(reason)"
        context.post(
            "camera-lost", level: .warning,
            text: "The camera is lost: \(reason). It is opened again when it is back.",
            details: [
                "reason": .string(reason), "shown": .string(units == nil ? options.whileLost.rawValue : "nothing"),
            ])
    }

    /// Shows stand-ins at the chain's rate, and looks for the camera.
    private func beAway(_ output: Output) throws -> SourceProgress {
        guard context.sleep(until: live.nextTurn) else { return .ended }
        let now = context.clock.now()
        if now >= live.nextTry { comeBack(now) }
        guard live.isStandInDue(now: now) else { return .more }
        live.stoodIn(now: now, period: format!.frameRate.period.nanoseconds)
        guard var frame = try output.makeFrame() else { return .more }
        standIn?.paint(&frame)
        let time = times.time(now, now: now)
        describe(frame, at: time)
        try output.emit(frame)
        return .more
    }

    private func comeBack(_ now: Int64) {
        guard let path = try? CameraList.path(of: lookedFor, calls), V4L2Device.isThere(path, calls) else {
            return live.missed(now: context.clock.now())
        }
        do {
            let session = try CameraSession(path: path, mode: mode, asked: asked, format: format!, calls: calls)
            try setControls(session)
            self.session = session
        } catch {
            // The camera is there but cannot be used.
            if case .sayRefused(let fault)? = live.refused(FrameHostError.wrap(error).description) {
                context.post(
                    "camera-refused", level: .warning,
                    text: "The stage keeps trying to open the camera, which is there but cannot be used: \(fault)")
            }
            return live.missed(now: context.clock.now())
        }
        self.path = path
        if lookedFor == nil { lookedFor = CameraList.stableID(of: path, calls) ?? path }
        followsGap = true
        unknownInARow = 0
        guard case .sayBack(let isFirst, let after)? = live.given(now: now) else { return }
        context.recovering = nil
        context.post(
            "camera-back",
            text: "The camera is \(isFirst ? "there" : "back") as \(path), after \(after / 1_000_000) ms.",
            details: ["path": .string(path), "awayMs": .number(after / 1_000_000)])
    }
}
