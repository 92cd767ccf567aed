// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// The header of each packet of AAC in a transport stream (ISO/IEC 13818-7, 6.2), which MP4, Matroska, FLV and RTP have
/// once, as an AudioSpecificConfig (ISO/IEC 14496-3, 1.6.2.1): a packet that is passed on goes without it.
struct ADTSHeader: Equatable {
    /// The audio object type: 2 for LC.
    var objectType: UInt8
    /// A place in ``rates``.
    var rateIndex: UInt8
    /// Numbers of channels by their usual layouts; 7 stands for eight.
    var channels: UInt8

    /// ISO/IEC 14496-3, table 1.18.
    private static let rates = [
        96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
    ]

    /// What the headers of a track say, as far as libavformat's look at it tells; nil for any other sound. Of HE-AAC the
    /// headers have half of its rate, so that it is none of these.
    init?(_ parameters: AVCodecParameters) {
        guard parameters.codec_id == AV_CODEC_ID_AAC, parameters.extradata_size == 0,
            parameters.profile == FF_PROFILE_AAC_LOW,
            let rate = Self.rates.firstIndex(of: Int(parameters.sample_rate)),
            let channels = [1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 8: 7][parameters.ch_layout.nb_channels]
        else { return nil }
        (objectType, rateIndex, self.channels) = (2, UInt8(rate), UInt8(channels))
    }

    /// Reads the header at a packet's begin; nil where there is none, as of a packet that goes without.
    ///
    /// - Returns: It, and how many bytes it has.
    static func read(_ packet: UnsafeRawBufferPointer) -> (header: ADTSHeader, byteCount: Int)? {
        guard packet.count > 7, packet[0] == 0xFF, packet[1] & 0xF6 == 0xF0 else { return nil }
        let length = Int(packet[3] & 3) << 11 | Int(packet[4]) << 3 | Int(packet[5]) >> 5
        // A header with a checksum; several blocks in a packet have more of them, and no encoder makes such.
        let byteCount = packet[1] & 1 == 1 ? 7 : 9
        guard length == packet.count, length > byteCount, packet[6] & 3 == 0 else { return nil }
        let header = ADTSHeader(
            objectType: packet[2] >> 6 + 1, rateIndex: packet[2] >> 2 & 15,
            channels: (packet[2] & 1) << 2 | packet[3] >> 6)
        return (header, byteCount)
    }

    private init(objectType: UInt8, rateIndex: UInt8, channels: UInt8) {
        (self.objectType, self.rateIndex, self.channels) = (objectType, rateIndex, channels)
    }

    /// The AudioSpecificConfig.
    var config: [UInt8] { [objectType << 3 | rateIndex >> 1, rateIndex << 7 | channels << 3] }

    /// `48000 Hz, 2 channels`; empty where it does not say.
    var text: String {
        let count = [0, 1, 2, 3, 4, 5, 6, 8][Int(channels & 7)]
        guard Self.rates.indices.contains(Int(rateIndex)), count > 0 else { return "" }
        return "\(Self.rates[Int(rateIndex)]) Hz, \(count) channel\(count == 1 ? "" : "s")"
    }
}
