// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

private enum Mood: String, OptionChoice { case calm, brisk, wild }

private struct AllOptions: StageOptions, Equatable {
    @Option(help: "A switch.", live: true) var isOn = true
    @Option(help: "Average bitrate.", range: 64...100_000, unit: "kbit/s", live: true) var bitrateKbps = 4000
    @Option(help: "Seconds between keyframes.", range: 0.1...60, unit: "s") var keyframeSeconds = 2.0
    @Option(help: "A label.", live: true) var label = ""
    @Option(help: "Quality.", range: 0...51) var crf: Int? = nil
    @Option(help: "A gain.", range: 0...4.0) var gain: Double? = 1.5
    @Option(help: "The mood.") var mood = Mood.calm
    @Option(help: "Another mood.") var otherMood: Mood? = nil
    @Option(help: "The size.") var size = PictureSize(1280, 720)
    @Option(help: "The rate.", range: FrameRate(1)...FrameRate(240)) var rate = FrameRate(30)
    @Option(help: "The colour.") var color = RGBColor(red: 0x20, green: 0xA0, blue: 0xFF)
    @Option(help: "The layout.") var format: PixelFormat? = nil
    @Option(help: "Ports.") var ports = [8554, 8555]

    func validate() throws(OptionFault) {
        if label == "both", crf != nil {
            throw OptionFault(
                "'crf' and 'label' cannot be used together", remedy: "Leave one of them out.",
                options: ["crf", "label"])
        }
    }

    static func == (a: AllOptions, b: AllOptions) -> Bool { a.text == b.text }

    /// All values in order, as JSON.
    var text: String {
        let values = Mirror(reflecting: self).children.compactMap { ($0.value as? any AnyOption)?.currentJSON }
        return JSONNode(.array(values)).text()
    }
}

@Suite struct OptionDecoderTests {
    private func decode(_ text: String, base: AllOptions = AllOptions()) throws -> AllOptions {
        let members = try JSONReader.read(Array(text.utf8), file: "o").asObject!
        return try OptionDecoder.decode(AllOptions.self, from: members, base: base) { key, place in
            key.isEmpty ? "o" : "o:\(place): \(key)"
        }
    }

    /// The faults of a text, one a line.
    private func faults(_ text: String) -> String {
        do {
            _ = try decode(text)
            return ""
        } catch {
            return "\(error)"
        }
    }

    @Test func startsFromTheDefaults() throws {
        #expect(
            try decode("{}").text
                == ##"[true,4000,2,"",null,1.5,"calm",null,"1280x720",30,"#20a0ff",null,[8554,8555]]"##)
    }

