// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// Texts as `text()` writes them, and what they hold; used both ways.
private let vectors: [(text: String, node: JSONNode)] = [
    ("null", .null),
    ("true", true),
    ("false", false),
    ("0", 0),
    ("-0", JSONNode(.number("-0"))),
    ("9223372036854775807", 9_223_372_036_854_775_807),
    ("-9223372036854775808", -9_223_372_036_854_775_808),
    ("1.0", 1.0),
    ("-0.5e-7", JSONNode(.number("-0.5e-7"))),
    ("1E+400", JSONNode(.number("1E+400"))),
    (#""""#, ""),
    (#""Grüße 👋""#, "Grüße 👋"),
    (#""\"\\/\n\r\t\u0000\u001F""#, "\"\\/\n\r\t\u{0}\u{1F}"),
    (#""\u007F\u009B\u2028\u202E""#, "\u{7F}\u{9B}\u{2028}\u{202E}"),
    ("[]", []),
    ("[1,[2,[]],{}]", [1, [2, []], JSONNode(.object([]))]),
    ("{}", JSONNode(.object([]))),
    (#"{"b":1,"a":{"":null},"é":[true]}"#, ["b": 1, "a": ["": .null], "é": [true]]),
]

private func read(_ text: String, limits: JSONReader.Limits = .init()) throws -> JSONNode {
    try JSONReader.read(Array(text.utf8), file: "chain.json", limits: limits)
}

/// The faults of a text, one a line; empty when it can be read.
private func faults(_ bytes: [UInt8], limits: JSONReader.Limits = .init()) -> String {
    do {
        _ = try JSONReader.read(bytes, file: "chain.json", limits: limits)
        return ""
    } catch {
        return String(describing: error)
    }
}

private func faults(_ text: String, limits: JSONReader.Limits = .init()) -> String {
    faults(Array(text.utf8), limits: limits)
}

struct JSONReaderTests {
    /// The writer escapes what a terminal would obey; others need not.
    @Test func readsWhatATerminalWouldObey() throws {
        #expect(try read("\"\u{7F}\u{9B}\u{2028}\"").withoutPlaces == "\u{7F}\u{9B}\u{2028}")
    }

    @Test(arguments: vectors)
    func readsWhatTheWriterWrites(text: String, node: JSONNode) throws {
        #expect(try read(text).withoutPlaces == node)
        #expect(node.text() == text)
        #expect(try read(node.text(pretty: true)).withoutPlaces == node)
    }

    @Test(
        arguments: [
            ("// one\n1", 1), ("1 // one", 1), ("1//", 1), ("/**/1/***/", 1), ("/* / * // */ 1", 1), ("//*\r1", 1),
            ("[1,]", [1]), ("[1 /* , */ , // x\n]", [1]), ("{\"a\":1,}", ["a": 1]), ("{\"a\"/**/:/**/1}", ["a": 1]),
            ("\u{FEFF} 1", 1), ("\t\r\n1", 1),
            (#""\u00e9\u00E9\uD83D\uDC4B\/\b\f""#, "éé👋/\u{8}\u{C}"),
        ] as [(String, JSONNode)])
    func readsCommentsTrailingCommasAndEscapes(text: String, node: JSONNode) throws {
        #expect(try read(text).withoutPlaces == node)
    }

    @Test func tellsThePlaceOfEveryValueAndKey() throws {
        let node = try read("\u{FEFF}{ \"é\": [1,\r\n\t/* two\r lines */ 2],\n\"b\": {} }")
        #expect(node.place == TextPlace(line: 1, column: 1))
        let members = try #require(node.asObject)
        #expect(members[0].keyPlace == TextPlace(line: 1, column: 3))
        #expect(members[0].value.place == TextPlace(line: 1, column: 9))
        #expect(members[0].value.asArray?[0].place == TextPlace(line: 1, column: 10))
        #expect(members[0].value.asArray?[1].place == TextPlace(line: 3, column: 11))
        #expect(members[1].keyPlace == TextPlace(line: 4, column: 1))
    }

    @Test(
        arguments: [
            ("", " is empty. Write a JSON value."),
            ("\u{FEFF} \n", " is empty. Write a JSON value."),
            ("// x\n /* y */", " contains only comments. Write a JSON value."),
            ("True", "1:1: expected a value, found 'True'. Did you mean 'true'?"),
            ("undefined", "1:1: expected a value, found 'undefined'. Did you mean 'null'?"),
            ("[nil]", "1:2: expected a value or ']', found 'nil'. Did you mean 'null'?"),
            ("{\"a\": fast}", "1:7: expected a value, found 'fast'. Put text in double quotes."),
            ("'a'", "1:1: expected a value, found \"'\". Use double quotes (\")."),
            ("[“a”]", "1:2: expected a value or ']', found '“' (U+201C). Use straight double quotes (\")."),
            (
                "[\u{A0}1]",
                "1:2: expected a value or ']', found U+00A0. Write a string, a number, a list, an object, true, false or null."
            ),
            ("# x\n1", "1:1: expected a value, found '#'. Start comments with // or /*."),
            (
                "1 /",
                "1:3: expected the end of the text, found '/'. Put paths and fractions in double quotes; start comments with // or /*."
            ),
            (
                "{ \"rate\": 30 fps }",
                "1:14: expected ',' or '}' after a value, found 'fps'. A comma is missing here, or a closing quotation mark earlier on this line."
            ),
            ("{} {}", "1:4: expected the end of the text, found '{'. Remove the rest: a JSON text is only one value."),
            ("[,]", "1:2: expected a value or ']', found ','. Leave the extra comma out."),
            ("{\"a\":1,,}", "1:8: expected a key or '}', found ','. Leave the extra comma out."),
            ("{a: 1}", "1:2: expected a key or '}', found 'a'. Put keys in double quotes."),
            ("{{}}", "1:2: expected a key or '}', found '{'. Write a key and a colon before the value."),
            (
                "{\"use: \"convert\"}",
                "1:9: expected ':' after a key, found 'convert'. A colon is missing here, or the key's closing quotation mark earlier on this line."
            ),
            ("{\"a\" 1}", "1:6: expected ':' after a key, found '1'. Put a colon between a key and its value."),
            ("[\n1,\n \"b\" \"c\"]", "3:6: expected ',' or ']' after a value, found '\"'. Put a comma between values."),
            (
                "{\"a\": 1\n\"b\": 2}",
                "2:1: expected ',' or '}' after a value, found '\"'. Put a comma between members."
            ),
            (
                "[\"a\": 1]",
                "1:5: expected ',' or ']' after a value, found ':'. Put keys and their values into an object, { }."
            ),
            (
                "[{\n\"a\": [1}]",
                "2:8: expected ',' or ']' after a value, found '}'. Close the list that starts at 2:6 with ']'."
            ),
            (
                "\n{\"a\": 1",
                "2:8: expected ',' or '}' after a value, found the end of the text. Close the object that starts at 2:1 with '}'."
            ),
            (
                "[1,",
                "1:4: expected a value or ']', found the end of the text. Close the list that starts at 1:1 with ']'."
            ),
            (
                "{",
                "1:2: expected a key or '}', found the end of the text. Close the object that starts at 1:1 with '}'."
            ),
            ("{]", "1:2: expected a key or '}', found ']'. Close the object that starts at 1:1 with '}'."),
            ("\n /* a\n b", "2:2: a comment is not closed. Close it with '*/'."),
            ("[\"ab", "1:2: a string is not closed. Close it with '\"'."),
            ("[\"ab\\", "1:2: a string is not closed. Close it with '\"'."),
            ("[\"ab\\u12", "1:2: a string is not closed. Close it with '\"'."),
            ("[\"ab\\ud83d\\u", "1:2: a string is not closed. Close it with '\"'."),
            (
                "[\"ab,\n\"c\"]",
                "1:2: a string is not closed at the end of its line. Close it with '\"'; a line break within it is written \\n."
            ),
            ("\"a\tb\"", "1:3: a string holds the control character U+0009. Write it as \\t."),
            ("\"a\u{1B}\"", "1:3: a string holds the control character U+001B. Write it as \\u001B."),
            (
                "\"C:\\Users\"",
                #"1:4: '\' before 'Users' is not an escape sequence. Use \" \\ \/ \b \f \n \r \t or \uXXXX (four hex digits); a backslash itself is written \\."#
            ),
            ("\"\\u00g0\"", "1:2: expected four hex digits after '\\u', found 'g0'. Write it like \\u00e9."),
            ("\"\\ud83d!\"", "1:2: '\\ud83d' is half of a surrogate pair. Write both halves, or the character itself."),
            (
                "\"\\ud83d\\u0041\"",
                "1:2: '\\ud83d' is half of a surrogate pair. Write both halves, or the character itself."
            ),
            ("\"a\\uDC4B\"", "1:3: '\\uDC4B' is half of a surrogate pair. Write both halves, or the character itself."),
        ] as [(String, String)])
    func saysWhereASyntaxErrorIsAndWhatToDo(text: String, message: String) {
        #expect(faults(text) == "chain.json:\(message)")
    }

    @Test(arguments: [
        ("", "chain.json: is empty. Write { }."),
        ("drain", "chain.json:1:1: expected a value, found 'drain'. Write { }."),
        ("True", "chain.json:1:1: expected a value, found 'True'. Write { }."),
        ("[drain]", "chain.json:1:2: expected a value or ']', found 'drain'. Put text in double quotes."),
    ])
    func saysWhatToWriteWhereTheTextBeginsWithNoValue(text: String, message: String) {
        let errors = #expect(throws: FrameHostErrors.self) {
            _ = try JSONReader.read(Array(text.utf8), file: "chain.json", remedy: "Write { }.")
        }
        #expect(errors?.description == message)
    }

    @Test(arguments: [
        "01", "-", "-a", "1.", ".5", "+1", "1e", "1e+", "1.e1", "0x10", "30fps", "1-2", "--1", "-Infinity",
    ])
    func refusesNumbersBesideTheGrammar(text: String) {
        #expect(
            faults("[\(text)]")
                == "chain.json:1:2: '\(text)' must be a number, or a text in double quotes. Write numbers like 12, -0.5 or 2e3."
        )
    }

    @Test func cutsALongNumberInTheMessage() {
        #expect(
            faults(String(repeating: "0", count: 40))
                == "chain.json:1:1: '\(String(repeating: "0", count: 32))…' must be a number, or a text in double quotes. "
                + "Write numbers like 12, -0.5 or 2e3.")
    }

    @Test func collectsDuplicateKeysAndTheErrorThatEndsReading() {
        let text = """
            { "stages": [ {}, {}, { "path": 1,
              "path": 2, "odd key": {"a": 1, "a": 2} } ],
              "stages": [ ] ]
            """
        #expect(
            faults(text) == """
                chain.json:2:3: stages[2].path: the key appears twice, first at 1:25. Keep one of the two.
                chain.json:2:34: stages[2]["odd key"].a: the key appears twice, first at 2:26. Keep one of the two.
                chain.json:3:3: stages: the key appears twice, first at 1:3. Keep one of the two.
                chain.json:3:17: expected ',' or '}' after a value, found ']'. Close the object that starts at 1:1 with '}'.
                """)
    }

    @Test func takesKeysOfOneSpellingInTwoEncodingsAsDuplicates() {
        #expect(
            faults("{\"\u{E9}\": 1, \"e\u{301}\": 2}")
                == "chain.json:1:11: [\"e\u{301}\"]: the key appears twice, first at 1:2. Keep one of the two.")
    }

    @Test func findsADuplicateAmongManyKeys() {
        let members = (0..<20_000).map { "\"k\($0)\":0" }
        #expect(faults("{\(members.joined(separator: ","))}") == "")
        #expect(
            faults("{\(members.joined(separator: ",\n")),\n\"k19998\":1}")
                == "chain.json:20001:1: k19998: the key appears twice, first at 19999:1. Keep one of the two.")
    }

    @Test func endsReadingAfterAHundredFaults() {
        let lines = faults("{" + String(repeating: "\"k\":0,", count: 200) + "}").split(separator: "\n")
        #expect(lines.count == 100)
        #expect(lines.last == "chain.json:1:602: k: the key appears twice, first at 1:2. Keep one of the two.")
    }

    @Test(
        arguments: [
            ([0xFF, 0xFE, 0x7B, 0x00], "1:1: byte 0xFF"),
            (Array("[1,\r\n \"é".utf8) + [0xC3, 0x28], "2:5: byte 0xC3"),
            (Array("// ".utf8) + [0xED, 0xA0, 0x80], "1:4: byte 0xED"),
            (Array("\u{FEFF}\"".utf8) + [0xC0, 0xAF], "1:2: byte 0xC0"),
            (Array("1 ".utf8) + [0xF0, 0x9F, 0x91], "1:3: byte 0xF0"),
        ] as [([UInt8], String)])
    func refusesBytesThatAreNotUTF8(bytes: [UInt8], message: String) {
        #expect(faults(bytes) == "chain.json:\(message) is not UTF-8. Write the text in UTF-8.")
    }

    @Test func refusesMoreThanItsLimits() {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(faults(nested(64)) == "")
        #expect(
            faults(nested(65))
                == "chain.json:1:65: the text has more than 64 levels of nested lists and objects. Nest them less deeply."
        )
        #expect(
            faults(String(repeating: "{\"a\":", count: 100_000)).hasPrefix(
                "chain.json:1:321: the text has more than 64 "))
        #expect(faults("{\"\(String(repeating: "k", count: 256))\":0}") == "")
        #expect(
            faults("{\"\(String(repeating: "k", count: 257))\":0}")
                == "chain.json:1:2: a key of 257 bytes is longer than the limit of 256. Use a shorter key, or close its string with '\"'."
        )
        var limits = JSONReader.Limits()
        limits.nodes = 3
        limits.bytes = 8
        #expect(faults("[1,2]", limits: limits) == "")
        #expect(
            faults("[1,2,\n3]", limits: limits)
                == "chain.json:2:1: the text has more than 3 values. Write fewer values.")
        #expect(
            faults("[1,2,3,4]", limits: limits)
                == "chain.json: 9 bytes exceed the limit of 8. Make the text shorter.")
    }
}

