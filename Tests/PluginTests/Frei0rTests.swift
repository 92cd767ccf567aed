// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Frei0r

@Suite struct EffectFoldersTests {
    @Test func findsEffectsWhereTheEnvironmentSays() throws {
        let scratch = try ScratchFolder()
        try FileManager.default.createDirectory(atPath: scratch.file("vendor"), withIntermediateDirectories: true)
        for name in ["mine.so", "vendor/theirs.so", "readme.txt"] {
            try Data().write(to: URL(fileURLWithPath: scratch.file(name)))
        }
        let folders = EffectFolders { ["FREI0R_PATH": "/nowhere:\(scratch.path)", "HOME": "/home/me"][$0] }
        #expect(Array(folders.paths.prefix(3)) == ["/nowhere", scratch.path, "/home/me/.frei0r-1/lib"])
        #expect(try folders.path(of: "MINE", resolve: { $0 }) == scratch.file("mine.so"))
        #expect(try folders.path(of: "theirs", resolve: { $0 }) == scratch.file("vendor/theirs.so"))
        let inside = try folders.path(of: "./x/../mine.so", resolve: { "\(scratch.path)/vendor/../\($0.dropFirst(6))" })
        #expect(inside == scratch.file("mine.so"))
        // A library is code: neither a path elsewhere nor a link to one is loaded.
        let elsewhere = try ScratchFolder()
        try Data().write(to: URL(fileURLWithPath: elsewhere.file("mine.so")))
        try FileManager.default.createSymbolicLink(
            atPath: scratch.file("link.so"), withDestinationPath: elsewhere.file("mine.so"))
        for path in [elsewhere.file("mine.so"), scratch.file("link.so"), "\(scratch.path)-2/mine.so"] {
            let error = #expect(throws: FrameHostError.self) { _ = try folders.path(of: path, resolve: { $0 }) }
            #expect(error?.description.contains(path) == true, "\(String(describing: error))")
        }
        let error = #expect(throws: FrameHostError.self) { _ = try folders.path(of: "thiers", resolve: { $0 }) }
        #expect(error?.remedy == "Did you mean 'theirs'?")
    }
}

@Suite struct EffectParameterTests {
    private func parameter(_ kind: EffectParameter.Kind) -> EffectParameter {
        EffectParameter(index: 0, name: "P", kind: kind, explanation: "")
    }

    @Test func readsEachKind() throws {
        #expect(try parameter(.bool).value(true) == .bool(true))
        #expect(try parameter(.number).value(0.25) == .number(0.25))
        #expect(try parameter(.color).value("#ff8000") == .color(RGBColor(red: 255, green: 128, blue: 0)))
        #expect(try parameter(.position).value([0, 1]) == .position(x: 0, y: 1))
        #expect(try parameter(.string).value("normal") == .string("normal"))
    }

    @Test(arguments: [
        (EffectParameter.Kind.bool, "0.5"), (.number, "true"), (.number, "1.5"), (.color, "1"), (.position, "[0]"),
        (.string, "1"),
    ])
    func refusesWhatIsOfAnotherKind(kind: EffectParameter.Kind, text: String) throws {
        let node = try JSONReader.read(Array(text.utf8), file: "")
        #expect(throws: OptionFault.self) { _ = try parameter(kind).value(node) }
    }
}

private let isInstalled =
    EffectFolders().effects.contains { $0.name == "invert0r" } || ProcessInfo.processInfo.environment["CI"] == "true"

@Suite(
    .enabled(
        if: isInstalled || ProcessInfo.processInfo.environment["CI"] == "true",
        "frei0r-plugins is not installed: make test-packages"))
struct Frei0rTests {
    private func driver(_ options: String, width: Int = 64, height: Int = 48) throws -> StageDriver<Frei0r> {
        try StageDriver(Frei0r.self, options: options, input: .video(VideoFormat(.bgra, width: width, height: height)))
    }

