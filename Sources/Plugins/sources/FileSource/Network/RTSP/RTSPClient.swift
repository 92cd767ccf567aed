// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import FrameSupport
import Shared

/// RTSP (RFC 2326) over one TCP connection. Reads many packets by one call, and serves for servers that libavformat's
/// own client cannot use: that knows neither `a=control:*` nor SHA-256, and cuts a login at 127 bytes.
///
/// libavformat's demuxer `sdp` gets the description (``SessionDescription``) and the packets of this client. Every wait
/// ends by the ``Interrupt``. [reader's thread]
final class RTSPClient {
    /// An answer is refused when its head or its body is longer.
    private static let mostBytes = 1 << 16

    /// Empty before it was asked for.
    private(set) var description = SessionDescription("", takesSound: false)
    private let address: NetworkAddress
    private let login: ServerLogin?
    private var io: UnsafeMutablePointer<AVIOContext>?
    /// What libavformat reads packets from.
    private var packets: UnsafeMutablePointer<AVIOContext>?
    private let wasRefused: Bool
    private var challenge: LoginChallenge?
    private var signed = 0
    private var requests = 0
    /// What commands to the whole stream are sent to.
    private var target: String
    private var session: String?
    /// How long the server keeps a session that is not asked for: nanoseconds.
    private var timeout: Int64 = 60_000_000_000
    private var nextSign: Int64 = .max
    /// What keeps the session. Servers that know `GET_PARAMETER` may not count `OPTIONS` (RFC 2326, 10.8).
    private var sign = "OPTIONS"

    /// Connects, logs in, and asks for the description.
    ///
    /// - Parameters:
    ///   - takesSound: Whether a track of sound is described, too.
    ///   - wasRefused: Whether libavformat's client was refused for want of a right login.
    /// - Throws: A ``Refusal`` where the server answers with something else; a ``Silent`` where it does not answer.
    init(
        _ address: NetworkAddress, _ login: ServerLogin?, _ interrupt: Interrupt, takesSound: Bool,
        wasRefused: Bool
    ) throws {
        (self.address, self.login, self.wasRefused) = (address, login, wasRefused)
        target = address.full(nil)
        var callback = interrupt.libav
        var options: OpaquePointer?
        defer { av_dict_free(&options) }
        av_dict_set(&options, "tcp_nodelay", "1", 0)
        let opened = avio_open2(&io, address.socket, Int32(AVIO_FLAG_READ_WRITE), &callback, &options)
        guard opened >= 0 else { throw Silent(code: opened) }
        do {
            let answer = try ask("DESCRIBE", target, ["Accept": "application/sdp"])
            let base =
                answer.fields.first { $0.name == "content-base" }
                ?? answer.fields.first { $0.name == "content-location" }
            // A base without a host is of no use, and some cameras say only a path.
            if let base = base?.value, base.lowercased().hasPrefix("rtsp://") { target = base }
            description = SessionDescription(String(decoding: answer.body, as: UTF8.self), takesSound: takesSound)
        } catch {
            avio_closep(&io)
            throw error
        }
    }

    deinit { close() }

    /// Says goodbye. No context that it is attached to may be open any longer.
    func close() {
        if session != nil { try? send("TEARDOWN", aggregate, [:]) }
        session = nil
        avio_closep(&io)
        if let buffer = packets?.pointee.buffer { av_free(buffer) }
        avio_context_free(&packets)
    }

    /// The context's packets come from here from now on.
    ///
    /// - Returns: Whether there was memory for that.
    func attach(to context: UnsafeMutablePointer<AVFormatContext>) -> Bool {
        avio_closep(&context.pointee.pb)
        context.pointee.flags |= AVFMT_FLAG_CUSTOM_IO
        guard let buffer = av_malloc(Self.mostBytes) else { return false }
        // libavformat reads such a context packet by packet, since it can also be written (`avio_read_partial`).
        packets = avio_alloc_context(
            buffer.assumingMemoryBound(to: UInt8.self), Int32(Self.mostBytes), 1,
            Unmanaged.passUnretained(self).toOpaque(),
            { Unmanaged<RTSPClient>.fromOpaque($0!).takeUnretainedValue().read(into: $1!, capacity: $2) },
            { Unmanaged<RTSPClient>.fromOpaque($0!).takeUnretainedValue().write($1!, $2) }, nil)
        guard packets != nil else {
            av_free(buffer)
            return false
        }
        context.pointee.pb = packets
        return true
    }

