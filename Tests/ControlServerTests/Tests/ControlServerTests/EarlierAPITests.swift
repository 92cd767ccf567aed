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
        #expect(Self.missing(earlier, in: now) == [])
        // The check finds what is gone.
        #expect(Self.missing(["a": ["enum": ["x", "y"]]], in: ["a": ["enum": ["y"]]]) == ["a.enum"])
        #expect(Self.missing(["a": ["type": "string"]], in: ["a": [:]]) == ["a.type"])
    }

    /// The places of `earlier` that are missing or another value in `now`. Words for people may differ.
    private static func missing(_ earlier: JSONNode, in now: JSONNode, at path: JSONPath = JSONPath()) -> [String] {
        if let members = earlier.asObject {
            return members.flatMap { member -> [String] in
                let path = path.appending(member.key)
                if ["description", "summary", "title", "example", "examples"].contains(member.key),
                    member.value.asObject == nil
                {
                    return []
                }
                guard let value = now[member.key] else { return [path.description] }
                return missing(member.value, in: value, at: path)
            }
        }
        if let elements = earlier.asArray {
            let others = now.asArray ?? []
            return elements.allSatisfy { one in others.contains { missing(one, in: $0).isEmpty } }
                ? [] : [path.description]
        }
        return earlier.text() == now.text() ? [] : [path.description]
    }
}
