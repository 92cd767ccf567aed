// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A coding of video whose access units are made of NAL units.
public enum VideoCoding: Sendable, Hashable, CaseIterable {
    /// ITU-T H.264 | ISO/IEC 14496-10.
    case h264
    /// ITU-T H.265 | ISO/IEC 23008-2.
    case h265

    /// Nil for codecs without NAL units.
    public init?(_ codec: Codec) {
        switch codec {
        case .h264: self = .h264
        case .h265: self = .h265
        default: return nil
        }
    }

    public var codec: Codec {
        switch self {
        case .h264: .h264
        case .h265: .h265
        }
    }

    /// The bytes of a NAL unit's header (H.264 7.3.1, without extensions; H.265 7.3.1.2).
    public var headerBytes: Int {
        switch self {
        case .h264: 1
        case .h265: 2
        }
    }

    /// What a NAL unit is for, by the first byte of its header.
    public func kind(_ first: UInt8) -> NALKind {
        switch self {
        case .h264: Self.h264Kind(first & 31)
        case .h265: Self.h265Kind(first >> 1 & 63)
        }
    }

    /// H.264, table 7-1.
    private static func h264Kind(_ type: UInt8) -> NALKind {
        switch type {
        case 5: .slice(.clean, .shown)
        case 1...4: .slice(.none, .shown)
        case 6: .message
        case 7: .sequenceParameterSet
        case 8: .pictureParameterSet
        case 9...15: .aside
        default: .other
        }
    }

    /// H.265, table 7-1.
    private static func h265Kind(_ type: UInt8) -> NALKind {
        switch type {
        case 19, 20: .slice(.clean, .shown)
        // BLA and CRA; 22 and 23 are reserved for pictures at which decoding can begin.
        case 16...18, 21...23: .slice(.open, .shown)
        case 6, 7: .slice(.none, .decodableLeading)
        case 8, 9: .slice(.none, .skippedLeading)
        case 0...31: .slice(.none, .shown)
        case 32: .videoParameterSet
        case 33: .sequenceParameterSet
        case 34: .pictureParameterSet
        case 39: .message
        // Delimiters, ends of sequence and of stream, filler, messages that follow their picture.
        case 35...38, 40: .aside
        default: .other
        }
    }
}

/// What a NAL unit is for.
public enum NALKind: Sendable, Hashable {
    /// A part of a picture: whether decoding can begin with it, and how it stands to the picture at which it does.
    case slice(AccessUnit.Entry, Place)
    /// H.265 alone.
    case videoParameterSet
    case sequenceParameterSet
    case pictureParameterSet
    /// Supplemental enhancement information before the picture it belongs to.
    case message
    /// What else may come without a picture: delimiters, filler, the end of a stream.
    case aside
    /// Reserved, or an extension.
    case other

    /// How a picture stands to the entry before it.
    public enum Place: Sendable, Hashable {
        /// After it in both orders, or an entry itself.
        case shown
        /// Shown before it, and decodable without what came before (H.265: RADL).
        case decodableLeading
        /// Shown before it, and refers to pictures before it: cannot be decoded where decoding begins there
        /// (H.265: RASL).
        case skippedLeading
    }

    public var isSlice: Bool { if case .slice = self { true } else { false } }

    /// Whether it is a set that a decoder must know before the first picture.
    public var isParameterSet: Bool {
        switch self {
        case .videoParameterSet, .sequenceParameterSet, .pictureParameterSet: true
        default: false
        }
    }
}
