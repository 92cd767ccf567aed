// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The file of a part: access units with their exact times, written and read only by programs of the same version.
///
/// A line of JSON with the format, then for each unit a ``Head`` and its bytes, then the ``Head`` of the end. A
/// file without the last one is not whole.
enum PartFile {
    /// What comes before each unit: little-endian PTS, DTS, duration (nanoseconds, 8 bytes each), flags, size.
    struct Head: Equatable {
        static let byteCount = 32
        private static let end = UInt32.max

        var pts: Int64
        var dts: Int64
        var duration: Int64
        /// Bits 0 and 1 ``AccessUnit/Entry``, bit 2 discontinuity, bits 8...11 the orientation.
        var flags: UInt32
        var size: UInt32

        init(_ unit: borrowing AccessUnit) {
            (pts, dts, duration) = (unit.pts.nanoseconds, unit.dts.nanoseconds, unit.duration.nanoseconds)
            flags =
                UInt32(unit.entry.rawValue) | (unit.isDiscontinuity ? 4 : 0) | UInt32(unit.orientation.rawValue) << 8
            size = UInt32(unit.byteCount)
        }

        /// The head of the end: how many units there are, and the size of the largest.
        init(count: Int, largest: Int) {
            (pts, dts, duration, flags, size) = (Int64(count), Int64(largest), 0, 0, Self.end)
        }

        init(_ bytes: UnsafeRawBufferPointer) {
            pts = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: 0, as: Int64.self))
            dts = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: Int64.self))
            duration = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: 16, as: Int64.self))
            flags = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 24, as: UInt32.self))
            size = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 28, as: UInt32.self))
        }

        func store(into bytes: UnsafeMutableRawBufferPointer) {
            bytes.storeBytes(of: pts.littleEndian, toByteOffset: 0, as: Int64.self)
            bytes.storeBytes(of: dts.littleEndian, toByteOffset: 8, as: Int64.self)
            bytes.storeBytes(of: duration.littleEndian, toByteOffset: 16, as: Int64.self)
            bytes.storeBytes(of: flags.littleEndian, toByteOffset: 24, as: UInt32.self)
            bytes.storeBytes(of: size.littleEndian, toByteOffset: 28, as: UInt32.self)
        }

        var isEnd: Bool { size == Self.end }
        var entry: AccessUnit.Entry { AccessUnit.Entry(rawValue: UInt8(flags & 3)) ?? .none }
        var isDiscontinuity: Bool { flags & 4 != 0 }
        var orientation: Orientation { Orientation(rawValue: UInt8(truncatingIfNeeded: flags >> 8)) ?? .up }
        /// Whether all times lie on a chain's timeline.
        var isPossible: Bool {
            MediaTime.range.contains(pts) && MediaTime.range.contains(dts) && dts <= pts
                && MediaTime.range.contains(duration) && duration >= 0
        }
    }

    // MARK: The format

    private static let version = 2

    /// - Parameter guardian: The stage that hides something of the pictures, if any (``PassedTags/Withheld``).
    static func line(_ format: EncodedFormat, of video: VideoFormat, guardian: String?) -> [UInt8] {
        let color = video.color
        func pair(_ a: some BinaryInteger, _ b: some BinaryInteger) -> JSONNode {
            .array([.number(Int(a)), .number(Int(b))])
        }
        let words: JSONNode = .object([
            ("framehostPart", .number(version)), ("codec", .string(format.codec.rawValue)),
            ("framing", .string(format.framing.rawValue)),
            ("parameterSets", .array(format.parameterSets.map { .number(Int($0)) })),
            ("reorderDepth", .number(format.reorderDepth)),
            ("bitrateKbps", format.bitrateKbps.map { .number($0) } ?? .null),
            ("pixelFormat", .string(video.pixelFormat.rawValue)), ("width", .number(video.width)),
            ("height", .number(video.height)),
            ("frameRate", pair(video.frameRate.numerator, video.frameRate.denominator)),
            ("timeBase", pair(video.timeBase.numerator, video.timeBase.denominator)),
            ("range", .string(color.range.rawValue)), ("matrix", .number(Int(color.matrix))),
            ("primaries", .number(Int(color.primaries))), ("transfer", .number(Int(color.transfer))),
            ("chromaSiting", .number(Int(color.chromaSiting))),
            ("sampleAspectRatio", pair(video.sampleAspectRatio.numerator, video.sampleAspectRatio.denominator)),
            ("orientation", .number(Int(video.orientation.rawValue))),
            ("guardian", guardian.map { .string($0) } ?? .null),
        ])
        return Array((words.text() + "\n").utf8)
    }

    /// Nil where the line was not written by this version.
    static func format(_ line: [UInt8], file: String) -> (format: EncodedFormat, guardian: String?)? {
        guard let words = try? JSONReader.read(line, file: file), words["framehostPart"]?.asInt == version,
            let framing = words["framing"]?.asString.flatMap({ EncodedFormat.Framing(rawValue: $0) }),
            let codec = words["codec"]?.asString, let sets = words["parameterSets"]?.asArray,
            let pixels = words["pixelFormat"]?.asString.flatMap({ PixelFormat(rawValue: $0) }),
            let width = words["width"]?.asInt, let height = words["height"]?.asInt,
            let rate = pair(words["frameRate"]), let base = pair(words["timeBase"]), base.0 > 0,
            let aspect = pair(words["sampleAspectRatio"]),
            let range = words["range"]?.asString.flatMap({ ColorRange(rawValue: $0) }),
            let orientation = byte(words["orientation"]).flatMap({ Orientation(rawValue: $0) }),
            let matrix = byte(words["matrix"]), let primaries = byte(words["primaries"]),
            let transfer = byte(words["transfer"]), let siting = byte(words["chromaSiting"]),
            let depth = words["reorderDepth"]?.asInt
        else { return nil }
        let video = VideoFormat(
            pixels, width: width, height: height, frameRate: Rational(rate.0, rate.1),
            timeBase: TimeBase(base.0, base.1),
            color: ColorDescription(
                range: range, matrix: matrix, primaries: primaries, transfer: transfer, chromaSiting: siting),
            sampleAspectRatio: Rational(aspect.0, aspect.1), orientation: orientation)
        let format = EncodedFormat(
            codec: Codec(rawValue: codec), framing: framing, parameterSets: sets.compactMap { byte($0) }, video: video,
            reorderDepth: depth, bitrateKbps: words["bitrateKbps"]?.asInt)
        return (format, words["guardian"]?.asString)
    }

    private static func byte(_ node: JSONNode?) -> UInt8? { node?.asInt.flatMap { UInt8(exactly: $0) } }

    /// Two numbers, the second of them above 0.
    private static func pair(_ node: JSONNode?) -> (Int32, Int32)? {
        guard let list = node?.asArray, list.count == 2, let a = list[0].asInt.flatMap({ Int32(exactly: $0) }),
            let b = list[1].asInt.flatMap({ Int32(exactly: $0) }), b > 0
        else { return nil }
        return (a, b)
    }
}