    private var aggregate: String { SessionDescription.address(description.control, base: target) }

    /// Asks for all tracks of the description, and begins.
    func play() throws {
        for (index, track) in description.tracks.enumerated() {
            let transport = ["Transport": "RTP/AVP/TCP;unicast;interleaved=\(2 * index)-\(2 * index + 1)"]
            let url = SessionDescription.address(track.control, base: target)
            let answer: Answer
            do { answer = try ask("SETUP", url, transport) } catch let fault as Refusal {
                // Some servers end the base with a slash that the address of the stream itself does not have.
                guard url == target, url.hasSuffix("/") else { throw fault }
                answer = try ask("SETUP", String(url.dropLast()), transport)
            }
            guard let said = answer.fields.first(where: { $0.name == "session" })?.value.split(separator: ";") else {
                continue
            }
            session = said.first.map(String.init)
            for part in said.dropFirst() {
                let words = part.split(separator: "=")
                guard words.count == 2, words[0].lowercased().hasSuffix("timeout"), let seconds = Int64(words[1]) else {
                    continue
                }
                timeout = min(max(seconds, 2), 3600) * 1_000_000_000
            }
        }
        _ = try ask("PLAY", aggregate, ["Range": "npt=0.000-"])
        // The answer to the first sign says which sign keeps the session: none may be lost until then.
        nextSign = MonotonicTime.now()
    }

    // MARK: Packets

    /// The next RTP or RTCP packet of any track.
    ///
    /// - Returns: Its bytes, or an error of libavformat's.
    func read(into target: UnsafeMutablePointer<UInt8>, capacity: Int32) -> Int32 {
        while true {
            if let report = due.popLast(), report.count <= capacity {
                target.update(from: report, count: report.count)
                return Int32(report.count)
            }
            if MonotonicTime.now() >= nextSign {
                nextSign = MonotonicTime.now() + timeout / 2
                isSignedAnew = false
                do { try send(sign, aggregate, [:]) } catch { return (error as? Silent)?.code ?? fh_averror_eof }
            }
            do {
                let first = try messageBegin()
                if first != UInt8(ascii: "$") {
                    try take(signOfLife: answer(first: first))
                    continue
                }
                let channel = try byte()
                let count = Int32(try byte()) << 8 | Int32(try byte())
                // The shortest packet is a report about nothing (RFC 3550, 6.4.2). libavformat takes an empty one for the end.
                guard (8...capacity).contains(count) else {
                    for _ in 0..<count { _ = try byte() }
                    continue
                }
                try fill(target, count)
                let packet = UnsafeBufferPointer(start: target, count: Int(count))
                if isEarlyReport(channel, packet) { continue }
                if channel % 2 == 0 { countMissed(before: packet, channel) }
                return count
            } catch { return (error as? Silent)?.code ?? fh_averror_invalid_data }
        }
    }

    /// Packets of RTP that should have come by now, and have not.
    private(set) var missed = 0
    /// Of each track the sender's number (SSRC), and the next packet's number.
    private var nextNumbers: [UInt8: (sender: UInt32, number: UInt16)] = [:]
    /// After a gap of as many packets a sender has begun anew (RFC 3550, A.1: `MAX_DROPOUT`).
    private static let mostMissed: UInt16 = 3000

    /// A TCP connection loses nothing: what is missing the server has left out (RFC 3550, 5.1).
    private func countMissed(before packet: UnsafeBufferPointer<UInt8>, _ channel: UInt8) {
        guard packet.count >= 12 else { return }
        let number = UInt16(packet[2]) << 8 | UInt16(packet[3])
        let sender = packet[8..<12].reduce(0) { $0 << 8 | UInt32($1) }
        if let next = nextNumbers[channel], next.sender == sender {
            let gap = number &- next.number
            if gap < Self.mostMissed { missed += Int(gap) }
        }
        nextNumbers[channel] = (sender, number &+ 1)
    }

    /// Of each track whether a packet of it has come, and its newest report from before.
    private var hasBegun: Set<UInt8> = []
    private var early: [UInt8: [UInt8]] = [:]
    /// Reports that are read next.
    private var due: [[UInt8]] = []

