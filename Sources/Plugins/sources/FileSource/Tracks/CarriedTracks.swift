// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Synchronization

/// The sound tracks of a file, for a recorder that carries them along unchanged. Each reader opens the file itself.
final class CarriedTracks: AudioOrigin {
    let tracks: [AudioTrackFormat]
    /// The indices of these tracks among all tracks of the file.
    let indices: [Int]
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
                && !file.isUnknownSound($0)
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
    func open(track: Int) throws -> any AudioReader { try open(track: track, isDecoded: false) }

    /// [control thread]
    ///
    /// - Parameter isDecoded: Whether its packets are decoded.
    func open(track: Int, isDecoded: Bool) throws -> CarriedTrackReader {
        let reader = try CarriedTrackReader(
            path: path, track: indices[track], format: tracks[track], range: range, isDecoded: isDecoded,
            context: context)
        carried.bitwiseOr(1 << UInt64(track), ordering: .relaxed)
        return reader
    }

    /// Whether this track of the file has a reader.
    func isCarried(_ track: OtherTrack) -> Bool {
        indices.firstIndex(of: track.index).map { carried.load(ordering: .relaxed) & (1 << UInt64($0)) != 0 } ?? false
    }
}
