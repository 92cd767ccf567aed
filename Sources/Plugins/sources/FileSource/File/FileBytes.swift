// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// Bytes of an open file at any offset, for what libavformat does not say of a container.
struct FileBytes {
    let descriptor: Int32
    let count: Int64

    /// - Parameter descriptor: An open regular file, which outlives this value.
    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        var status = stat()
        count = fstat(descriptor, &status) == 0 ? Int64(status.st_size) : 0
    }

    /// Up to `most` bytes from `offset` on; fewer at the file's end.
    func read(at offset: Int64, most: Int) -> [UInt8] {
        guard offset >= 0, offset < count, most > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: most) { buffer, filled in
            let bytes = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<most])
            filled = Transfer.read(into: bytes, from: descriptor, at: offset).count
        }
    }

    /// The first offset from `start` on, before `end`, at which the four bytes of one of `marks` stand and `isRight` holds.
    ///
    /// Reads at most ``farthest`` bytes.
    func first(of marks: Set<UInt32>, from start: Int64, before end: Int64, where isRight: (Int64) -> Bool) -> Int64? {
        let end = min(end, count, start + Self.farthest)
        var offset = start
        while offset < end {
            let bytes = read(at: offset, most: 1 << 16)
            guard bytes.count >= 4 else { return nil }
            var mark: UInt32 = 0
            for (index, byte) in bytes.enumerated() {
                mark = mark << 8 | UInt32(byte)
                let place = offset + Int64(index) - 3
                if index >= 3, place < end, marks.contains(mark), isRight(place) { return place }
            }
            offset += Int64(bytes.count) - 3
        }
        return nil
    }

    /// How far is searched, so that a hostile file costs a bounded time.
    static let farthest: Int64 = 1 << 28
}

/// A walk through a container, in steps that take some milliseconds each.
protocol ContainerWalk {
    /// Goes on; false at the end.
    mutating func step() -> Bool
    /// What was found so far.
    var gaps: [FileGap] { get }
}

/// A stretch of a file in which its container has lost something, so that pictures are missing.
struct FileGap: Equatable {
    /// When the pictures before it end, in the container's own time; nil where there are none.
    var begin: MediaTime?
    /// When the next picture after it is due; nil where there is none.
    var end: MediaTime?
}
