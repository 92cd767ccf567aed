// SPDX-License-Identifier: Apache-2.0

internal import CStageLink

/// The metadata of a frame as bytes, beside a call or a reply. Both processes run the same program and the same plugin, so
/// that plain values are laid out in the same way.
struct CarriedMetadata {
    private struct Kind {
        /// Where it lies in the text.
        var start: Int
        var byteCount: Int
        /// Its index in the layout of this process's frames.
        var index: Int
        /// Its place in a frame's region.
        var offset: Int
    }

    private var kinds: [Kind] = []
    /// Bytes of all kinds together.
    private(set) var byteCount = 0

    /// - Parameters:
    ///   - types: What the stage declares; none that ``refusal(of:)`` refuses.
    ///   - layout: Of the frames of this process.
    init(_ types: [any FrameMetadata.Type], _ layout: MetadataLayout) {
        for type in types {
            guard let index = layout.index(of: type) else { continue }
            let entry = layout.entries[index]
            kinds.append(Kind(start: byteCount, byteCount: entry.byteCount, index: index, offset: entry.offset))
            byteCount += (entry.byteCount + 15) / 16 * 16
        }
    }

    /// Why frames cannot carry these kinds to another process, after the stage's name; nil where they can.
    static func refusal(of types: [any FrameMetadata.Type]) -> String? {
        for type in types where MetadataIdentity(type) == nil {
            return "has the metadata '\(type.metadataName)', which is more than plain values"
        }
        let size = MetadataLayout(types).entries.reduce(0) { $0 + ($1.byteCount + 15) / 16 * 16 }
        guard size > Int(FH_LINK_TEXT) else { return nil }
        return "has \(size) bytes of metadata for each frame, more than \(FH_LINK_TEXT)"
    }

    /// Writes what the frame has. Returns a bit for each kind that is there.
    func write(_ header: borrowing ItemHeader, to text: UnsafeMutablePointer<UInt8>) -> UInt64 {
        var present: UInt64 = 0
        for (number, kind) in kinds.enumerated() where header.metadataPresent & (1 << UInt64(kind.index)) != 0 {
            UnsafeMutableRawPointer(text + kind.start).copyMemory(
                from: header.metadata! + kind.offset, byteCount: kind.byteCount)
            present |= 1 << UInt64(number)
        }
        return present
    }

    /// Gives the frame what the text has, and takes from it what the text has not.
    func read(_ text: UnsafeMutablePointer<UInt8>, present: UInt64, into header: inout ItemHeader) {
        for (number, kind) in kinds.enumerated() {
            let bit = UInt64(1) << UInt64(kind.index)
            // Plain values need no destruction.
            guard present & (1 << UInt64(number)) != 0 else {
                header.metadataPresent &= ~bit
                continue
            }
            (header.metadata! + kind.offset).copyMemory(from: text + kind.start, byteCount: kind.byteCount)
            header.metadataPresent |= bit
        }
    }
}

extension fh_item {
    init(_ header: borrowing ItemHeader, metadata: UInt64) {
        self.init()
        pts = header.pts.nanoseconds
        duration = header.duration.nanoseconds
        captured_at = header.capturedAt
        number = header.sequenceNumber
        self.metadata = metadata
        flags =
            (header.isDiscontinuity ? FH_DISCONTINUITY.rawValue : 0) | (header.isKeyframe ? FH_KEYFRAME.rawValue : 0)
            | (header.isSubstitute ? FH_SUBSTITUTE.rawValue : 0)
            | (header.isMirroredInPreviews ? FH_MIRRORED_IN_PREVIEWS.rawValue : 0)
            | (header.statedOrientation != nil ? FH_TURNED.rawValue : 0)
        orientation = UInt32(header.statedOrientation?.rawValue ?? 0)
    }

    func has(_ flag: fh_flags) -> Bool { flags & flag.rawValue != 0 }

    /// Puts it into a header, apart from the metadata. What no item can have is left as it is.
    func fill(_ header: inout ItemHeader) {
        header.pts = MediaTime(nanoseconds: pts)
        header.duration = MediaTime(nanoseconds: max(duration, 0))
        header.capturedAt = MediaTime(nanoseconds: captured_at).nanoseconds
        header.sequenceNumber = number
        header.isDiscontinuity = has(FH_DISCONTINUITY)
        if has(FH_KEYFRAME) != header.isKeyframe { header.entry = has(FH_KEYFRAME) ? .clean : .none }
        header.isSubstitute = has(FH_SUBSTITUTE)
        header.isMirroredInPreviews = has(FH_MIRRORED_IN_PREVIEWS)
        header.statedOrientation = has(FH_TURNED) ? Orientation(rawValue: UInt8(truncatingIfNeeded: orientation)) : nil
    }
}
