// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import CodedVideo
import FrameCore

/// Reads the access units of one track, those of H.264 and H.265 with start codes, from any keyframe of the file.
///
/// Used by one thread at a time. `step()` leaves the newest unit in `bytes`, where it is valid until the next step.
final class UnitReader: TrackReader {
    enum Step { case unit, again, ended }

    /// A place where reading may begin. Its tick is nil where the file does not have it.
    struct Keyframe: Equatable { var tick: Int64? }

    /// How many packets are searched for the first keyframe of a file.
    static let mostPacketsBeforeKeyframe = 10_000

    let track: Int
    let coding: UnitCoding
    /// Pictures that cannot be decoded where reading begins.
    private(set) var leading = LeadingPictures()
    private(set) var damaged = 0
    private(set) var packetsRead = 0
    /// Access units before the first keyframe, at the start of the file, which cannot be decoded.
    private(set) var packetsBeforeKeyframe = 0
    private(set) var readFault = ""
    private(set) var times: TrackTimes
    private(set) var notes: PacketNotes
    var damagedAtStart: Int { 0 }
    private(set) var marked = 0
    var concealed: Int { 0 }
    var firstConcealed: Int64? { nil }
    var decoded: Int? { nil }
    var firstDecodedTick: Int64? { nil }

    /// The PTS of the newest unit; nil where the file has none.
    private(set) var pts: Int64?
    private(set) var dts: Int64?
    private var outline: UnitOutline
    var entry: AccessUnit.Entry { outline.entry }
    var isKeyframe: Bool { entry != .none }
    /// Whether an edit list hides it.
    private(set) var isHidden = false
    /// Whether a unit before it was damaged and left out.
    private(set) var followsLoss = false

    private let file: MediaFile
    private var filter: UnitFilter
    private var packet: UnsafeMutablePointer<AVPacket>?
    /// The attempts to reach the keyframe at which to begin.
    private var attempts: SeekAttempts
    private var attempt: SeekAttempt? { attempts.attempt }
    /// The tick of that keyframe; nil: the first keyframe that comes.
    private var wanted: Int64?
    private var hasGiven = false
    /// Whether the newest unit was read ahead and not given yet.
    private var isInHand = false
    private var hasLost = false
    private(set) var hidden: HiddenPictures?

