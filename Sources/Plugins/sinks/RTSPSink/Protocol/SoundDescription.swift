// SPDX-License-Identifier: Apache-2.0

/// What a session description says of the sound (RFC 3640, 4.1 and 3.3.6; RFC 7587, 6.1 and 7).
struct SoundDescription: Sendable, Equatable {
    enum Codec: Sendable, Equatable {
        /// - Parameters:
        ///   - config: The AudioSpecificConfig.
        ///   - sampleRate: RTP's clock.
        case aac(config: [UInt8], sampleRate: Int, channelCount: Int)
        /// Always announced with 48000 Hz and two channels, whatever it carries (RFC 7587, 7).
        case opus(isStereo: Bool)
    }

    var codec: Codec
    var payloadType: UInt8 = 97
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
        }
        lines.append("a=control:\(control)")
        return lines
    }
}
