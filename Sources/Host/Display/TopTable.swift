// SPDX-License-Identifier: Apache-2.0

import Rates

/// The table of `framehost top`: its columns, their widths, and which are left out first where the terminal is narrow.
struct TopTable {
    /// The order of its rows.
    enum Order: String, CaseIterable {
        case chain, rate, busy, p99, held, drops

        var next: Order {
            let all = Order.allCases
            return all[(all.firstIndex(of: self)! + 1) % all.count]
        }
    }

    /// How a line is drawn where there are colours; its words say the same.
    enum Style { case plain, heading, bad, warn, rest }

    struct Line: Equatable {
        var text: String
        var style: Style = .plain
    }

    private struct Column: Sendable {
        var heading: String
        /// The column with the highest rank is left out first; 0 always stays.
        var rank: Int
        var isRight = true
        /// A longer text is cut to this many columns where room is short; nil for text that is never cut.
        var least: Int?
        var cell: @Sendable (LiveFigures.Stage) -> String
    }

    private static let columns = [
        Column(heading: "", rank: 0, isRight: false) { mark($0) },
        Column(heading: "stage", rank: 0, isRight: false, least: 8) { $0.id },
        Column(heading: "state", rank: 5, isRight: false) { $0.state },
        Column(heading: "fps", rank: 1) { FigureText.rate($0.rate) },
        Column(heading: "wait", rank: 8) { FigureText.time($0.wait) },
        Column(heading: "busy", rank: 2) { FigureText.percent($0.busy) },
        Column(heading: "p99", rank: 6) { FigureText.percentile($0.p99) },
        Column(heading: "queue", rank: 4) { stage in
            guard !stage.queues.isEmpty else { return "–" }
            let shown = stage.queues.prefix(3).map { "\($0.depth)/\($0.capacity)" }.joined(separator: " ")
            return stage.queues.count > 3 ? "\(shown) +\(stage.queues.count - 3)" : shown
        },
        Column(heading: "held", rank: 7) { $0.heldLimit > 0 ? "\($0.held)/\($0.heldLimit)" : "\($0.held)" },
        Column(heading: "oldest", rank: 10) { $0.held > 0 ? FigureText.time($0.oldestSeconds) : "–" },
        Column(heading: "drop/s", rank: 9) { FigureText.rate($0.dropRate) },
        Column(heading: "drops", rank: 3) { "\($0.drops)" },
        Column(heading: "format", rank: 11, isRight: false, least: 12) { $0.format },
    ]

    private static func mark(_ stage: LiveFigures.Stage) -> String {
        stage.hurts.contains { $0.level != .rest } ? "!" : " "
    }

    private let figures: LiveFigures
    private let order: Order

    init(_ figures: LiveFigures, order: Order = .chain) {
        self.figures = figures
        self.order = order
    }

    // MARK: Lines

    /// Lines about the chain itself: state, health, latency, and what its process uses.
    func heading(columns: Int?) -> [Line] {
        let name = figures.name.isEmpty ? "chain" : figures.name
        var parts = ["\(name): \(figures.state), \(figures.isHealthy ? "healthy" : "not healthy")"]
        if let uptime = figures.uptimeSeconds { parts.append("up \(FigureText.duration(uptime))") }
        if let captured = figures.captured { parts.append("captured \(FigureText.rate(captured))/s") }
        if let latency = figures.latency {
            let p99 = latency.p99.map { ", p99 \(FigureText.percentile($0))" } ?? ""
            parts.append("latency \(FigureText.time(latency.seconds)) to \(latency.sink)\(p99)")
        }
        if let processor = figures.processor { parts.append("CPU \(FigureText.percent(processor)) of a core") }
        if let bytes = figures.residentBytes { parts.append("RSS \(Terminal.bytes(bytes))") }
        let style: Style = figures.state == "failed" ? .bad : figures.isHealthy ? .plain : .warn
        return Self.wrapped(parts.map(TerminalText.clean), columns).map { Line(text: $0, style: style) }
            + figures.problems.map { Line(text: Self.cut("! \(TerminalText.clean($0))", columns), style: .warn) }
    }

