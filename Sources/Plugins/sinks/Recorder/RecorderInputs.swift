// SPDX-License-Identifier: Apache-2.0

import CodedVideo
import FrameCore

/// What a recorder's inputs are: the one that leads, sounds, and motion; and whether a file of its container can have
/// them.
struct RecorderInputs {
    /// The input that leads; the others are sounds and motion.
    let lead: Int
    let format: EncodedFormat
    /// Nil for sound alone.
    let pictures: VideoFormat?
    /// The sounds that do not lead.
    let sounds: [AudioTrackFormat]
    /// For each input that is a sound, its place among the sounds.
    let soundPlaces: [Int?]
    private(set) var motion: MotionFormat?

    /// - Throws: ``FrameHostError``, which says what 'from' must name.
    init(_ inputs: [MediaFormat], _ options: RecorderOptions, _ container: Container) throws {
        let places = inputs.indices.filter { inputs[$0].encoded?.video != nil }
        let firstSound = inputs.firstIndex { $0.encoded?.audio != nil }
        guard let place = places.first ?? firstSound, places.count <= 1 else {
            throw FrameHostError(
                .invalidConfiguration, place: "from",
                what:
                    "exactly one input must have pictures, but \(places.isEmpty ? "none has" : "\(places.count) have")",
                remedy:
                    "In 'from', name one stage that gives H.264, H.265, MJPEG or AV1. The others must give sound or motion."
            )
        }
        let pictures = inputs[place].encoded?.video
        guard let format = inputs[place].encoded, pictures == nil || UnitCoding(format.codec)?.framing == format.framing
        else {
            throw FrameHostError(
                .broken,
                what:
                    "the recorder needs H.264 or H.265 with start codes, MJPEG or AV1, but was offered \(inputs[place])"
            )
        }
        lead = place
        self.format = format
        self.pictures = pictures
        let soundInputs = inputs.indices.filter { inputs[$0].encoded?.audio != nil && $0 != place }
        sounds = soundInputs.compactMap { inputs[$0].encoded?.audio }
        soundPlaces = inputs.indices.map { soundInputs.firstIndex(of: $0) }
        motion = try Self.motion(inputs.compactMap(\.motion), besidePictures: pictures != nil, options, container)
        for track in inputs.compactMap(\.encoded?.audio) {
            guard let obstacle = TrackDescriptions.obstacle(to: track, in: container) else { continue }
            throw FrameHostError(
                .invalidConfiguration, place: "from", what: obstacle,
                remedy: remedy(for: track, container, isCopied: false))
        }
    }

    /// - Throws: ``FrameHostError`` where a file of this name cannot have the pictures.
    func checkPictures(_ options: RecorderOptions, _ container: Container) throws {
        guard let pictures else { return }
        guard !Container.isForSound(path: options.path) else {
            throw FrameHostError(
                .invalidConfiguration, place: "path",
                what: "a file of this name has sound alone, but 'from' names pictures",
                remedy: container == .mkv ? "Record to .mkv." : "Record to .mp4 or .mov.")
        }
        // libavformat's movenc.c, mov_init: AV1 is only for MP4.
        guard container != .mov || format.codec != .av1 else {
            throw FrameHostError(
                .invalidConfiguration, place: "path", what: "a MOV file cannot store AV1",
                remedy: "Record to .mp4 or .mkv.")
        }
        guard container != .mkv || pictures.frameRate.value <= 1000 else {
            throw FrameHostError(
                .invalidConfiguration, place: "path",
                what:
                    "Matroska counts time in milliseconds, but the pictures come \(pictures.frameRate) times a second: the recording would last longer than they do",
                remedy: "Record to .mp4 or .mov, or put a 'rate' of at most 1000 before the encoder.")
        }
        guard container.carriesOrientation || pictures.orientation == .up else {
            throw FrameHostError(
                .invalidConfiguration, place: "path",
                what: "a Matroska file cannot store the orientation '\(pictures.orientation)'",
                remedy: "Record to .mp4 or .mov, or put a 'crop-orient' before the encoder to turn the pictures.")
        }
    }

