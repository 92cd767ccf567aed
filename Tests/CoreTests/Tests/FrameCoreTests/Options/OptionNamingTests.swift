// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Which option a sentence is about.
@Suite struct OptionNamingTests {
    private func option(_ what: String, _ path: String) -> String? {
        OptionNaming.option(
            in: what,
            [
                JSONNode.Member(key: "mode", value: JSONNode(.string("a"))),
                JSONNode.Member(key: "path", value: JSONNode(.string(path))),
            ])
    }

    @Test func findsAnOptionByItsTextHoweverShort() {
        #expect(option("'clips/none.mp4' does not exist", "none.mp4") == "path")
        #expect(option("'.' is a folder", ".") == "path")
        #expect(option("'/media/in' is a folder", "in") == "path")
        #expect(option("'/media/a' is a folder", "b") == "mode")
    }

    @Test func takesAShortTextForNoPartOfAWord() {
        #expect(option("it is a folder, in which nothing is", "in") == nil)
    }
}
