/// An access unit that was copied out of a running chain, for whoever watches it. Not part of any budget.
public struct StageUnit: Sendable {
    /// What the unit said of itself.
    public struct Header: Sendable {
        public var pts = MediaTime.zero
        public var dts = MediaTime.zero
        /// Zero when unknown.
        public var duration = MediaTime.zero
        /// When the picture was captured, nanoseconds of the chain clock.
        public var capturedAt: Int64 = 0
        public var sequenceNumber: UInt64 = 0
        /// Decodable alone.
        public var isKeyframe = false
        /// The first after a gap in time or a loss.
        public var isDiscontinuity = false
        /// How the picture is to be turned for display.
        public var orientation = Orientation.up
        /// As ``Frame/isMirroredInPreviews``.
        public var isMirroredInPreviews = false

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

    public var header: Header
    /// The payload in the framing of its ``EncodedFormat``.
    public var bytes: [UInt8]
    /// It is the first that is watched, or units before it were lost on their way here: what is no keyframe cannot be
    /// decoded.
    public var followsGap: Bool

    public init(_ header: Header, bytes: [UInt8], followsGap: Bool = false) {
        (self.header, self.bytes, self.followsGap) = (header, bytes, followsGap)
    }
}
