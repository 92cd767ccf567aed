// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

extension FileNamePattern {
    /// The path for a file that begins now.
    ///
    /// - Parameters:
    ///   - unixTime: Nanoseconds since 1970; written in local time.
    ///   - number: For `{n}`.
    ///   - again: 1 first, then 2, 3 … while the name is taken.
    package func path(at unixTime: Int64, number: Int, again: Int = 1) -> String {
        let parts = components.map { part in part.map { Self.text(of: $0, unixTime, number) }.joined() }
        let name = parts.joined(separator: "/") + (again > 1 ? "~\(again)" : "") + ending
        return folder == "." ? name : folder == "/" ? "/\(name)" : "\(folder)/\(name)"
    }

    private static func text(of piece: Piece, _ unixTime: Int64, _ number: Int) -> String {
        switch piece {
        case .text(let bytes): return String(decoding: bytes, as: UTF8.self)
        case .number(let digits): return padded(number, digits)
        case .time(UInt8(ascii: "f")):
            return padded(Int((unixTime % 1_000_000_000 + 1_000_000_000) % 1_000_000_000) / 1000, 6)
        case .time(UInt8(ascii: "s")): return String(unixTime / 1_000_000_000)
        case .time(let letter):
            var seconds = time_t(unixTime / 1_000_000_000)
            var parts = tm()
            localtime_r(&seconds, &parts)
            return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
                let format: [CChar] = [CChar(UInt8(ascii: "%")), CChar(letter), 0]
                let count = strftime(buffer.baseAddress!, buffer.count, format, &parts)
                return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
            }
        }
    }

    private static func padded(_ number: Int, _ digits: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }

    // MARK: Recognising

    /// The number in a file name that this pattern can have made (0 without a number); nil for any other name.
    package func number(ofName name: String) -> Int? {
        guard name.hasSuffix(ending) else { return nil }
        let stem = Array(name.utf8.dropLast(ending.utf8.count))
        if let number = Self.match(components.last![...], stem[...]) { return number }
        // `name~2.mp4`
        guard let tilde = stem.lastIndex(of: UInt8(ascii: "~")),
            let again = Self.digits(stem[(tilde + 1)...], least: 1), again >= 2
        else {
            return nil
        }
        return Self.match(components.last![...], stem[..<tilde])
    }

    /// The highest number behind a `~` among files that would have the name of `plain` (1 for that name itself); nil where
    /// there is no such file.
    package func highestRepetition(of plain: String, among names: Set<String>) -> Int? {
        let name = FileNames.name(of: plain)
        let stem = name.utf8.dropLast(ending.utf8.count) + [UInt8(ascii: "~")]
        var highest = names.contains(name) ? 1 : nil
        for other in names where other.utf8.starts(with: stem) && other.hasSuffix(ending) {
            let digits = Array(other.utf8.dropFirst(stem.count).dropLast(ending.utf8.count))
            guard let again = Self.digits(digits[...], least: 1), again >= 2, again <= Self.highestCount else {
                continue
            }
            highest = max(highest ?? 0, again)
        }
        return highest
    }

    /// Greater numbers are ignored, since no recorder has reached them: with a file every 10 ms it would take 317
    /// years.
    package static let highestCount = 1_000_000_000_000

    /// Whether this pattern can have made a folder of this name.
    package func matches(folder name: String, level: Int) -> Bool {
        Self.match(components[level][...], Array(name.utf8)[...]) != nil
    }

    private static func match(_ pieces: ArraySlice<Piece>, _ text: ArraySlice<UInt8>) -> Int? {
        guard let piece = pieces.first else { return text.isEmpty ? 0 : nil }
        let rest = pieces.dropFirst()
        if case .text(let bytes) = piece {
            return text.starts(with: bytes) ? match(rest, text.dropFirst(bytes.count)) : nil
        }
        guard !text.isEmpty else { return nil }
        for count in stride(from: text.count, through: 1, by: -1) {
            guard let value = value(of: text.prefix(count), piece), let other = match(rest, text.dropFirst(count))
            else { continue }
            return value + other
        }
        return nil
    }

    /// The number in `text` where `piece` is a number, 0 where it is a time, nil when `piece` cannot have written
    /// `text`.
    private static func value(of text: ArraySlice<UInt8>, _ piece: Piece) -> Int? {
        switch piece {
        case .text: return nil
        case .number(let least): return digits(text, least: least)
        case .time(let letter):
            switch letter {
            case UInt8(ascii: "s"): return digits(text, least: 1) == nil ? nil : 0
            case UInt8(ascii: "z"):
                let isSigned = text.first == UInt8(ascii: "+") || text.first == UInt8(ascii: "-")
                return isSigned && text.count == 5 && areDigits(text.dropFirst()) ? 0 : nil
            case _ where Set("abABhpZ".utf8).contains(letter):
                return text.allSatisfy { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: ".") } ? 0 : nil
            default:
                let widths: [UInt8: Int] = [
                    UInt8(ascii: "Y"): 4, UInt8(ascii: "G"): 4, UInt8(ascii: "j"): 3, UInt8(ascii: "f"): 6,
                    UInt8(ascii: "u"): 1, UInt8(ascii: "w"): 1,
                ]
                return text.count == widths[letter] ?? 2 && areDigits(text) ? 0 : nil
            }
        }
    }

    private static func areDigits(_ text: ArraySlice<UInt8>) -> Bool {
        text.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }

    /// The value of at least `least` digits. More digits have no leading zeros.
    private static func digits(_ text: ArraySlice<UInt8>, least: Int) -> Int? {
        guard text.count >= least, areDigits(text), text.count == least || text.first != UInt8(ascii: "0") else {
            return nil
        }
        // No recorder has written a number of more than 18 digits.
        return text.count <= 18 ? Int(String(decoding: text, as: UTF8.self)) : nil
    }
}
