// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

private struct Corner: OptionObject {
    @Option(help: "From the left.", range: 0...1, required: true) var x = 0.0
    @Option(help: "From the top.", range: 0...1) var y = 0.5
    @Option(help: "The colours.", count: 0...3) var colors: [RGBColor] = []
}

private struct Area: OptionObject {
    @Option(help: "The corners.", count: 2...4, required: true) var corners: [Corner] = []
    @Option(help: "A label.") var label = ""
    @Option(help: "Another label.") var other = ""

    func validate() throws {
        guard label == other, !label.isEmpty else { return }
        throw OptionFault("'label' and 'other' must differ", remedy: "Change one.", options: ["label"])
    }
}

private struct ObjectOptions: StageOptions {
    @Option(help: "Areas.", count: 0...8, live: true) var areas: [Area] = []
    @Option(help: "One corner.") var corner: Corner? = nil
}

@Suite struct OptionObjectTests {
    private func decode(_ text: String) throws -> ObjectOptions {
        let members = try JSONReader.read(Array(text.utf8), file: "o").asObject!
        return try OptionDecoder.decode(ObjectOptions.self, from: members) { key, place in
            key.isEmpty ? "o" : "o:\(place): stages[1].\(key)"
        }
    }

    private func faults(_ text: String) -> String {
        do {
            _ = try decode(text)
            return ""
        } catch { return "\(error)" }
    }

    @Test func readsObjectsInListsAndTheirDefaults() throws {
        let options = try decode(
            ##"{ "areas": [{ "corners": [{ "x": 1 }, { "x": 0, "y": 0, "colors": ["#fff"] }] }] }"##)
        let corners = try #require(options.areas.first).corners
        #expect(corners.map(\.x) == [1, 0] && corners.map(\.y) == [0.5, 0])
        #expect(corners[1].colors == [RGBColor(red: 255, green: 255, blue: 255)])
        #expect(options.corner == nil)
        #expect(try decode(#"{ "corner": { "x": 0.25 } }"#).corner?.x == 0.25)
    }

    @Test func givesBackWhatItHasRead() throws {
        let text =
            ##"[{"corners":[{"x":1,"y":0.5,"colors":["#102030"]},{"x":0,"y":1,"colors":[]}],"label":"a","other":""}]"##
        #expect(try decode(#"{ "areas": \#(text) }"#).areas.optionJSON.text() == text)
    }

    @Test func comparesValuesAndNotDeclarations() throws {
        #expect(
            try decode(#"{ "corner": { "x": 1 } }"#).corner == decode(#"{ "corner": { "x": 1, "y": 0.5 } }"#).corner)
        #expect(try decode(#"{ "corner": { "x": 1 } }"#).corner != decode(#"{ "corner": { "x": 0 } }"#).corner)
    }

    @Test(arguments: [
        (
            #"{ "areas": [{ "corners": [{ "x": 1 }, { "x": 2 }] }] }"#,
            "o:1:46: stages[1].areas[0].corners[1].x: 2 must be from 0 to 1. Use 1 or less."
        ),
        (
            #"{ "areas": [{ "corners": [{ "x": 1 }, { "x": 0, "y": -1 }] }] }"#,
            "o:1:54: stages[1].areas[0].corners[1].y: -1 must be from 0 to 1. Use 0 or more, or leave the key out for 0.5."
        ),
        (
            #"{ "areas": [{ "corners": [{ "x": 1 }] }] }"#,
            "o:1:26: stages[1].areas[0].corners: a list of 1 must have from 2 to 4 values. Write 2 or more."
        ),
        (
            #"{ "areas": [{}] }"#,
            "o:1:13: stages[1].areas[0]: 'corners' is missing. Add the key 'corners'. The corners."
        ),
        (
            #"{ "areas": [5] }"#,
            "o:1:13: stages[1].areas[0]: expected an object, found a number. Write it in braces, { }."
        ),
        (#"{ "areas": {} }"#, "o:1:12: stages[1].areas: expected a list, found an object."),
        (
            #"{ "corner": { "x": 0, "yy": 1 } }"#,
            "o:1:23: stages[1].corner.yy: no such option. Did you mean 'y'?"
        ),
        (
            #"{ "corner": { "x": 0, "options": {} } }"#,
            "o:1:23: stages[1].corner.options: no such option. Use one of the available options: 'colors', 'x' and 'y'."
        ),
        (
            #"{ "corner": { "x": 0, "odd key": 1 } }"#,
            "o:1:23: stages[1].corner[\"odd key\"]: no such option. Use one of the available options: 'colors', 'x' and 'y'."
        ),
        // The words of a list of plain values are replaced by its path.
        (
            #"{ "corner": { "x": 0, "colors": ["red"] } }"#,
            "o:1:34: stages[1].corner.colors[0]: \"red\" must be a colour in the form \"#rrggbb\". Write two hex digits each for red, green and blue, such as \"#20a0ff\"."
        ),
        (
            #"{ "areas": [{ "corners": [{ "x": 0 }, { "x": 1 }], "label": "a", "other": "a" }] }"#,
            "o:1:52: stages[1].areas[0].label: 'label' and 'other' must differ. Change one."
        ),
    ])
    func saysWhereInsideSomethingIsWrong(text: String, message: String) { #expect(faults(text) == message) }

    @Test func reportsAllFaultsOfAllObjects() {
        #expect(
            faults(#"{ "areas": [{ "corners": [{ "x": 7 }, { "y": 0 }], "labl": "" }, 3] }"#)
                == """
                o:1:34: stages[1].areas[0].corners[0].x: 7 must be from 0 to 1. Use 1 or less.
                o:1:39: stages[1].areas[0].corners[1]: 'x' is missing. Add the key 'x'. From the left.
                o:1:52: stages[1].areas[0].labl: no such option. Did you mean 'label'?
                o:1:66: stages[1].areas[1]: expected an object, found a number. Write it in braces, { }.
                """)
    }

    @Test func describesTheMembers() throws {
        let areas = try #require(ObjectOptions.fields.first)
        #expect(areas.typeName == "list of object" && areas.members.map(\.name) == ["corners", "label", "other"])
        #expect(areas.members[0].isRequired && areas.members[0].defaultValue == .null)
        #expect(areas.members[0].members.map(\.name) == ["x", "y", "colors"])
        #expect(!areas.members[1].isRequired && areas.members[1].members.isEmpty)
    }

    @Test func givesASchema() throws {
        let areas = try #require(ObjectOptions.fields.first).schema
        let area = try #require(areas["items"])
        #expect(areas["minItems"] == 0 && areas["maxItems"] == 8 && areas["type"] == "array")
        #expect(area["type"] == "object" && area["additionalProperties"] == false && area["required"] == ["corners"])
        let corner = try #require(area["properties"]?["corners"]?["items"])
        #expect(
            corner["properties"]?["y"]
                == ["type": "number", "description": "From the top.", "minimum": 0, "maximum": 1, "default": 0.5])
        #expect(corner["required"] == ["x"])
    }
}
