// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The names of a rule's snapshots. They contain times as in strftime(3), so that each picture has a file of its own.
enum SnapshotName {
    /// Conversions that may stand behind a percent sign: year, month, day, hour, minute, second, day of the year.
    static let known: [Character] = ["Y", "m", "d", "H", "M", "S", "j"]

    /// Whether every picture gets the same name.
    static func isFixed(_ path: String) -> Bool {
        filled(path, unixTime: 0) == filled(path, unixTime: 40_000_000_000_000_000)
    }

    /// The first conversion that is not in ``known``, with its percent sign.
    static func oddConversion(in path: String) -> String? {
        var rest = path[...]
        while let sign = rest.firstIndex(of: "%") {
            rest = rest[rest.index(after: sign)...]
            guard let letter = rest.first else { return "%" }
            guard letter == "%" || known.contains(letter) else { return "%\(letter)" }
            rest = rest.dropFirst()
        }
        return nil
    }

    /// [any thread] `path` with its times filled in, in the local time zone.
    ///
    /// - Parameter unixTime: Nanoseconds since 1970.
    static func filled(_ path: String, unixTime: Int64) -> String {
        guard path.contains("%") else { return path }
        var seconds = time_t(unixTime / 1_000_000_000)
        var parts = tm()
        localtime_r(&seconds, &parts)
        func number(_ value: Int32, _ places: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, places - text.count)) + text
        }
        var result = ""
        var isConversion = false
        for letter in path {
            guard isConversion else {
                if letter == "%" { isConversion = true } else { result.append(letter) }
                continue
            }
            isConversion = false
            switch letter {
            case "Y": result += number(parts.tm_year + 1900, 4)
            case "m": result += number(parts.tm_mon + 1, 2)
            case "d": result += number(parts.tm_mday, 2)
            case "H": result += number(parts.tm_hour, 2)
            case "M": result += number(parts.tm_min, 2)
            case "S": result += number(parts.tm_sec, 2)
            case "j": result += number(parts.tm_yday + 1, 3)
            default: result.append(letter)
            }
        }
        return result
    }
}
