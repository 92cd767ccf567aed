// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The lines of a file, one after the other. Used by one thread at a time.
final class LineFile {
    /// What comes next.
    enum Next: Equatable {
        /// A line without its line end, and whether the file ends within it.
        case line(ArraySlice<UInt8>, isCut: Bool)
        /// A line with more bytes than allowed.
        case tooLong
        case ended
        /// An errno.
        case failed(Int32)
    }

    /// The number of the line that was read last, counted from 1.
    private(set) var line = 0
    /// Where that line begins.
    private(set) var byte = 0

    private let mostLineBytes: Int
    private let held: HeldFile
    private var bytes: [UInt8] = []
    /// The part of ``bytes`` that was not given yet.
    private var next = 0
    private var chunk = [UInt8](repeating: 0, count: 64 << 10)
    private var hasEnded = false
    private var position = 0

    /// [control thread]
    ///
    /// - Parameter held: The file, from its start.
    init(_ held: HeldFile, mostLineBytes: Int) {
        self.held = held
        self.mostLineBytes = mostLineBytes
    }

    /// The next line; its bytes are valid until the next call.
    func read() -> Next {
        var searched = next
        while true {
            if let end = bytes[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                guard end - next <= mostLineBytes else { return tooLong() }
                return give(next..<end, isCut: false, consumed: end + 1 - next)
            }
            guard bytes.count - next <= mostLineBytes else { return tooLong() }
            guard !hasEnded else {
                guard next < bytes.count else { return .ended }
                return give(next..<bytes.count, isCut: true, consumed: bytes.count - next)
            }
            bytes.removeFirst(next)
            next = 0
            searched = bytes.count
            if let code = fill() { return .failed(code) }
        }
    }

    private func tooLong() -> Next {
        line += 1
        byte = position
        return .tooLong
    }

    private func give(_ range: Range<Int>, isCut: Bool, consumed: Int) -> Next {
        line += 1
        byte = position
        position += consumed
        next += consumed
        var range = range
        // A byte order mark, which some programs write.
        if line == 1, bytes[range].starts(with: [0xEF, 0xBB, 0xBF]) { range = range.lowerBound + 3..<range.upperBound }
        return .line(bytes[range], isCut: isCut)
    }

    /// Reads the next chunk; returns an errno where that fails.
    private func fill() -> Int32? {
        let count = SystemCall.retrying { Glibc.read(held.descriptor, &chunk, chunk.count) }
        guard count >= 0 else { return errno }
        hasEnded = count == 0
        bytes += chunk[..<count]
        return nil
    }
}
