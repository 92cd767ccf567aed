// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Lines that were left out since nobody read standard output or standard error in time.
struct LinesLost {
    private let count: Int
    private let stream: OutputWriter.Stream

    init(_ count: Int, _ stream: OutputWriter.Stream) { (self.count, self.stream) = (count, stream) }

    private var lines: String { count == 1 ? "1 line" : "\(count) lines" }
    private var were: String { count == 1 ? "was" : "were" }

    /// For another place than that of the gap.
    var text: String {
        switch stream {
        case .output:
            "\(lines) of standard output \(were) left out: the program that gets the output did not read \(count == 1 ? "it" : "them") in time."
        case .log:
            "\(lines) of the log \(were) left out: the terminal or program that gets standard error did not read \(count == 1 ? "it" : "them") in time."
        }
    }

    /// For the text from which they are missing.
    var textAtItsPlace: String {
        "\(lines) \(were) left out here, since \(count == 1 ? "it was" : "they were") not read in time."
    }

    /// The event `lines-lost`. On standard output it stands at the place of the gap.
    ///
    /// - Parameter words: Why they were left out, where it is not that nobody read them.
    func event(_ clock: ChainClock, text words: String? = nil) -> Event {
        Event(
            name: "lines-lost", level: .warning, text: words ?? text,
            details: [
                "stream": .string(stream == .output ? "output" : "log"), "lines": .number(count),
            ], time: clock.now())
    }

    static let name = "lines-lost"
}
