// SPDX-License-Identifier: Apache-2.0

/// The closed captions that belong to one picture: what ATSC A/53 calls `cc_data`, with the text of CEA-608 and CEA-708.
///
/// A decoder sets them, and an encoder writes them beside its picture. The value has no memory of its own, so that it
/// costs no allocation per frame.
public struct ClosedCaptions: FrameMetadata, Equatable {
    /// The name in listings.
    public static let metadataName = "captions"
    /// How many bytes a picture can have: 31 constructs of 3 bytes, which is as many as `cc_count` can say.
    public static let mostBytes = 93

    /// How many of the bytes are used: 3 for each construct.
    public private(set) var count = 0
    private var bytes = InlineArray<93, UInt8>(repeating: 0)

    /// Takes over the constructs of a picture.
    ///
    /// - Parameter bytes: 3 for each construct; nil where there is none, where they are no multiple of 3, or are more than
    ///   ``mostBytes``.
    public init?(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty, bytes.count % 3 == 0, bytes.count <= Self.mostBytes else { return nil }
        count = bytes.count
        for index in 0..<count { self.bytes[index] = bytes[index] }
    }

    /// A byte of the constructs.
    ///
    /// - Parameter index: Less than ``count``.
    public subscript(index: Int) -> UInt8 { bytes[index] }

    public static func == (left: ClosedCaptions, right: ClosedCaptions) -> Bool {
        left.count == right.count && (0..<left.count).allSatisfy { left[$0] == right[$0] }
    }

    public init(from decoder: any Decoder) throws {
        let list = try decoder.singleValueContainer().decode([UInt8].self)
        guard let captions = list.withUnsafeBytes({ ClosedCaptions($0) }) else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: decoder.codingPath,
                    debugDescription: "captions have 3 to 93 bytes, 3 for each construct"))
        }
        self = captions
    }

    public func encode(to encoder: any Encoder) throws {
        var values = encoder.singleValueContainer()
        try values.encode((0..<count).map { self[$0] })
    }
}
