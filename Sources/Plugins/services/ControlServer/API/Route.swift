// SPDX-License-Identifier: Apache-2.0

import FrameCore
import ServerAccess

/// One operation of the API. Routing, the checks of requests and the OpenAPI document are made from it.
struct Route: Sendable {
    enum Method: String, Sendable, CaseIterable { case get, put, post, patch, delete }

    enum BodyRule: Sendable {
        case none
        /// A body is allowed; its JSON Schema.
        case optional(JSONNode)
        case required(JSONNode)
    }

    var method: Method
    /// `/api/v1/stages/{id}`
    var path: String
    /// The `operationId` in the OpenAPI document; lowerCamelCase.
    var name: String
    /// What its caller must have. None only where a client shows who it is. There is no default, so that nobody forgets it.
    var rights: Rights
    var summary: String
    var query: [QueryParameter] = []
    var body = BodyRule.none
    /// The OpenAPI Responses Object without `default`.
    var answers: JSONNode
    var handle: @Sendable (Call) async throws -> Answer

    var segments: [Substring] { path.dropFirst().split(separator: "/", omittingEmptySubsequences: false) }
    /// The parameters in the path.
    var parameters: [String] {
        segments.filter { $0.hasPrefix("{") }.map { String($0.dropFirst().dropLast()) }
    }
}

/// A request that has passed the gate, with its parts checked.
struct Call: Sendable {
    var path: [String: String] = [:]
    var query = QueryValues()
    var body: JSONNode?
    var head: RequestHead
    var caller: Caller
    /// Where it comes from.
    var address = PeerAddress.local
}

/// Finds the route of a path.
struct Router: Sendable {
    enum Match: Sendable {
        case found(Route, [String: String])
        case otherMethod(allowed: [String])
        case none
    }

    let routes: [Route]

    /// - Parameters:
    ///   - method: HEAD counts as GET.
    ///   - path: Segments, percent-decoded.
    func match(_ method: String, _ path: [String]) -> Match {
        var allowed: [String] = []
        for route in routes {
            guard let values = Self.values(route.segments, path) else { continue }
            let name = route.method.rawValue.uppercased()
            if method == name || method == "HEAD" && name == "GET" { return .found(route, values) }
            allowed += name == "GET" ? ["GET", "HEAD"] : [name]
        }
        return allowed.isEmpty ? .none : .otherMethod(allowed: allowed)
    }

    private static func values(_ template: [Substring], _ path: [String]) -> [String: String]? {
        guard template.count == path.count else { return nil }
        var values: [String: String] = [:]
        for (part, given) in zip(template, path) {
            if part.hasPrefix("{") {
                guard !given.isEmpty else { return nil }
                values[String(part.dropFirst().dropLast())] = given
            } else if part != given {
                return nil
            }
        }
        return values
    }
}

/// A request's target, taken apart (RFC 3986 §3.3 and §3.4).
struct Target: Sendable, Equatable {
    var path: [String]
    var query: [Pair]

    struct Pair: Sendable, Equatable {
        var name: String
        var value: String
    }

    /// Nil for a path that does not begin with a slash, or that is not UTF-8 once it is decoded.
    init?(_ text: String) {
        guard text.hasPrefix("/"), text.utf8.count <= 8192 else { return nil }
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = []
        for segment in parts[0].dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            guard let decoded = Self.decoded(segment) else { return nil }
            path.append(decoded)
        }
        query = []
        guard parts.count > 1 else { return }
        for pair in parts[1].split(separator: "&") {
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = Self.decoded(sides[0]), let value = Self.decoded(sides.count > 1 ? sides[1] : "") else {
                return nil
            }
            query.append(Pair(name: name, value: value))
        }
    }

    /// RFC 3986 §2.1, as UTF-8 without control characters.
    static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(hexDigit), let low = rest.popFirst().flatMap(hexDigit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        guard bytes.allSatisfy({ $0 >= 32 && $0 != 127 }) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func hexDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 48...57: byte - 48
        case 65...70: byte - 55
        case 97...102: byte - 87
        default: nil
        }
    }
}
