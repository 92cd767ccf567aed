// SPDX-License-Identifier: Apache-2.0

import FrameCore

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

/// `Did you mean 'x'?` with the nearest of `candidates`, or else `other`.
func didYouMean(_ word: String, in candidates: [String], else other: String = "") -> String {
    Suggestion.nearest(to: word, in: candidates).map { "Did you mean '\($0)'?" } ?? other
}

/// What to name instead of a stage that the chain does not have.
///
/// - Parameter ids: The stages that it has, in their order.
func remedyOfUnknownStage(_ id: String, in ids: [String]) -> String {
    if let near = Suggestion.nearest(to: id, in: ids) { return "Did you mean '\(near)'?" }
    // A longer list hides the sentence before it.
    guard (1...20).contains(ids.count) else { return "Name the id of a stage of this chain." }
    return "Name \(ids.count == 1 ? "the chain's only stage" : "one of the chain's stages"): \(quotedList(ids, "or"))."
}