struct JSONFileTests {
    /// A file of its own in the temporary folder, removed by the caller's `defer`.
    private func temporaryFile(_ text: String) -> String {
        var template = Array("/tmp/framehost-json-XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        _ = text.withCString { write(descriptor, $0, strlen($0)) }
        close(descriptor)
        return template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }

    private func faults(path: String, limits: JSONReader.Limits = .init()) -> String {
        do {
            _ = try JSONReader.read(path: path, limits: limits)
            return ""
        } catch {
            return String(describing: error)
        }
    }

    @Test func readsAFile() throws {
        let path = temporaryFile("{\"a\": 1, // one\n}")
        defer { unlink(path) }
        #expect(try JSONReader.read(path: path).withoutPlaces == ["a": 1])
    }

    /// Whoever reads a file anew while a chain runs waits for nobody: this pipe has no writer.
    @Test func refusesAPipeAtOnceWhereOnlyAFileIsMeant() throws {
        let path = temporaryFile("")
        unlink(path)
        #expect(mkfifo(path, 0o600) == 0)
        defer { unlink(path) }
        let errors = #expect(throws: FrameHostErrors.self) { try JSONReader.read(path: path, takesPipes: false) }
        #expect(
            errors?.description
                == "\(path): must be a regular file, because the chain is running. Name a JSON file that is a regular file."
        )
    }