    @Test func readsEveryTypeOfValue() throws {
        let options = try decode(
            ##"""
            { "isOn": false, "bitrateKbps": 1e3, "keyframeSeconds": 0.5, "label": "Grüße", "crf": 23, "gain": 4, "mood": "wild",
              "otherMood": "brisk", "size": "1x16384", "rate": "30000/1001", "color": "#FF0080", "format": "nv12", "ports": [] }
            """##)
        #expect(
            options.text
                == ##"[false,1000,0.5,"Grüße",23,4,"wild","brisk","1x16384","30000/1001","#ff0080","nv12",[]]"##)
        #expect(options.rate.rational == Rational(30_000, 1001))
        #expect(options.color == RGBColor(red: 255, green: 0, blue: 128))
    }

    @Test func takesNullForAnOptionThatMayBeAbsent() throws {
        let options = try decode(#"{ "gain": null, "crf": null }"#)
        #expect(options.gain == nil && options.crf == nil)
        #expect(faults(#"{ "label": null }"#) == "o:1:12: label: expected a string, found null.")
    }

    @Test func takesBothEndsOfARange() throws {
        #expect(try decode(#"{ "bitrateKbps": 64 }"#).bitrateKbps == 64)
        #expect(try decode(#"{ "bitrateKbps": 100000, "crf": 51, "rate": 240 }"#).crf == 51)
    }

    @Test(arguments: [
        (
            #"{ "bitrateKbps": 20 }"#,
            "o:1:18: bitrateKbps: 20 must be from 64 to 100000. Use 64 or more, or leave the key out for 4000."
        ),
        (
            #"{ "keyframeSeconds": 61.5 }"#,
            "o:1:22: keyframeSeconds: 61.5 must be from 0.1 to 60. Use 60 or less, or leave the key out for 2."
        ),
        (#"{ "crf": 52 }"#, "o:1:10: crf: 52 must be from 0 to 51. Use 51 or less."),
        (#"{ "gain": -1 }"#, "o:1:11: gain: -1 must be from 0 to 4. Use 0 or more, or leave the key out for 1.5."),
        (
            #"{ "rate": 0.5 }"#,
            "o:1:11: rate: \"1/2\" must be from 1 to 240. Use 1 or more, or leave the key out for 30."
        ),
        (#"{ "isOn": 1 }"#, "o:1:11: isOn: expected true or false, found 1."),
        (
            #"{ "isOn": "true" }"#,
            "o:1:11: isOn: expected true or false, found a string. Write true or false, without quotes."
        ),
        (#"{ "bitrateKbps": 2.5 }"#, "o:1:18: bitrateKbps: expected a whole number, found 2.5."),
        (
            #"{ "bitrateKbps": "2" }"#,
            "o:1:18: bitrateKbps: expected a whole number, found a string. Write it without quotes."
        ),
        (
            #"{ "bitrateKbps": "2.5" }"#,
            "o:1:18: bitrateKbps: expected a whole number, found a string. Write only a number, without quotes and without a unit."
        ),
        (
            #"{ "keyframeSeconds": "2.5" }"#,
            "o:1:22: keyframeSeconds: expected a number, found a string. Write it without quotes."
        ),
        // JSON has no such numbers.
        (
            #"{ "keyframeSeconds": "nan" }"#,
            "o:1:22: keyframeSeconds: expected a number, found a string. Write only a number, without quotes and without a unit."
        ),
        (
            #"{ "keyframeSeconds": "inf" }"#,
            "o:1:22: keyframeSeconds: expected a number, found a string. Write only a number, without quotes and without a unit."
        ),
        (
            #"{ "keyframeSeconds": "0x10" }"#,
            "o:1:22: keyframeSeconds: expected a number, found a string. Write only a number, without quotes and without a unit."
        ),
        (
            #"{ "keyframeSeconds": "+5" }"#,
            "o:1:22: keyframeSeconds: expected a number, found a string. Write only a number, without quotes and without a unit."
        ),
        (
            #"{ "bitrateKbps": "+5" }"#,
            "o:1:18: bitrateKbps: expected a whole number, found a string. Write only a number, without quotes and without a unit."
        ),
        (
            #"{ "bitrateKbps": 1e30 }"#,
            "o:1:18: bitrateKbps: 1e30 is too large. Write a whole number nearer to 0."
        ),
        (
            #"{ "bitrateKbps": -1e30 }"#,
            "o:1:18: bitrateKbps: -1e30 is too small. Write a whole number nearer to 0."
        ),
        (#"{ "keyframeSeconds": 1e999 }"#, "o:1:22: keyframeSeconds: 1e999 is too large. Write a number nearer to 0."),
        (#"{ "keyframeSeconds": true }"#, "o:1:22: keyframeSeconds: expected a number, found true."),
        (#"{ "label": [] }"#, "o:1:12: label: expected a string, found a list."),
        (#"{ "label": 5 }"#, "o:1:12: label: expected a string, found 5. Put it in double quotes."),
        (#"{ "mood": "wlid" }"#, "o:1:11: mood: 'wlid' must be one of 'calm', 'brisk' or 'wild'. Did you mean 'wild'?"),
        (#"{ "mood": "x" }"#, "o:1:11: mood: 'x' must be one of 'calm', 'brisk' or 'wild'."),
        (
            #"{ "mood": {} }"#,
            "o:1:11: mood: expected 'calm', 'brisk' or 'wild', found an object."
        ),
        (
            #"{ "format": "nv21" }"#,
            "o:1:13: format: 'nv21' must be one of 'i420', 'nv12', 'yuyv', 'bgra', 'rgb24', 'gray8', 'i010' or 'p010'. Did you mean 'nv12'?"
        ),
        (#"{ "ports": 8554 }"#, "o:1:12: ports: expected a list, found 8554. Put it in brackets, [ ]."),
        (#"{ "ports": {} }"#, "o:1:12: ports: expected a list, found an object."),
        (
            #"{ "ports": [1, "a"] }"#,
            "o:1:12: ports: value 2 of the list: expected a whole number, found a string. Write only a number, without quotes and without a unit."
        ),
        (#"{ "options": {} }"#, "o:1:3: options: no such option. Write the options beside 'use', without \"options\"."),
        (#"{ "bitratekbps": 5 }"#, "o:1:3: bitratekbps: no such option. Did you mean 'bitrateKbps'?"),
        (
            #"{ "preset": 5 }"#,
            "o:1:3: preset: no such option. Use one of the available options: 'bitrateKbps', 'color', 'crf', 'format', 'gain', 'isOn', 'keyframeSeconds', 'label', "
                + "'mood', 'otherMood', 'ports', 'rate' and 'size'."
        ),
        (
            #"{ "label": "both", "crf": 3 }"#,
            "o:1:20: crf: 'crf' and 'label' cannot be used together. Leave one of them out."
        ),
    ])
    func saysWhatIsWrongAndWhatToDo(text: String, message: String) { #expect(faults(text) == message) }

    @Test(arguments: [
        "1280", "x720", "1280x", "1280x720x2", "1280 x 720", "-1280x720", "+1280x720",
        "1280X720",
        "99999999999999999999x1", "",
        "１２x12",
    ])
    func refusesWhatIsNoSize(text: String) {
        #expect(
            faults(#"{ "size": "\#(text)" }"#)
                == "o:1:11: size: \"\(text)\" must be a size in pixels. Write it as \"1280x720\", with each side from 1 to 16384."
        )
    }

    @Test(arguments: ["0x720", "1280x16385"]) func refusesSidesBeyondTheirRange(text: String) {
        #expect(
            faults(#"{ "size": "\#(text)" }"#)
                == "o:1:11: size: each side of \"\(text)\" must be from 1 to 16384 pixels. Write a size such as \"1280x720\"."
        )
    }

    @Test(arguments: [
        #""0/1""#, #""30/0""#, #""30000/1001/1""#, #""/""#, #""+30/1""#, #""-30/-1""#, "[]",
        "true",
        #""99999999999/1""#,
    ])
    func refusesWhatIsNoFrameRate(text: String) {
        #expect(
            faults(#"{ "rate": \#(text) }"#)
                == "o:1:11: rate: \(text) must be a frame rate. Use a number such as 30, or a fraction such as \"30000/1001\"."
        )
    }

    @Test(arguments: ["0", "-1", "1e9", "0.0001", "1e999"]) func refusesRatesBeyondTheirRange(text: String) {
        #expect(
            faults(#"{ "rate": \#(text) }"#)
                == "o:1:11: rate: \(text) must be a frame rate of at \(text.hasPrefix("1e") ? "most 100000" : "least 0.001") frames per second. Use a number such as 30, or a fraction such as \"30000/1001\"."
        )
    }

    @Test func saysThatAFrameRateIsAString() {
        #expect(
            faults(#"{ "rate": "30" }"#) == "o:1:11: rate: \"30\" is a string. Write the number without quotes: 30.")
    }

    @Test(arguments: ["20a0ff", "#20a0f", "#20a0fff", "#20a0fg", "#+0a0ff", "", "#", "blue", "# 0a0ff"])
    func refusesWhatIsNoColour(text: String) {
        #expect(
            faults(#"{ "color": "\#(text)" }"#)
                == "o:1:12: color: \"\(text)\" must be a colour in the form \"#rrggbb\". Write two hex digits each for red, green and blue, such as \"#20a0ff\"."
        )
    }

    @Test func readsShortColours() throws {
        #expect(try decode(##"{ "color": "#0aF" }"##).color == RGBColor(red: 0, green: 0xAA, blue: 0xFF))
    }

    @Test func readsRatesThatAreNotWhole() throws {
        #expect(try decode(#"{ "rate": 29.97 }"#).rate.description == "2997/100")
        #expect(try decode(#"{ "rate": 12.5 }"#).rate.description == "25/2")
        #expect(try decode(#"{ "rate": 60.0 }"#).rate.description == "60")
    }

    @Test func listsAllFaultsInTheOrderOfTheFile() {
        #expect(
            faults(#"{ "crf": 99, "lable": "x", "isOn": 0, "gain": 2 }"#)
                == """
                o:1:10: crf: 99 must be from 0 to 51. Use 51 or less.
                o:1:14: lable: no such option. Did you mean 'label'?
                o:1:36: isOn: expected true or false, found 0.
                """)
    }

    @Test func saysOfAStageWithoutOptionsThatItHasNone() throws {
        let members = try JSONReader.read(Array(#"{ "x": 1 }"#.utf8), file: "o").asObject!
        let error = #expect(throws: FrameHostErrors.self) {
            _ = try OptionDecoder.decode(NoOptions.self, from: members) { key, place in "o:\(place): \(key)" }
        }
        #expect(error?.description == "o:1:3: x: no such option. Leave 'x' out: this stage has no options.")
    }
}

/// Takes live options.
private final class Knobs: Filter {
    static let info = StageInfo(id: "knobs", summary: "Has knobs.", input: .anyVideo, output: .sameAsInput)
    typealias Options = AllOptions
    var options: AllOptions
    var changes = 0
    init(options: AllOptions, context: StageContext) { self.options = options }
    func optionsChanged() throws { changes += 1 }
    func process(_ frame: inout Frame) throws -> Verdict { .forward }
}

@Suite struct LiveOptionsTests {
    private func make() throws -> StageDriver<Knobs> {
        try StageDriver(Knobs.self, options: #"{ "crf": 20 }"#, input: .video(VideoFormat(.gray8, width: 2, height: 2)))
    }

    @Test func changesWhatIsLiveAndKeepsTheRest() throws {
        let driver = try make()
        try driver.set(#"{ "bitrateKbps": 3000, "label": "on air" }"#)
        #expect(
            driver.stage.options
                == {
                    var options = AllOptions()
                    options.crf = 20
                    options.bitrateKbps = 3000
                    options.label = "on air"
                    return options
                }())
        #expect(driver.stage.changes == 1)
    }

    @Test(arguments: [
        (
            #"{ "bitrateKbps": 3000, "crf": 30 }"#,
            "crf: cannot change while the chain runs. Set it in the chain file, then reload or restart the chain. Only 'isOn', 'bitrateKbps' and 'label' can change while it runs."
        ),
        (
            #"{ "label": "x", "bitrateKbps": 3 }"#, "bitrateKbps: 3 must be from 64 to 100000. Use 64 or more."
        ),
        (#"{ "label": "x", "bitrate": 3 }"#, "bitrate: no such option. Did you mean 'bitrateKbps'?"),
        (
            #"{ "options": { "label": "x" } }"#,
            "options: no such option. Write the options one level higher, without \"options\"."
        ),
        (
            #"{ "isOn": false, "label": "both" }"#,
            "label: 'crf' and 'label' cannot be used together. Leave one of them out."
        ),
    ])
    func changesAllOrNothing(text: String, message: String) throws {
        let driver = try make()
        let before = driver.stage.options
        let error = #expect(throws: FrameHostErrors.self) { try driver.set(text) }
        #expect(error?.description == message)
        #expect(driver.stage.options == before)
        #expect(driver.stage.changes == 0)
    }
}

@Suite struct OptionFieldTests {
    private func field(_ name: String) throws -> OptionField {
        try #require(AllOptions.fields.first { $0.name == name })
    }

    @Test func comeInTheOrderOfDeclaration() {
        #expect(
            AllOptions.fields.map(\.name) == [
                "isOn", "bitrateKbps", "keyframeSeconds", "label", "crf", "gain", "mood", "otherMood", "size", "rate",
                "color", "format",
                "ports",
            ])
        #expect(NoOptions.fields.isEmpty)
    }

    @Test func sayAllThatAListingShows() throws {
        let field = try field("bitrateKbps")
        #expect(
            field.typeName == "integer" && field.help == "Average bitrate." && field.unit == "kbit/s" && field.isLive)
        #expect(field.defaultValue == 4000 && field.minimum == 64 && field.maximum == 100_000)
        let quality = try self.field("crf")
        #expect(!quality.isLive && quality.defaultValue == .null && quality.maximum == 51)
    }

    @Test func nameTheirTypesForPeople() {
        #expect(
            AllOptions.fields.map(\.typeName) == [
                "true or false", "integer", "number", "string", "integer", "number", #""calm", "brisk", "wild""#,
                #""calm", "brisk", "wild""#, "size", "frame rate", "colour",
                #""i420", "nv12", "yuyv", "bgra", "rgb24", "gray8", "i010", "p010""#, "list of integer",
            ])
    }

    @Test(arguments: [
        ("isOn", #"{"type":"boolean","description":"A switch.","default":true}"#),
        (
            "bitrateKbps",
            #"{"type":"integer","description":"Average bitrate. (kbit/s)","minimum":64,"maximum":100000,"default":4000}"#
        ),
        (
            "keyframeSeconds",
            #"{"type":"number","description":"Seconds between keyframes. (s)","minimum":0.1,"maximum":60,"default":2}"#
        ),
        ("crf", #"{"type":"integer","description":"Quality.","minimum":0,"maximum":51}"#),
        ("mood", #"{"enum":["calm","brisk","wild"],"description":"The mood.","default":"calm"}"#),
        (
            "size",
            #"{"type":"string","pattern":"^[1-9][0-9]{0,4}x[1-9][0-9]{0,4}$","description":"The size.","default":"1280x720"}"#
        ),
        (
            "rate",
            #"{"anyOf":[{"type":"number","exclusiveMinimum":0},{"type":"string","pattern":"^[0-9]+/[0-9]+$"}],"description":"The rate.","default":30}"#
        ),
        (
            "color",
            ##"{"type":"string","pattern":"^#([0-9A-Fa-f]{3}){1,2}$","description":"The colour.","default":"#20a0ff"}"##
        ),
        ("ports", #"{"type":"array","items":{"type":"integer"},"description":"Ports.","default":[8554,8555]}"#),
    ])
    func giveASchema(name: String, schema: String) throws { #expect(try field(name).schema.text() == schema) }

    // MARK: Rules of several options

    private struct Needed: StageOptions {
        @Option(help: "The rate.") var rate: FrameRate? = nil
        @Option(help: "The name.") var name = ""
        @Option(help: "The place.") var place = ""

        func validate() throws(OptionFaults) {
            var faults: [OptionFault] = []
            if rate == nil { faults.append(OptionFault("'rate' is missing", remedy: "Set it.", options: ["rate"])) }
            if name.isEmpty { faults.append(OptionFault("'name' is missing", remedy: "Set it.", options: ["name"])) }
            if place.isEmpty { faults.append(OptionFault("'place' is missing", remedy: "Set it.", options: ["place"])) }
            guard faults.isEmpty else { throw OptionFaults(faults) }
        }
    }

    private func faultsOfNeeded(_ text: String, isChange: Bool = false) -> String {
        do {
            _ = try OptionDecoder.decode(
                Needed.self, from: JSONReader.read(Array(text.utf8), file: "o").asObject!, isChange: isChange
            ) { key, _ in key.isEmpty ? "o" : "o: \(key)" }
            return ""
        } catch { return "\(error)" }
    }

    @Test func reportsEveryRuleThatIsBroken() {
        #expect(
            faultsOfNeeded(#"{ "rate": 30 }"#) == "o: 'name' is missing. Set it.\no: 'place' is missing. Set it.")
    }

    /// The value is not known, but the key is there.
    @Test func doesNotCallAnOptionMissingWhoseValueIsWrong() {
        #expect(
            faultsOfNeeded(#"{ "rate": "x", "name": "n", "place": "p" }"#)
                == #"o: rate: "x" must be a frame rate. Use a number such as 30, or a fraction such as "30000/1001"."#
        )
    }

    /// A command cannot leave a key out to get its default.
    @Test func namesNoDefaultWhereOptionsOfAStageThatRunsAreChanged() throws {
        func text(isChange: Bool) -> String {
            do {
                _ = try OptionDecoder.decode(
                    AllOptions.self,
                    from: JSONReader.read(Array(#"{ "bitrateKbps": 20 }"#.utf8), file: "o").asObject!,
                    isChange: isChange
                ) { key, _ in FaultPlace(key) }
                return ""
            } catch { return "\(error)" }
        }
        #expect(text(isChange: false).hasSuffix(", or leave the key out for 4000."))
        #expect(text(isChange: true) == "bitrateKbps: 20 must be from 64 to 100000. Use 64 or more.")
    }
}
