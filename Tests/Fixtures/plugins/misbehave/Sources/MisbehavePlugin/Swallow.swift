// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A transform whose count is wrong: at frame `at` it gives nothing, or gives one twice, and says nothing of it.
final class Swallow: Transform {
    static let info = StageInfo(
        id: "swallow", summary: "Loses or doubles a frame on purpose.", input: .video(.i420), output: .video(.i420))

    struct Options: StageOptions {
        @Option(help: "The frame it happens at.", range: 0...1_000_000) var at = 5
        @Option(help: "Gives the frame twice instead of losing it.") var double = false
    }

    var options: Options

    init(options: Options, context: StageContext) { self.options = options }

    func negotiate(_ input: MediaFormat) -> MediaFormat { input }

    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame(let frame) = consume input else { return }
        let isIt = frame.sequenceNumber == UInt64(options.at)
        if isIt, !options.double { return }
        for _ in 0..<(isIt ? 2 : 1) {
            let copy = try output.makeFrame()
            copy?.copyProperties(from: frame)
            if let copy { try output.emit(copy) }
        }
    }
}