    @Test func readsAPipeUpToTheLimit() throws {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        #expect(write(ends[1], "[1] // piped", 12) == 12)
        close(ends[1])
        defer { close(ends[0]) }
        let path = "/proc/self/fd/\(ends[0])"
        #expect(try JSONReader.read(path: path).withoutPlaces == [1])

        var full: [Int32] = [0, 0]
        #expect(pipe(&full) == 0)
        #expect(write(full[1], "[1] // piped", 12) == 12)
        defer { for end in full { close(end) } }
        var limits = JSONReader.Limits()
        limits.bytes = 11
        let fullPath = "/proc/self/fd/\(full[0])"
        #expect(
            faults(path: fullPath, limits: limits)
                == "\(fullPath): has more bytes than the limit of 11. Check that this is the JSON file you mean.")
    }

    @Test func refusesAHugeFileWithoutReadingIt() {
        let path = temporaryFile("")
        defer { unlink(path) }
        #expect(truncate(path, 100_000_000_000) == 0)
        #expect(
            faults(path: path)
                == "\(path): 100000000000 bytes exceed the limit of 16777216. Check that this is the JSON file you mean."
        )
    }

    @Test func refusesWhatIsNoFile() {
        #expect(faults(path: "/tmp") == "/tmp: is a folder. Name a JSON file.")
        #expect(faults(path: "/dev/zero") == "/dev/zero: must be a file or a pipe. Name a JSON file.")
        #expect(
            faults(path: "/no/such.json")
                == "/no/such.json: cannot be opened: No such file or directory. Check the path.")
    }

    @Test func namesAMissingFileUnavailable() {
        let errors = #expect(throws: FrameHostErrors.self) { try JSONReader.read(path: "/no/such.json") }
        #expect(errors?.errors.map(\.code) == [.unavailable])
    }
}