    /// The heading of the table and a line for each stage.
    ///
    /// - Parameter columns: The columns that the table may use; nil for all that it needs.
    func rows(columns width: Int?) -> [Line] {
        let stages = sorted
        let cells = Self.columns.map { column in stages.map { TerminalText.clean(column.cell($0)) } }
        var widths = zip(Self.columns, cells).map { column, cells in
            ([column.heading] + cells).map { TerminalText.width($0) }.max() ?? 0
        }
        var shown = Array(Self.columns.indices)
        if let width { Self.fit(&shown, &widths, into: width) }
        func line(_ texts: [String]) -> String {
            var line = ""
            for (place, column) in shown.enumerated() {
                let text = TerminalText.cut(texts[column], to: widths[column])
                let isLast = place == shown.count - 1
                line +=
                    isLast && !Self.columns[column].isRight
                    ? text : TerminalText.padded(text, to: widths[column], isRight: Self.columns[column].isRight)
                if !isLast { line += place == 0 ? " " : "  " }
            }
            while line.last == " " { line.removeLast() }
            return Self.cut(line, width)
        }
        return [Line(text: line(Self.columns.map(\.heading)), style: .heading)]
            + stages.enumerated().map { index, stage in
                Line(text: line(cells.map { $0[index] }), style: Self.style(of: stage))
            }
    }

    /// The problems, a sentence each, the worst first.
    func notes(columns: Int?) -> [Line] {
        let all = sorted.flatMap { stage in stage.hurts.map { (stage.id, $0) } }
        return [LiveFigures.Hurt.Level.bad, .warn, .rest].flatMap { level in
            all.filter { $0.1.level == level }.map { id, hurt in
                let mark = level == .rest ? " " : "!"
                let text = "\(mark) \(TerminalText.clean(id)): \(TerminalText.clean(hurt.sentence))"
                return Line(text: Self.cut(text, columns), style: Self.style(level))
            }
        } + starved(columns)
    }

    private func starved(_ columns: Int?) -> [Line] {
        figures.pools.compactMap { pool in
            guard let share = pool.starved, share >= 0.01 else { return nil }
            let text =
                "! A stage waited for a buffer of the pool \(TerminalText.clean(pool.name)) for \(FigureText.percent(share)) of the time; \(pool.free) of \(pool.buffers) \(pool.free == 1 ? "is" : "are") free."
            return Line(text: Self.cut(text, columns), style: .warn)
        }
    }

    // MARK: Layout

    private var sorted: [LiveFigures.Stage] {
        func descending(_ value: (LiveFigures.Stage) -> Double) -> [LiveFigures.Stage] {
            // Equal rows keep the order of the chain.
            figures.stages.enumerated().sorted {
                (value($0.element), -$0.offset) > (value($1.element), -$1.offset)
            }.map(\.element)
        }
        return switch order {
        case .chain: figures.stages
        case .rate: descending { $0.rate ?? -1 }
        case .busy: descending { $0.busy ?? -1 }
        case .p99:
            descending {
                switch $0.p99 {
                case .exact(let seconds), .atMost(let seconds), .above(let seconds): seconds
                case nil: -1
                }
            }
        case .held: descending { Double($0.held) }
        case .drops: descending { ($0.dropRate ?? 0) * 1e9 + Double($0.drops) }
        }
    }

    /// Makes the table fit. Columns that may be cut are cut first, beginning with the last one. Then columns are left
    /// out, beginning with the highest rank.
    private static func fit(_ shown: inout [Int], _ widths: inout [Int], into width: Int) {
        let whole = widths
        while true {
            widths = whole
            // Two spaces between columns, and one behind the mark.
            func excess() -> Int { shown.reduce(0) { $0 + widths[$1] } + max(2 * shown.count - 3, 0) - width }
            for column in shown.reversed() {
                guard let least = columns[column].least, excess() > 0 else { continue }
                widths[column] = max(min(least, widths[column]), widths[column] - excess())
            }
            guard excess() > 0, let first = shown.max(by: { columns[$0].rank < columns[$1].rank }),
                columns[first].rank > 0
            else { return }
            shown.removeAll { $0 == first }
        }
    }

    private static func cut(_ text: String, _ columns: Int?) -> String {
        columns.map { TerminalText.cut(text, to: $0) } ?? text
    }

    /// Puts the parts on as many lines as they need.
    private static func wrapped(_ parts: [String], _ columns: Int?) -> [String] {
        guard let columns else { return [parts.joined(separator: "  ")] }
        var lines: [String] = []
        for part in parts {
            if let last = lines.last, TerminalText.width(last) + 2 + TerminalText.width(part) <= columns {
                lines[lines.count - 1] += "  \(part)"
            } else {
                lines.append(TerminalText.cut(part, to: columns))
            }
        }
        return lines
    }

    private static func style(of stage: LiveFigures.Stage) -> Style {
        for level in [LiveFigures.Hurt.Level.bad, .warn, .rest] where stage.hurts.contains(where: { $0.level == level })
        {
            return style(level)
        }
        return .plain
    }

    private static func style(_ level: LiveFigures.Hurt.Level) -> Style {
        switch level {
        case .bad: .bad
        case .warn: .warn
        case .rest: .rest
        }
    }
}
