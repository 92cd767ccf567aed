// SPDX-License-Identifier: Apache-2.0

/// How many bytes a file of sound lacks, by what it says of itself: libavformat plays what is there.
extension FileBytes {
    private func number(at offset: Int64, _ bytes: Int) -> Int64? {
        let found = read(at: offset, most: bytes)
        return found.count == bytes ? found.reversed().reduce(0) { $0 << 8 | Int64($1) } : nil
    }

    private func isMark(_ mark: String, at offset: Int64) -> Bool { read(at: offset, most: 4) == Array(mark.utf8) }

    /// What a WAV file (RIFF) lacks of its samples; 0 where its header was written before they were counted.
    var missingOfWAV: Int64 {
        guard isMark("RIFF", at: 0), isMark("WAVE", at: 8) else { return 0 }
        var offset: Int64 = 12
        for _ in 0..<1000 {
            guard let size = number(at: offset + 4, 4) else { return 0 }
            guard isMark("data", at: offset) else {
                offset += 8 + size + size % 2
                continue
            }
            // Writers into a pipe put the largest number there, or that with the header left out.
            return size < 0x7FFF_F000 ? max(offset + 8 + size - count, 0) : 0
        }
        return 0
    }

    /// What an Ogg file lacks of its last page (RFC 3533, 6).
    var missingOfOgg: Int64 {
        // A page has 65,307 bytes at most.
        let begin = max(count - 65_307, 0)
        let last = read(at: begin, most: 65_307)
        let mark = Array("OggS".utf8)
        guard last.count > 27 else { return 0 }
        for place in stride(from: last.count - 5, through: 0, by: -1) where last[place] == mark[0] {
            guard Array(last[place..<place + 4]) == mark, last[place + 4] == 0 else { continue }
            let table = place + 27
            guard table <= last.count else { return Int64(table - last.count) }
            let segments = Int(last[place + 26])
            guard table + segments <= last.count else { return Int64(table + segments - last.count) }
            let end = table + segments + last[table..<table + segments].reduce(0) { $0 + Int($1) }
            return Int64(max(end - last.count, 0))
        }
        return 0
    }
}