    /// [control thread] The file is at its start, and its first keyframe is given first.
    init(_ file: MediaFile, track: Int, promise: FilePromise = FilePromise()) throws {
        self.file = file
        self.track = track
        coding = UnitCoding(file.parameters(track).codec_id) ?? .nal(.h264)
        times = TrackTimes(timeBase: file.timeBase(track))
        notes = promise.notes(times.timeBase)
        attempts = SeekAttempts(SeekAttempt(nil, isFirst: true, origin: file.origin(track), timeBase: times.timeBase))
        outline = UnitOutline(UnsafeRawBufferPointer(start: nil, count: 0), coding)
        filter = try UnitFilter(file, track: track)
        guard let packet = av_packet_alloc() else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a packet",
                remedy: "Free some memory, and start the chain again.")
        }
        self.packet = packet
        file.giveOnly(track: track)
        hidden = HiddenPictures(file, track: track, isOpen: coding == .nal(.h265))
    }

    deinit { av_packet_free(&packet) }

    var bytes: UnsafeRawBufferPointer {
        guard let packet, packet.pointee.size > 0 else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(start: packet.pointee.data, count: Int(packet.pointee.size))
    }

    /// Ticks for which the newest unit's picture is to be shown; 0 when unknown.
    var durationTicks: Int64 { packet.map { times.duration($0.pointee.duration) } ?? 0 }

    /// The parameter sets of the newest unit, or else of the container; empty when neither has all.
    var parameterSets: [UInt8] {
        let own = coding.parameterSets(in: bytes)
        return own.isEmpty ? coding.parameterSets(ofContainer: filter.extradata) : own
    }

    // MARK: Access units

    /// [stage thread] Takes the next access unit, beginning with the chosen keyframe, or gets one step nearer to it.
    func step() throws -> Step {
        if isInHand {
            isInHand = false
            return .unit
        }
        switch next() {
        case .again: return .again
        case .ended:
            guard attempt?.place != nil else { return .ended }
            try goBack()
            return .again
        case .unit:
            let begins = attempt != nil
            if begins, try !hasArrived() { return .again }
            if leading.leavesOut(outline, begins: begins) { return .again }
            hasGiven = true
            return .unit
        }
    }

    /// [control thread] Reads up to the chosen keyframe, which the next `step()` gives; false when there is none.
    func readAhead() throws -> Bool {
        while packetsBeforeKeyframe < Self.mostPacketsBeforeKeyframe {
            switch try step() {
            case .again: continue
            case .ended: return false
            case .unit:
                isInHand = true
                return true
            }
        }
        return false
    }

    /// Whether the newest unit is the keyframe at which to begin.
    private func hasArrived() throws -> Bool {
        guard isKeyframe else {
            if wanted == nil, !hasGiven { packetsBeforeKeyframe += 1 }
            return false
        }
        if let wanted, pts != wanted {
            guard let pts, pts > wanted else { return false }
            if attempt?.place != nil {
                try goBack()
                return false
            }
            // The whole file was read, and the wanted keyframe is no longer there.
        }
        attempts.attempt = nil
        return true
    }

    private func next() -> Step {
        av_packet_unref(packet)
        switch filter.receive(into: packet) {
        case .hungry:
            feed()
            return .again
        case .damaged:
            countDamage()
            hasLost = true
            return .again
        case .ended: return .ended
        case .unit: return look()
        }
    }

    private func look() -> Step {
        let outline = UnitOutline(bytes, coding)
        guard let packet, outline.hasUnits else {
            countDamage()
            hasLost = true
            return .again
        }
        if packet.pointee.flags & AV_PKT_FLAG_CORRUPT != 0, countDamage() { marked += 1 }
        self.outline = outline
        isHidden = packet.pointee.flags & AV_PKT_FLAG_DISCARD != 0
        pts = times.tick(packet.pointee.pts)
        let dts = packet.pointee.dts
        self.dts = dts != fh_av_no_pts && TrackTimes.isPossible(dts, times.timeBase) ? dts : nil
        followsLoss = hasLost
        hasLost = false
        return .unit
    }

    private func feed() {
        let result = file.read(into: packet)
        if result == fh_averror_again { return }
        guard result >= 0 else {
            if result != fh_averror_eof { readFault = LibavText.of(result) }
            notes.isAtEnd = true
            filter.send(nil)
            return
        }
        guard packet!.pointee.stream_index == track else { return av_packet_unref(packet) }
        packetsRead += 1
        notes.note(packet!.pointee)
        if hidden?.needs(packet!, of: file.stream(track)) == false { return av_packet_unref(packet) }
        filter.send(packet)
    }

    /// Damage that a search finds is only counted when it is played.
    ///
    /// - Returns: Whether it was counted.
    @discardableResult
    private func countDamage() -> Bool {
        guard attempt == nil || attempt?.place == nil else { return false }
        damaged += 1
        return true
    }

    // MARK: Moving

    /// [control thread] The last keyframe up to `limit`, or the first one after it where there is none; nil when no
    /// keyframe is found. What was counted on the way is reset. `enter(at:)` goes there.
    func keyframe(upTo limit: Int64) throws -> Keyframe? {
        var search = SeekAttempts(
            SeekAttempt(limit, isFirst: true, origin: file.origin(track), timeBase: times.timeBase))
        defer {
            (damaged, marked, packetsRead, packetsBeforeKeyframe, readFault) = (0, 0, 0, 0, "")
            times = TrackTimes(timeBase: times.timeBase)
        }
        while true {
            try go(&search)
            let isFromBegin = search.attempt?.place == nil
            let (found, isBehind) = readKeyframe(upTo: limit, isFromBegin: isFromBegin)
            if isFromBegin || (found != nil && !isBehind) { return found }
            search.goBack()
        }
    }

    /// Reads on from the file's present position.
    private func readKeyframe(upTo limit: Int64, isFromBegin: Bool) -> (Keyframe?, isBehind: Bool) {
        var found: Keyframe?
        var count = 0
        while true {
            switch next() {
            case .again: continue
            case .ended: return (found, false)
            case .unit: break
            }
            count += 1
            if isKeyframe {
                if let pts, pts <= limit {
                    found = Keyframe(tick: pts)
                } else if found == nil {
                    return (Keyframe(tick: pts), true)
                }
            }
            // All following pictures are shown even later.
            if let dts, dts > limit, found != nil || !isFromBegin { return (found, false) }
            if found == nil, isFromBegin, count >= Self.mostPacketsBeforeKeyframe { return (nil, false) }
        }
    }

    /// [stage thread, or before it runs the control thread] Goes to a keyframe: the access units from there on come
    /// next.
    ///
    /// - Parameter tick: PTS of the keyframe; nil: the first of the file.
    func enter(at tick: Int64?) throws {
        wanted = tick
        isInHand = false
        attempts.attempt = SeekAttempt(tick, isFirst: true, origin: file.origin(track), timeBase: times.timeBase)
        try go(&attempts)
    }

    private func goBack() throws {
        attempts.goBack()
        try go(&attempts)
    }

    private func go(_ attempts: inout SeekAttempts) throws {
        if try !attempts.follow(in: file, track: track) {
            // The filter has the parameter sets of its last place, and does not notice that the file is back at its
            // first ones.
            filter = try UnitFilter(file, track: track)
        }
        filter.flush()
        hasLost = false
        notes = notes.again
    }
}
