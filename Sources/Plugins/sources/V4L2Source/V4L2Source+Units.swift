// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A camera's own H.264, as it was negotiated.
struct CameraUnits {
    var format: EncodedFormat
    var makesKeyframes: Bool
    /// How long a picture is shown, at the rate that the camera declares.
    let frameTime: MediaTime
    /// The largest access unit that is passed on. A larger one counts as damaged.
    let mostBytes: Int
    var stream = UnitStream()
    /// When a keyframe was last requested, by the chain clock; nil when none is awaited.
    var askedAt: Int64?

    /// - Parameters:
    ///   - video: The format of the pictures that the camera encodes.
    ///   - imageBytes: The most bytes of a picture, as the driver says.
    init(_ format: EncodedFormat, of video: VideoFormat, imageBytes: Int, makesKeyframes: Bool) {
        self.format = format
        self.makesKeyframes = makesKeyframes
        frameTime = video.frameRate.period
        let raw = video.width * video.height * 3 / 2
        // An encoded picture is not larger than a raw one. But small pictures may be mostly headers.
        mostBytes = min(imageBytes, max(raw, 1 << 20)) + UnitStream.mostSetBytes
    }

    var slabBytes: Int { max(4 << 20, 2 * mostBytes + (1 << 20)) }
}

/// Passing on what the camera encodes: `"format": "h264"`.
extension V4L2Source {
    /// How many buffers are searched for parameter sets, and how many waits of 50 ms may bring none: in all, and in a
    /// row.
    private static let mostBuffers = 600
    private static let mostWaits = 600
    private static let mostWaitsInARow = 100

    /// [control thread] Lets the camera run until its parameter sets have come, and a picture after them: later stages
    /// need them for a header or description before the first access unit.
    func negotiateUnits(_ device: V4L2Device, _ mode: CameraMode, _ layout: DriverLayout, _ video: VideoFormat) throws {
        let makesKeyframes = device.makesKeyframes
        let sets: [UInt8]
        do {
            let set = try DriverLayout(try device.format(mode.code, mode.size, isSet: true), of: mode)
            _ = try? device.setRate(mode.rate.isZero ? asked.rate : mode.rate)
            sets = try Self.readSets(device, set, depth: options.buffers)
        } catch let fault as CallFault {
            throw CameraFault.of(fault, device.path, calls)
        }
        var units = CameraUnits(
            EncodedFormat(codec: .h264, framing: .annexB, parameterSets: sets, video: video),
            of: video, imageBytes: layout.imageBytes, makesKeyframes: makesKeyframes)
        sets.withUnsafeBytes { _ = units.stream.look(at: $0) }
        self.units = units
        context.note(
            makesKeyframes
                ? "the camera's own H.264 is passed on, 1 copy per access unit; the camera can make keyframes on request"
                : "the camera's own H.264 is passed on, 1 copy per access unit; the camera cannot make keyframes on request"
        )
    }

    private static func readSets(_ device: V4L2Device, _ layout: DriverLayout, depth: Int) throws -> [UInt8] {
        let queue = try CaptureQueue(device, layout, depth: depth, lender: nil)
        defer { queue.stop() }
        device.forceKeyframe()
        var stream = UnitStream()
        var (buffers, waits, waitsInARow) = (0, 0, 0)
        while buffers < mostBuffers, waits < mostWaits, waitsInARow < mostWaitsInARow {
            try queue.refill()
            guard let picture = try queue.next(milliseconds: 50) else {
                waits += 1
                waitsInARow += 1
                continue
            }
            defer { queue.giveBack(picture) }
            buffers += 1
            waitsInARow = 0
            guard !picture.filled.isDamaged, let bytes = picture.bytes else { continue }
            let verdict = stream.look(at: bytes)
            // A camera may give more than one PPS, each in a buffer of its own. With the next picture all have come.
            if !stream.sets.isEmpty, verdict.hasPicture { return stream.sets }
        }
        guard stream.sets.isEmpty else { return stream.sets }
        guard buffers > 0 else { throw CameraFault.noPictures(device.path, seconds: 5) }
        throw CameraFault.noSets(
            device.path, "none came in \(buffers == 1 ? "1 access unit" : "\(buffers) access units")")
    }