    /// Whether it is a sender's report (RTCP) from before the first packet of its track, which is kept until then:
    /// libavformat finds the track of a report by the sender's number (SSRC) in the track's packets.
    private func isEarlyReport(_ channel: UInt8, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        guard channel % 2 == 1 else {
            if hasBegun.insert(channel).inserted, let report = early.removeValue(forKey: channel + 1) {
                due.append(report)
            }
            return false
        }
        guard !hasBegun.contains(channel - 1), bytes.count > 1, bytes[1] == 200, bytes.count <= 1500 else {
            return false
        }
        early[channel] = Array(bytes)
        return true
    }

    /// Whether the newest sign of life has been signed anew.
    private var isSignedAnew = false

    /// The answer to a sign of life: it may name a better sign. One that asks for a fresh login gets it at once, and once
    /// for each sign, whatever the server says then.
    private func take(signOfLife answer: Answer) throws {
        if (200..<300).contains(answer.status), let known = answer.fields.first(where: { $0.name == "public" }) {
            sign = known.value.uppercased().contains("GET_PARAMETER") ? "GET_PARAMETER" : "OPTIONS"
        }
        guard answer.status == 401, challenge != nil, !isSignedAnew else { return }
        let challenges = LoginChallenge.all(answer.fields.filter { $0.name == "www-authenticate" }.map(\.value))
        guard let best = LoginChallenge.best(challenges), best.values["stale"]?.lowercased() == "true" else { return }
        (challenge, signed, isSignedAnew) = (best, 0, true)
        try send(sign, aggregate, [:])
    }

    /// Takes a report of libavformat's (RTCP) for the server. One that cannot be sent is left out.
    func write(_ bytes: UnsafePointer<UInt8>, _ count: Int32) -> Int32 {
        guard let io, count > 0, count <= 1500 else { return count }
        // libavformat does not say which track it is about: servers look at the SSRC in it.
        let head: [UInt8] = [UInt8(ascii: "$"), 1, UInt8(count >> 8), UInt8(count & 255)]
        avio_write(io, head, 4)
        avio_write(io, bytes, count)
        avio_flush(io)
        return count
    }

    // MARK: Requests

    /// The server has gone, or nobody waits for it any longer.
    struct Silent: Error { let code: Int32 }

    struct Answer {
        var status = 0
        var reason = ""
        /// Names in small letters.
        var fields: [(name: String, value: String)] = []
        var body: [UInt8] = []
    }

    /// Asks, and answers the server's question who it talks to.
    private func ask(_ method: String, _ url: String, _ fields: [String: String]) throws -> Answer {
        for attempt in 0..<2 {
            try send(method, url, fields)
            var given = try answer(first: try messageBegin())
            // A server may have begun to send before it has answered PLAY.
            while given.status == 0 { given = try answer(first: try messageBegin()) }
            switch given.status {
            case 200..<300: return given
            case 401:
                let challenges = LoginChallenge.all(given.fields.filter { $0.name == "www-authenticate" }.map(\.value))
                guard login != nil else { throw fault(method, given) }
                // What libavformat has answered was wrong, and is not sent twice: cameras lock out who tries often.
                guard let best = LoginChallenge.best(challenges) else {
                    throw Refusal(
                        status: 0, fault: NetworkFault.unknownChallenge(address.shown, challenges.map(\.shown)))
                }
                let isStale = best.values["stale"]?.lowercased() == "true"
                guard attempt == 0,
                    challenge == nil ? !wasRefused || !LoginChallenge.isAnsweredByLibav(challenges) : isStale
                else { throw fault(method, given) }
                (challenge, signed) = (best, 0)
            default: throw fault(method, given)
            }
        }
        throw Silent(code: fh_averror_unauthorized)
    }

    /// The server refuses a request.
    struct Refusal: Error {
        /// 0 where what it asks for is not known.
        var status: Int
        var method = ""
        var fault: FrameHostError
    }

    private func fault(_ method: String, _ answer: Answer) -> Refusal {
        // What a server says may be what it was told.
        let reason = isReasonSafe(answer.reason) ? String(answer.reason.prefix(60)).printable() : ""
        return Refusal(
            status: answer.status, method: method,
            fault: NetworkFault.answered(address.shown, method, answer.status, reason, hasLogin: login != nil))
    }

