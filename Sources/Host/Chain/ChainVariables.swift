// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Variables of the environment in a chain file.
extension ChainPartReader {
    /// `${NAME:-default}` in strings, replaced from the environment; `$$` is a dollar sign.
    mutating func expanded(_ node: JSONNode, _ path: String) -> JSONNode {
        switch node.value {
        case .string(let text) where text.contains("$"):
            var changed = node
            changed.value = .string(expand(text, node.place, path))
            return changed
        case .array(let elements):
            var changed = node
            changed.value = .array(elements.map { expanded($0, path) })
            return changed
        default: return node
        }
    }

    private mutating func expand(_ text: String, _ place: TextPlace, _ path: String) -> String {
        var result = ""
        var rest = Substring(text)
        while let dollar = rest.firstIndex(of: "$") {
            result += rest[..<dollar]
            rest = rest[rest.index(after: dollar)...]
            if rest.hasPrefix("$") {
                result += "$"
                rest = rest.dropFirst()
            } else if rest.hasPrefix("{"), let end = rest.firstIndex(of: "}") {
                let body = rest[rest.index(after: rest.startIndex)..<end]
                rest = rest[rest.index(after: end)...]
                var name = String(body)
                var fallback: String?
                if let mark = body.firstRange(of: ":-") {
                    name = String(body[..<mark.lowerBound])
                    fallback = String(body[mark.upperBound...])
                }
                if let value = getenv(name).map({ String(cString: $0) }), !value.isEmpty {
                    result += value
                } else if let fallback {
                    result += fallback
                } else if name.isEmpty {
                    fault(
                        place, path, "'${}' names no environment variable", "Write ${NAME}, or $$ for a dollar sign.")
                } else {
                    let how = getenv(name) == nil ? "not set" : "empty"
                    fault(
                        place, path, "the environment variable '\(name)' is \(how)",
                        ChainIdentity.ownVariables.contains(name)
                            ? "Set it, write ${\(name):-default}, or run the chain with `framehost batch`."
                            : "Set it, or write ${\(name):-default}.")
                }
            } else {
                result += "$"
            }
        }
        return result + rest
    }
}
