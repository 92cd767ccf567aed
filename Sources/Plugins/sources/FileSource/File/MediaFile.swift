// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// One local file opened with libavformat: its tracks, and its packets in the order of decoding.
///
/// The only place of this plugin that calls libavformat for files. Used by one thread at a time. Opening decides
/// which file is read: neither colons or a pattern in its name, nor its contents, lead to another file or to the
/// network.
final class MediaFile {
    let path: String
    private var container: UnsafeMutablePointer<AVFormatContext>?
    private(set) var io: UnsafeMutablePointer<AVIOContext>?
    /// Reads the pictures instead of libavformat, from the begin on.
    var raw: RawPictures?
    /// Keeps recorders from removing or replacing the file while it is played.
    private var held: HeldFile?
    /// The only track whose packets are given; nil: all tracks.
    private var onlyTrack: Int?
    /// Whether libavformat examines the contents. Otherwise the decoder finds out.
    private let looksInside: Bool
    private let packets = TimedPackets()
    /// Where the times of all tracks lie, as far as it was read.
    var timeline: InputTimeline { packets.timeline }
    /// Whether the times step somewhere, where that was found out.
    private var isStepped: Bool?
    /// Whether it examines more of them than it does unasked.
    private var looksFar = false

    /// Formats that only name other files. Reading some of them never ends.
    private static let playlists: Set = ["hls", "dash", "concat", "imf", "sdp", "webm_dash_manifest"]

    /// [control thread] Opens the file and finds out what is in it. Decodes only as much as that needs.
    ///
    /// - Throws: ``FrameHostError`` `.invalidMedia`, `.unavailable`.
    init(path: String) throws {
        self.path = path
        looksInside = true
        var (opened, said) = LibavText.during { open() }
        if case .file = opened, hasUnknownPictures || hasUnknownSound {
            close()
            looksFar = true
            (opened, said) = LibavText.during { open() }
        }
        if let fault = fault(opened, said) { throw fault }
    }

    /// Whether nothing is known of the pictures of any video track that could be played. libavformat looks at five seconds
    /// of a file, which may have a single picture, and at five megabytes.
    private var hasUnknownPictures: Bool {
        let tracks = playableTracks
        return !tracks.isEmpty && !tracks.contains { parameters($0).width > 0 && parameters($0).format >= 0 }
    }

    /// Whether nothing is known of some sound, as where it begins later than libavformat looks.
    private var hasUnknownSound: Bool { (0..<trackCount).contains { isUnknownSound($0) } }

    /// Whether the rate or the channels of a sound track are not known.
    func isUnknownSound(_ index: Int) -> Bool {
        let parameters = parameters(index)
        return parameters.codec_type == AVMEDIA_TYPE_AUDIO && parameters.codec_id != AV_CODEC_ID_NONE
            && (parameters.sample_rate <= 0 || parameters.ch_layout.nb_channels <= 0)
    }

    /// [any thread] Opens a file of which only the first picture is wanted. Decodes nothing.
    ///
    /// - Throws: ``FrameHostError`` `.invalidMedia`, `.unavailable`.
    init(still path: String) throws {
        self.path = path
        looksInside = false
        if let fault = fault(open(), "") { throw fault }
    }

    deinit { close() }

    /// [any thread] Opens the file again, to read it from its start: for files in which seeking is impossible.
    func reopen() throws {
        let wanted = onlyTrack.map { parameters($0).codec_id }
        close()
        if let fault = fault(open(), "") { throw fault }
        guard let onlyTrack else { return }
        guard onlyTrack < trackCount, parameters(onlyTrack).codec_id == wanted else { throw FileFault.changed(path) }
        giveOnly(track: onlyTrack)
    }

    private enum Opened {
        case file
        case playlist(String)
        case failed(Int32)
    }

    private func open() -> Opened {
        let url = "file:" + path
        let reader = looksInside ? "file-source" : "image-source"
        held = RunFiles.read(path, as: reader)
        let connected = avio_open2(&io, url, AVIO_FLAG_READ, nil, nil)
        guard connected >= 0, let io else { return .failed(connected) }
        // The file may have been replaced between the two calls. The held file must be the one that is read.
        if let held, !held.hasItsFile { self.held = RunFiles.read(path, as: reader) }
        var format: UnsafePointer<AVInputFormat>?
        let found = av_probe_input_buffer2(io, &format, url, nil, 0, 0)
        guard found >= 0, let format else { return .failed(found) }
        let name = String(cString: format.pointee.name)
        if Self.playlists.contains(name) { return .playlist(name) }
        container = avformat_alloc_context()
        guard container != nil else { return .failed(fh_averror_no_memory) }
        container!.pointee.pb = io
        var settings: OpaquePointer?
        defer { av_dict_free(&settings) }
        av_dict_set(&settings, "protocol_whitelist", "file", 0)
        let begun = avformat_open_input(&container, url, format, &settings)
        guard begun >= 0 else { return .failed(begun) }
        guard looksInside else { return .file }
        if looksFar {
            container!.pointee.max_analyze_duration = Int64(AV_TIME_BASE) * 24 * 3600
            container!.pointee.probesize = 1 << 26
        }
        let looked = avformat_find_stream_info(container, nil)
        guard looked >= 0 else { return .failed(looked) }
        raw?.goToBegin()
        forgetTimes()
        return .file
    }

