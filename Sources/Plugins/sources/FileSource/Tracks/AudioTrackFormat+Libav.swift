// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

extension AudioTrackFormat {
    /// What goes on undecoded, by a link.
    static let passedOn: [Codec] = [.aac, .opus, .mp3, .muLaw, .aLaw, .g726]

    /// Why packets of this sound cannot go on as they are; nil where they can.
    var obstacleToPassing: String? {
        switch codec {
        case .aac, .opus: extradata.isEmpty ? "its header is not known" : nil
        case let other:
            Self.passedOn.contains(other)
                ? nil : "it must be AAC, Opus, MP3, G.711, or G.726 packed as RTP has it (adpcm_g726le)"
        }
    }

    /// - Parameter track: The index among all tracks.
    init(_ file: MediaFile, track: Int) { self.init(file.stream(track), timeBase: file.timeBase(track)) }

    init(_ stream: UnsafeMutablePointer<AVStream>, timeBase: TimeBase) {
        let parameters = stream.pointee.codecpar.pointee
        let language = av_dict_get(stream.pointee.metadata, "language", nil, 0).flatMap { $0.pointee.value }
        self.init(
            codec: Codec(rawValue: String(cString: avcodec_get_name(parameters.codec_id))),
            timeBase: timeBase,
            sampleRate: Int(parameters.sample_rate), channelCount: Int(parameters.ch_layout.nb_channels),
            channelMask: parameters.ch_layout.order == AV_CHANNEL_ORDER_NATIVE ? parameters.ch_layout.u.mask : 0,
            samplesPerPacket: Int(parameters.frame_size), bitRate: Int(parameters.bit_rate),
            blockAlign: Int(parameters.block_align),
            bitsPerSample: Int(parameters.bits_per_coded_sample),
            profile: parameters.profile < 0 ? nil : Int(parameters.profile),
            initialPadding: Int(parameters.initial_padding), seekPreroll: Int(parameters.seek_preroll),
            extradata: Self.header(of: parameters),
            language: language.map { String(cString: $0) } ?? "")
    }

    /// What stands beside the packets. Transport streams and RTP do not have it; for AAC and Opus it follows from rate and
    /// channels.
    private static func header(of parameters: AVCodecParameters) -> [UInt8] {
        guard parameters.extradata_size <= 0 else {
            return Array(UnsafeBufferPointer(start: parameters.extradata, count: Int(parameters.extradata_size)))
        }
        if let header = ADTSHeader(parameters) { return header.config }
        let channels = parameters.ch_layout.nb_channels
        guard parameters.codec_id == AV_CODEC_ID_OPUS, (1...2).contains(channels) else { return [] }
        // OpusHead (RFC 7845, 5.1): version, channels, no pre-skip, 48,000 Hz, no gain, mapping family 0.
        return Array("OpusHead".utf8) + [1, UInt8(channels), 0, 0, 0x80, 0xBB, 0, 0, 0, 0, 0]
    }
}
