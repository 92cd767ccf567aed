// SPDX-License-Identifier: Apache-2.0

/// `a, b and c`.
///
/// - Parameter last: The word before the last one: `or` among alternatives, `and` for what there is.
func wordList(_ words: [String], _ last: String) -> String {
    guard words.count > 1 else { return words.first ?? "nothing" }
    return words.dropLast().joined(separator: ", ") + " \(last) " + words[words.count - 1]
}

/// `'a', 'b' and 'c'`.
///
/// - Parameter last: The word before the last one.
func quotedList(_ words: [String], _ last: String) -> String { wordList(words.map { "'\($0)'" }, last) }