    private func fault(_ opened: Opened, _ said: String) -> FrameHostError? {
        switch opened {
        case .file: return nil
        case .playlist(let name): return FileFault.playlist(path, kind: name)
        case .failed(let code):
            let errno = code == fh_averror_invalid_data ? 0 : fh_averror_errno(code)
            guard errno == 0 else { return FileFault.unreadable(path, errno) }
            return looksInside ? FileFault.notMedia(path, cause: said) : ImageFault.noPicture(path, cause: said)
        }
    }

    private func close() {
        forgetTimes()
        avformat_close_input(&container)
        avio_closep(&io)
        held = nil
    }

    /// 0 when unknown.
    var byteCount: Int { io.map { max(Int(avio_size($0)), 0) } ?? 0 }

    /// The file's bytes; nil where it is no regular file.
    var bytes: FileBytes? { held.flatMap { $0.isRegular ? FileBytes($0.descriptor) : nil } }

    // MARK: Tracks

    /// Tracks of all kinds.
    var trackCount: Int { Int(container?.pointee.nb_streams ?? 0) }

    /// A track, by its number from 0 among all kinds; valid until the file is opened again.
    func stream(_ index: Int) -> UnsafeMutablePointer<AVStream> { container!.pointee.streams[index]! }

    func parameters(_ index: Int) -> AVCodecParameters { stream(index).pointee.codecpar.pointee }

    /// 0 when unknown or impossible.
    func sampleAspectRatio(_ index: Int, of picture: UnsafeMutablePointer<AVFrame>? = nil) -> Rational {
        let aspect = av_guess_sample_aspect_ratio(container, stream(index), picture)
        guard aspect.num > 0, aspect.den > 0 else { return Rational(0) }
        let ratio = Rational(aspect.num, aspect.den)
        return VideoFormat.aspectRatios.contains(ratio.value) ? ratio : Rational(0)
    }

    /// The file's duration by its header; nil where the header has none.
    var duration: MediaTime? {
        guard let container, container.pointee.duration != fh_av_no_pts, container.pointee.duration > 0 else {
            return nil
        }
        return TimeBase(1, AV_TIME_BASE).time(ofTicks: container.pointee.duration)
    }

    /// Whether the duration is written in the file, not estimated.
    var isDurationDeclared: Bool { container?.pointee.duration_estimation_method == AVFMT_DURATION_FROM_STREAM }

    /// libavformat's name of the format: `mov,mp4,m4a,3gp,3g2,mj2`.
    var formatName: String { container.map { String(cString: $0.pointee.iformat.pointee.name) } ?? "" }

    /// Whether the format is a stream without a header. What is known of a track is then the last that was found in
    /// its first seconds, not what holds at its start.
    var isHeaderless: Bool {
        guard let format = container?.pointee.iformat else { return false }
        return format.pointee.flags & AVFMT_NOTIMESTAMPS != 0 || ["mpegts", "mpeg"].contains(formatName)
    }

    /// Whether it is a stream that was written down, and may begin anywhere.
    var isStream: Bool { isHeaderless || formatName == "flv" }

    /// What it says about itself, as libavformat keeps it.
    var metadata: OpaquePointer? { container?.pointee.metadata }

    var chapterList: [AVChapter] {
        (0..<Int(container?.pointee.nb_chapters ?? 0)).compactMap { container?.pointee.chapters[$0]?.pointee }
    }

    // MARK: Times

    /// Whether the format is one whose times may step, in joined recordings, and wrap.
    private var mayStep: Bool { (container?.pointee.iformat.pointee.flags ?? 0) & AVFMT_TS_DISCONT != 0 }

    /// What is added to all times, so that the file begins at 0: the clock of a stream that was written down says
    /// nothing, and libavformat puts one that wraps before 0. In MP4 and Matroska a late begin is meant.
    var baseShift: MediaTime {
        guard mayStep || formatName == "flv", let start = container?.pointee.start_time, start != fh_av_no_pts else {
            return .zero
        }
        return .zero - TimeBase(1, AV_TIME_BASE).time(ofTicks: start)
    }

