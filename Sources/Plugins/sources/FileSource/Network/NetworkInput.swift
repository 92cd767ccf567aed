// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Shared
import Synchronization

/// Whether libavformat may go on, which it asks at least every 100 ms while it waits. [any thread]
final class Interrupt: Sendable {
    private let isEnded = Atomic<Bool>(false)
    /// `CLOCK_MONOTONIC`, nanoseconds.
    private let deadline = Atomic<Int64>(.max)

    /// Ends the call that is under way, and every later one except closing.
    func end() { isEnded.store(true, ordering: .releasing) }
    var hasEnded: Bool { isEnded.load(ordering: .acquiring) }
    func allow(seconds: Double) {
        deadline.store(PacketQueue.now() + Int64(seconds * 1e9), ordering: .releasing)
    }
    fileprivate let isClosing = Atomic<Bool>(false)

    fileprivate var mustStop: Bool {
        (hasEnded && !isClosing.load(ordering: .acquiring)) || PacketQueue.now() > deadline.load(ordering: .acquiring)
    }

    /// Asks the ``Interrupt`` to which `opaque` points.
    fileprivate static let callback: @convention(c) (UnsafeMutableRawPointer?) -> Int32 = { opaque in
        guard let opaque else { return 0 }
        return Unmanaged<Interrupt>.fromOpaque(opaque).takeUnretainedValue().mustStop ? 1 : 0
    }
}

/// One connection to a stream: the only place that calls libavformat for the network. [reader's thread]
final class NetworkInput {
    struct Settings: Sendable {
        var address: NetworkAddress
        var login: ServerLogin?
        var trust: CertificateTrust
        var isDecoded: Bool
        var takesSound: Bool
        var transport: NetworkTransport
        var connectSeconds: Double
        var stallSeconds: Double
        var latencyMs: Int
        var bufferBytes: Int
        var probeBytes: Int
        var analyzeSeconds: Double
        var noBuffer: Bool
    }

    let terms: StreamTerms
    /// Whether the stream says how long it plays, so that its end is a real end.
    private let isFinite: Bool
    /// Whether the address is a media file itself, not a playlist.
    private let isOneFile: Bool
    private var container: UnsafeMutablePointer<AVFormatContext>?
    private let track: Int
    private let soundTrack: Int?
    private let settings: Settings
    private let interrupt: Interrupt
    /// Where the times of both tracks lie.
    private let packets = TimedPackets()
    /// Whether the container has no times: those that libavformat makes up for it say nothing of when a picture was
    /// taken, and the time of arrival does.
    private let isUntimed: Bool

    /// The protocols to which a playlist or a description may lead: never to files of this machine.
    private static let protocols =
        "rtsp,rtsps,rtp,srtp,udp,tcp,tls,http,https,httpproxy,crypto,rtmp,rtmps,rtmpt,rtmpe,rtmpte,rtmpts,ffrtmphttp,srt,hls,data"
    /// The formats of streams.
    private static let formats =
        "rtsp,rtp,sdp,hls,flv,live_flv,mpegts,mov,matroska,webm,ogg,mpjpeg,mjpeg,h264,hevc,mpeg,mpegvideo,aac,mp3,webvtt"

