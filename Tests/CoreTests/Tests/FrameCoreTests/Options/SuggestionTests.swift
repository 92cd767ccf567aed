// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct SuggestionTests {
    @Test(arguments: [
        ("presett", "preset"), ("prseet", "preset"), ("PRESET", "preset"), ("bitratekbps", "bitrateKbps"),
        ("bitrate", "bitrateKbps"),
        ("x264-encodr", "x264-encoder"), ("crp", "crf"),
    ])
    func findsTheWordThatWasMeant(word: String, expected: String) {
        let words = ["bitrateKbps", "crf", "preset", "tune", "x264-encoder"]
        #expect(Suggestion.nearest(to: word, in: words) == expected)
    }

    @Test func saysNothingWhenNothingIsNear() {
        #expect(Suggestion.nearest(to: "volume", in: ["preset", "tune"]) == nil)
        #expect(Suggestion.nearest(to: "preset", in: []) == nil)
        #expect(
            Suggestion.nearest(to: String(repeating: "a", count: 65), in: [String(repeating: "a", count: 64)]) == nil)
        #expect(Suggestion.nearest(to: "", in: ["ab"]) == nil)
        #expect(Suggestion.nearest(to: "bit", in: ["bitrateKbps"]) == nil, "too short to tell")
    }

    @Test(
        arguments: [
            ("recording-started", "recording-did-start"), ("recording-did-strat", "recording-did-start"),
            ("recording-remove", "recording-removed"), ("frame-dropped", "frames-dropped"), ("recorded", nil),
        ] as [(String, String?)])
    func prefersTheNameThatHasAllItsWords(word: String, expected: String?) {
        let events = ["recording-removed", "recording-did-start", "recording-did-stop", "frames-dropped"]
        #expect(Suggestion.nearest(to: word, in: events) == expected)
    }

    @Test(
        arguments: [("file-sink", nil), ("test-sauce", "test-source"), ("nul-sinc", "null-sink")] as [(String, String?)]
    )
    func comparesNamesWordByWord(word: String, expected: String?) {
        #expect(Suggestion.nearest(to: word, in: ["null-sink", "test-source"]) == expected)
    }

    @Test func takesTheFirstOfEquallyNearWords() {
        #expect(Suggestion.nearest(to: "cat", in: ["car", "cap"]) == "car")
    }

    @Test(arguments: [
        ("", "", 0), ("", "abc", 3), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 1), ("ca", "abc", 3),
        ("flaw", "lawn", 2),
        ("same", "same", 0), ("abcdef", "badcfe", 3),
    ])
    func countsEditsAndSwapsOfNeighbours(a: String, b: String, edits: Int) {
        #expect(Suggestion.distance(Array(a), Array(b)) == edits)
        #expect(Suggestion.distance(Array(b), Array(a)) == edits)
    }
}
