// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// What a decoder must know of a track before a packet: a copy of a track has it once, for all packets.
///
/// Sound that describes itself in each packet, as AC-3 and MPEG audio do, has none: its decoders follow.
enum SoundHeader: Equatable {
    /// What stands beside the packets, as in MP4, Matroska and FLV.
    case extradata([UInt8])
    /// Rate and number of channels, where there is nothing else, as for PCM in FLV.
    case figures(rate: Int, channels: Int)
    /// AAC in a transport stream.
    case adts(ADTSHeader)

    /// The header from which a track's packets follow on; nil where the first packet has it.
    init?(of track: AudioTrackFormat) {
        guard track.extradata.isEmpty else {
            self = .extradata(track.extradata)
            return
        }
        guard track.codec != .aac else { return nil }
        self = .figures(rate: track.sampleRate, channels: track.channelCount)
    }

    /// The header that a packet brings; nil where what came before holds on.
    init?(_ packet: AVPacket, of track: AudioTrackFormat) {
        if let extradata = packet.sideData(AV_PKT_DATA_NEW_EXTRADATA) {
            self = .extradata(extradata)
            return
        }
        if track.extradata.isEmpty, track.codec != .aac, !Self.describingThemselves.contains(track.codec.rawValue),
            let change = packet.sideData(AV_PKT_DATA_PARAM_CHANGE)
        {
            let found = Self.parse(change, rate: track.sampleRate, channels: track.channelCount)
            self = .figures(rate: found.rate, channels: found.channels)
            return
        }
        guard track.codec == .aac,
            let found = ADTSHeader.read(UnsafeRawBufferPointer(start: packet.data, count: Int(packet.size)))
        else { return nil }
        self = .adts(found.header)
    }

    /// Codecs whose packets say rate and channels, so that a copy of them is right whatever they change to.
    private static let describingThemselves = ["mp1", "mp2", "mp3", "ac3", "eac3", "dts"]

    /// Reads libavcodec's change of parameters: flags, and then, little-endian, the values whose flags are set.
    ///
    /// - Parameters:
    ///   - rate: What holds where it does not say another rate.
    ///   - channels: The same of their number.
    static func parse(_ change: [UInt8], rate: Int, channels: Int) -> (rate: Int, channels: Int) {
        var rest = change[...]
        func take(_ bytes: Int) -> Int {
            defer { rest = rest.dropFirst(bytes) }
            return rest.prefix(bytes).reversed().reduce(0) { $0 << 8 | Int($1) }
        }
        let flags = take(4)
        let count = flags & 1 != 0 ? take(4) : channels
        if flags & 2 != 0 { rest = rest.dropFirst(8) }
        return (flags & 4 != 0 ? take(4) : rate, count)
    }

    /// `48000 Hz, 6 channels`; empty where it does not say.
    var text: String {
        if case .figures(let rate, let channels) = self {
            return AudioFormat(sampleRate: rate, channelCount: channels).figures
        }
        guard case .adts(let header) = self else { return "" }
        return header.text
    }
}

extension AVPacket {
    /// What libavformat gives beside a packet.
    func sideData(_ kind: AVPacketSideDataType) -> [UInt8]? {
        for index in 0..<Int(side_data_elems) where side_data[index].type == kind {
            return Array(UnsafeBufferPointer(start: side_data[index].data, count: Int(side_data[index].size)))
        }
        return nil
    }

    /// What a decoder must have from this packet on.
    var changes: [SoundChange] {
        [AV_PKT_DATA_NEW_EXTRADATA, AV_PKT_DATA_PARAM_CHANGE].compactMap { kind in
            sideData(kind).map { SoundChange(kind: kind, bytes: $0) }
        }
    }
}

/// What a decoder must have before the packet beside which it stands.
struct SoundChange {
    var kind: AVPacketSideDataType
    var bytes: [UInt8]
}

extension MediaTime {
    /// Seconds with at most two decimals.
    var shortSeconds: String { "\((seconds * 100).rounded() / 100)" }
}

extension AudioFormat {
    /// `48000 Hz, 6 channels`
    var figures: String { "\(sampleRate) Hz, \(channelText)" }
}
