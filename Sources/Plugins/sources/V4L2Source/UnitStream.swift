// SPDX-License-Identifier: Apache-2.0

import CodedVideo
import FrameCore

/// Decides about the H.264 that a camera gives, buffer by buffer: which buffers are passed on, and with which parameter
/// sets before them. Pure.
///
/// A buffer is an access unit with start codes (V4L2, `V4L2_PIX_FMT_H264`). Some drivers give the parameter sets in
/// buffers of their own (`V4L2_CID_MPEG_VIDEO_HEADER_MODE`), all in one or one in each; they are then put before the
/// next keyframe. After a loss nothing is passed on until a keyframe comes, since pictures that refer to a lost one are
/// broken. A keyframe needs an SPS and a PPS that belong together.
struct UnitStream {
    enum Verdict: Equatable {
        /// Pass it on, with the stream's parameter sets before it where it is a keyframe without any.
        case give(isKeyframe: Bool, needsSets: Bool)
        /// The buffer only has what may come without a picture, such as parameter sets.
        case noPicture
        /// Left out, until a keyframe comes.
        case awaitsKeyframe
        case damaged(String)

        /// Whether the buffer has a picture, passed on or not.
        var hasPicture: Bool {
            switch self {
            case .give, .awaitsKeyframe: true
            case .noPicture, .damaged: false
            }
        }
    }

    /// SPS and PPS with start codes, the newest; empty before both came, and while the PPS of a new SPS is missing.
    var sets: [UInt8] { isComplete ? collected.bytes : [] }
    /// The newest sets, perhaps an SPS whose PPS has not come, or the reverse. At most ``mostSetBytes``.
    private var collected = ParameterSets([], .h264)
    /// Whether ``collected`` has an SPS and a PPS.
    private var hasBoth = false
    /// Whether an SPS has replaced a different one of its number, and no PPS has come since: those in ``collected``
    /// belong to the old SPS. That of the new one may be lost.
    private var awaitsPPS = false
    /// How many keyframes were left out for it. Where the third one comes without a PPS too, the camera gives no other:
    /// the known ones stay valid (ITU-T H.264, 7.4.1.2.1).
    private var keyframesWithoutPPS = 0
    private var isComplete: Bool { hasBoth && !awaitsPPS }
    /// Whether other sets came after the first.
    private(set) var setsHaveChanged = false
    private(set) var awaitsKeyframe = true

    /// The most bytes of parameter sets with their start codes, in a buffer and in all. No camera comes near. Each set
    /// of a buffer is compared with each known one, so the buffer's bytes are counted first.
    static let mostSetBytes = 4096

    /// Notes that pictures were lost.
    mutating func lose() { awaitsKeyframe = true }

    /// Allocates only when the parameter sets have changed.
    mutating func look(at bytes: UnsafeRawBufferPointer) -> Verdict {
        let unit = UnitOutline(bytes, .h264)
        guard unit.hasUnits else {
            lose()
            return .damaged("its \(bytes.count) bytes contain no NAL unit")
        }
        guard unit.setBytes <= Self.mostSetBytes else {
            lose()
            return .damaged("its parameter sets have \(unit.setBytes) bytes, more than \(Self.mostSetBytes)")
        }
        if unit.setBytes > 0 { takeSets(of: unit, in: bytes) }
        guard unit.hasSlice else { return unit.hasOnlyAsides ? .noPicture : .damaged("its bytes contain no picture") }
        let isKeyframe = unit.entry != .none
        if isKeyframe, awaitsPPS {
            keyframesWithoutPPS += 1
            if keyframesWithoutPPS == 3 { awaitsPPS = false }
        }
        if isKeyframe, !isComplete { lose() }
        if awaitsKeyframe {
            guard isKeyframe, isComplete else { return .awaitsKeyframe }
            awaitsKeyframe = false
        }
        return .give(isKeyframe: isKeyframe, needsSets: isKeyframe && !unit.hasSets)
    }

    /// Takes over the parameter sets of a buffer that has some, and not too many.
    private mutating func takeSets(of unit: UnitOutline, in bytes: UnsafeRawBufferPointer) {
        // A PPS with the same bytes as before also counts: it came after the new SPS.
        let hasPPS = unit.has(.pictureParameterSet)
        if hasPPS { awaitsPPS = false }
        guard !collected.hasAll(in: bytes) else { return }
        setsHaveChanged = setsHaveChanged || isComplete
        let news = ParameterSets(in: bytes, .h264)
        if !hasPPS, collected.isSequenceReplaced(by: news) { (awaitsPPS, keyframesWithoutPPS) = (true, 0) }
        let all = unit.hasSets ? news : collected.replaced(by: news)
        // Where both are too many, the old ones go: otherwise no new one would ever fit.
        collected = all.bytes.count <= Self.mostSetBytes ? all : news
        hasBoth = collected.isComplete
    }
}
