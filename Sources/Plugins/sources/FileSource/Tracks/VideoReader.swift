// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// Reads the pictures of one video track, from any place of the file: file, decoder and deinterlacer in one.
///
/// Used by one thread at a time. `step()` leaves the newest picture in `picture`, where it is valid until the next
/// step.
final class VideoReader: TrackReader {
    enum Step { case picture, again, ended }

    let track: Int
    let picture: DecodedPicture
    let loans: DecoderLoans?

    /// Packets and pictures that were damaged.
    private(set) var damaged = 0
    /// How many of them are pictures that were given, with parts that the decoder guessed, and the tick of the first.
    private(set) var concealed = 0
    private(set) var firstConcealed: Int64?
    /// Packets of the track that were read.
    private(set) var packetsRead = 0
    /// Packets before the first keyframe, at the start of the file, that gave no picture.
    private(set) var packetsBeforeKeyframe = 0
    /// Why reading ended early, empty when it did not.
    private(set) var readFault = ""
    private(set) var hasSeenInterlacing = false

    /// Ticks at which the picture is to be shown; nil where the file does not say.
    private(set) var tick: Int64?
    /// Ticks for which it is to be shown; 0 when unknown.
    var durationTicks: Int64 { times.duration(picture.givenDuration) }
    private(set) var times: TrackTimes
    private(set) var notes: PacketNotes
    private(set) var damagedAtStart = 0
    var marked: Int { 0 }
    /// Interlaced pictures may have a packet for each field.
    var decoded: Int? { hasSeenInterlacing ? nil : decodedCount }
    private(set) var firstDecodedTick: Int64?

    private var decodedCount = 0
    private var startsLate = false
    private let file: MediaFile
    private let decoder: PictureDecoder
    private let deinterlacer: Deinterlacer?
    private var packet: UnsafeMutablePointer<AVPacket>?
    private var hasKeyPacket = false
    private var hasDecoded = false
    private var hasEnded = false
    private var attempts = SeekAttempts()
    private var attempt: SeekAttempt? { attempts.attempt }

    /// [control thread] Opens the decoder.
    init(
        _ file: MediaFile, track: Int, threads: Int, loans: DecoderLoans?, deinterlacer: Deinterlacer?,
        promise: FilePromise = FilePromise()
    ) throws {
        self.file = file
        self.track = track
        self.loans = loans
        self.deinterlacer = deinterlacer
        times = TrackTimes(timeBase: file.timeBase(track))
        notes = promise.notes(times.timeBase)
        decoder = try PictureDecoder(file, track: track, threads: threads, loans: loans)
        guard let frame = av_frame_alloc(), let packet = av_packet_alloc() else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a decoder",
                remedy: "Free some memory, and start the chain again.")
        }
        picture = DecodedPicture(frame: frame)
        self.packet = packet
        file.giveOnly(track: track)
    }

    deinit {
        var frame: UnsafeMutablePointer<AVFrame>? = picture.frame
        av_frame_free(&frame)
        av_packet_free(&packet)
    }

    /// The picture's sample aspect ratio, if necessary the container's; 0 when unknown.
    var sampleAspectRatio: Rational { file.sampleAspectRatio(track, of: picture.frame) }

    // MARK: Pictures

    /// [stage thread] Takes the next picture, or gets one step nearer to it. Damage is counted and skipped.
    func step() throws -> Step {
        if let deinterlacer, try deinterlacer.receive(into: picture.frame) {
            tick = times.tick(picture.givenTick)
            return .picture
        }
        if hasEnded { return .ended }
        switch decoder.receive(into: picture.frame) {
        case .picture: return try take()
        case .hungry: try feed()
        case .damaged: countDamage()
        case .ended:
            if attempt?.isTooLate(nil) == true {
                try goBack()
            } else {
                hasEnded = true
                deinterlacer?.end()
            }
        }
        return .again
    }

    private func take() throws -> Step {
        noteConcealment()
        if let attempt,
            attempt.isTooLate(TrackTimes.isPossible(picture.givenTick, times.timeBase) ? picture.givenTick : nil)
        {
            try goBack()
            return .again
        }
        attempts.attempt = nil
        // In some formats showing can begin at a picture that is not a keyframe.
        if !hasDecoded, !picture.isKey { packetsBeforeKeyframe = 0 }
        if !hasDecoded, picture.givenTick != fh_av_no_pts { firstDecodedTick = picture.givenTick }
        hasDecoded = true
        decodedCount += 1
        if picture.isInterlaced { hasSeenInterlacing = true }
        guard let deinterlacer else {
            tick = times.tick(picture.givenTick)
            return .picture
        }
        try deinterlacer.send(picture)
        return .again
    }

    /// Counts a picture of which parts are guessed. What the decoder says before the first picture of a stream that begins in
    /// its middle says nothing about that picture.
    private func noteConcealment() {
        let complains = decoder.takesComplaints()
        guard picture.isDamaged || complains && (hasDecoded || !startsLate), attempt == nil else { return }
        countDamage()
        concealed += 1
        if firstConcealed == nil, TrackTimes.isPossible(picture.givenTick, times.timeBase) {
            firstConcealed = picture.givenTick
        }
    }

    private func feed() throws {
        let result = file.read(into: packet)
        if result == fh_averror_again { return }
        guard result >= 0 else {
            if result != fh_averror_eof { readFault = LibavText.of(result) }
            notes.isAtEnd = true
            _ = try decoder.send(nil)
            return
        }
        defer { av_packet_unref(packet) }
        guard packet!.pointee.stream_index == track else { return }
        packetsRead += 1
        notes.note(packet!.pointee)
        if packet!.pointee.flags & AV_PKT_FLAG_KEY != 0 { hasKeyPacket = true }
        if !hasKeyPacket, !hasDecoded, attempt == nil {
            packetsBeforeKeyframe += 1
            startsLate = true
        }
        if try !decoder.send(packet) { countDamage() }
    }

    /// Packets that cannot be decoded because reading began in the middle are not damaged.
    private func countDamage() {
        guard attempt == nil else { return }
        damaged += 1
        // A decoder finds the faults of the first packets late, so they are counted up to the first picture.
        if !hasDecoded, startsLate { damagedAtStart += 1 }
    }

    /// [stage thread] Reads a picture that ``RawPictures`` has only described into a frame; false if it cannot be read, which ends
    /// the pictures.
    func copyRaw(into frame: inout Frame) -> Bool {
        guard let io = file.io, let raw = file.raw else { return false }
        let result = raw.copy(from: io, into: &frame)
        guard result < 0 else { return true }
        readFault = LibavText.of(result)
        notes.isAtEnd = true
        hasEnded = true
        return false
    }

    /// Whether pictures are read by ``copyRaw(into:)``.
    var isRaw: Bool { file.raw != nil }

    // MARK: Moving

    /// [stage thread, or before it runs the control thread] Goes to `tick`: the pictures from there on come next,
    /// perhaps after some earlier ones. nil goes to the start.
    ///
    /// - Parameter isFirst: Whether `tick` is that of the file's first picture.
    func enter(at tick: Int64?, isFirst: Bool) throws {
        attempts.attempt = SeekAttempt(
            tick, isFirst: isFirst, origin: file.origin(track), timeBase: file.timeBase(track))
        try go()
    }

    private func goBack() throws {
        attempts.goBack()
        try go()
    }

    private func go() throws {
        _ = try attempts.follow(in: file, track: track)
        decoder.flush()
        deinterlacer?.reset()
        hasEnded = false
        notes = notes.again
    }
}
