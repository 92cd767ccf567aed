// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// What a batch did, for programs: `--report FILE`. The ending of the file decides between JSON and CSV.
struct BatchReport {
    let path: String

    static let endings = [".json", ".csv"]

    /// Nil if the path ends with none of ``endings``.
    init?(_ path: String) {
        guard Self.endings.contains(where: { path.hasSuffix($0) }) else { return nil }
        self.path = path
    }

    func text(_ results: [BatchResult], _ figures: BatchTally.Figures, count: Int, seconds: Double) -> String {
        path.hasSuffix(".csv") ? Self.csv(results) : Self.json(results, figures, count: count, seconds: seconds)
    }

    private static func json(
        _ results: [BatchResult], _ figures: BatchTally.Figures, count: Int, seconds: Double
    ) -> String {
        let files: [JSONNode] = results.map { result in
            .object([
                ("input", .string(result.input)), ("output", .string(result.output)),
                ("state", .string(result.state.rawValue)), ("attempts", .number(result.attempts)),
                ("frames", .number(result.frames)), ("seconds", .number(result.seconds)),
                ("mediaSeconds", .number(result.mediaSeconds)), ("bytes", .number(result.bytes)),
                ("error", .string(result.error)), ("warnings", .array(result.warnings.map { .string($0) })),
                ("replaced", .string(result.replaced)), ("damage", .string(result.damage)),
                ("pictures", result.account),
            ])
        }
        return JSONNode.object([
            ("files", .number(count)), ("made", .number(figures.made)), ("present", .number(figures.present)),
            ("madeElsewhere", .number(figures.madeElsewhere)), ("setAside", .number(figures.setAside)),
            ("givenUp", .number(figures.givenUp)), ("damaged", .number(figures.damaged)),
            ("left", .number(count - figures.finished)), ("failedAttempts", .number(figures.failedAttempts)),
            ("frames", .number(figures.frames)), ("mediaSeconds", .number(figures.mediaSeconds)),
            ("seconds", .number(seconds)), ("host", .string(WorkRecord.hostName)),
            ("program", .string(FrameHost.configuration.version)), ("units", .array(files)),
        ]).text(pretty: true) + "\n"
    }

    private static func csv(_ results: [BatchResult]) -> String {
        var text = "input,output,state,attempts,frames,seconds,mediaSeconds,bytes,error,warnings,replaced,damage\r\n"
        for result in results {
            let cells = [
                result.input, result.output, result.state.rawValue, "\(result.attempts)", "\(result.frames)",
                Terminal.decimal(result.seconds, places: 3), Terminal.decimal(result.mediaSeconds, places: 3),
                "\(result.bytes)", result.error, result.warnings.joined(separator: " "), result.replaced, result.damage,
            ]
            text += cells.map(cell).joined(separator: ",") + "\r\n"
        }
        return text
    }

    /// RFC 4180. A cell that a spreadsheet would take for a formula gets an apostrophe.
    private static func cell(_ text: String) -> String {
        let text = text.first.map { "=+-@\t".contains($0) } == true ? "'" + text : text
        // By scalars, because a carriage return and a line feed are one character.
        guard text.unicodeScalars.contains(where: { [",", "\"", "\r", "\n"].contains($0) }) else { return text }
        return "\"" + text.map { $0 == "\"" ? "\"\"" : String($0) }.joined() + "\""
    }
}
