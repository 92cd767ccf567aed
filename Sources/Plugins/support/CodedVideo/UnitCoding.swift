// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A coding of video whose access units go on as they are, and what those are made of.
public enum UnitCoding: Sendable, Hashable {
    /// NAL units with start codes.
    case nal(VideoCoding)
    /// Motion JPEG: one JPEG.
    case jpeg
    /// AV1: the open bitstream units of a temporal unit.
    case av1

    /// Nil for sound, and for codecs that nothing is known of.
    public init?(_ codec: Codec) {
        switch codec {
        case .mjpeg: self = .jpeg
        case .av1: self = .av1
        default:
            guard let coding = VideoCoding(codec) else { return nil }
            self = .nal(coding)
        }
    }

    public var codec: Codec {
        switch self {
        case .nal(let coding): coding.codec
        case .jpeg: .mjpeg
        case .av1: .av1
        }
    }

    public var framing: EncodedFormat.Framing {
        switch self {
        case .nal: .annexB
        case .jpeg, .av1: .own
        }
    }

    /// Whether a decoder must know something before the first picture: ``EncodedFormat/parameterSets``.
    public var hasSets: Bool { self != .jpeg }

    /// What people call these.
    public var nameOfSets: String {
        switch self {
        case .nal(.h264), .jpeg: "parameter sets (SPS and PPS)"
        case .nal(.h265): "parameter sets (VPS, SPS and PPS)"
        case .av1: "a sequence header"
        }
    }

    /// Parameter sets of an access unit; empty where it does not have all.
    public func parameterSets(in unit: UnsafeRawBufferPointer) -> [UInt8] {
        switch self {
        case .nal(let coding):
            let sets = ParameterSets(in: unit, coding)
            return sets.isComplete ? sets.bytes : []
        case .jpeg: return []
        case .av1: return OBUs.sequenceHeader(in: unit)
        }
    }

    /// Parameter sets of a container's header; empty where it does not have all.
    ///
    /// - Parameter extradata: As libavformat has it; NAL units with start codes, of AV1 also `av1C`.
    public func parameterSets(ofContainer extradata: UnsafeRawBufferPointer) -> [UInt8] {
        guard self == .av1, let first = extradata.first, first & 0x80 != 0 else { return parameterSets(in: extradata) }
        // Four bytes before the units (AV1 Codec ISO Media File Format Binding, 2.3.3).
        return parameterSets(in: UnsafeRawBufferPointer(rebasing: extradata.dropFirst(4)))
    }

    /// Whether each parameter set of `unit` is one of `sets`.
    public func hasAll(_ sets: [UInt8], in unit: UnsafeRawBufferPointer) -> Bool {
        switch self {
        case .nal(let coding): ParameterSets(sets, coding).hasAll(in: unit)
        case .jpeg: true
        case .av1: [[], sets].contains(OBUs.sequenceHeader(in: unit))
        }
    }
}
