import FrameCore
import Glibc

/// Standard output and standard error, whole lines at a time.
enum Terminal {
    /// Writes `text` and a line feed to standard output.
    static func say(_ text: String) { write(text + "\n", to: STDOUT_FILENO) }

    /// Writes `text` and a line feed to standard error.
    static func complain(_ text: String) { write(text + "\n", to: STDERR_FILENO) }

    /// True when people look at standard error.
    static var isInteractive: Bool { isatty(STDERR_FILENO) == 1 }

    /// Writes all of `text`; a reader that has gone is no fault.
    static func write(_ text: String, to file: Int32) {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            bytes = bytes.dropFirst(count)
        }
    }

    /// Writes a file whole, as ``RunFiles/write(_:_:as:)`` does.
    ///
    /// - Returns: what went wrong, nil when all is well.
    static func writeFile(_ path: String, _ text: String) -> String? {
        switch RunFiles().write(path, text, as: "framehost") {
        case nil: nil
        case .failed(let code): String(cString: strerror(code))
        case let refusal?: refusal.fault(path).what
        }
    }

    /// Rows in columns, the first row a heading.
    static func table(_ rows: [[String]]) -> String {
        guard let count = rows.map(\.count).max() else { return "" }
        let widths = (0..<count).map { column in rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0 }
        return rows.map { row in
            let cells = row.enumerated().map { column, cell in
                column == row.count - 1 ? cell : cell + String(repeating: " ", count: widths[column] - cell.count)
            }
            return "  " + cells.joined(separator: "  ")
        }.joined(separator: "\n")
    }

    /// `1.4 MB`, for people.
    static func bytes(_ count: Int) -> String {
        for (unit, size) in [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)] where count >= size {
            let tenths = (count * 10 + size / 2) / size
            return "\(tenths / 10).\(tenths % 10) \(unit)"
        }
        return "\(count) B"
    }

    /// `value` with `places` decimals.
    static func decimal(_ value: Double, places: Int = 1) -> String {
        guard value.isFinite else { return "–" }
        var scale = 1.0
        for _ in 0..<places { scale *= 10 }
        let scaled = Int64((value.magnitude * scale).rounded())
        let fraction = String(scaled % Int64(scale))
        let sign = value < 0 && scaled > 0 ? "-" : ""
        return places == 0
            ? "\(sign)\(scaled)" : "\(sign)\(scaled / Int64(scale)).\(String(repeating: "0", count: places - fraction.count))\(fraction)"
    }
}