struct JSONNodeTests {
    @Test(
        arguments: [
            ("1", 1), ("-0", 0), ("1.0", 1), ("1e3", 1000), ("10e-1", 1), ("1.50e1", 15),
            ("0.00e99999999999999999999", 0),
            ("9223372036854775807", .max), ("-9223372036854775808", .min), ("-9223372036854775.808e3", .min),
            ("1.5", nil), ("1e-1", nil), ("9223372036854775808", nil), ("-9223372036854775809", nil), ("1e19", nil),
            ("1e99999999999999999999", nil), ("1e-99999999999999999999", nil), ("nan", nil), ("0x10", nil), ("", nil),
        ] as [(String, Int?)])
    func givesWholeNumbersExactly(text: String, number: Int?) {
        #expect(JSONNode(.number(text)).asInt == number)
    }

    @Test(
        arguments: [
            ("0.1", 0.1), ("-2e3", -2000), ("1e999", nil), ("1e-999", 0), ("nan", nil), ("0x10", nil),
            ("179769313486231570000000000000e279", .greatestFiniteMagnitude),
        ] as [(String, Double?)])
    func givesDoublesRoundedToNearest(text: String, number: Double?) {
        #expect(JSONNode(.number(text)).asDouble == number)
    }

    @Test func givesOnlyItsOwnKind() {
        let node: JSONNode = ["text": "a", "flag": true, "list": [1, 2.5], "none": .null]
        #expect(node["text"]?.asString == "a")
        #expect(node["flag"]?.asBool == true)
        #expect(node["list"]?.asArray?.compactMap(\.asDouble) == [1, 2.5])
        #expect(node.asObject?.map(\.key) == ["text", "flag", "list", "none"])
        #expect(node.asObject?.map(\.value.kindName) == ["a string", "true", "a list", "null"])
        #expect(node.kindName == "an object")
        #expect(JSONNode(1).kindName == "a number")
        #expect(node["other"] == nil && node["text"]?["a"] == nil)
        #expect(JSONNode("1").asInt == nil && JSONNode("true").asBool == nil && JSONNode(1).asString == nil)
        #expect(JSONNode.null.asArray == nil && JSONNode.null.asDouble == nil)
    }