    /// - Parameter tracks: The sound that comes with the pictures.
    func checkCopied(_ tracks: [AudioTrackFormat], _ container: Container) throws {
        for track in tracks {
            guard let obstacle = TrackDescriptions.obstacle(to: track, in: container) else { continue }
            throw FrameHostError(
                .invalidConfiguration, place: "audio", what: obstacle,
                remedy: remedy(for: track, container, isCopied: true))
        }
    }

    /// Where a sound can be recorded instead, and what else can be done.
    ///
    /// - Parameter isCopied: Whether it comes with the pictures; else on an input of its own.
    private func remedy(for track: AudioTrackFormat, _ container: Container, isCopied: Bool) -> String {
        let fit = [Container.mp4, .mov, .mkv].filter { container in
            TrackDescriptions.obstacle(to: track, in: container) == nil && (container != .mov || format.codec != .av1)
                && (container.carriesOrientation || pictures?.orientation ?? .up == .up)
        }
        let names = fit.map { $0 == .mkv ? ".mkv" : ".\($0.rawValue)" }
        guard let last = names.last else {
            return isCopied
                ? "Set \"audio\": \"none\" to record without sound." : "Remove the stage with this sound from 'from'."
        }
        let places = names.count == 1 ? last : "\(names.dropLast().joined(separator: ", ")) or \(last)"
        let none = isCopied ? ", or set \"audio\": \"none\"" : ""
        return "Record to \(places), or decode the sound and put 'audio-encoder' before the recorder\(none)."
    }

    private static func motion(
        _ formats: [MotionFormat], besidePictures: Bool, _ options: RecorderOptions, _ container: Container
    ) throws -> MotionFormat? {
        let fault: (place: String, what: String, remedy: String)? =
            if !formats.isEmpty, !besidePictures {
                (
                    "from", "motion is recorded beside pictures, but no input has any",
                    "Remove the motion from 'from', or name a stage that gives H.264, H.265, MJPEG or AV1 too."
                )
            } else if formats.count > 1 {
                ("from", "only one input can have motion, but \(formats.count) have", "Keep one of them in 'from'.")
            } else if options.gcsv, formats.isEmpty {
                (
                    "gcsv", "there is no motion for a Gyroflow file",
                    "Name an input with motion: \"from\": [\"pictures\", \"motion\"]. Or leave 'gcsv' out."
                )
            } else if options.gcsv, let format = formats.first, !format.contents.contains(.rotationRate) {
                (
                    "gcsv", "a Gyroflow file needs the rotation rate, but the input gives \(format)",
                    container == .mkv
                        ? "Leave 'gcsv' out, and either remove the motion from 'from' or record to .mp4 or .mov."
                        : "Leave 'gcsv' out."
                )
            } else if container == .mkv, !options.gcsv, let format = formats.first {
                (
                    "from", "a Matroska file cannot store motion",
                    format.contents.contains(.rotationRate)
                        ? "Record to .mp4 or .mov, or set \"gcsv\": true to write the motion beside the file."
                        : "Record to .mp4 or .mov, or remove the motion from 'from'."
                )
            } else {
                nil
            }
        if let fault {
            throw FrameHostError(
                .invalidConfiguration, place: fault.place, what: fault.what, remedy: fault.remedy)
        }
        return formats.first
    }

    /// Says that the sound that comes with the pictures is not recorded, where nobody wished so.
    func note(ofSound tracks: [AudioTrackFormat]) -> String? {
        guard sounds.isEmpty, !tracks.isEmpty else { return nil }
        let codecs = tracks.map(\.codec.description).joined(separator: ", ")
        return
            "the sound that comes with the pictures (\(codecs)) is not recorded. To record it, set \"audio\": \"copy\"; \"none\" only removes this note"
    }
}
