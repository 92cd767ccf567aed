// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import ControlServer

/// What programs of an earlier commit know of the API is still there (Tests/Fixtures/earlier/openapi.json).
@Suite struct EarlierAPITests {
    @Test func keepsWhatEarlierProgramsKnow() async throws {
        let tests = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
        let earlier = try JSONReader.read(path: "\(tests)/Fixtures/earlier/openapi.json")
        let now = await ControlAPI.over(FakeRun()).ask("GET", "/openapi.json").json
        #expect((earlier["paths"]?.asObject ?? []).count == 21)
        var comparison = Comparison(earlier: earlier, now: now)
        let missing = comparison.missing(earlier["paths"] ?? .null, in: now["paths"] ?? .null, at: JSONPath())
        #expect(missing == [])
        #expect(comparison.followed.count > 5)
        // The check finds what is gone.
        let words = comparison.missing(["a": ["enum": ["x", "y"]]], in: ["a": ["enum": ["y"]]], at: JSONPath())
        #expect(words == ["a.enum"])
        let type = comparison.missing(["a": ["type": "string"]], in: ["a": [:]], at: JSONPath())
        #expect(type == ["a.type"])
    }
}

/// What one document has and another one lacks. Schemas are compared where they are used: their names promise nothing.
private struct Comparison {
    let earlier: JSONNode
    let now: JSONNode
    /// The schemas of the earlier document that were looked into.
    var followed: Set<String> = []

    /// The places of `part`, of the earlier document, that are missing or another value in `other`. Words for people may
    /// differ.
    mutating func missing(_ part: JSONNode, in other: JSONNode, at path: JSONPath) -> [String] {
        if let name = Self.schema(of: part) {
            guard followed.insert(name).inserted, let schema = Self.schema(name, in: earlier) else { return [] }
            return missing(schema, in: other, at: path)
        }
        let other = Self.schema(of: other).flatMap { Self.schema($0, in: now) } ?? other
        if let members = part.asObject {
            var found: [String] = []
            for member in members {
                let path = path.appending(member.key)
                let isForPeople = ["description", "summary", "title", "example", "examples"].contains(member.key)
                if isForPeople, member.value.asObject == nil { continue }
                guard let value = other[member.key] else {
                    found.append(path.description)
                    continue
                }
                found += missing(member.value, in: value, at: path)
            }
            return found
        }
        if let elements = part.asArray {
            let others = other.asArray ?? []
            for one in elements {
                var isThere = false
                for candidate in others where !isThere {
                    let before = followed
                    isThere = missing(one, in: candidate, at: path).isEmpty
                    if !isThere { followed = before }
                }
                if !isThere { return [path.description] }
            }
            return []
        }
        return part.text() == other.text() ? [] : [path.description]
    }

    /// The name of the schema that a node refers to.
    private static func schema(of node: JSONNode) -> String? {
        node["$ref"]?.asString.map { String($0.split(separator: "/").last ?? "") }
    }

    private static func schema(_ name: String, in document: JSONNode) -> JSONNode? {
        document["components"]?["schemas"]?[name]
    }
}