    private func fault(_ options: String) -> String? {
        #expect(throws: FrameHostError.self) { _ = try driver(options) }?.description
    }

    @Test(arguments: [(64, 48), (61, 45), (9, 3), (1, 1)]) func invertsEveryPixelOfAnySize(width: Int, height: Int)
        throws
    {
        let driver = try driver(#"{ "effect": "Invert0r" }"#, width: width, height: height)
        var before: [UInt8] = []
        try driver.send(
            driver.makeFrame {
                TextTests.fill(&$0)
                before = $0.planeBytes[0]
            })
        let frame = try driver.nextFrame()
        let after = frame.planeBytes[0]
        for index in before.indices where index % 4 != 3 { #expect(after[index] == 255 - before[index]) }
        #expect(frame.sequenceNumber == 0)
    }

    /// `B` shows blue as gray, `R` red: an effect that is handed channels in the wrong order shows the other.
    @Test(arguments: [("B", 0), ("G", 1), ("R", 2)]) func handsChannelsOverInTheOrderOfTheEffect(
        effect: String, channel: Int
    ) throws {
        let driver = try driver(#"{ "effect": "\#(effect)" }"#)
        var before: [UInt8] = []
        try driver.send(
            driver.makeFrame {
                TextTests.fill(&$0)
                before = $0.planeBytes[0]
            })
        let after = try driver.nextFrame().planeBytes[0]
        for pixel in 0..<64 * 48 {
            for byte in 0..<3 { #expect(after[pixel * 4 + byte] == before[pixel * 4 + channel]) }
        }
    }

    /// Which of two inputs covers the other one is said at `check`: a mask that lies below covers nothing.
    @Test(arguments: [
        ("alphaover", 0), ("alphaatop", 0), ("alphain", 0), ("cairoblend", 1), ("cairoaffineblend", 1),
        ("composition", 1),
    ]) func saysWhichInputLiesOnTop(effect: String, top: Int) throws {
        let format = MediaFormat.video(VideoFormat(.bgra, width: 64, height: 48))
        let driver = try StageDriver(
            Frei0rMixer.self, options: #"{ "effect": "\#(effect)" }"#, inputs: [format, format])
        let said = driver.takeEvents().filter { $0.name == "note" }.map(\.text).joined()
        #expect(said.hasPrefix("\(effect) shows '\(top)' over '\(1 - top)'"), "\(said)")
        // Both cover everything: the one on top is seen.
        for input in 0..<2 {
            try driver.send(
                driver.makeFrame(input: input, pts: MediaTime(nanoseconds: 0)) {
                    TextTests.fill(&$0, value: 255)
                    $0.withMutablePlane(0) { pixels in
                        for y in 0..<pixels.height {
                            for x in 0..<64 where input == 0 { pixels.row(y)[x * 4] = 0 }
                        }
                    }
                }, to: input)
        }
        let blue = try driver.nextFrame().planeBytes[0][(24 * 64 + 32) * 4]
        #expect(top == 0 ? blue < 20 : blue > 235, "\(blue)")
    }

    @Test func changesParametersWhileRunning() throws {
        let driver = try driver(#"{ "effect": "brightness", "parameters": { "BRIGHTNESS": 0.5 } }"#)
        func mean() throws -> Int {
            try driver.send(driver.makeFrame { TextTests.fill(&$0, value: 100) })
            let bytes = try driver.nextFrame().planeBytes[0]
            return bytes.enumerated().reduce(0) { $0 + ($1.offset % 4 == 3 ? 0 : Int($1.element)) }
                / (bytes.count * 3 / 4)
        }
        #expect(try mean() == 100)
        try driver.set(#"{ "parameters": { "brightness": 0.9 } }"#)
        #expect(try mean() > 150)
        #expect(throws: FrameHostError.self) { try driver.set(#"{ "parameters": { "brightness": 2 } }"#) }
        #expect(try mean() > 150)
    }

    @Test func putsTheEffectsOwnPictureInPlace() throws {
        let driver = try driver(
            ##"{ "effect": "onecol0r", "parameters": { "Color": "#2040ff" } }"##, width: 61, height: 45)
        try driver.send(driver.makeFrame(pts: MediaTime(seconds: 2)) { TextTests.fill(&$0) })
        let frame = try driver.nextFrame()
        #expect(frame.pts.seconds == 2)
        let bytes = frame.planeBytes[0]
        for pixel in 0..<61 * 45 { #expect(Array(bytes[pixel * 4..<pixel * 4 + 3]) == [255, 64, 32]) }
    }

    @Test func listsEffectsAndTheirParameters() throws {
        let filters = try Frei0r.topics()
        #expect(
            filters.count > 90 && filters.contains { $0.name == "glow" } && !filters.contains { $0.name == "xfade0r" })
        let mixers = try Frei0rMixer.topics()
        #expect(mixers.count > 25 && mixers.contains { $0.name == "xfade0r" } && !mixers.contains { $0.name == "glow" })
        guard let topic = try Frei0r.topic("PixeliZ0R") else { throw FrameHostError(.broken, what: "no pixeliz0r") }
        #expect(topic.name == "pixeliz0r" && topic.option == "parameters")
        #expect(topic.facts.contains { $0.name == "kind" && $0.value == "filter" })
        #expect(topic.values.map(\.name).contains("Block width") && topic.values.allSatisfy(\.isLive))
        let color = try Frei0r.topic("tint0r")?.values.first { $0.name == "Map black to" }
        #expect(color?.defaultValue == "#000000" && color?.typeName == RGBColor.optionTypeName)
        #expect(try Frei0r.topic("no such effect")?.name == nil)
        let error = #expect(throws: FrameHostError.self) { _ = try Frei0r.topic("xfade0r") }
        #expect(
            error?.description
                == "effect: xfade0r mixes two pictures, so it does not run in 'frei0r'. Use the stage type 'frei0r-mixer', with two stages in 'from'."
        )
    }

    @Test func saysWhatIsWrong() throws {
        #expect(
            fault(#"{ "effect": "glov" }"#) == "effect: no effect 'glov' is installed. Did you mean 'glow'?")
        #expect(
            fault("{}")?.hasPrefix(
                "effect: no effect is set. Set \"effect\" to one of those listed below.\n  3dflippo, ") == true)
        #expect(
            fault(#"{ "effect": "blend" }"#)
                == "effect: blend mixes two pictures, so it does not run in 'frei0r'. Use the stage type 'frei0r-mixer', with two stages in 'from'."
        )
        #expect(
            fault(#"{ "effect": "glow", "parameters": { "blurr": 1 } }"#)
                == "parameters.blurr: glow has no such parameter. Did you mean 'Blur'?")
        // Its default depends on the size of the picture.
        let list = fault(#"{ "effect": "glow", "parameters": { "list": 1 } }"#)
        #expect(
            list?.hasPrefix(
                "parameters.list: glow has no such parameter. Use one of the parameters listed below.\n  Blur: 0...1, 0"
            )
                == true)
        #expect(list?.hasSuffix(" by default. Blur of the glow") == true)
        let scratch = try ScratchFolder()
        try Data("not a library".utf8).write(to: URL(fileURLWithPath: scratch.file("broken.so")))
        let broken = #expect(throws: FrameHostError.self) { _ = try EffectLibrary(path: scratch.file("broken.so")) }
        #expect(
            broken?.description.hasPrefix(
                "effect: \(scratch.file("broken.so")) could not be loaded. If a library is missing, install it; otherwise use another effect.\n  "
            )
                == true)
        #expect(
            fault(#"{ "effect": "\#(scratch.file("broken.so"))" }"#)?.hasSuffix(
                "must be in a folder of frei0r effects. Move the file to ~/.frei0r-1/lib and correct the path, or add its folder to the environment variable FREI0R_PATH."
            )
                == true)
    }
}
