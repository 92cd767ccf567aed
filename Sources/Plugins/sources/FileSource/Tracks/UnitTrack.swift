// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import CodedVideo
import FrameCore

/// What is known of a track whose access units are passed on as they are, before the first one is given.
struct UnitTrack {
    let format: EncodedFormat
    /// Bytes of access units to reserve.
    let slabBytes: Int
    /// PTS of the keyframe where it begins, in the file's ticks; nil where the file does not say it.
    let firstTick: Int64?

    /// Containers, by libavformat's names, that say when a picture is decoded and when it is shown.
    private static let containers: Set = ["mov", "matroska", "mpegts", "flv"]
    /// Those in which the times of MJPEG are right: its pictures are shown when they are decoded.
    private static let containersOfJPEG: Set = ["mov", "matroska", "avi"]
    /// No access unit of a camera or an encoder is larger.
    private static let mostUnitBytes = 256 << 20

    /// [control thread] Throws where the file's description of the track shows that it cannot be passed on as it
    /// is.
    static func check(_ file: MediaFile, _ track: VideoTrack) throws {
        guard let coding = UnitCoding(file.parameters(track.index).codec_id) else {
            throw FileFault.isNotPassedOn(file.path, codec: file.codecName(track.index))
        }
        let fit = coding == .jpeg ? containersOfJPEG : containers
        guard let name = file.formatName.split(separator: ",").first, fit.contains(String(name)) else {
            throw FileFault.hasNoTimes(file.path, format: file.formatName, of: coding)
        }
        if let largest = file.largestPacket(track.index), largest > mostUnitBytes {
            throw FileFault.packetTooLarge(file.path, bytes: largest)
        }
    }

    /// [control thread]
    ///
    /// - Parameter reader: A reader that has read ahead to the keyframe at which to begin.
    init(_ file: MediaFile, _ track: VideoTrack, _ reader: UnitReader) throws {
        let parameters = file.parameters(track.index)
        let sets = reader.parameterSets
        guard !sets.isEmpty || !reader.coding.hasSets else { throw FileFault.noParameterSets(file.path, reader.coding) }
        let kbps = parameters.bit_rate / 1000
        format = EncodedFormat(
            codec: reader.coding.codec, framing: reader.coding.framing, parameterSets: sets, video: track.format,
            reorderDepth: reader.coding.reorderDepth(parameters),
            bitrateKbps: (1...100_000_000).contains(kbps) ? Int(kbps) : nil)
        // Room for start codes and parameter sets is added to the largest packet of the file's index. Where the
        // index does not have every packet, this is as much as an encoder would reserve.
        slabBytes =
            file.largestPacket(track.index).map { max(2 * $0 + 1 << 20, 4 << 20) }
            ?? max(16 << 20, 2 * track.format.bufferBytes)
        firstTick = reader.pts
    }
}