    /// Whether times step somewhere in the file, so that a place cannot be found by its time. Looks at the times of some
    /// places where that is not known yet, and leaves the file at one of them.
    private func hasSteps() -> Bool {
        if !timeline.steps.isEmpty { isStepped = true }
        if let isStepped { return isStepped }
        let found = mayStep && looksStepped()
        isStepped = found
        return found
    }

    /// How many places are looked at, and how many packets at each for one with a time.
    private static let surveyPlaces: Int64 = 48
    private static let surveyPackets = 200

    private func looksStepped() -> Bool {
        var packet = av_packet_alloc()
        defer { av_packet_free(&packet) }
        var times: [MediaTime] = []
        for place in 0..<Self.surveyPlaces {
            let offset = Int64(byteCount) / Self.surveyPlaces * place
            guard avformat_seek_file(container, -1, .min, offset, offset, AVSEEK_FLAG_BYTE) >= 0 else { return false }
            for _ in 0..<Self.surveyPackets {
                guard av_read_frame(container, packet) >= 0, let found = packet?.pointee else { break }
                defer { av_packet_unref(packet) }
                guard isLookedAt(Int(found.stream_index)),
                    let time = InputTimeline.Stamp(found, timeBase(Int(found.stream_index))).time
                else { continue }
                times.append(time)
                break
            }
        }
        let steps = zip(times.dropFirst(), times).map { $0 - $1 }
        guard !steps.isEmpty else { return false }
        let usual = steps.sorted()[steps.count / 2]
        // Tracks lie beside each other, so the times of two places may cross a little.
        let most = MediaTime(nanoseconds: min(usual.nanoseconds, MediaTime.range.upperBound / 32) * 16)
        return steps.contains { $0 < .zero - MediaTime(seconds: 1) || $0 > TimelineTracks.leastStep + most }
    }

    /// How many packets the tracks have at the file's begin, as far as it takes to tell a film from a still beside it; made
    /// when it is asked for.
    private var firstPackets: [Int: Int]?
    private static let mostFirstPackets = 3000

    /// [control thread] Whether a track has one packet where another video track has many. Afterwards the file is at its start.
    func hasOnePacket(_ track: Int) -> Bool {
        if firstPackets == nil {
            var counts: [Int: Int] = [:]
            var packet = av_packet_alloc()
            defer { av_packet_free(&packet) }
            for _ in 0..<Self.mostFirstPackets where av_read_frame(container, packet) >= 0 {
                counts[Int(packet!.pointee.stream_index), default: 0] += 1
                av_packet_unref(packet)
            }
            firstPackets = counts
            guard (try? reopen()) != nil else { return false }
        }
        let most = playableTracks.map { firstPackets?[$0] ?? 0 }.max() ?? 0
        return firstPackets?[track] == 1 && most > 10
    }

    // MARK: Reading

    /// From here on only the packets of one track are given. The others' times are looked at where they may step
    /// together with it.
    func giveOnly(track: Int) {
        onlyTrack = track
        for index in 0..<trackCount {
            stream(index).pointee.discard = index == track || isLookedAt(index) ? AVDISCARD_DEFAULT : AVDISCARD_ALL
        }
    }

    /// Whether a track's times are told to the timeline though its packets are not given. Times of an MP4 file cannot
    /// step; its tracks are read one by one.
    private func isLookedAt(_ index: Int) -> Bool {
        let kind = parameters(index).codec_type
        return !formatName.hasPrefix("mov") && (kind == AVMEDIA_TYPE_AUDIO || kind == AVMEDIA_TYPE_VIDEO)
            && stream(index).pointee.disposition & AV_DISPOSITION_ATTACHED_PIC == 0
    }

    /// The next packet, with its times on the file's timeline (``InputTimeline``); an AVERROR at the end and when
    /// reading fails.
    func read(into packet: UnsafeMutablePointer<AVPacket>?) -> Int32 {
        guard let container, let packet else { return fh_averror_invalid_data }
        return packets.read(container, raw: raw, into: packet) { index in
            if self.onlyTrack == nil || self.onlyTrack == index { return .given }
            return self.isLookedAt(index) ? .lookedAt : .leftOut
        }
    }

    /// Begins to read at another place, whose times are unrelated to those that were read last.
    private func forgetTimes(isInMiddle: Bool = false) {
        if !timeline.steps.isEmpty { isStepped = true }
        packets.begin(InputTimeline(shift: baseShift, closesGaps: mayStep, isInMiddle: isInMiddle))
    }

    /// Seeks to a keyframe at or before `tick`, as well as the format can; false when it cannot.
    func seek(to tick: Int64, track: Int) -> Bool {
        guard !hasSteps() else { return false }
        let place = tick.minus(timeBase(track).ticks(of: baseShift))
        guard avformat_seek_file(container, Int32(track), .min, place, place, 0) >= 0 else { return false }
        raw?.goOn()
        forgetTimes(isInMiddle: true)
        return true
    }
}
