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
    private var io: UnsafeMutablePointer<AVIOContext>?
    /// Keeps recorders from removing or replacing the file while it is played.
    private var held: HeldFile?
    /// The only track whose packets are given; nil: all tracks.
    private var onlyTrack: Int?
    /// Whether libavformat examines the contents. Otherwise the decoder finds out.
    private let looksInside: Bool

    /// Formats that only name other files. Reading some of them never ends.
    private static let playlists: Set = ["hls", "dash", "concat", "imf", "sdp", "webm_dash_manifest"]

    /// [control thread] Opens the file and finds out what is in it. Decodes only as much as that needs.
    ///
    /// - Throws: ``FrameHostError`` `.invalidMedia`, `.unavailable`.
    init(path: String) throws {
        self.path = path
        looksInside = true
        let (opened, said) = LibavText.during { open() }
        if let fault = fault(opened, said) { throw fault }
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
        let looked = avformat_find_stream_info(container, nil)
        return looked < 0 ? .failed(looked) : .file
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
        avformat_close_input(&container)
        avio_closep(&io)
        held = nil
    }

    /// 0 when unknown.
    var byteCount: Int { io.map { max(Int(avio_size($0)), 0) } ?? 0 }

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

    // MARK: Reading

    /// From here on only the packets of one track are given.
    func giveOnly(track: Int) {
        onlyTrack = track
        for index in 0..<trackCount {
            stream(index).pointee.discard = index == track ? AVDISCARD_DEFAULT : AVDISCARD_ALL
        }
    }

    /// The next packet; an AVERROR at the end and when reading fails.
    func read(into packet: UnsafeMutablePointer<AVPacket>?) -> Int32 { av_read_frame(container, packet) }

    /// Seeks to a keyframe at or before `tick`, as well as the format can; false when it cannot.
    func seek(to tick: Int64, track: Int) -> Bool {
        avformat_seek_file(container, Int32(track), .min, tick, tick, 0) >= 0
    }
}
