// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import CodedVideo
import FrameCore
import FrameSupport
import Shared

/// One connection to a stream: the only place that calls libavformat for the network. [reader's thread]
final class NetworkInput {
    let terms: StreamTerms
    /// Whether the stream says how long it plays, so that its end is a real end.
    private let isFinite: Bool
    /// Whether the address is a media file itself, not a playlist.
    private let isOneFile: Bool
    private var container: UnsafeMutablePointer<AVFormatContext>?
    private var client: RTSPClient?
    private var clientMissed = 0
    var speaker: Speaker { client == nil ? .libavformat : .client }
    private let track: Int
    private let soundTrack: Int?
    private let settings: Settings
    private let interrupt: Interrupt
    /// Where the times of both tracks lie.
    private let packets: TimedPackets
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
    /// - Parameters:
    ///   - mayWait: Whether `"ifMissing": "wait"` would help where that fails.
    ///   - last: Who spoke with the server before; nil where nobody did.
    /// - Throws: ``FrameHostError``.
    init(_ settings: Settings, _ interrupt: Interrupt, mayWait: Bool, last: Speaker? = nil) throws {
        self.settings = settings
        self.interrupt = interrupt
        interrupt.isClosing.store(false, ordering: .releasing)
        interrupt.allow(seconds: settings.connectSeconds)
        let found = try Self.find(settings, interrupt, mayWait: mayWait, last: last)
        (container, client) = (found.container, found.client)
        (track, soundTrack, terms, packets) = (found.track, found.soundTrack, found.terms, found.packets)
        isFinite = Self.isFinite(found.container, settings)
        isOneFile = settings.address.scheme.mayEnd && !Self.isPlaylist(found.container)
        isUntimed = found.terms.isUntimed
        packets.begin(InputTimeline(closesGaps: true, isInMiddle: true, isLive: true))
    }

    deinit { Self.close(&container, &client, interrupt) }

    // MARK: Connecting

    /// A stream that is there.
    private struct Found {
        var container: UnsafeMutablePointer<AVFormatContext>
        var client: RTSPClient?
        var track: Int
        var soundTrack: Int?
        var terms: StreamTerms
        var packets: TimedPackets
    }

    /// Who speaks RTSP.
    enum Speaker { case libavformat, client }

    /// Connects by libavformat's own client or by ``RTSPClient``, and where the first one cannot use the server by the
    /// other.
    ///
    /// The client reads many packets by one call; of the video alone it is asked first. It hands on no `RTP-Info`, by
    /// which libavformat knows how far apart the first packets of sound and video are.
    private static func find(
        _ settings: Settings, _ interrupt: Interrupt, mayWait: Bool, last: Speaker?
    ) throws -> Found {
        func findByLibavformat() throws -> Found {
            interrupt.isClosing.store(false, ordering: .releasing)
            return try Self.findByLibavformat(settings, interrupt, mayWait: mayWait)
        }
        func findByClient(_ refusal: Unusable?) throws -> Found {
            interrupt.isClosing.store(false, ordering: .releasing)
            return try Self.findByClient(settings, interrupt, mayWait: mayWait, refusal: refusal)
        }
        func fault(_ error: any Error, _ refusal: Unusable?) -> any Error {
            clientFault(error, refusal, settings, interrupt, mayWait: mayWait)
        }
        guard settings.canUseClient else { return try findByLibavformat() }
        if !settings.needsClient, (last ?? (settings.takesSound ? .libavformat : .client)) == .libavformat {
            do { return try findByLibavformat() } catch let refusal as Unusable {
                guard !interrupt.mustStop, refusal.code != fh_averror_unauthorized || settings.login != nil else {
                    throw refusal.fault
                }
                interrupt.allow(seconds: settings.connectSeconds)
                do { return try findByClient(refusal) } catch { throw fault(error, refusal) }
            }
        }
        var own: (any Error)?
        do { return try findByClient(nil) } catch {
            // What a login is asked for or refused with is not tried by the other one: cameras lock out who tries often.
            let isAboutLogin = [0, 401].contains((error as? RTSPClient.Refusal)?.status)
            guard !settings.needsClient, !isAboutLogin, !interrupt.mustStop else { throw fault(error, nil) }
            if (error as? RTSPClient.Refusal)?.method != "DESCRIBE" { own = (error as? RTSPClient.Refusal)?.fault }
        }
        // What libavformat says of the description is better known, such as where it was led to.
        do { return try findByLibavformat() } catch { throw own ?? (error as? Unusable)?.fault ?? error }
    }

