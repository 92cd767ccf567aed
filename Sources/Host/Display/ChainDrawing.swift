// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Rates

/// A chain as a graph in the DOT language: a box for each stage, a frame around those that share a thread, arrows for
/// links.
///
/// Pure. All nodes have generated names, so that text from outside is only ever a label.
struct ChainDrawing {
    private let name: String
    private let plan: PlanLook
    /// Nil for a chain that does not run.
    private let figures: LiveFigures?

    private enum Colour {
        static let text = "#1a1a1a"
        static let soft = "#5a5f66"
        static let line = "#8a9099"
        static let thread = "#eef1f4"
        static let bad = "#b3261e"
        static let badFill = "#fbe4e2"
        static let warn = "#8a5a00"
        static let warnFill = "#fdf0d0"
        static let rest = "#5a5f66"
        static let restFill = "#e6e8eb"
    }

    init(_ plan: PlanLook, name: String, figures: LiveFigures? = nil) {
        self.plan = plan
        self.name = name
        self.figures = figures
    }

    // MARK: The whole

    var dot: String {
        var lines = [
            "digraph framehost {",
            "  graph [rankdir=LR, bgcolor=\"white\", nodesep=0.3, ranksep=0.6, labelloc=t, fontname=\"Helvetica\", fontsize=12, fontcolor=\"\(Colour.text)\", tooltip=\" \", label=<\(title)>];",
            "  node [shape=plain, fontname=\"Helvetica\", fontsize=11, fontcolor=\"\(Colour.text)\"];",
            "  edge [fontname=\"Helvetica\", fontsize=9, fontcolor=\"\(Colour.soft)\", color=\"\(Colour.line)\", arrowsize=0.7];",
        ]
        for (number, thread) in threads.enumerated() {
            lines.append("  subgraph cluster_\(number) {")
            lines.append(
                "    graph [label=\(DotText.quoted(thread.name)), labelloc=t, fontsize=9, fontcolor=\"\(Colour.soft)\", style=\"rounded,filled\", color=\"\(Colour.thread)\", fillcolor=\"\(Colour.thread)\", tooltip=\" \"];"
            )
            for id in thread.stages { lines.append("    \(node(id))") }
            lines.append("  }")
        }
        for (index, link) in plan.links.enumerated() { lines.append("  \(edge(link, index))") }
        return (lines + ["}", ""]).joined(separator: "\n")
    }

    /// Stages by thread, in the order of the plan, and the thread's name as `ps -L` shows it.
    private var threads: [(name: String, stages: [String])] {
        var order: [Int] = []
        var stages: [Int: [String]] = [:]
        for id in plan.ids {
            let thread = plan.stages[id]!.thread
            if stages[thread] == nil { order.append(thread) }
            stages[thread, default: []].append(id)
        }
        return order.map { thread in
            let members = stages[thread]!
            let kind = plan.stages[members[0]]!.kind == "source" ? "src" : "stg"
            return ("thread \(kind):\(members[0])", members)
        }
    }

    private var numbers: [String: Int] {
        Dictionary(uniqueKeysWithValues: plan.ids.enumerated().map { ($0.element, $0.offset) })
    }

    private var title: String {
        var parts: [String] = []
        if let figures {
            parts.append("\(figures.state), \(figures.isHealthy ? "healthy" : "not healthy")")
            if let captured = figures.captured { parts.append("captured \(FigureText.rate(captured))/s") }
            if let latency = figures.latency {
                parts.append("latency \(FigureText.time(latency.seconds)) to \(latency.sink)")
            }
            if let processor = figures.processor { parts.append("CPU \(FigureText.percent(processor)) of a core") }
        } else {
            parts.append("\(plan.threads) \(plan.threads == 1 ? "thread" : "threads")")
            let bytes = plan.stages.values.reduce(0) { $0 + $1.pools.reduce(0) { $0 &+ $1.bytes } }
            if bytes > 0 { parts.append("pools \(Terminal.bytes(bytes))") }
            if let latency = plan.usualLatencyMs {
                parts.append("usual added latency \(Terminal.decimal(latency)) ms")
            }
        }
        var lines = ["<b>\(DotText.markup(name))</b>", small(parts.joined(separator: ", "))]
        for problem in (figures?.problems ?? []).prefix(5) {
            lines.append("<font color=\"\(Colour.warn)\">\(DotText.markup("! \(problem)"))</font>")
        }
        return lines.joined(separator: "<br/>")
    }

    private func small(_ text: String) -> String {
        "<font point-size=\"9\" color=\"\(Colour.soft)\">\(DotText.markup(text))</font>"
    }

    // MARK: Stages

