// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The container of a recording, named as libavformat names its writers. ``MuxerHandle`` writes it so that what is there
/// plays wherever the program ends.
enum Container: String, CaseIterable {
    case mp4, mov
    case mkv = "matroska"

    /// The container by the ending of a file's name, in any case.
    init?(path: String) {
        let name = path.lowercased()
        guard let found = Self.byEnding.first(where: { name.hasSuffix($0.ending) }) else { return nil }
        self = found.container
    }

    private static let byEnding: [(ending: String, container: Container)] = [
        (".mp4", .mp4), (".m4v", .mp4), (".mov", .mov), (".mkv", .mkv), (".m4a", .mp4), (".mka", .mkv),
    ]

    /// Whether the ending of a file's name says that the file has sound alone.
    static func isForSound(path: String) -> Bool {
        let name = path.lowercased()
        return name.hasSuffix(".m4a") || name.hasSuffix(".mka")
    }

    /// The endings of files' names, with the dot.
    static var endings: [String] { byEnding.map(\.ending) }

    /// The name that people know.
    var name: String {
        switch self {
        case .mp4: "an MP4 file"
        case .mov: "a MOV file"
        case .mkv: "a Matroska file"
        }
    }

    /// Whether a player turns the picture as the file says; libavformat writes no rotation to Matroska.
    var carriesOrientation: Bool { self != .mkv }

    /// How a file that is being recorded carries its mark.
    var form: RecordingForm {
        switch self {
        case .mp4: .fragmentedMP4
        case .mov: .mov
        case .mkv: .matroska
        }
    }

    /// The same of a file with its index in front.
    var finalForm: RecordingForm { self == .mp4 ? .mp4 : form }

    /// Most ticks from one packet of a track to the next: MP4 counts them in 31 bits (ISO/IEC 14496-12, 8.8.8, and
    /// libavformat's movenc.c). Matroska begins a new cluster with a time of its own, which has room for many years of
    /// milliseconds.
    var mostGap: Int64 { self == .mkv ? 1 << 50 : Int64(Int32.max) - 1 }

    /// Ticks per second of the track for time stamps in `timeBase`: the same ticks, so that they come back exactly, but
    /// no finer than a microsecond, with which MP4 can count a gap of up to 71 minutes. Matroska has milliseconds.
    func ticksPerSecond(for timeBase: TimeBase) -> Int32 { self == .mkv ? 1000 : min(timeBase.denominator, 1_000_000) }
}
