// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Posts what its option says, declared or not.
private final class Speaker: Filter {
    static let info = StageInfo(
        id: "speaker", summary: "Posts events.", input: .video(.gray8), output: .sameAsInput,
        events: [
            EventDeclaration(
                "level", "It is loud.",
                [.number("decibels", "How loud."), .string("kind", "Of what.", words: ["voice", "noise"])])
        ])

    struct Options: StageOptions {
        @Option(help: "Which event.") var event = "level"
        @Option(help: "Its details.") var details = "{}"
    }

    var options: Options
    private let context: StageContext

    init(options: Options, context: StageContext) { (self.options, self.context) = (options, context) }

    func process(_ frame: inout Frame) throws -> Verdict {
        let details = try JSONReader.read(Array(options.details.utf8), file: "details")
        context.post(options.event, text: "said", details: details)
        return .forward
    }
}

@Suite struct EventDeclarationTests {
    private func fault(event: String, details: String) throws -> String? {
        let options = JSONNode.object([("event", .string(event)), ("details", .string(details))]).text()
        let format = MediaFormat.video(VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(50)))
        let driver = try StageDriver(Speaker.self, options: options, input: format)
        do { try driver.send(driver.makeFrame()) } catch {
            // A test goes on after it was told.
            try driver.send(driver.makeFrame())
            return (error as? FrameHostError)?.description
        }
        return nil
    }

    private static let remedy =
        "In 'events' of the StageInfo, declare what the stage posts: `describe` lists the declarations, and rules are checked against them."

    @Test(arguments: [
        ("level", "{}"), ("level", #"{ "decibels": 3 }"#), ("level", #"{ "decibels": null, "kind": "voice" }"#),
        ("log", "{}"), ("note", "{}"), ("time-not-rising", #"{ "frame": 1, "ptsNanoseconds": 2 }"#),
    ]) func takesWhatIsDeclared(event: String, details: String) throws {
        #expect(try fault(event: event, details: details) == nil)
    }

    @Test(arguments: [
        ("loud", "{}", "the event 'loud' is not declared"),
        ("level", #"{ "decibel": 3 }"#, "the event 'level' has the member 'decibel', which is not declared"),
        (
            "level", #"{ "decibels": "3" }"#,
            #"'decibels' of the event 'level' must be a number, as declared, but is "3""#
        ),
        (
            "level", #"{ "kind": "music" }"#,
            #"'kind' of the event 'level' must be 'voice' or 'noise', as declared, but is "music""#
        ),
        ("log", #"{ "level": 3 }"#, "the event 'log' has the member 'level', which is not declared"),
    ]) func aPluginsTestEndsWithWhatIsNotDeclared(event: String, details: String, what: String) throws {
        #expect(try fault(event: event, details: details) == "speaker (speaker): \(what). \(Self.remedy)")
    }

    @Test func namesOfCoresEventsDiffer() {
        let names = ChainEvents.all.map(\.event.name)
        #expect(Set(names).count == names.count)
        #expect(ChainEvents.entry("state")?.scope == .both && ChainEvents.entry("stage-failed")?.scope == .stage)
        #expect(ChainEvents.entry("faces") == nil)
        for entry in ChainEvents.all {
            #expect(entry.event.summary.hasSuffix(".") || entry.event.summary.hasSuffix("…"), "\(entry.event.name)")
            #expect(Set(entry.event.members.map(\.name)).count == entry.event.members.count)
        }
    }
}
