// SPDX-License-Identifier: Apache-2.0

/// Times and durations as XML Schema writes them.
enum XMLTime {
    static let day: Int64 = 86_400

    /// Days since 1970 of a date of the Gregorian calendar.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        // From March on, so that the leap day is a year's last.
        let year = month <= 2 ? year - 1 : year
        let era = (year >= 0 ? year : year - 399) / 400
        let ofEra = year - era * 400
        let ofYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }

    struct Civil: Equatable {
        var (year, month, day, hour, minute, second) = (1970, 1, 1, 0, 0, 0)
    }

    /// A time since 1970 in UTC.
    static func civil(_ seconds: Int64) -> Civil {
        let whole = seconds >= 0 ? seconds / day : (seconds - day + 1) / day
        let rest = Int(seconds - whole * day)
        let shifted = whole + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let ofEra = shifted - era * 146_097
        let year = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * year + year / 4 - year / 100)
        let part = (5 * ofYear + 2) / 153
        let month = part + (part < 10 ? 3 : -9)
        var result = Civil()
        result.day = Int(ofYear - (153 * part + 2) / 5 + 1)
        result.month = Int(month)
        result.year = Int(year + era * 400 + (month <= 2 ? 1 : 0))
        (result.hour, result.minute, result.second) = (rest / 3600, rest / 60 % 60, rest % 60)
        return result
    }

    /// `2026-11-30T12:00:00Z`.
    static func text(_ seconds: Int64) -> String {
        let civil = civil(seconds)
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let year = String(repeating: "0", count: max(4 - "\(civil.year)".count, 0)) + "\(civil.year)"
        let time = "\(two(civil.hour)):\(two(civil.minute)):\(two(civil.second))"
        return "\(year)-\(two(civil.month))-\(two(civil.day))T\(time)Z"
    }

    /// Seconds since 1970 of a dateTime; without a zone it is in UTC. Nil for another text, and for years but 1970 to
    /// 2199.
    static func seconds(_ text: String) -> Int64? {
        var rest = Array(text.utf8.prefix(64))[...]
        func number(_ digits: Int) -> Int64? {
            guard rest.count >= digits else { return nil }
            var value: Int64 = 0
            for byte in rest.prefix(digits) {
                guard (48...57).contains(byte) else { return nil }
                value = value * 10 + Int64(byte - 48)
            }
            rest = rest.dropFirst(digits)
            return value
        }
        func take(_ byte: UInt8) -> Bool {
            guard rest.first == byte else { return false }
            rest = rest.dropFirst()
            return true
        }
        guard let year = number(4), (1970...2199).contains(year), take(45), let month = number(2),
            (1...12).contains(month), take(45), let day = number(2), (1...31).contains(day), take(84),
            let hour = number(2), hour <= 24, take(58), let minute = number(2), minute <= 59, take(58),
            let second = number(2), second <= 60
        else { return nil }
        if take(46) {
            guard let first = rest.first, (48...57).contains(first) else { return nil }
            rest = rest.drop { (48...57).contains($0) }
        }
        var offset: Int64 = 0
        if !rest.isEmpty, !take(90) {
            let sign: Int64
            if take(43) { sign = 1 } else if take(45) { sign = -1 } else { return nil }
            guard let hours = number(2), hours <= 14, take(58), let minutes = number(2), minutes <= 59 else {
                return nil
            }
            offset = sign * (hours * 3600 + minutes * 60)
        }
        guard rest.isEmpty else { return nil }
        return days(year, month, day) * Self.day + hour * 3600 + minute * 60 + second - offset
    }

    /// Seconds of a duration of days, hours, minutes and seconds: `PT1M`, `P0Y0M0DT0H0M30.5S`. Nil for another text,
    /// for years and months above 0, and above 10 days.
    static func duration(_ text: String) -> Double? {
        var rest = text[...]
        guard text.utf8.count <= 64, rest.popFirst() == "P", !rest.isEmpty else { return nil }
        var (seconds, isTime, digits) = (0.0, false, "")
        for character in rest {
            if character == "T" {
                guard !isTime, digits.isEmpty else { return nil }
                isTime = true
                continue
            }
            if character.isASCII, character.isNumber || character == "." {
                digits.append(character)
                continue
            }
            guard let value = Double(digits) else { return nil }
            digits = ""
            switch (character, isTime) {
            case ("Y", false), ("M", false): guard value == 0 else { return nil }
            case ("D", false): seconds += value * 86_400
            case ("H", true): seconds += value * 3600
            case ("M", true): seconds += value * 60
            case ("S", true): seconds += value
            default: return nil
            }
        }
        return digits.isEmpty && seconds <= 864_000 ? seconds : nil
    }
}
