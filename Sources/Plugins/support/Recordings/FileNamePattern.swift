// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The option `path` of a recorder that makes more than one file: fixed text, times as strftime(3) writes them, a
/// number.
///
/// `%Y-%m-%d/cam_%H-%M-%S.mp4`, `clip-{nnnn}.mp4`: `{n}` is the file's number, with at least as many digits as there
/// are n. Neither strftime nor the chain file's `${NAME}` uses `{n}`. Where a name is taken, `~2`, `~3` … goes before
/// the ending.
package struct FileNamePattern: Equatable {
    package enum Piece: Equatable {
        case text([UInt8])
        /// A conversion of strftime, or `f` for microseconds.
        case time(UInt8)
        case number(digits: Int)
    }

    /// The folders before the first one that has a pattern, without a slash at the end unless it is the root; "."
    /// when there are none.
    package let folder: String
    /// Folders from the first one with a pattern on, and the file's name without ending.
    package let components: [[Piece]]
    /// `.mp4`, as the user wrote it.
    package let ending: String

    package var hasNumber: Bool { components.last!.contains { if case .number = $0 { true } else { false } } }
    /// Whether the path is the same at any time and number.
    package var isFixed: Bool { !components.contains { $0.contains { if case .text = $0 { false } else { true } } } }

    private init(folder: String, components: [[Piece]], ending: String) {
        self.folder = folder
        self.components = components
        self.ending = ending
    }

    /// - Throws: ``OptionFault`` for an unknown conversion, a number outside the name, an ending without a name
    ///   before it.
    package init(_ path: String) throws(OptionFault) {
        let bytes = Array(path.utf8)
        var parts: [[Piece]] = []
        for part in bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            parts.append(try Self.pieces(Array(part), of: path))
        }
        let dot = bytes.lastIndex(of: UInt8(ascii: ".")) ?? bytes.endIndex
        ending = String(decoding: bytes[dot...], as: UTF8.self)
        // The ending is plain text, so it is at the end of the last piece.
        if case .text(let text)? = parts.last?.last, text.count >= ending.utf8.count {
            let rest = Array(text.dropLast(ending.utf8.count))
            parts[parts.count - 1].removeLast()
            if !rest.isEmpty { parts[parts.count - 1].append(.text(rest)) }
        }
        if parts.last!.isEmpty {
            throw OptionFault(
                "'\(path)' must have a name before its ending",
                remedy: "Write a name before the ending, such as out\(ending).", options: ["path"])
        }
        let isPlain = { (part: [Piece]) in !part.contains { if case .text = $0 { false } else { true } } }
        let numbers = parts.map { $0.filter { if case .number = $0 { true } else { false } }.count }
        guard numbers.dropLast().allSatisfy({ $0 == 0 }), numbers.last! <= 1 else {
            throw OptionFault(
                "'\(path)' may have {n} only once, in the file's name and not in a folder's",
                remedy: "Write {n} once, in the file's name.", options: ["path"])
        }
        let first = parts.firstIndex { !isPlain($0) } ?? parts.count - 1
        let joined = parts[..<first].map { part in
            part.map { if case .text(let bytes) = $0 { String(decoding: bytes, as: UTF8.self) } else { "" } }.joined()
        }.joined(separator: "/")
        folder = first == 0 ? "." : joined.isEmpty ? "/" : joined
        components = Array(parts[first...])
    }

    /// Refuses what is no path of a file.
    ///
    /// - Parameters:
    ///   - example: A path for the remedy.
    ///   - insteadOfOutput: What to do instead of writing to standard output.
    ///   - insteadOfAddress: What to do instead of writing to an address.
    package static func check(
        _ path: String, example: String, insteadOfOutput: String, insteadOfAddress: String
    ) throws(OptionFault) {
        if path.isEmpty {
            throw OptionFault(
                "'path' is missing or empty", remedy: "Name the file to write: \"path\": \"\(example)\".",
                options: ["path"])
        }
        if path == "-" {
            throw OptionFault(
                "'path' must be a file, but is - (standard output)", remedy: insteadOfOutput, options: ["path"])
        }
        if let mark = path.firstRange(of: "://"), mark.lowerBound != path.startIndex,
            path[..<mark.lowerBound].allSatisfy(\.isLetter)
        {
            throw OptionFault(
                // What follows may be a login.
                "'path' must be a file, but is the address \(path[..<mark.upperBound])…",
                remedy: path.hasPrefix("file://") ? "Write only the path, without file://." : insteadOfAddress,
                options: ["path"])
        }
        if path.utf8.contains(0) {
            throw OptionFault(
                "'path' must not contain the character U+0000", remedy: "Remove its \\u0000.", options: ["path"])
        }
    }

    /// The pattern within `base`, where it is relative. `base` itself is plain text.
    package func placed(in base: String) -> FileNamePattern {
        guard !folder.hasPrefix("/"), !base.isEmpty, base != "." else { return self }
        return FileNamePattern(
            folder: folder == "." ? base : "\(base)/\(folder)", components: components, ending: ending)
    }

    /// The pattern with `-{nnnn}` before the ending.
    package func numbered() -> FileNamePattern {
        var more = components
        more[more.count - 1] += [.text(Array("-".utf8)), .number(digits: 4)]
        return FileNamePattern(folder: folder, components: more, ending: ending)
    }

    private static let letters: Set<UInt8> = Set("YmdHMSyjIUWVGgabABhpZuw".utf8)

    private static func pieces(_ part: [UInt8], of path: String) throws(OptionFault) -> [Piece] {
        var found: [Piece] = []
        func add(text: some Sequence<UInt8>) {
            if case .text(let before)? = found.last {
                found[found.count - 1] = .text(before + text)
            } else {
                found.append(.text(Array(text)))
            }
        }
        func add(times: String, between: String) {
            for (index, letter) in times.utf8.enumerated() {
                if index > 0 { add(text: between.utf8) }
                found.append(.time(letter))
            }
        }
        var index = 0
        while index < part.count {
            if part[index] == UInt8(ascii: "%") {
                let letter = index + 1 < part.count ? part[index + 1] : 0
                switch letter {
                case UInt8(ascii: "%"): add(text: [letter])
                case UInt8(ascii: "F"): add(times: "Ymd", between: "-")
                case UInt8(ascii: "T"): add(times: "HMS", between: ":")
                case UInt8(ascii: "R"): add(times: "HM", between: ":")
                case UInt8(ascii: "s"), UInt8(ascii: "f"), UInt8(ascii: "z"): found.append(.time(letter))
                case _ where letters.contains(letter): found.append(.time(letter))
                default:
                    throw OptionFault(
                        "'\(String(decoding: part[index..<min(index + 2, part.count)], as: UTF8.self))' in '\(path)' is not a time pattern",
                        remedy:
                            "Use patterns such as %Y %m %d %H %M %S, %F %T %s %f (microseconds), or %% for a percent sign.",
                        options: ["path"])
                }
                index += 2
            } else if part[index] == UInt8(ascii: "{"), let end = part[index...].firstIndex(of: UInt8(ascii: "}")),
                end > index + 1,
                part[(index + 1)..<end].allSatisfy({ $0 == UInt8(ascii: "n") })
            {
                found.append(.number(digits: min(end - index - 1, 18)))
                index = end + 1
            } else {
                add(text: [part[index]])
                index += 1
            }
        }
        return found
    }
}
