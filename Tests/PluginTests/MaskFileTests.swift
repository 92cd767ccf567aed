// SPDX-License-Identifier: Apache-2.0

import Foundation
import FrameCore
import Testing

@testable import Mask

/// The file of areas, and privacy.
@Suite struct MaskFileTests {
    private static let format = VideoFormat(.gray8, width: 8, height: 4)
    private static let half = ##"{"polygon":[[0,0],[0.5,0],[0.5,1],[0,1]],"with":"#ffffff"}"##
    private static let quarter = ##"{"polygon":[[0,0],[0.25,0],[0.25,1],[0,1]],"with":"#ffffff"}"##

    private let folder: String

    init() throws {
        folder = NSTemporaryDirectory() + "mask-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    }

    private func driver(_ options: String) throws -> StageDriver<Mask> {
        try StageDriver(Mask.self, options: "{ \(options) }", input: .video(Self.format), folder: folder)
    }

    private var path: String { "\(folder)/areas.json" }
    private func write(_ text: String) throws { try text.write(toFile: path, atomically: true, encoding: .utf8) }
    private func content() throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

    /// How many pixels are covered.
    private func covered(_ driver: StageDriver<Mask>) throws -> Int {
        try driver.send(driver.makeFrame { TextTests.fill(&$0, value: 0) })
        return try driver.nextFrame().planeBytes[0].count { $0 > 0 }
    }

    @Test func keepsTheAreasOfARunForTheNext() throws {
        let first = try driver(#""areasFile": "areas.json", "areas": [\#(Self.half)]"#)
        #expect(try covered(first) == 16)
        // Nothing is written before something changes.
        first.finishJobs()
        #expect(!FileManager.default.fileExists(atPath: path))
        try first.set(#"{ "areas": [\#(Self.quarter)] }"#)
        first.finishJobs()
        #expect(first.takeEvents().map(\.name).contains("areas-saved"))
        let node = try JSONReader.read(Array(content().utf8), file: "areas")
        #expect(node["use"]?.asString == "mask")
        #expect(node["areas"]?.withoutPlaces.text() == "[\(Self.quarter)]")
        let second = try driver(#""areasFile": "areas.json", "areas": [\#(Self.half)]"#)
        #expect(try covered(second) == 8)
        // And again, in the place of the file that is ours.
        try second.set(#"{ "areas": [] }"#)
        second.finishJobs()
        #expect(try covered(driver(#""areasFile": "areas.json", "areas": [\#(Self.half)]"#)) == 0)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["areas.json"])
    }

    @Test func takesAFileThatAPersonWrote() throws {
        try write("{ \"areas\": [\(Self.half)] } // ours")
        #expect(try covered(driver(#""areasFile": "areas.json""#)) == 16)
    }

    @Test(arguments: [
        (#"{ "stages": [] }"#, "areas.json:1:3: stages: no such option."),
        (#"{ "use": "text", "areas": [] }"#, "areas.json:1:3: use: the file is of 'text', not of 'mask'."),
        (
            #"{ "areas": [{ "polygon": [[0, 0], [1, 0], [1, 2]] }] }"#,
            "areas.json:1:43: areas[0].polygon[2]: [1,2] must be"
        ),
        ("[1, 2]", "areas.json:1:1: expected an object, found a list."), (#"{ "areas": "#, "is no JSON: areas.json:1:"),
        ("", "is no JSON: "), ("words", "is no JSON: "),
    ])
    func refusesAFileOfAnotherShapeAndLeavesIt(text: String, part: String) throws {
        try write(text)
        for privacy in [false, true] {
            let error = #expect(throws: (any Error).self) {
                try driver(#""areasFile": "areas.json", "areas": [\#(Self.half)], "privacy": \#(privacy)"#)
            }
            let fault = FrameHostError.wrap(try #require(error))
            #expect(fault.place.description.contains("areasFile"))
            #expect("\(fault)".contains(part), "\(fault)")
            #expect(!fault.remedy.isEmpty)
        }
        #expect(try content() == text)
    }

    @Test func doesNotReplaceAFileThatHasBecomeAnothers() throws {
        let stage = try driver(#""areasFile": "areas.json", "areas": [\#(Self.half)]"#)
        try write("a letter")
        try stage.set(#"{ "areas": [\#(Self.quarter)] }"#)
        stage.finishJobs()
        #expect(try content() == "a letter")
        let events = stage.takeEvents()
        #expect(events.contains { $0.name == "areas-not-saved" && $0.level == .warning })
        // The areas hold all the same.
        #expect(try covered(stage) == 8)
    }

    @Test func keepsALinkToTheFile() throws {
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "kept.json")
        let stage = try driver(#""areasFile": "areas.json""#)
        for areas in [Self.half, Self.quarter] {
            try stage.set(#"{ "areas": [\#(areas)] }"#)
            stage.finishJobs()
        }
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: path) == "kept.json")
        #expect(try covered(driver(#""areasFile": "areas.json""#)) == 8)
    }

    @Test func refusesAFolder() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        #expect(throws: (any Error).self) { try driver(#""areasFile": "areas.json""#) }
    }

    @Test func declaresItsFile() throws {
        let demand = try driver(#""areasFile": "areas.json""#).stage.demand
        #expect(demand.readsFiles == [path] && demand.writesFiles == [path] && !demand.mustNotBePassed)
    }

    // MARK: Privacy

    @Test func mustNotBePassedWithPrivacy() throws {
        let stage = try driver(#""privacy": true, "areas": [\#(Self.half)]"#)
        #expect(stage.stage.demand.mustNotBePassed)
        #expect(try covered(stage) == 16)
    }

    @Test func doesNotStartWithoutAreas() throws {
        #expect(throws: FrameHostErrors.self) { try driver(#""privacy": true"#) }
        #expect(throws: FrameHostErrors.self) { try driver(#""privacy": true, "areas": []"#) }
        // Neither where the file has none.
        #expect(throws: FrameHostError.self) { try driver(#""privacy": true, "areasFile": "areas.json""#) }
        try write(#"{ "areas": [] }"#)
        #expect(throws: FrameHostError.self) {
            try driver(#""privacy": true, "areasFile": "areas.json", "areas": [\#(Self.half)]"#)
        }
        try write(#"{ "areas": [\#(Self.half)] }"#)
        #expect(try covered(driver(#""privacy": true, "areasFile": "areas.json""#)) == 16)
    }

    @Test func keepsItsLastAreaWithPrivacy() throws {
        let stage = try driver(#""privacy": true, "areasFile": "areas.json", "areas": [\#(Self.half)]"#)
        #expect(throws: (any Error).self) { try stage.set(#"{ "areas": [] }"#) }
        stage.finishJobs()
        #expect(try covered(stage) == 16)
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    /// An area without an inside, exactly between two pixels, is an area all the same.
    @Test(arguments: [false, true]) func coversALineToo(isPrivate: Bool) throws {
        let line = #"{ "polygon": [[0.5, 0], [0.5, 1], [0.5, 0]] }"#
        let stage = try driver(#""privacy": \#(isPrivate), "areas": [\#(line)]"#)
        #expect(try covered(stage) > 0)
    }
}
