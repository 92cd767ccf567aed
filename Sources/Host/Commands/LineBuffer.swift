// SPDX-License-Identifier: Apache-2.0

/// Cuts what was read into lines, each with its number; empty lines have none. Of a line that is too long nothing is
/// kept.
struct LineBuffer {
    struct Line: Equatable {
        enum Content: Equatable {
            case bytes([UInt8])
            case tooLong
        }
        /// From 1 on.
        var number: Int
        var content: Content
    }

    private let mostBytes: Int
    private var lines: [Line] = []
    private var next = 0
    private var rest: [UInt8] = []
    private var isTooLong = false
    private var number = 0

    /// - Parameter mostBytes: The most bytes of a line.
    init(mostBytes: Int) { self.mostBytes = mostBytes }

    /// Adds what was read.
    mutating func add(_ bytes: some Sequence<UInt8>) {
        for byte in bytes {
            if byte == 10 {
                end()
            } else if rest.count < mostBytes {
                rest.append(byte)
            } else {
                isTooLong = true
            }
        }
    }

    private mutating func end() {
        if isTooLong || rest.contains(where: { $0 != 32 && $0 != 9 && $0 != 13 }) {
            number += 1
            lines.append(Line(number: number, content: isTooLong ? .tooLong : .bytes(rest)))
        }
        rest.removeAll(keepingCapacity: true)
        isTooLong = false
    }

    /// The next whole line.
    mutating func take() -> Line? {
        guard next < lines.count else {
            lines.removeAll(keepingCapacity: true)
            next = 0
            return nil
        }
        next += 1
        return lines[next - 1]
    }

    /// What is left at the end of the input: the last line may have no line feed.
    mutating func takeRest() -> Line? {
        end()
        return take()
    }
}
