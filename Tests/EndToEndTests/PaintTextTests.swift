// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// `text` beside ffmpeg's drawtext, which draws with the same library.
@Suite struct PaintTextTests {
    static let font = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"

    /// Luma of a picture, and what of it is covered.
    struct Drawn {
        let luma: [UInt8]
        let width: Int
        let columns: ClosedRange<Int>
        let rows: ClosedRange<Int>

        init(_ data: Data, width: Int, height: Int) throws {
            let luma = Array(data.prefix(width * height))
            let columns = (0..<width).filter { x in (0..<height).contains { luma[$0 * width + x] > 24 } }
            let rows = (0..<height).filter { y in luma[y * width..<(y + 1) * width].contains { $0 > 24 } }
            guard let left = columns.first, let top = rows.first, luma.count == width * height else {
                throw TestFault("an empty picture")
            }
            (self.luma, self.width, self.columns, self.rows) = (luma, width, left...columns.last!, top...rows.last!)
        }

        func value(_ x: Int, _ y: Int) -> Int {
            columns.contains(x + columns.lowerBound) && rows.contains(y + rows.lowerBound)
                ? Int(luma[(y + rows.lowerBound) * width + x + columns.lowerBound]) : 16
        }
    }

    /// Texts without pairs that DejaVu moves closer: drawtext (5.1) does not.
    @Test(.needs(Tool(name: "ffmpeg")), arguments: [("0123456789 Hnm", 48), ("Ñandü & é ß ©", 33), ("Ωμέγα Жук", 70)])
    func drawsAsDrawtextDoes(text: String, size: Int) throws {
        let workspace = try Workspace()
        let chain = """
            { "stages": [
              { "id": "pictures", "use": "test-source", "size": "1280x240", "pattern": "solid", "number": false, "frames": 1 },
              { "id": "text", "use": "text", "text": "\(text)", "size": \(size), "font": "\(Self.font)", "position": "left", "margin": 20 },
              { "id": "end", "use": "null-sink", "dump": "ours.yuv" } ] }
            """
        try workspace.write("chain.json", chain)
        let outcome = try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        try workspace.write("text.txt", text)
        let peer = try Tool(name: "ffmpeg").run(
            "-nostdin", "-v", "error", "-f", "lavfi", "-i", "color=black:s=1280x240,format=yuv420p", "-frames:v", "1",
            "-vf",
            "drawtext=fontfile=\(Self.font):textfile=\(workspace.path("text.txt")):fontsize=\(size):fontcolor=white:x=20:y=80",
            "-f", "rawvideo", workspace.path("peer.yuv"))
        #expect(peer.status == 0, "\(peer.error)")
        let ours = try Drawn(workspace.data("ours.yuv"), width: 1280, height: 240)
        let theirs = try Drawn(workspace.data("peer.yuv"), width: 1280, height: 240)
        // The same library at the same size with the same hints: coverage is the same. Each rounds it to the 219 steps
        // of luma in its own way, by one step in all three of these texts; two are allowed, for another version of
        // either.
        #expect(ours.columns.count == theirs.columns.count && ours.rows.count == theirs.rows.count)
        var most = 0
        for y in 0..<theirs.rows.count {
            for x in 0..<theirs.columns.count { most = max(most, abs(ours.value(x, y) - theirs.value(x, y))) }
        }
        #expect(most <= 2, "\(most)")
    }

    @Test func saysAtCheckWhatIsWrong() throws {
        let workspace = try Workspace()
        try workspace.write("broken.ttf", "no font")
        try workspace.write("cut.ttf", Data((try Data(contentsOf: URL(fileURLWithPath: Self.font))).prefix(20_000)))
        func check(_ options: String) throws -> (status: Int, error: String) {
            let chain =
                #"{ "stages": [ { "use": "test-source", "frames": 1 }, { "use": "text", \#(options) }, { "use": "null-sink" } ] }"#
            try workspace.write("chain.json", chain)
            let outcome = try Program.framehost.run(["check", "chain.json"], folder: workspace.folder.path)
            return (outcome.status, outcome.error)
        }
        let missing = try check(#""font": "no.ttf""#)
        #expect(
            missing.status == 2
                && missing.error.contains("font: no.ttf cannot be read: No such file or directory. Check the path"))
        for font in ["broken.ttf", "cut.ttf"] {
            let broken = try check(#""font": "\#(font)""#)
            #expect(
                broken.status == 2 && broken.error.contains("font: '\(font)' must be a font that FreeType can read"),
                "\(broken.error)")
        }
        let field = try check(#""text": "{chian}""#)
        #expect(
            field.status == 2
                && field.error.hasSuffix("stages[1].text: '{chian}' is not a field. Did you mean '{chain}'?\n"))
    }

    @Test func takesAnotherTextWhileRunning() throws {
        let workspace = try Workspace()
        let chain = try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "camera", "use": "test-source", "size": "320x240", "rate": 50, "live": true },
              { "id": "text", "use": "text", "text": "one" },
              { "id": "end", "use": "null-sink" } ] }
            """)
        let running = try Program.framehost.start([chain, "--commands"])
        try running.write(#"{"stage":"text","set":{"text":"{frame} zwei"},"tag":1}"# + "\n")
        try running.write(#"{"stage":"text","set":{"text":"{fraem}"},"tag":2}"# + "\n")
        try running.waitForAnswers(2)
        running.send(SIGINT)
        let outcome = try running.finish()
        #expect(outcome.status == 0)
        let answers = try outcome.lines.map { try JSON(parsing: $0) }
        #expect(answers.first { $0["tag"].int == 1 }?["ok"].bool == true)
        #expect(
            answers.first { $0["tag"].int == 2 }?["error"].string
                == "text.text: '{fraem}' is not a field. Did you mean '{frame}'?")
    }
}
