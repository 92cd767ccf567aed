// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What dividing a file into parts costs: frames that are worked on for two parts.
struct PartCost {
    private let seconds: Double
    private let part: TimelinePart
    /// Frames per second of the source; zero when unknown.
    private let rate: Rational

    /// Plans a part in the middle of the file.
    ///
    /// - Throws: ``FrameHostErrors`` where the chain cannot be divided.
    init(_ seconds: Double, _ request: ChainRequest, _ registry: PluginRegistry) throws {
        self.seconds = seconds
        let middle = TimelinePart(begin: MediaTime(seconds: seconds), end: MediaTime(seconds: 2 * seconds))
        let plan = try Chain.plan(PartChain(registry: registry).part(middle, of: request))
        part = plan.part ?? middle
        rate = plan.stages.first { $0.kind == .source }?.output?.video?.frameRate ?? Rational(0)
    }

    /// Seconds before and behind a part that are worked on twice; nil where they are not known.
    private var more: Double? {
        guard !rate.isZero else { return part.warmUp.frames + part.lookAhead == 0 ? part.warmUp.time.seconds : nil }
        return max(Double(part.warmUp.frames) / rate.value, part.warmUp.time.seconds)
            + Double(part.lookAhead) / rate.value
    }

    var text: String {
        let lengths = [
            part.warmUp.frames > 0 ? Self.frames(part.warmUp.frames) : nil,
            part.warmUp.time > .zero ? "\(Self.short(part.warmUp.time.seconds)) s" : nil,
        ].compactMap { $0 }
        guard !lengths.isEmpty || part.lookAhead > 0 else {
            return "parts of \(Self.short(seconds)) s: no frame is processed twice"
        }
        let before = lengths.joined(separator: " or ") + (lengths.count > 1 ? ", whichever is longer," : "")
        let what = [
            lengths.isEmpty ? nil : "\(before) before it",
            part.lookAhead > 0 ? "\(Self.frames(part.lookAhead)) after it" : nil,
        ].compactMap { $0 }.joined(separator: " and ")
        let cost = more.map { ": \(Self.short(100 * $0 / seconds)) % more work" } ?? ""
        return "parts of \(Self.short(seconds)) s: the worker of each part also processes \(what)\(cost)"
    }

    private static func frames(_ count: Int) -> String { count == 1 ? "1 frame" : "\(count) frames" }

    private static func short(_ value: Double) -> String {
        let text = Terminal.decimal(value)
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    var json: JSONNode {
        .object([
            ("seconds", .number(seconds)), ("warmUpFrames", .number(part.warmUp.frames)),
            ("warmUpSeconds", .number(part.warmUp.time.seconds)), ("lookAheadFrames", .number(part.lookAhead)),
            ("share", more.map { .number($0 / seconds) } ?? .null),
        ])
    }
}
