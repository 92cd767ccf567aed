// SPDX-License-Identifier: Apache-2.0

/// The faces of a frame: a stage that finds faces sets them, and every stage behind may read them.
///
/// Coordinates are pixels of the stored picture, which is what a filter reads and writes, not of the picture turned for
/// display. They belong to the picture in which the faces were found, whose size is ``pictureWidth`` ×
/// ``pictureHeight``: a stage that scales, cuts or turns does not change them. The collection has no memory of its own,
/// so that it costs no allocation per frame.
public struct Faces: FrameMetadata, Equatable, RandomAccessCollection {
    /// The name in listings.
    public static let metadataName = "faces"
    /// How many faces a frame can have.
    public static let most = 64

    /// One face. Its box may reach beyond the picture.
    public struct Face: Sendable, Codable, Equatable {
        /// The number of the face, which stays the same from frame to frame.
        public var id: UInt32 = 0
        /// The left edge of the box, in pixels. The box reaches from the forehead to the chin.
        public var x: Float = 0
        /// The upper edge of the box, in pixels.
        public var y: Float = 0
        /// The width of the box, in pixels.
        public var width: Float = 0
        /// The height of the box, in pixels.
        public var height: Float = 0
        /// The confidence of the last detection that found the face, 0...1.
        public var confidence: Float = 0
        /// How many frames ago the face was first seen.
        public var age: UInt32 = 0
        /// Whether the detection of this very frame found the face.
        public var isDetected = false
        /// Whether ``landmarks`` are known.
        public var hasLandmarks = false
        /// x and y of the right eye, the left eye, the nose, and the right and left corner of the mouth (the person's
        /// right).
        public var landmarks = InlineArray<10, Float>(repeating: 0)

        /// A face without a place yet.
        public init() {}

        private enum Key: String, CodingKey { case id, x, y, width, height, confidence, age, isDetected, landmarks }

        public init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: Key.self)
            id = try values.decode(UInt32.self, forKey: .id)
            x = try values.decode(Float.self, forKey: .x)
            y = try values.decode(Float.self, forKey: .y)
            width = try values.decode(Float.self, forKey: .width)
            height = try values.decode(Float.self, forKey: .height)
            confidence = try values.decode(Float.self, forKey: .confidence)
            age = try values.decode(UInt32.self, forKey: .age)
            isDetected = try values.decode(Bool.self, forKey: .isDetected)
            let points = try values.decode([Float].self, forKey: .landmarks)
            hasLandmarks = points.count == 10
            for (index, value) in points.prefix(10).enumerated() { landmarks[index] = value }
        }

        public func encode(to encoder: any Encoder) throws {
            var values = encoder.container(keyedBy: Key.self)
            try values.encode(id, forKey: .id)
            try values.encode(x, forKey: .x)
            try values.encode(y, forKey: .y)
            try values.encode(width, forKey: .width)
            try values.encode(height, forKey: .height)
            try values.encode(confidence, forKey: .confidence)
            try values.encode(age, forKey: .age)
            try values.encode(isDetected, forKey: .isDetected)
            try values.encode(hasLandmarks ? landmarks.indices.map { landmarks[$0] } : [], forKey: .landmarks)
        }

        public static func == (a: Face, b: Face) -> Bool {
            a.id == b.id && a.x == b.x && a.y == b.y && a.width == b.width && a.height == b.height
                && a.confidence == b.confidence
                && a.age == b.age && a.isDetected == b.isDetected && a.hasLandmarks == b.hasLandmarks
                && a.landmarks.indices.allSatisfy { a.landmarks[$0] == b.landmarks[$0] }
        }
    }

    /// The width of the picture that the coordinates belong to.
    public var pictureWidth: Int
    /// The height of the picture that the coordinates belong to.
    public var pictureHeight: Int
    /// How many faces there are.
    public private(set) var count = 0
    private var faces = InlineArray<64, Face>(repeating: Face())

    /// No faces yet, of a picture of this size.
    public init(pictureWidth: Int, pictureHeight: Int) {
        self.pictureWidth = pictureWidth
        self.pictureHeight = pictureHeight
    }

    public var startIndex: Int { 0 }
    public var endIndex: Int { count }

    /// Face `index`, from 0 to ``count`` - 1. The faces are in no particular order.
    public subscript(index: Int) -> Face {
        precondition(
            index >= 0 && index < count, "face \(index) is not one of the \(count) faces, which are counted from 0")
        return faces[index]
    }

    /// Adds a face; does nothing when there are ``most`` already.
    public mutating func append(_ face: Face) {
        guard count < Self.most else { return }
        faces[count] = face
        count += 1
    }

    private enum Key: String, CodingKey { case pictureWidth, pictureHeight, faces }

    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Key.self)
        pictureWidth = try values.decode(Int.self, forKey: .pictureWidth)
        pictureHeight = try values.decode(Int.self, forKey: .pictureHeight)
        for face in try values.decode([Face].self, forKey: .faces) { append(face) }
    }

    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: Key.self)
        try values.encode(pictureWidth, forKey: .pictureWidth)
        try values.encode(pictureHeight, forKey: .pictureHeight)
        try values.encode((0..<count).map { faces[$0] }, forKey: .faces)
    }

    public static func == (a: Faces, b: Faces) -> Bool {
        a.pictureWidth == b.pictureWidth && a.pictureHeight == b.pictureHeight && a.count == b.count
            && (0..<a.count).allSatisfy { a.faces[$0] == b.faces[$0] }
    }
}
