// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// The session description of one track of H.264 or H.265 (RFC 4566; attributes of RFC 2326, C.1, RFC 6184, 8.1, and
/// RFC 7798, 7.1), and of its sound where it has some; or of sound alone.
///
/// A fixed template: one pair of parameter sets, and `c=` with the unspecified address. A multicast address would make
/// players choose multicast.
struct SessionDescription: Sendable, Equatable {
    /// `o=`: the same as long as the description is the same.
    var sessionID: UInt64
    /// The server's address as the client knows it.
    var address: String
    var name: String
    var payloadType: UInt8 = 96
    /// Whether there are pictures, or sound alone.
    var hasPictures = true
    /// Whether it is H.265 though no VPS is known.
    var isH265 = false
    /// VPS, SPS and PPS without start codes; without a VPS it is H.264, unless ``isH265`` says otherwise. All empty where
    /// the stream says them itself.
    var vps: [UInt8] = []
    var sps: [UInt8]
    var pps: [UInt8]
    /// `b=AS:` in kbit/s, where it is known.
    var bitrateKbps: Int?
    /// Pictures per second, where they are constant.
    var frameRate: String?
    var control = RTSPURL.trackName(0)
    var sound: SoundDescription?

    /// `profile-level-id`: bytes 1 to 3 of the SPS.
    var profileLevelID: String { ASCII.hex(sps.dropFirst().prefix(3)).uppercased() }

    private var isIPv6: Bool { address.contains(":") }

    var text: String {
        let network = isIPv6 ? "IN IP6" : "IN IP4"
        var lines = [
            "v=0", "o=- \(sessionID) 1 \(network) \(address)", "s=\(name)", "c=\(network) \(isIPv6 ? "::" : "0.0.0.0")",
            "t=0 0",
            "a=tool:framehost", "a=control:*", "a=range:npt=now-",
        ]
        if hasPictures { lines += pictureLines }
        if let sound { lines += sound.lines }
        return lines.map { $0 + "\r\n" }.joined()
    }

    /// The lines of the pictures' `m=` section.
    private var pictureLines: [String] {
        var lines = ["m=video 0 RTP/AVP \(payloadType)"]
        if let bitrateKbps { lines.append("b=AS:\(bitrateKbps)") }
        if sps.isEmpty {
            lines.append("a=rtpmap:\(payloadType) \(isH265 ? "H265" : "H264")/90000")
            if !isH265 { lines.append("a=fmtp:\(payloadType) packetization-mode=1") }
        } else if vps.isEmpty {
            lines += [
                "a=rtpmap:\(payloadType) H264/90000",
                "a=fmtp:\(payloadType) packetization-mode=1; profile-level-id=\(profileLevelID); "
                    + "sprop-parameter-sets=\(Base64.encode(sps)),\(Base64.encode(pps))",
            ]
        } else {
            lines += [
                "a=rtpmap:\(payloadType) H265/90000",
                "a=fmtp:\(payloadType) sprop-vps=\(Base64.encode(vps)); sprop-sps=\(Base64.encode(sps)); "
                    + "sprop-pps=\(Base64.encode(pps))",
            ]
        }
        if let frameRate { lines.append("a=framerate:\(frameRate)") }
        lines.append("a=control:\(control)")
        return lines
    }
}

extension SessionDescription {
    /// Reads a description of one track of H.264 or H.265; nil for any other.
    init?(parsing text: String) {
        self.init(sessionID: 0, address: "", name: "", sps: [], pps: [])
        control = ""
        var isInMedia = false
        for line in text.split(whereSeparator: \.isNewline) {
            guard line.utf8.count >= 2, line.dropFirst().first == "=", let type = line.first else { return nil }
            let value = line.dropFirst(2)
            switch type {
            case "o":
                let words = value.split(separator: " ")
                guard words.count == 6, let id = UInt64(words[1]) else { return nil }
                sessionID = id
                address = String(words[5])
            case "s": name = String(value)
            case "m":
                let words = value.split(separator: " ")
                guard !isInMedia, words.count >= 4, words[0] == "video", let type = UInt8(words[3]) else { return nil }
                payloadType = type
                isInMedia = true
            case "b": if value.hasPrefix("AS:") { bitrateKbps = Int(value.dropFirst(3)) }
            case "a": if isInMedia { readAttribute(value) }
            default: continue
            }
        }
        if !isInMedia || sps.count < 4 || pps.isEmpty { return nil }
    }

    private mutating func readAttribute(_ value: Substring) {
        if value.hasPrefix("control:") { control = String(value.dropFirst(8)) }
        if value.hasPrefix("framerate:") { frameRate = String(value.dropFirst(10)) }
        guard value.hasPrefix("fmtp:") else { return }
        for parameter in value.drop(while: { $0 != " " }).split(separator: ";").map({ ASCII.trimmed($0) }) {
            guard let equals = parameter.firstIndex(of: "=") else { continue }
            let sets = parameter[parameter.index(after: equals)...].split(separator: ",")
                .compactMap { Base64.decode(String($0)) }
            switch (parameter[..<equals], sets.count) {
            case ("sprop-parameter-sets", 2): (sps, pps) = (sets[0], sets[1])
            case ("sprop-vps", 1): vps = sets[0]
            case ("sprop-sps", 1): sps = sets[0]
            case ("sprop-pps", 1): pps = sets[0]
            default: continue
            }
        }
    }
}
