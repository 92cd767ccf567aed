// SPDX-License-Identifier: Apache-2.0

/// Finds the word a person probably meant.
public enum Suggestion {
    /// The candidate that is nearest to `word`, or nil when none is near.
    ///
    /// Among names in kebab-case, one that has all words of `word` comes first: for `recording-started` that is
    /// `recording-did-start`, although `recording-removed` has fewer edits. Then comes the candidate with the
    /// fewest edits, when they are few for its length, then the first that starts with `word` (`bitrate` for
    /// `bitrateKbps`).
    public static func nearest(to word: String, in candidates: [String]) -> String? {
        let limit = max(1, min(word.count, 24) / 3)
        guard word.count <= 64 else { return nil }
        let measured = candidates.map { candidate in
            (candidate: candidate, distance: distance(Array(word.lowercased()), Array(candidate.lowercased())))
        }
        let kin = measured.filter { hasWords(of: word, $0.candidate) }
        let near =
            (kin.isEmpty ? measured.filter { $0.distance <= limit && isNear(word, $0.candidate) } : kin)
            .min { $0.distance < $1.distance }?.candidate
        return near ?? (word.count < 4 ? nil : candidates.first { $0.lowercased().hasPrefix(word.lowercased()) })
    }

    /// Whether `candidate` has each word of the name `word` in kebab-case: the same word, its start, or few edits off.
    private static func hasWords(of word: String, _ candidate: String) -> Bool {
        let words = word.lowercased().split(separator: "-")
        let others = candidate.lowercased().split(separator: "-")
        guard words.count > 1 else { return false }
        return words.allSatisfy { word in
            others.contains { other in
                let isStart = min(word.count, other.count) >= 4 && (word.hasPrefix(other) || other.hasPrefix(word))
                return isStart || distance(Array(word), Array(other)) <= word.count / 4
            }
        }
    }

    /// Of names in kebab-case with as many words, each word must be near: `file-sink` is not `null-sink`.
    private static func isNear(_ word: String, _ candidate: String) -> Bool {
        let words = word.lowercased().split(separator: "-")
        let others = candidate.lowercased().split(separator: "-")
        guard words.count == others.count else { return true }
        return zip(words, others).allSatisfy { distance(Array($0), Array($1)) <= max(1, $0.count / 2) }
    }

    /// Insertions, deletions, substitutions and swaps of neighbours between two words (optimal string alignment).
    static func distance(_ a: [Character], _ b: [Character]) -> Int {
        var previous2 = [Int](repeating: 0, count: b.count + 1)
        var previous = Array(0...b.count)
        var current = previous
        guard !a.isEmpty else { return b.count }
        for i in 1...a.count {
            current[0] = i
            if !b.isEmpty {
                for j in 1...b.count {
                    let substitution = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)
                    current[j] = min(previous[j] + 1, current[j - 1] + 1, substitution)
                    if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] {
                        current[j] = min(current[j], previous2[j - 2] + 1)
                    }
                }
            }
            (previous2, previous, current) = (previous, current, previous2)
        }
        return previous[b.count]
    }
}
