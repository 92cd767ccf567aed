// SPDX-License-Identifier: Apache-2.0

/// An access unit that was copied out of a running chain. It is not part of any budget.
public struct StageUnit: Sendable {
    /// The properties of the unit, as ``AccessUnit`` has them.
    public struct Header: Sendable {
        /// When the picture is shown.
        public var pts = MediaTime.zero
        /// When the picture is decoded.
        public var dts = MediaTime.zero
        /// How long the picture is shown; zero when unknown.
        public var duration = MediaTime.zero
        /// When the picture was captured, in nanoseconds of the chain clock.
        public var capturedAt: Int64 = 0
        /// The sequence number of the frame that was encoded.
        public var sequenceNumber: UInt64 = 0
        /// Whether the picture can be decoded without any other.
        public var isKeyframe = false
        /// Whether this is the first unit after a gap in time or a loss.
        public var isDiscontinuity = false
        /// How the picture is to be turned for display.
        public var orientation = Orientation.up
        /// Whether previews show the picture mirrored; ``Frame/isMirroredInPreviews``.
        public var isMirroredInPreviews = false

        /// Properties that say nothing yet.
        public init() {}

        init(_ header: borrowing ItemHeader) {
            pts = header.pts
            dts = header.dts
            duration = header.duration
            capturedAt = header.capturedAt
            sequenceNumber = header.sequenceNumber
            isKeyframe = header.isKeyframe
            isDiscontinuity = header.isDiscontinuity
            orientation = header.statedOrientation ?? .up
            isMirroredInPreviews = header.isMirroredInPreviews
        }
    }

    /// The unit's properties.
    public var header: Header
    /// The payload in the framing of its ``EncodedFormat``.
    public var bytes: [UInt8]
    /// Whether this is the first unit that is watched, or follows units that were lost on their way here. It can
    /// then be decoded only if it is a keyframe.
    public var followsGap: Bool

    /// Makes a unit.
    public init(_ header: Header, bytes: [UInt8], followsGap: Bool = false) {
        (self.header, self.bytes, self.followsGap) = (header, bytes, followsGap)
    }
}