    private func isReasonSafe(_ reason: String) -> Bool {
        guard let login else { return true }
        let secrets = login.secrets + [LoginChallenge.base64("\(login.name):\(login.password)")]
        return !secrets.contains { !$0.isEmpty && reason.contains($0) }
    }

    private func send(_ method: String, _ url: String, _ fields: [String: String]) throws {
        guard let io else { throw Silent(code: fh_averror_eof) }
        requests += 1
        var lines = ["\(method) \(url) RTSP/1.0", "CSeq: \(requests)", "User-Agent: framehost"]
        lines += fields.map { "\($0.key): \($0.value)" }
        if let session { lines.append("Session: \(session)") }
        if let login, let challenge {
            signed += 1
            let word = String(UInt64.random(in: .min ... .max), radix: 16)
            lines.append(
                "Authorization: \(challenge.answer(login, method: method, uri: url, count: signed, clientNonce: word))")
        }
        // What the server has said may not end a line.
        let plain = lines.map { line in
            String(String.UnicodeScalarView(line.unicodeScalars.filter { $0 != "\r" && $0 != "\n" }))
        }
        let bytes = Array((plain.joined(separator: "\r\n") + "\r\n\r\n").utf8)
        avio_write(io, bytes, Int32(bytes.count))
        avio_flush(io)
        guard io.pointee.error >= 0 else { throw Silent(code: io.pointee.error) }
    }

    /// The first byte of a packet or a message. Line ends before one are nothing (RFC 2326, 4.1), nor is anything else that
    /// begins neither.
    private func messageBegin() throws -> UInt8 {
        while true {
            let first = try byte()
            switch first {
            case UInt8(ascii: "$"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"):
                return first
            default: continue
            }
        }
    }

    /// The rest of an answer, or of packets and requests of the server's, which have no status.
    private func answer(first: UInt8) throws -> Answer {
        var given = Answer()
        if first == UInt8(ascii: "$") {
            _ = try byte()
            for _ in 0..<(Int(try byte()) << 8 | Int(try byte())) { _ = try byte() }
            return given
        }
        var head: [UInt8] = [first]
        while !head.suffix(4).elementsEqual("\r\n\r\n".utf8), !head.suffix(2).elementsEqual("\n\n".utf8) {
            guard head.count < Self.mostBytes else { throw Silent(code: fh_averror_invalid_data) }
            head.append(try byte())
        }
        let lines = String(decoding: head, as: UTF8.self).split(whereSeparator: \.isNewline)
        let words = (lines.first ?? "").split(separator: " ", maxSplits: 2)
        if words.count > 1, words[0].hasPrefix("RTSP/") {
            given.status = Int(words[1]) ?? 0
            given.reason = words.count > 2 ? String(words[2]) : ""
        }
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            let trimmed = value.reversed().drop { $0 == " " || $0 == "\t" }.reversed()
            given.fields.append((line[..<colon].lowercased(), String(trimmed)))
        }
        let count = given.fields.first { $0.name == "content-length" }.flatMap { Int($0.value) } ?? 0
        guard (0...Self.mostBytes).contains(count) else { throw Silent(code: fh_averror_invalid_data) }
        for _ in 0..<count { given.body.append(try byte()) }
        return given
    }

    // MARK: Bytes

    /// Of what came last, what is not read yet.
    private var waiting: [UInt8] = []
    private var position = 0

    private func more() throws {
        if waiting.isEmpty { waiting = [UInt8](repeating: 0, count: Self.mostBytes) }
        position = 0
        let count = waiting.withUnsafeMutableBufferPointer {
            avio_read_partial(io, $0.baseAddress, Int32(Self.mostBytes))
        }
        end = max(Int(count), 0)
        guard count > 0 else { throw Silent(code: count == 0 ? fh_averror_eof : count) }
    }

    private var end = 0

    private func byte() throws -> UInt8 {
        if position == end { try more() }
        defer { position += 1 }
        return waiting[position]
    }

    private func fill(_ target: UnsafeMutablePointer<UInt8>, _ count: Int32) throws {
        var done = 0
        while done < count {
            if position == end { try more() }
            let part = min(end - position, Int(count) - done)
            waiting.withUnsafeBufferPointer { (target + done).update(from: $0.baseAddress! + position, count: part) }
            (position, done) = (position + part, done + part)
        }
    }
}
