// SPDX-License-Identifier: Apache-2.0

/// What a library needs around the pixels it writes into our buffers: a decoder works in whole blocks and may touch
/// rows and columns beyond the picture.
public struct BufferPadding: Sendable, Equatable {
    /// Pixels: a row has room for the width rounded up to a multiple of this.
    public var widthAlignment: Int
    /// Rows: a plane has room for the height rounded up to a multiple of this.
    public var heightAlignment: Int
    /// Bytes behind each plane that may be touched.
    public var extraBytes: Int

    /// Asks for room; the defaults ask for none.
    ///
    /// - Precondition: The alignments are at least 1, and `extraBytes` is at least 0.
    public init(widthAlignment: Int = 1, heightAlignment: Int = 1, extraBytes: Int = 0) {
        precondition(
            widthAlignment > 0 && heightAlignment > 0 && extraBytes >= 0,
            "alignments must be at least 1, and extraBytes at least 0")
        self.widthAlignment = widthAlignment
        self.heightAlignment = heightAlignment
        self.extraBytes = extraBytes
    }
}

/// Where the planes of a picture lie in one buffer.
struct BufferLayout: Sendable {
    /// Bytes from row to row, for each plane.
    let strides: [Int]
    /// First byte of each plane.
    let offsets: [Int]
    /// Bytes of the whole buffer, in whole pages.
    let byteCount: Int

    init(_ format: VideoFormat, padding: BufferPadding = BufferPadding()) {
        var padded = format
        padded.width = Self.rounded(format.width, to: padding.widthAlignment)
        padded.height = Self.rounded(format.height, to: padding.heightAlignment)
        var strides: [Int] = []
        var offsets: [Int] = []
        var end = 0
        for plane in 0..<format.pixelFormat.planeCount {
            strides.append(padded.strideBytes(plane: plane))
            offsets.append(end)
            end += strides[plane] * padded.pixelFormat.rows(plane: plane, height: padded.height) + padding.extraBytes
            end = Self.rounded(end, to: VideoFormat.strideAlignment)
        }
        self.strides = strides
        self.offsets = offsets
        byteCount = Self.rounded(end, to: 4096)
    }

    private static func rounded(_ value: Int, to multiple: Int) -> Int { (value + multiple - 1) / multiple * multiple }
}
