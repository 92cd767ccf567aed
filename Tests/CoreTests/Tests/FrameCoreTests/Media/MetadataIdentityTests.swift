// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Two images of a plugin have the same kinds of metadata as other types: here as types of one name in two enclosing
/// ones.
private enum First {
    enum Mood: UInt8, Codable { case calm, loud }
    enum Reach: Codable { case none, circle(radius: Float), box(Corner, Corner) }
    struct Corner: Codable { var x: Int16, y: Int16 }
    struct Marker: FrameMetadata {
        static let metadataName = "marker"
        var level: Float
        var mood: Mood?
        var reach: Reach
        var corners = InlineArray<4, Corner>(repeating: Corner(x: 0, y: 0))
        var pair: (UInt8, Int32) = (0, 0)
        init(from decoder: any Decoder) throws { fatalError() }
        func encode(to encoder: any Encoder) throws {}
    }
}

private enum Again {
    enum Mood: UInt8, Codable { case calm, loud }
    enum Reach: Codable { case none, circle(radius: Float), box(Corner, Corner) }
    struct Corner: Codable { var x: Int16, y: Int16 }
    struct Marker: FrameMetadata {
        static let metadataName = "another name"
        var level: Float
        var mood: Mood?
        var reach: Reach
        var corners = InlineArray<4, Corner>(repeating: Corner(x: 1, y: 1))
        var pair: (UInt8, Int32) = (0, 0)
        var worked: Float { level * 2 }
        init(from decoder: any Decoder) throws { fatalError() }
        func encode(to encoder: any Encoder) throws {}
    }
}

private enum Shortened {
    struct Corner: Codable { var x: Int16, y: Int16 }
    struct Marker { var corners = InlineArray<3, Corner>(repeating: Corner(x: 0, y: 0)) }
}

@Suite struct MetadataIdentityTests {
    /// As the runtime would name it, were it in an image of its own.
    private func layout<Value>(_ type: Value.Type) -> String? { ValueLayout.text(of: type) }

    @Test func typesOfTheSameFieldsAndCasesHaveOneLayout() throws {
        let first = try #require(layout(First.Marker.self))
        #expect(first == layout(Again.Marker.self))
        #expect(first.contains("mood:Optional<Mood>{some:Mood{"), "\(first)")
        #expect(first.contains("4*Corner{x:Int16{"), "\(first)")
        #expect(first.hasPrefix("\(MemoryLayout<First.Marker>.size)/\(MemoryLayout<First.Marker>.stride)/"))
    }

    @Test func everyDifferenceInAFieldOrACaseIsAnother() throws {
        struct Base { var a: Int32 = 0, b: Float = 0 }
        let base = try #require(layout(Base.self))
        func check<Value>(_ type: Value.Type) throws {
            // The local types' short names differ; what stands between the braces must too.
            let text = try #require(layout(type))
            let body = { (text: String) in text.drop { $0 != "{" } }
            #expect(body(text) != body(base), "\(text)")
        }
        struct Renamed { var a: Int32 = 0, c: Float = 0 }
        struct Swapped { var b: Float = 0, a: Int32 = 0 }
        struct OtherType { var a: UInt32 = 0, b: Float = 0 }
        struct Longer { var a: Int32 = 0, b: Float = 0, c: UInt8 = 0 }
        try check(Renamed.self)
        try check(Swapped.self)
        try check(OtherType.self)
        try check(Longer.self)
        enum TwoCases: UInt8 { case on, off }
        enum OtherCases: UInt8 { case off, on }
        #expect(layout(TwoCases.self)?.hasSuffix("{on,off}") == true)
        #expect(layout(OtherCases.self)?.hasSuffix("{off,on}") == true)
        #expect(layout(Shortened.Marker.self)?.contains("3*Corner{") == true)
    }

    @Test func valuesWithReferencesHaveNone() {
        struct Named { var name = "" }
        struct Many { var values: [Int] = [] }
        struct Whose {
            unowned(unsafe) var owner: AnyObject
            var kind: any Any.Type
        }
        #expect(layout(Named.self) == nil && layout(Many.self) == nil)
        #expect(layout(Whose.self) == nil, "bytes, but of another image's objects")
    }

    @Test func oursHasALayout() throws {
        let identity = try #require(MetadataIdentity(Faces.self))
        #expect(identity.name == "FrameCore.Faces")
        #expect(identity == MetadataIdentity(Faces.self))
        #expect(MetadataLayout([Faces.self]).index(of: Faces.self) == 0)
        #expect(MetadataLayout([First.Marker.self]).index(of: Again.Marker.self) == nil, "another name")
        #expect(
            MetadataLayout([]).refusal(of: Faces.self)
                == "needs metadata 'faces', for which the frames of the running chain have no room")
    }
}
