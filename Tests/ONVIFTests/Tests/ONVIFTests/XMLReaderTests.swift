// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import ONVIF

@Suite struct XMLReaderTests {
    private func fault(_ text: String) -> XMLReader.Fault? { fault(Array(text.utf8)) }

    private func fault(_ bytes: [UInt8]) -> XMLReader.Fault? {
        do {
            _ = try XMLReader.read(bytes)
            return nil
        } catch { return error }
    }

    @Test func readsNamesWithTheirNamespacesAttributesAndText() throws {
        let root = try XMLReader.read(
            Array("<a:x xmlns:a='urn:a' k='1 &lt; 2'> <y xmlns='urn:b'>p&amp;q<![CDATA[<r>]]>&#65;</y></a:x>".utf8))
        #expect(root.name == "x" && root.space == "urn:a")
        #expect(root.attribute("k") == "1 < 2")
        #expect(root["y"]?.space == "urn:b")
        #expect(root["y"]?.value == "p&q<r>A")
        #expect(root.declared == [.init(name: "a", value: "urn:a")])
        #expect(root["y"]?.declared == [.init(name: "", value: "urn:b")])
    }

    @Test func refusesEveryDocumentType() {
        let bomb = """
            <?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">\
            <!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><lolz>&c;</lolz>
            """
        #expect(fault(bomb) == .forbidden)
        #expect(fault(#"<!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>"#) == .forbidden)
        #expect(fault(#"<!DOCTYPE x [<!ENTITY e SYSTEM "http://192.0.2.1/">]><x>&e;</x>"#) == .forbidden)
        #expect(fault(#"<!DOCTYPE x [<!ENTITY % p SYSTEM "http://192.0.2.1/"> %p;]><x/>"#) == .forbidden)
        #expect(fault(#"<!DOCTYPE x><x/>"#) == .forbidden)
        #expect(fault(#"<?xml-stylesheet href="a"?><x/>"#) == .forbidden)
        #expect(fault("<x>&unknown;</x>") != nil)
    }

    @Test func boundsDepthNumbersAndNames() {
        func nested(_ depth: Int) -> String {
            String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
        }
        #expect(fault(nested(XMLReader.mostDepth)) == nil)
        #expect(fault(nested(XMLReader.mostDepth + 1)) == .tooLarge)
        #expect(fault("<a>" + String(repeating: "<b/>", count: XMLReader.mostElements - 1) + "</a>") == nil)
        #expect(fault("<a>" + String(repeating: "<b/>", count: XMLReader.mostElements) + "</a>") == .tooLarge)
        let attributes = (0...XMLReader.mostAttributes).map { " a\($0)='1'" }.joined()
        #expect(fault("<a\(attributes)/>") == .tooLarge)
        #expect(fault("<\(String(repeating: "n", count: XMLReader.mostNameBytes))/>") == nil)
        #expect(fault("<\(String(repeating: "n", count: XMLReader.mostNameBytes + 1))/>") == .tooLarge)
        #expect(fault("<a xmlns='\(String(repeating: "n", count: XMLReader.mostNameBytes + 1))'/>") == .tooLarge)
        let declared = (0...XMLReader.mostAttributes).map { " xmlns:a\($0)='u'" }.joined()
        #expect(fault("<a\(declared)/>") == .tooLarge)
        #expect(fault("<a xmlns:p='\(String(repeating: "n", count: XMLReader.mostNameBytes + 1))'/>") == .tooLarge)
        #expect(fault("<a>" + String(repeating: " ", count: XMLReader.mostBytes) + "</a>") == .tooLarge)
    }

    @Test func takesNothingButWholeDocumentsInUTF8() {
        let utf16 = Array("<a/>".utf16).flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] }
        #expect(fault(utf16) == .malformed)
        #expect(fault([0xff, 0xfe] + utf16) == .malformed)
        #expect(fault(Array("<a>".utf8) + [0xff, 0x80] + Array("</a>".utf8)) != nil)
        for text in ["", " ", "<a>", "<a></b>", "a", "<a/><b/>", "<a b='1' b='2'/>", "<a>\u{1}</a>"] {
            #expect(fault(text) == .malformed, "\(text)")
        }
        // It says that it is something else, and is not believed.
        #expect(fault("<?xml version='1.0' encoding='UTF-16'?><a/>") == nil)
    }

    @Test func whatIsWrittenIsReadAgain() throws {
        let text = "a<b>&\"'\u{1}\u{fffe}é\u{1f600}]]>"
        let node = XMLNode("a", [("k", text)], [XMLNode("b", text)])
        let root = try XMLReader.read(node.bytes)
        #expect(root.attribute("k") == "a<b>&\"'\u{fffd}\u{fffd}é\u{1f600}]]>")
        #expect(root["b"]?.text == "a<b>&\"'\u{fffd}\u{fffd}é\u{1f600}]]>")
    }
}

@Suite struct XMLTimeTests {
    @Test func readsWhatItWrites() {
        var second: Int64 = 0
        while second < 7_200_000_000 {
            #expect(XMLTime.seconds(XMLTime.text(second)) == second)
            second += 86_399 * 97
        }
        #expect(XMLTime.text(1_796_040_000) == "2026-11-30T12:00:00Z")
    }

    @Test func readsTheFormsOfClients() {
        for text in [
            "2025-01-13T11:59:41.011Z", "2025-01-13T11:59:41+00:00", "2025-01-13T13:59:41+02:00",
            "2025-01-13T11:59:41", "2025-01-13T06:59:41.9-05:00",
        ] { #expect(XMLTime.seconds(text) == 1_736_769_581, "\(text)") }
        for text in [
            "", "now", "1900-01-01T00:00:00Z", "2025-13-01T00:00:00Z", "2025-01-01T00:00:00.Z", "2025-01-01",
            "99999999999999999999-01-01T00:00:00Z", "2025-01-01T00:00:00ZZ", "2025-01-01T00:00:00+99:00",
        ] { #expect(XMLTime.seconds(text) == nil, "\(text)") }
    }

    @Test func readsDurations() {
        #expect(XMLTime.duration("PT1M") == 60)
        #expect(XMLTime.duration("P0Y0M0DT0H0M30.5S") == 30.5)
        #expect(XMLTime.duration("PT0S") == 0)
        for text in ["", "P", "1M", "P1Y", "PT", "PT-5S", "PT1e9S", "P99999999D", "PTTS", "PT5"] where text != "PT" {
            #expect(XMLTime.duration(text) == nil, "\(text)")
        }
    }
}
