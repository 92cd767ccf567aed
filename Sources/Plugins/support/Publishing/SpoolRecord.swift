// SPDX-License-Identifier: Apache-2.0

/// An event that waits: a line of a spool. Pure.
package struct SpoolRecord: Sendable, Equatable {
    /// Rises within a spool, over runs too.
    package var number: UInt64
    package var id: String
    /// The event's name, which goes into the subject or topic.
    package var event: String
    /// The JSON that is sent; one line.
    package var text: String

    package init(number: UInt64, id: String, event: String, text: String) {
        (self.number, self.id, self.event, self.text) = (number, id, event, text)
    }

    /// `CRC32 NUMBER ID EVENT JSON` and a line feed. The checksum is of what follows it, without the line feed.
    package var line: [UInt8] {
        let body = Array("\(number) \(id) \(event) \(text)".utf8)
        let sum = String(CRC32.of(body), radix: 16)
        return Array((String(repeating: "0", count: 8 - sum.utf8.count) + sum + " ").utf8) + body + [10]
    }

    /// Reads a line without its line feed; nil for one that is damaged.
    package init?(line: ArraySlice<UInt8>) {
        guard line.count > 9, line[line.startIndex + 8] == 32,
            let sum = UInt32(String(decoding: line.prefix(8), as: UTF8.self), radix: 16)
        else { return nil }
        let body = line.dropFirst(9)
        guard CRC32.of(body) == sum else { return nil }
        let parts = body.split(separator: 32, maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 4, let number = UInt64(String(decoding: parts[0], as: UTF8.self)), number > 0 else {
            return nil
        }
        // They stand in the lines of a protocol, where a control character would begin another one.
        let (id, event) = (String(decoding: parts[1], as: UTF8.self), String(decoding: parts[2], as: UTF8.self))
        guard (1...256).contains(parts[1].count), parts[1].allSatisfy({ (33...126).contains($0) }),
            event == EventName.word(event), parts[3].count <= EventText.mostBytes
        else { return nil }
        self.init(number: number, id: id, event: event, text: String(decoding: parts[3], as: UTF8.self))
    }

    /// What the file `sent` holds for a number: 20 digits and their checksum, always of one length.
    package static func sent(_ number: UInt64) -> [UInt8] {
        let digits = String(number)
        let body = String(repeating: "0", count: 20 - digits.utf8.count) + digits
        let sum = String(CRC32.of(body.utf8), radix: 16)
        return Array("\(body) \(String(repeating: "0", count: 8 - sum.utf8.count))\(sum)\n".utf8)
    }
}
