// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Writes into each frame which image it passed: as metadata, and as its first sample.
final class SwapMark: Filter {
    static let info = StageInfo(
        id: "swap-mark", summary: "Marks frames with its image's version.", input: .video(.gray8),
        output: .sameAsInput, access: .modify, metadata: [Marker.self])

    struct Options: StageOptions {
        @Option(help: "Goes with each mark; at 13 the stage crashes.", range: 0...1_000_000, live: true) var gain = 0
        @Option(help: "A file with the name of the call that fails: init or start.") var fail = ""
    }

    var options: Options
    private let context: StageContext
    private var slot: MetadataSlot<Marker>?

    init(options: Options, context: StageContext) throws {
        (self.options, self.context) = (options, context)
        try failIn("init")
    }

    func start() throws {
        try failIn("start")
        slot = context.slot(for: Marker.self)
    }

    func process(_ frame: inout Frame) -> Verdict {
        precondition(options.gain != 13, "as told")
        if let slot { frame[slot] = Marker(gain: Int32(options.gain)) }
        frame.withMutablePlane(0) { plane in plane.row(0)[0] = UInt8(version) }
        return .forward
    }

    private func failIn(_ call: String) throws {
        guard !options.fail.isEmpty, let file = fopen(context.resolve(options.fail), "re") else { return }
        defer { fclose(file) }
        var text = [CChar](repeating: 0, count: 16)
        fgets(&text, 16, file)
        if String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) == call {
            throw FrameHostError(.callFailed, what: "version \(version) does not want to", remedy: "Ask it later.")
        }
    }
}
