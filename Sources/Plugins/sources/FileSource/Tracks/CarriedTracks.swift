// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Synchronization

/// The sound tracks of a file, for a recorder that carries them along unchanged. Each reader opens the file itself.
final class CarriedTracks: AudioOrigin {
    let tracks: [AudioTrackFormat]
    /// The indices of these tracks among all tracks of the file.
    private let indices: [Int]
    private let path: String
    private let range: FileTimeRange
    private let context: StageContext
    /// A bit for each track that has a reader.
    private let carried = Atomic<UInt64>(0)
    private let arePicturesAllGiven = Atomic<Bool>(false)

    /// [control thread]
    init(_ file: MediaFile, range: FileTimeRange, context: StageContext) {
        let found = (0..<file.trackCount).filter {
            file.parameters($0).codec_type == AVMEDIA_TYPE_AUDIO && file.parameters($0).codec_id != AV_CODEC_ID_NONE
        }
        indices = Array(found.prefix(64))
        tracks = indices.map { AudioTrackFormat(file, track: $0) }
        path = file.path
        self.range = range
        self.context = context
    }

    var hasGivenAllPictures: Bool { arePicturesAllGiven.load(ordering: .acquiring) }

    /// [stage thread of the pictures] Says that the pictures have come to their end.
    func endPictures() { arePicturesAllGiven.store(true, ordering: .releasing) }

    /// The index of a track among all tracks of the file.
    func index(ofTrack track: Int) -> Int { indices[track] }

    /// [control thread]
    func open(track: Int) throws -> any AudioReader {
        let reader = try CarriedTrackReader(
            path: path, track: indices[track], format: tracks[track], range: range, context: context)
        carried.bitwiseOr(1 << UInt64(track), ordering: .relaxed)
        return reader
    }

    /// Whether this track of the file has a reader.
    func isCarried(_ track: OtherTrack) -> Bool {
        indices.firstIndex(of: track.index).map { carried.load(ordering: .relaxed) & (1 << UInt64($0)) != 0 } ?? false
    }
}

extension AudioTrackFormat {
    /// - Parameter track: The index among all tracks.
    fileprivate init(_ file: MediaFile, track: Int) {
        self.init(file.stream(track), timeBase: file.timeBase(track))
    }

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
            extradata: Array(UnsafeBufferPointer(start: parameters.extradata, count: Int(parameters.extradata_size))),
            language: language.map { String(cString: $0) } ?? "")
    }
}
