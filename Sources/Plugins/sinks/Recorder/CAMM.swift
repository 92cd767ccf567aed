// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Motion as the packets of a CAMM track (Camera Motion Metadata, version 1.0): one packet for each value.
///
/// All numbers are little-endian. A packet has two bytes of zero, its type in two bytes, and three 32-bit floats.
/// CAMM's axes are those of ``MotionSample``, and so are its units.
enum CAMM {
    /// The types that are written, in this order where a sample has several.
    enum Kind: UInt16, CaseIterable {
        /// Rotation rate, rad/s.
        case gyroscope = 2
        /// m/s².
        case acceleration = 3
        /// The rotation from the camera's axes to the world's: the axis times the angle in radians.
        case angleAxis = 0
    }

    static let packetBytes = 16

    /// Writes the packet of one value; false when the sample does not have it.
    ///
    /// - Parameter bytes: Room for ``packetBytes``.
    static func write(_ kind: Kind, of sample: MotionSample, to bytes: UnsafeMutableRawBufferPointer) -> Bool {
        let values: SIMD3<Float>
        switch kind {
        case .gyroscope where sample.contents.contains(.rotationRate): values = sample.rotationRate
        case .acceleration where sample.contents.contains(.acceleration): values = sample.acceleration
        case .angleAxis where sample.contents.contains(.attitude): values = sample.attitude.rotation
        default: return false
        }
        bytes.storeBytes(of: 0, as: UInt16.self)
        bytes.storeBytes(of: kind.rawValue.littleEndian, toByteOffset: 2, as: UInt16.self)
        for axis in 0..<3 {
            bytes.storeBytes(of: values[axis].bitPattern.littleEndian, toByteOffset: 4 + 4 * axis, as: UInt32.self)
        }
        return true
    }
}

/// The name of the motion track in a file.
///
/// libavformat writes a data track to MP4 only under the name `gpmd` (GoPro's), in two places of the header. Both get
/// the name `camm` once the header is in the file. A program that is killed before that leaves a file whose pictures
/// and sound play.
enum MotionTrackName {
    static let written = "gpmd"
    static let final = "camm"
    /// `hdlr`: the name of the track's handler.
    static let handler = "CameraMotionMetadataHandler"

    /// A name of four letters as a tag of libavformat: the first letter is the lowest byte.
    static func tag(_ name: String) -> UInt32 { name.utf8.reversed().reduce(0) { $0 << 8 | UInt32($1) } }

    /// Renames the track.
    ///
    /// - Throws: ``RecordingErrno``.
    static func set(in file: OutputFile) throws(RecordingErrno) {
        try visit(file, 0..<file.size, ["moov", "trak", "mdia", "minf"])
    }

    /// Goes through the boxes in a part of the file (ISO/IEC 14496-12, 4.2): a size, which can be 1 where 64 bits
    /// follow or 0 where the box ends with the file, and a name.
    private static func visit(_ file: OutputFile, _ part: Range<Int64>, _ path: [String]) throws(RecordingErrno) {
        var offset = part.lowerBound
        while offset + 8 <= part.upperBound {
            let (size, name) = try box(file, offset)
            let end = size == 0 ? part.upperBound : offset + size
            guard size == 0 || size >= 8, end <= part.upperBound else { return }
            if let next = path.first {
                if name == next { try visit(file, (offset + 8)..<end, Array(path.dropFirst())) }
            } else if name == "gmhd" {
                try rename(file, (offset + 8)..<end)
            } else if name == "stbl" {
                try visitDescription(file, (offset + 8)..<end)
            }
            offset = end
        }
    }

    /// `stsd` has the first entry after 8 bytes of its own.
    private static func visitDescription(_ file: OutputFile, _ part: Range<Int64>) throws(RecordingErrno) {
        guard part.count >= 16 else { return }
        let (size, name) = try box(file, part.lowerBound)
        guard name == "stsd", size >= 24, part.lowerBound + size <= part.upperBound else { return }
        try rename(file, (part.lowerBound + 16)..<(part.lowerBound + size))
    }

    /// Renames the boxes of the name `gpmd` in a part.
    private static func rename(_ file: OutputFile, _ part: Range<Int64>) throws(RecordingErrno) {
        var offset = part.lowerBound
        while offset + 8 <= part.upperBound {
            let (size, name) = try box(file, offset)
            if name == written { try file.overwrite(Array(final.utf8), at: offset + 4) }
            guard size >= 8 else { return }
            offset += size
        }
    }

    private static func box(_ file: OutputFile, _ offset: Int64) throws(RecordingErrno) -> (size: Int64, name: String) {
        var bytes = try file.read(16, at: offset)
        // After the last box there can be fewer than 16 bytes.
        bytes += [UInt8](repeating: 0, count: 16 - bytes.count)
        let number = { (range: Range<Int>) in bytes[range].reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
        let size = number(0..<4)
        let large = number(8..<16)
        let name = String(decoding: bytes[4..<8], as: UTF8.self)
        return (size == 1 ? Int64(min(large, 1 << 60)) : Int64(size), name)
    }
}
