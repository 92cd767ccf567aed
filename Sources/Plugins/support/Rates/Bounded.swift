// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Values from a server, which may say anything: lists and texts of bounded length, numbers that are finite and at
/// least 0.
enum Bounded {
    /// More stages, links or pools than any chain has.
    static let most = 4000

    static func text(_ node: JSONNode?) -> String { String((node?.asString ?? "").prefix(256)) }

    static func sentence(_ node: JSONNode?) -> String { String((node?.asString ?? "").prefix(1000)) }

    static func sentences(_ node: JSONNode?) -> [String] {
        (node?.asArray ?? []).prefix(100).filter { $0.asString != nil }.map { sentence($0) }
    }

    static func count(_ node: JSONNode?) -> Int { min(max(node?.asInt ?? 0, 0), 1 << 53) }

    static func number(_ node: JSONNode?) -> Double { known(node) ?? 0 }

    /// Nil for what the server does not know.
    static func known(_ node: JSONNode?) -> Double? { node?.asDouble.map { min(max($0, 0), 1e15) } }

    static func list(_ node: JSONNode?) -> ArraySlice<JSONNode> { (node?.asArray ?? []).prefix(most) }
}
