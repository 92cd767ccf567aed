// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// What a session description says of the sound (RFC 3640, 4.1 and 3.3.6; RFC 7587, 6.1 and 7; RFC 3551, 6).
struct SoundDescription: Sendable, Equatable {
    enum Codec: Sendable, Equatable {
        /// - Parameters:
        ///   - config: The AudioSpecificConfig.
        ///   - sampleRate: RTP's clock.
        case aac(config: [UInt8], sampleRate: Int, channelCount: Int)
        /// Always announced with 48000 Hz and two channels, whatever it carries (RFC 7587, 7).
        case opus(isStereo: Bool)
        /// G.711; of 8000 Hz and one channel it has a payload type of its own.
        case g711(isMuLaw: Bool, sampleRate: Int, channelCount: Int)
        /// G.726 of 8000 Hz and one channel; the bits of a code are part of its name (RFC 3551, 4.5.4).
        case g726(bits: Int)
        case mp3

        /// The type of its packets: a static one where RFC 3551, 6 has one.
        var payloadType: UInt8 {
            switch self {
            case .aac, .opus, .g726: 97
            case .g711(let isMuLaw, 8000, 1): isMuLaw ? 0 : 8
            case .g711: 97
            case .mp3: 14
            }
        }
    }

    var codec: Codec
    var payloadType: UInt8 { codec.payloadType }
    /// `b=AS:` in kbit/s, where it is known.
    var bitrateKbps: Int?
    var control = RTSPURL.trackName(Medium.sound.rawValue)

    /// The lines of its `m=` section.
    var lines: [String] {
        var lines = ["m=audio 0 RTP/AVP \(payloadType)"]
        if let bitrateKbps { lines.append("b=AS:\(bitrateKbps)") }
        switch codec {
        case .aac(let config, let sampleRate, let channelCount):
            lines += [
                "a=rtpmap:\(payloadType) MPEG4-GENERIC/\(sampleRate)/\(channelCount)",
                "a=fmtp:\(payloadType) streamtype=5; profile-level-id=1; mode=AAC-hbr; sizelength=13; indexlength=3; "
                    + "indexdeltalength=3; config=\(ASCII.hex(config))",
            ]
        case .opus(let isStereo):
            lines.append("a=rtpmap:\(payloadType) opus/48000/2")
            if isStereo { lines.append("a=fmtp:\(payloadType) sprop-stereo=1") }
        case .g711(let isMuLaw, let sampleRate, let channelCount):
            lines.append(
                "a=rtpmap:\(payloadType) PCM\(isMuLaw ? "U" : "A")/\(sampleRate)"
                    + (channelCount == 1 ? "" : "/\(channelCount)"))
        case .g726(let bits): lines.append("a=rtpmap:\(payloadType) G726-\(bits * 8)/8000")
        case .mp3: lines.append("a=rtpmap:\(payloadType) MPA/90000")
        }
        lines.append("a=control:\(control)")
        return lines
    }
}
