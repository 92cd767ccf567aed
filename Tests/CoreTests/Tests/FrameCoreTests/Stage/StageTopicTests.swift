// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// A stage that knows colours by looking around.
private final class Painter: Filter {
    static let info = StageInfo(id: "painter", summary: "Paints.", input: .anyVideo, output: .sameAsInput)
    var options: NoOptions

    init(options: NoOptions, context: StageContext) { self.options = options }

    func process(_ frame: inout Frame) throws -> Verdict { .forward }

    static func topics() throws -> [StageTopic] {
        [StageTopic("Crimson", summary: "A red."), StageTopic("teal", summary: "")]
    }

    static func topic(_ name: String) throws -> StageTopic? {
        guard name.lowercased() == "crimson" else { return nil }
        let depth = OptionField(name: "Depth", typeName: "0...1", help: "How deep.", isLive: true, defaultValue: 0.5)
        return StageTopic("Crimson", summary: "A red.", facts: [.init("file", "/c")], values: [depth], option: "shade")
    }
}

/// As above, without values.
private final class PlainPainter: Filter {
    static let info = StageInfo(id: "plain-painter", summary: "Paints.", input: .anyVideo, output: .sameAsInput)
    var options: NoOptions

    init(options: NoOptions, context: StageContext) { self.options = options }

    func process(_ frame: inout Frame) throws -> Verdict { .forward }

    static func topics() throws -> [StageTopic] { [StageTopic("Ochre", summary: "A brown.")] }
}

@Suite struct StageTopicTests {
    @Test func tellsOfATopicAcrossThePluginsBoundary() throws {
        let type = PluginExports.take(PluginEntry.export(Painter.self)).stages[0]
        #expect(try type.topics().map(\.name) == ["Crimson", "teal"])
        let topic = try type.topic("CRIMSON")
        #expect(topic.option == "shade" && topic.facts == [StageTopic.Fact("file", "/c")])
        #expect(topic.values.map(\.name) == ["Depth"] && topic.values[0].isLive && topic.values[0].defaultValue == 0.5)
    }

    @Test func findsATopicWithoutValuesByItsNameAlone() throws {
        #expect(try StageType(PlainPainter.self).topic("ochre").summary == "A brown.")
    }

    @Test(arguments: [
        ("crimsom", "painter: 'crimsom' is not among its 2 topics. Did you mean 'Crimson'?"),
        ("x", "painter: 'x' is not among its 2 topics. Run `framehost describe painter` to list its topics."),
    ])
    func saysWhichTopicIsNear(name: String, text: String) {
        let error = #expect(throws: FrameHostError.self) { _ = try StageType(Painter.self).topic(name) }
        #expect(error?.description == text)
    }

    @Test func hasNoTopicsUnlessAStageSaysSo() throws {
        #expect(try StageType(ProbeFilter.self).topics().isEmpty)
        let error = #expect(throws: FrameHostError.self) { _ = try StageType(ProbeFilter.self).topic("x") }
        #expect(
            error?.description
                == "probe: has no topic 'x': this stage type has no topics. Write only `framehost describe probe`."
        )
    }
}
