/// Finds the word a person probably meant.
public enum Suggestion {
    /// The candidate with the fewest edits, when they are few for its length, or else the first that only goes on where
    /// `word` ends (`bitrate` for `bitrateKbps`); nil otherwise.
    public static func nearest(to word: String, in candidates: [String]) -> String? {
        let limit = max(1, min(word.count, 24) / 3)
        guard word.count <= 64 else { return nil }
        let near =
            candidates
            .map { (candidate: $0, distance: distance(Array(word.lowercased()), Array($0.lowercased()))) }
            .filter { $0.distance <= limit }
            .min { $0.distance < $1.distance }?.candidate
        return near ?? (word.count < 4 ? nil : candidates.first { $0.lowercased().hasPrefix(word.lowercased()) })
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