    @Test func writesOneItemALineWhenPretty() {
        let node: JSONNode = ["a": [1, []], "b": JSONNode(.object([])), "c": ["d": .null]]
        #expect(
            node.text(pretty: true) == """
                {
                  "a": [
                    1,
                    []
                  ],
                  "b": {},
                  "c": {
                    "d": null
                  }
                }
                """)
    }

    @Test func writesNullForNumbersThatJSONHasNot() {
        #expect(
            JSONNode.array([.number(Double.nan), .number(-Double.infinity), JSONNode(.number("inf"))]).text()
                == "[null,null,null]")
        #expect(JSONNode.array([.number(1e300), .number(UInt64.max)]).text() == "[1e+300,18446744073709551615]")
    }
}

struct JSONPathTests {
    @Test func writesPathsThatJqTakesAfterADot() {
        let path = JSONPath().appending("stages").appending(3)
        #expect(path.appending("bitrateKbps").description == "stages[3].bitrateKbps")
        #expect(path.appending("odd key").appending("_x9").description == #"stages[3]["odd key"]._x9"#)
        #expect(JSONPath().appending("$schema").description == #"["$schema"]"#)
        #expect(JSONPath().appending("9\"\n").description == #"["9\"\n"]"#)
        #expect(JSONPath().appending("").description == #"[""]"#)
        #expect(JSONPath().description == "")
    }
}
