// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// What a neighbour's names may contain changes neither the terminal nor the lines of the log.
@Suite struct PrintableTextTests {
    @Test func escapesWhatATerminalObeys() {
        #expect(
            "a\nb\r\t\u{1b}[31m\u{7f}\u{9b}x\u{202e}y\u{0}".printable()
                == "a\\nb\\r\\t\\u{1b}[31m\\u{7f}\\u{9b}x\\u{202e}y\\u{0}")
        for text in ["", "plain", "Grüße, 日本語, é, 👩‍👩‍👧, العربية", "C:\\n"] { #expect(text.printable() == text) }
        #expect("a\n  b\nc\u{1b}".printable(keeping: .indented) == "a\n  b\\nc\\u{1b}")
        #expect("a\nb\u{1b}\n".printable(keeping: .all) == "a\nb\\u{1b}\n")
    }

    @Test func faultsAndEventsAreOneLine() {
        let fault = FrameHostError(
            .unavailable, place: "x\nerror: y", what: "'a\nerror: b\u{1b}[2J' is gone", remedy: "c\rd",
            cause: "one\ntwo\u{1b}")
        #expect(
            fault.description
                == "x\\nerror: y: 'a\\nerror: b\\u{1b}[2J' is gone. c\\rd\n  one\n  two\\u{1b}")
        let event = Event(name: "e", text: "\(fault) and 'p\nerror: q'", time: 0)
        #expect(event.text == fault.description + " and 'p\\nerror: q'")
    }
}