    // MARK: One access unit

    /// [stage thread] Passes on a buffer that the driver has finished, or leaves it out.
    func give(
        _ picture: CaptureQueue.Picture, _ queue: CaptureQueue, at time: Int64, now: Int64, _ output: Output
    ) throws {
        defer { queue.giveBack(picture) }
        guard let bytes = picture.bytes else { return }
        if picture.filled.isDamaged {
            noteDamage("the driver marks it as damaged")
        } else if picture.filled.byteCount > bytes.count {
            noteDamage("the driver reports \(picture.filled.byteCount) bytes in a buffer of \(bytes.count)")
        } else if bytes.count > units!.mostBytes - UnitStream.mostSetBytes {
            noteDamage("it is too large: \(bytes.count) bytes")
        } else {
            let wasAwaiting = units!.stream.awaitsKeyframe
            switch units!.stream.look(at: bytes) {
            case .give(let isKeyframe, let needsSets):
                try emit(bytes, isKeyframe: isKeyframe, needsSets: needsSets, at: time, output)
            case .noPicture: break
            case .awaitsKeyframe:
                figures.add(figures.untilKeyframe)
                // A keyframe whose parameter sets are incomplete is itself the loss.
                if !wasAwaiting { followsGap = true }
            case .damaged(let why): noteDamage(why)
            }
        }
        reportSets()
        askForKeyframe(now)
    }

    private func emit(
        _ bytes: UnsafeRawBufferPointer, isKeyframe: Bool, needsSets: Bool, at time: Int64, _ output: Output
    ) throws {
        let setBytes = needsSets ? units!.stream.sets.count : 0
        var unit = try output.makeAccessUnit(byteCount: setBytes + bytes.count)
        unit.withMutableBytes { target in
            if needsSets {
                units!.stream.sets.withUnsafeBytes { target.copyMemory(from: $0) }
            }
            UnsafeMutableRawBufferPointer(rebasing: target[setBytes...]).copyMemory(from: bytes)
        }
        unit.pts = MediaTime(nanoseconds: time)
        // Cameras do not reorder pictures.
        unit.dts = unit.pts
        unit.capturedAt = time
        unit.duration = units!.frameTime
        unit.isKeyframe = isKeyframe
        unit.isMirroredInPreviews = options.isMirroredInPreviews
        unit.isDiscontinuity = followsGap
        followsGap = false
        figures.add(figures.passed)
        try output.emit(unit)
    }

    /// Reports changed parameter sets, once: headers and descriptions that were written have the first ones. Decoders
    /// find the new ones in the stream.
    private func reportSets() {
        guard units!.stream.setsHaveChanged else { return }
        context.post(
            "parameter-sets-changed", once: &reported, level: .warning,
            text:
                "The camera's parameter sets (SPS and PPS) have changed. The stream has the new ones, but the header of a recording and the SDP keep the old ones. If a player shows a damaged picture from there on, leave \"format\": \"h264\" out and put an encoder after this stage."
        )
    }

    /// Requests a keyframe after a loss, each second until one comes.
    private func askForKeyframe(_ now: Int64) {
        guard units!.stream.awaitsKeyframe else {
            units!.askedAt = nil
            return
        }
        if let askedAt = units!.askedAt, now - askedAt < 1_000_000_000 { return }
        units!.askedAt = now
        keyframeRequested()
    }

    /// [stage thread] A later stage needs a keyframe: a reader has joined, or something was lost.
    func keyframeRequested() { if units?.makesKeyframes == true { session?.device.forceKeyframe() } }
}