    /// The server answers, but libavformat's own client cannot use it.
    private struct Unusable: Error {
        let code: Int32
        let fault: any Error
    }

    /// - Throws: ``FrameHostError``; an ``Unusable`` of RTSP servers.
    private static func findByLibavformat(
        _ settings: Settings, _ interrupt: Interrupt, mayWait: Bool
    ) throws -> Found {
        var code: Int32 = 0
        do { return try find(settings, interrupt, mayWait: mayWait, client: nil, &code) } catch {
            let answers = [
                fh_averror_unauthorized, fh_averror_forbidden, fh_averror_not_found, fh_averror_bad_request,
                fh_averror_other_request, fh_averror_server, fh_averror_invalid_data, noVideo,
            ]
            interrupt.noteLogin(isRefused: code == fh_averror_unauthorized && settings.login != nil)
            guard settings.canUseClient, answers.contains(code) else { throw error }
            throw Unusable(code: code, fault: error)
        }
    }

    /// - Parameter refusal: What libavformat's own client has met.
    /// - Throws: ``FrameHostError``, ``RTSPClient/Silent``, ``RTSPClient/Refusal``.
    private static func findByClient(
        _ settings: Settings, _ interrupt: Interrupt, mayWait: Bool, refusal: Unusable?
    ) throws -> Found {
        let client = try RTSPClient(
            settings.address, settings.login, interrupt, takesSound: settings.takesSound,
            wasRefused: refusal?.code == fh_averror_unauthorized)
        guard !client.description.tracks.isEmpty else {
            throw refusal?.fault ?? NetworkFault.noVideo(settings.address.shown)
        }
        interrupt.noteLogin(isRefused: false)
        // Of several libavformat's own client finds the largest.
        guard refusal != nil || settings.needsClient || !client.description.hasSeveralVideos else {
            throw NetworkFault.noVideo(settings.address.shown)
        }
        var code: Int32 = 0
        return try find(settings, interrupt, mayWait: mayWait, client: client, &code)
    }

    /// What is said of an error of ``RTSPClient``.
    private static func clientFault(
        _ error: any Error, _ refusal: Unusable?, _ settings: Settings, _ interrupt: Interrupt, mayWait: Bool
    ) -> any Error {
        let wasRefused = refusal?.code == fh_averror_unauthorized
        switch error {
        case let silent as RTSPClient.Silent:
            // A login that libavformat could not give says nothing of what came after another one.
            if let refusal, !wasRefused { return refusal.fault }
            return fault(interrupt.mustStop ? fh_averror_exit : silent.code, "", settings, mayWait: mayWait)
        case let refused as RTSPClient.Refusal:
            interrupt.noteLogin(isRefused: refused.status == 401 && settings.login != nil)
            // Of the same answer to both clients libavformat knows more, such as where it was led to.
            return wasRefused ? refused.fault : refusal?.fault ?? refused.fault
        default: return error
        }
    }

    /// Stands for the code of a stream that is there, but has no video that can be decoded.
    private static let noVideo: Int32 = 1

