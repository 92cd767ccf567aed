// SPDX-License-Identifier: Apache-2.0

/// Where something moves in a frame: a stage that detects motion sets them, and every stage behind may read them.
///
/// Coordinates are pixels of the stored picture, as those of ``Faces``: they belong to a picture of ``pictureWidth`` ×
/// ``pictureHeight``, and a stage that scales, cuts or turns does not change them. The collection has no memory of its
/// own, so that it costs no allocation per frame.
public struct MotionAreas: FrameMetadata, Equatable, RandomAccessCollection {
    /// The name in listings.
    public static let metadataName = "motion-areas"
    /// How many areas a frame can have.
    public static let most = 32

    /// One thing that moves. Its box lies within the picture.
    public struct Area: Sendable, Codable, Equatable {
        /// The number of the thing, which stays the same as long as it is followed.
        public var id: UInt32 = 0
        /// The left edge of the box, in pixels.
        public var x: Float = 0
        /// The upper edge of the box, in pixels.
        public var y: Float = 0
        /// The width of the box, in pixels.
        public var width: Float = 0
        /// The height of the box, in pixels.
        public var height: Float = 0
        /// The share of the picture that changes because of it, 0...1; less than the box has.
        public var share: Float = 0

        /// An area without a place yet.
        public init() {}
    }

    /// The width of the picture that the coordinates belong to.
    public var pictureWidth: Int
    /// The height of the picture that the coordinates belong to.
    public var pictureHeight: Int
    /// Whether motion is under way: from `motion-began` to `motion-ended`, also while nothing moves for a moment.
    public var isMotion = false
    /// How many areas there are.
    public private(set) var count = 0
    private var areas = InlineArray<32, Area>(repeating: Area())

    /// No areas yet, of a picture of this size.
    public init(pictureWidth: Int, pictureHeight: Int) {
        self.pictureWidth = pictureWidth
        self.pictureHeight = pictureHeight
    }

    public var startIndex: Int { 0 }
    public var endIndex: Int { count }

    /// Area `index`, from 0 to ``count`` - 1. The areas are in no particular order.
    public subscript(index: Int) -> Area {
        precondition(
            index >= 0 && index < count, "area \(index) is not one of the \(count) areas, which are counted from 0")
        return areas[index]
    }

    /// Adds an area; does nothing when there are ``most`` already.
    public mutating func append(_ area: Area) {
        guard count < Self.most else { return }
        areas[count] = area
        count += 1
    }

    private enum Key: String, CodingKey { case pictureWidth, pictureHeight, isMotion, areas }

    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Key.self)
        pictureWidth = try values.decode(Int.self, forKey: .pictureWidth)
        pictureHeight = try values.decode(Int.self, forKey: .pictureHeight)
        isMotion = try values.decode(Bool.self, forKey: .isMotion)
        for area in try values.decode([Area].self, forKey: .areas) { append(area) }
    }

    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: Key.self)
        try values.encode(pictureWidth, forKey: .pictureWidth)
        try values.encode(pictureHeight, forKey: .pictureHeight)
        try values.encode(isMotion, forKey: .isMotion)
        try values.encode((0..<count).map { areas[$0] }, forKey: .areas)
    }

    public static func == (a: MotionAreas, b: MotionAreas) -> Bool {
        a.pictureWidth == b.pictureWidth && a.pictureHeight == b.pictureHeight && a.isMotion == b.isMotion
            && a.count == b.count && (0..<a.count).allSatisfy { a.areas[$0] == b.areas[$0] }
    }
}