    private func node(_ id: String) -> String {
        let stage = plan.stages[id]!
        let live = figures?.stages.first { $0.id == id }
        let worst = live?.hurts.map(\.level).min { Self.rank($0) < Self.rank($1) }
        let (line, width) =
            switch worst {
            case .bad: (Colour.bad, 2)
            case .warn: (Colour.warn, 2)
            default: (Colour.line, 1)
            }
        var rows = ["<b>\(DotText.markup(stage.id))</b>"]
        rows.append(small("\(stage.use), \(stage.kind)\(stage.isInserted ? ", inserted" : "")"))
        if let output = stage.output { rows.append(DotText.markup(output)) }
        rows += stage.pools.map { small(text(of: $0, id)) }
        if let slab = stage.slab { rows.append(small("access units: \(slab.units), \(Terminal.bytes(slab.bytes))")) }
        if let live { rows += self.rows(of: live) }
        let cells = rows.map { "<tr><td align=\"left\">\($0)</td></tr>" } + (live?.hurts ?? []).map(cell)
        let table =
            "<table border=\"\(width)\" cellborder=\"0\" cellspacing=\"0\" cellpadding=\"3\" bgcolor=\"white\" color=\"\(line)\"\(stage.isInserted ? " style=\"dashed\"" : "")>\(cells.joined())</table>"
        let tip = ["\(stage.id) (\(stage.use))"] + (live?.hurts.map(\.sentence) ?? [])
        return "s\(numbers[id]!) [label=<\(table)>, tooltip=\(DotText.quoted(tip.joined(separator: " ")))];"
    }

    private static func rank(_ level: LiveFigures.Hurt.Level) -> Int {
        switch level {
        case .bad: 0
        case .warn: 1
        case .rest: 2
        }
    }

    private func text(of pool: PlanLook.Pool, _ id: String) -> String {
        let name = pool.isForCopies ? "copy pool" : "pool"
        let live = figures?.pools.first { $0.name == (pool.isForCopies ? "\(id) copies" : id) }
        let free = live.map { ", \($0.free) free" } ?? ""
        return
            "\(name): \(pool.buffers) buffers (min \(pool.min), need \(pool.need))\(free), \(Terminal.bytes(pool.bytes))"
    }

    private func rows(of live: LiveFigures.Stage) -> [String] {
        var parts = ["\(FigureText.rate(live.rate))/s"]
        if live.busy != nil { parts.append("busy \(FigureText.percent(live.busy))") }
        if live.p99 != nil { parts.append("p99 \(FigureText.percentile(live.p99))") }
        var rows = [DotText.markup(parts.joined(separator: ", "))]
        var more: [String] = []
        if live.held > 0 {
            more.append("holds \(live.held) of \(live.heldLimit), oldest \(FigureText.time(live.oldestSeconds))")
        }
        if live.drops > 0 { more.append("\(live.drops) dropped") }
        if !more.isEmpty { rows.append(DotText.markup(more.joined(separator: ", "))) }
        return rows
    }

    /// The word in the colour of its level. The word is there for people who do not see the colour.
    private func cell(_ hurt: LiveFigures.Hurt) -> String {
        let (fill, text) =
            switch hurt.level {
            case .bad: (Colour.badFill, Colour.bad)
            case .warn: (Colour.warnFill, Colour.warn)
            case .rest: (Colour.restFill, Colour.rest)
            }
        let word = hurt.level == .rest ? hurt.word : "! \(hurt.word)"
        return
            "<tr><td align=\"left\" bgcolor=\"\(fill)\"><font color=\"\(text)\"><b>\(DotText.markup(word))</b></font></td></tr>"
    }

    // MARK: Links

    /// A thick arrow is a queue, a thin one a call on the same thread.
    private func edge(_ link: PlanLook.Link, _ index: Int) -> String {
        guard let from = numbers[link.from], let to = numbers[link.to] else { return "" }
        let live = figures?.links.first { $0.from == link.from && $0.to == link.to }
        var words: [String] = []
        if link.queue > 0 {
            words.append("queue \(link.queue), \(plan.wordsWhenFull(link))\(link.isAutomatic ? ", automatic" : "")")
            if let live { words.append("\(live.depth) of \(live.capacity) now") }
        }
        if let live, live.drops > 0 { words.append("\(live.drops) dropped") }
        if let live, live.replaced > 0 { words.append("\(live.replaced) replaced by newer ones") }
        let isHurt = live.map { $0.lost > 0 || $0.isFull } ?? false
        if let live, live.lost > 0 { words.append("! lost \(live.lost)") }
        if let live, live.isFull { words.append("! full") }
        let label = words.map { DotText.markup($0) }.joined(separator: "<br/>")
        var attributes = [
            "tooltip=\(DotText.quoted("\(link.from) to \(link.to): \(link.format)"))",
            "penwidth=\(link.queue > 0 ? 2.4 : 1)",
        ]
        if !label.isEmpty { attributes.append("label=<\(label)>") }
        if isHurt {
            attributes += ["color=\"\(Colour.warn)\"", "fontcolor=\"\(Colour.warn)\""]
        }
        return "s\(from) -> s\(to) [\(attributes.joined(separator: ", "))];"
    }
}