    /// Connects and finds the video; ends within `connectSeconds`.
    ///
    /// - Parameter mayWait: Whether `"ifMissing": "wait"` would help where that fails.
    /// - Throws: ``FrameHostError``.
    init(_ settings: Settings, _ interrupt: Interrupt, mayWait: Bool) throws {
        self.settings = settings
        self.interrupt = interrupt
        guard let context = avformat_alloc_context() else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a connection",
                remedy: "Free some memory.")
        }
        context.pointee.interrupt_callback = AVIOInterruptCB(
            callback: Interrupt.callback, opaque: Unmanaged.passUnretained(interrupt).toOpaque())
        settings.trust.apply(to: context)
        var container: UnsafeMutablePointer<AVFormatContext>? = context
        interrupt.isClosing.store(false, ordering: .releasing)
        interrupt.allow(seconds: settings.connectSeconds)
        let (opened, said) = LibavText.during { Self.open(&container, settings) }
        do {
            guard opened >= 0, let container else {
                // An interrupted call may report any error.
                throw Self.fault(interrupt.mustStop ? fh_averror_exit : opened, said, settings, mayWait: mayWait)
            }
            let found = av_find_best_stream(container, AVMEDIA_TYPE_VIDEO, -1, -1, nil, 0)
            guard found >= 0, avcodec_find_decoder(Self.codec(container, found)) != nil else {
                // The parts of a playlist may be on another server.
                if let fault = NetworkFault.untrusted(settings.address.shown, cause: said) { throw fault }
                throw NetworkFault.noVideo(settings.address.shown)
            }
            track = Int(found)
            let sound =
                settings.takesSound
                ? Int(av_find_best_stream(container, AVMEDIA_TYPE_AUDIO, -1, found, nil, 0)) : -1
            terms = try StreamTerms(
                container, track: track, sound: sound >= 0 ? sound : nil, shown: settings.address.shown,
                isDecoded: settings.isDecoded)
            soundTrack = terms.sound == nil ? nil : sound
            for index in 0..<Int(container.pointee.nb_streams) where index != track && index != soundTrack {
                container.pointee.streams[index]!.pointee.discard = AVDISCARD_ALL
            }
            let length = container.pointee.duration
            isFinite = settings.address.scheme.mayEnd && length != fh_av_no_pts && length > 0
            isOneFile = settings.address.scheme.mayEnd && !Self.isPlaylist(container)
            isUntimed = container.pointee.iformat.pointee.flags & AVFMT_NOTIMESTAMPS != 0 && !isFinite
            packets.begin(InputTimeline(closesGaps: true, isInMiddle: true, isLive: true))
            self.container = container
        } catch {
            Self.close(&container, interrupt)
            throw error
        }
    }

    deinit { Self.close(&container, interrupt) }

    private static func codec(_ container: UnsafeMutablePointer<AVFormatContext>, _ track: Int32) -> AVCodecID {
        container.pointee.streams[Int(track)]!.pointee.codecpar.pointee.codec_id
    }

    private static func open(
        _ container: inout UnsafeMutablePointer<AVFormatContext>?, _ settings: Settings
    ) -> Int32 {
        var options: OpaquePointer?
        defer { av_dict_free(&options) }
        for (key, value) in self.options(settings) { av_dict_set(&options, key, value, 0) }
        let begun = avformat_open_input(&container, settings.address.full(settings.login), nil, &options)
        guard begun >= 0 else { return begun }
        let found = avformat_find_stream_info(container, nil)
        return found < 0 ? found : 0
    }

    private static func options(_ settings: Settings) -> [(String, String)] {
        let microseconds = settings.latencyMs * 1000
        var options = [
            ("protocol_whitelist", protocols), ("format_whitelist", formats),
            ("probesize", "\(settings.probeBytes)"), ("analyzeduration", "\(Int(settings.analyzeSeconds * 1e6))"),
            ("max_delay", "\(microseconds)"),
        ]
        if settings.noBuffer { options.append(("fflags", "nobuffer")) }
        switch settings.address.scheme {
        case .rtsp, .rtsps:
            options += [
                ("rtsp_transport", settings.address.scheme == .rtsps ? "tcp" : settings.transport.rawValue),
                ("allowed_media_types", settings.takesSound ? "video+audio" : "video"),
                ("buffer_size", "\(settings.bufferBytes)"),
            ]
        case .udp:
            options += [("buffer_size", "\(settings.bufferBytes)"), ("overrun_nonfatal", "1")]
        case .srt:
            options += [
                ("latency", "\(microseconds)"), ("connect_timeout", "\(Int(settings.connectSeconds * 1000))"),
            ]
            if let login = settings.login { options.append(("passphrase", login.password)) }
        case .rtmp, .rtmps: options.append(("rtmp_live", "live"))
        case .http, .https, .tcp: break
        }
        return options
    }

    private static func fault(_ code: Int32, _ said: String, _ settings: Settings, mayWait: Bool) -> FrameHostError {
        NetworkFault.opening(
            settings.address.shown, code, cause: settings.address.hide(settings.login, in: said),
            seconds: settings.connectSeconds, hasLogin: settings.login != nil, mayWait: mayWait)
    }

    private static func close(_ container: inout UnsafeMutablePointer<AVFormatContext>?, _ interrupt: Interrupt) {
        // Leaves a short time for a last message to the server.
        interrupt.isClosing.store(true, ordering: .releasing)
        interrupt.allow(seconds: 0.3)
        avformat_close_input(&container)
    }

    // MARK: Packets

    enum Step {
        /// A packet of the video is there.
        case packet
        /// A packet of the sound is there.
        case sound
        /// A packet of another track.
        case other
        case ended
        case lost(String)
    }

    /// From here on at most `stallSeconds` may pass without a packet of the video.
    func beginWait() { interrupt.allow(seconds: settings.stallSeconds) }

    /// Waits for the next packet.
    func read(into packet: UnsafeMutablePointer<AVPacket>) -> Step {
        guard let container else { return .ended }
        let result = packets.read(container, into: packet) { $0 == track || $0 == soundTrack ? .given : .leftOut }
        switch result {
        case 0...:
            if isUntimed { (packet.pointee.pts, packet.pointee.dts) = (fh_av_no_pts, fh_av_no_pts) }
            if let soundTrack, packet.pointee.stream_index == Int32(soundTrack), packet.pointee.size > 0,
                !interrupt.mustStop
            {
                return .sound
            }
            guard packet.pointee.stream_index == Int32(track), packet.pointee.size > 0 else {
                av_packet_unref(packet)
                return interrupt.mustStop ? .lost(stallText) : .other
            }
            return .packet
        case fh_averror_again: return interrupt.mustStop ? .lost(stallText) : .other
        case fh_averror_eof:
            return isFinite || isComplete ? .ended : .lost(interrupt.mustStop ? stallText : "its stream has ended")
        case fh_averror_exit: return .lost(stallText)
        default:
            return .lost(
                interrupt.mustStop ? stallText : settings.address.hide(settings.login, in: LibavText.of(result)))
        }
    }

    private static func isPlaylist(_ container: UnsafeMutablePointer<AVFormatContext>) -> Bool {
        guard let name = container.pointee.iformat.pointee.name else { return false }
        return String(cString: name).split(separator: ",").contains("hls")
    }

    /// Whether the server said how many bytes there are (`Content-Length`), and all of them have come. A transfer that
    /// breaks off before, and a live stream, which has no length, are not complete.
    private var isComplete: Bool {
        guard isOneFile, let bytes = container?.pointee.pb else { return false }
        let size = avio_size(bytes)
        return size > 0 && bytes.pointee.pos >= size
    }

    private var stallText: String { "no video for \(settings.stallSeconds) s" }
}