    /// - Parameter code: What libavformat has answered.
    private static func find(
        _ settings: Settings, _ interrupt: Interrupt, mayWait: Bool, client: RTSPClient?, _ code: inout Int32
    ) throws -> Found {
        guard let context = avformat_alloc_context() else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a connection",
                remedy: "Free some memory.")
        }
        context.pointee.interrupt_callback = interrupt.libav
        settings.trust.apply(to: context)
        var container: UnsafeMutablePointer<AVFormatContext>? = context
        var client = client
        do {
            if client == nil, settings.login != nil, [.rtsp, .rtsps].contains(settings.address.scheme) {
                interrupt.watch(context, settings.address)
            }
            defer { interrupt.unwatch() }
            let (opened, said) = try LibavText.during { try Self.open(&container, settings, client) }
            code = opened
            if let other = interrupt.otherServer {
                throw NetworkFault.ledAway(settings.address.shown, to: Address(other).description)
            }
            guard opened >= 0, let container else {
                // An interrupted call may report any error.
                throw Self.fault(interrupt.mustStop ? fh_averror_exit : opened, said, settings, mayWait: mayWait)
            }
            let found = av_find_best_stream(container, AVMEDIA_TYPE_VIDEO, -1, -1, nil, 0)
            guard found >= 0, avcodec_find_decoder(Self.codec(container, found)) != nil else {
                code = noVideo
                // The parts of a playlist may be on another server.
                if let fault = NetworkFault.untrusted(settings.address.shown, cause: said) { throw fault }
                throw NetworkFault.noVideo(settings.address.shown)
            }
            let track = Int(found)
            let best = Int(av_find_best_stream(container, AVMEDIA_TYPE_AUDIO, -1, found, nil, 0))
            let sound = settings.takesSound ? best : -1
            let packets = TimedPackets()
            if !settings.isDecoded || settings.takesUnits { findSets(container, track, packets) }
            let terms = try StreamTerms(
                container, track: track, sound: sound >= 0 ? sound : nil,
                leavesSound: !settings.takesSound && (best >= 0 || client?.description.leavesSound == true),
                shown: settings.address.shown, isDecoded: settings.isDecoded, givesUnits: settings.takesUnits,
                isUntimed: container.pointee.iformat.pointee.flags & AVFMT_NOTIMESTAMPS != 0
                    && !isFinite(container, settings))
            let soundTrack = terms.sound == nil ? nil : sound
            for index in 0..<Int(container.pointee.nb_streams) where index != track && index != soundTrack {
                container.pointee.streams[index]!.pointee.discard = AVDISCARD_ALL
            }
            return Found(
                container: container, client: client, track: track, soundTrack: soundTrack, terms: terms,
                packets: packets)
        } catch {
            Self.close(&container, &client, interrupt)
            throw error
        }
    }

    private static func isFinite(_ container: UnsafeMutablePointer<AVFormatContext>, _ settings: Settings) -> Bool {
        let length = container.pointee.duration
        return settings.address.scheme.mayEnd && length != fh_av_no_pts && length > 0
    }

    private static func codec(_ container: UnsafeMutablePointer<AVFormatContext>, _ track: Int32) -> AVCodecID {
        container.pointee.streams[Int(track)]!.pointee.codecpar.pointee.codec_id
    }

    private static func open(
        _ container: inout UnsafeMutablePointer<AVFormatContext>?, _ settings: Settings, _ client: RTSPClient?
    ) throws -> Int32 {
        var options: OpaquePointer?
        defer { av_dict_free(&options) }
        for (key, value) in self.options(settings, client) { av_dict_set(&options, key, value, 0) }
        let begun =
            if let client {
                avformat_open_input(
                    &container, "data:application/sdp;base64,\(LoginChallenge.base64(client.description.text))",
                    av_find_input_format("sdp"), &options)
            } else {
                avformat_open_input(&container, settings.address.full(settings.login), nil, &options)
            }
        guard begun >= 0 else { return begun }
        if let client {
            guard client.attach(to: container!) else { return fh_averror_no_memory }
            try client.play()
        }
        // Nothing would come of looking, but the end of `connectSeconds`.
        if settings.canUseClient, !mayHaveVideo(container!) { return 0 }
        let found = avformat_find_stream_info(container, nil)
        return found < 0 ? found : 0
    }

    /// Whether the description of an RTSP server has a video that libavformat knows. MPEG-TS says what is in it later.
    private static func mayHaveVideo(_ container: UnsafeMutablePointer<AVFormatContext>) -> Bool {
        let tracks = (0..<Int(container.pointee.nb_streams)).map {
            container.pointee.streams[$0]!.pointee.codecpar.pointee
        }
        return tracks.isEmpty
            || tracks.contains {
                $0.codec_id == AV_CODEC_ID_MPEG2TS
                    || ($0.codec_type == AVMEDIA_TYPE_VIDEO && $0.codec_id != AV_CODEC_ID_NONE)
            }
    }

    /// Looks in the stream for the parameter sets, where those of an RTSP server's description are missing or are not as
    /// the standard has them: libavformat looks for none where it has some. Those of the description stay where the first
    /// keyframe has none. Of AV1 it always does, since many encoders give containers another sequence header than the
    /// stream's. Ends when `connectSeconds` are over.
    private static func findSets(
        _ container: UnsafeMutablePointer<AVFormatContext>, _ track: Int, _ packets: TimedPackets
    ) {
        let parameters = container.pointee.streams[track]!.pointee.codecpar!
        guard let coding = UnitCoding(parameters.pointee.codec_id), coding.hasSets else { return }
        let known = coding.parameterSets(
            ofContainer: UnsafeRawBufferPointer(
                start: parameters.pointee.extradata, count: Int(parameters.pointee.extradata_size)))
        if coding != .av1 {
            guard ["rtsp", "sdp"].contains(String(cString: container.pointee.iformat.pointee.name)) else { return }
            if !known.isEmpty, UnitFilter.areSetsReadable(parameters) { return }
        }
        var found: [UInt8] = []
        let isThere = packets.readAhead(container, mostBytes: PacketQueue.mostBytes) { packet in
            guard packet.stream_index == Int32(track), let data = packet.data else { return false }
            let sets = coding.parameterSets(in: UnsafeRawBufferPointer(start: data, count: Int(packet.size)))
            if !sets.isEmpty { found = sets }
            return !sets.isEmpty || (!known.isEmpty && packet.flags & AV_PKT_FLAG_KEY != 0)
        }
        let room = found.count + Int(AV_INPUT_BUFFER_PADDING_SIZE)
        guard isThere, !found.isEmpty, let bytes = av_mallocz(room) else { return }
        bytes.copyMemory(from: found, byteCount: found.count)
        av_free(parameters.pointee.extradata)
        parameters.pointee.extradata = bytes.assumingMemoryBound(to: UInt8.self)
        parameters.pointee.extradata_size = Int32(found.count)
    }

    private static func options(_ settings: Settings, _ client: RTSPClient?) -> [(String, String)] {
        let microseconds = settings.latencyMs * 1000
        var options = [
            ("protocol_whitelist", protocols), ("format_whitelist", formats),
            ("probesize", "\(settings.probeBytes)"), ("analyzeduration", "\(Int(settings.analyzeSeconds * 1e6))"),
            ("max_delay", "\(microseconds)"),
        ]
        if settings.noBuffer { options.append(("fflags", "nobuffer")) }
        switch settings.address.scheme {
        // A connection puts nothing out of order. libavformat, which does not know of the connection, would take what
        // follows a sender's restart for late.
        case .rtsp where client != nil: options += [("sdp_flags", "custom_io"), ("reorder_queue_size", "0")]
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

    private static func close(
        _ container: inout UnsafeMutablePointer<AVFormatContext>?, _ client: inout RTSPClient?, _ interrupt: Interrupt
    ) {
        // Leaves a short time for a last message to the server.
        interrupt.isClosing.store(true, ordering: .releasing)
        interrupt.allow(seconds: 0.3)
        avformat_close_input(&container)
        client?.close()
        client = nil
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
    ///
    /// - Parameter isOverdue: Whether they have passed already, so that only what is there now is waited for: the whole
    ///   program may have stood still.
    func beginWait(isOverdue: Bool = false) {
        interrupt.allow(seconds: isOverdue ? min(settings.stallSeconds, 0.25) : settings.stallSeconds)
    }

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

    /// How many packets of RTP and segments of HLS have not come since the last call. Those that did not come while the
    /// stream was examined count too.
    func takeMissed() -> (packets: Int, segments: Int) {
        let (now, found) = (client?.missed ?? 0, fh_av_missed_take())
        defer { clientMissed = now }
        return (now - clientMissed + Int(found.packets), Int(found.segments))
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
