// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Figures as people read them, with about three digits.
public enum FigureText {
    /// `value` with `places` decimals.
    public static func decimal(_ value: Double, places: Int = 1) -> String {
        guard value.isFinite else { return "–" }
        var scale = 1.0
        for _ in 0..<places { scale *= 10 }
        let scaled = Int64((value.magnitude * scale).rounded())
        let fraction = String(scaled % Int64(scale))
        let sign = value < 0 && scaled > 0 ? "-" : ""
        return places == 0
            ? "\(sign)\(scaled)"
            : "\(sign)\(scaled / Int64(scale)).\(String(repeating: "0", count: places - fraction.count))\(fraction)"
    }

    /// `29.9`, `1234`; `–` when not known.
    public static func rate(_ value: Double?) -> String {
        guard let value else { return "–" }
        return decimal(min(value, 1e9), places: value < 999.95 ? 1 : 0)
    }

    /// `12 µs`, `3.4 ms`, `1.2 s`, `75 s`.
    public static func time(_ value: Double?) -> String {
        guard let value, value.isFinite else { return "–" }
        let seconds = min(value, 1e9)
        if seconds < 0.000_999_5 { return "\(decimal(seconds * 1e6, places: 0)) µs" }
        if seconds < 0.999_5 {
            return "\(decimal(seconds * 1000, places: seconds < 0.099_95 ? 1 : 0)) ms"
        }
        return "\(decimal(seconds, places: seconds < 9.95 ? 1 : 0)) s"
    }

    /// `3.4 %`, `120 %`.
    public static func percent(_ share: Double?) -> String {
        guard let share else { return "–" }
        let percent = min(share * 100, 1e7)
        return "\(decimal(percent, places: percent < 9.95 ? 1 : 0)) %"
    }

    /// `3.4 ms`, `≤ 10 ms`.
    public static func percentile(_ value: LiveFigures.Percentile?) -> String {
        switch value {
        case .exact(let seconds): time(seconds)
        case .atMost(let bound): "≤ \(bare(bound))"
        case .above(let bound): "> \(bare(bound))"
        case nil: "–"
        }
    }

    /// A bound of a histogram, without decimals that it does not have.
    private static func bare(_ seconds: Double) -> String {
        let text = time(seconds)
        return text.firstRange(of: ".0 ").map { text.replacingCharacters(in: $0) } ?? text
    }

    /// `0:05`, `2:03:04`, `3 d 2:03:04`.
    public static func duration(_ seconds: Double) -> String {
        let whole = Int(min(max(seconds, 0), 1e12))
        func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let (hours, minutes, rest) = (whole / 3600 % 24, whole / 60 % 60, whole % 60)
        if whole >= 86_400 { return "\(whole / 86_400) d \(hours):\(two(minutes)):\(two(rest))" }
        return hours > 0 ? "\(hours):\(two(minutes)):\(two(rest))" : "\(minutes):\(two(rest))"
    }
}

extension String {
    fileprivate func replacingCharacters(in range: Range<String.Index>) -> String {
        var text = self
        text.replaceSubrange(range, with: " ")
        return text
    }
}
