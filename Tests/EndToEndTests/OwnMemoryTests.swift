// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// What stages say they take for themselves (`ownBytes` of `check --json`) against what the process took. Each chain is
/// run with a small picture and with a large one: what libraries and the program take anyway is the same in both.
@Suite struct OwnMemoryTests {
    let workspace: Workspace

    init() throws { workspace = try Workspace() }

    private struct Memory {
        var own: Int
        var plan: Int
        var peak: Int
    }

    /// Of a chain of these stages without an end, whose last is a null sink, once it has come to that frame.
    private func memory(_ stages: String, frames: Int) throws -> Memory {
        try workspace.write("chain.json", #"{ "stages": [ \#(stages), { "use": "null-sink" } ] }"#)
        let check = try Program.framehost.run(["check", "chain.json", "--json"], folder: workspace.folder.path)
        let plan = try JSON(parsing: check.output)
        let program = try Program.framehost.start(["chain.json", "--commands"], folder: workspace.folder.path)
        try program.waitForFrames(frames, timeout: 300)
        // Not getrusage(2), which counts the process it was forked from.
        let status = try String(contentsOfFile: "/proc/\(program.pid)/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") } ?? ""
        let peak = (Int(line.split(separator: " ").dropFirst().first ?? "") ?? 0) * 1024
        try #require(peak > 0, "\(line)")
        program.send(SIGINT)
        #expect(try program.finish().status == 0)
        func sum(_ list: [JSON], _ key: String) -> Int { list.reduce(0) { $0 + ($1[key].int ?? 0) } }
        return Memory(
            own: sum(plan["stages"].list, "ownBytes"),
            plan: sum(plan["pools"].list, "bytes") + sum(plan["slabs"].list, "bytes"), peak: peak)
    }

    /// Taken, for each byte declared.
    private func share(small: String, large: String, frames: Int) throws -> Double {
        let (small, large) = (try memory(small, frames: frames), try memory(large, frames: frames))
        let declared = large.own - small.own
        try #require(declared > 5 << 20, "\(declared) bytes")
        return Double((large.peak - large.plan) - (small.peak - small.plan)) / Double(declared)
    }

    @Test(arguments: [
        (#""preset": "ultrafast""#, 60), ("", 90), (#""tune": "zerolatency""#, 40),
        (#""preset": "medium", "bframes": 8"#, 120),
    ])
    func anEncodersPictures(options: String, frames: Int) throws {
        func chain(_ size: String) -> String {
            """
            { "use": "test-source", "size": "\(size)", "rate": 30 },
            { "use": "x264-encoder", "threads": 2\(options.isEmpty ? "" : ", " + options) }
            """
        }
        let share = try share(small: chain("64x64"), large: chain("1280x720"), frames: frames)
        #expect((0.75...1.3).contains(share), "\(share)")
    }

    /// The ring of the seconds before a recording is in the sum that a chain needs: forty of the largest are refused at
    /// `check`, and did abort the host in `start`.
    @Test func theSecondsBeforeARecording() throws {
        func chain(_ recorders: Int, _ options: String) -> String {
            let recorder = { (number: Int) in
                #"{ "id": "file\#(number)", "use": "recorder", "from": "h264", "path": "\#(number)-{n}.mp4", \#(options) }"#
            }
            return """
                { "stages": [
                  { "use": "test-source", "size": "64x64", "rate": 30 },
                  { "id": "h264", "use": "x264-encoder", "bitrateKbps": 800 },
                  \((0..<recorders).map(recorder).joined(separator: ",\n")) ] }
                """
        }
        func check(_ arguments: String...) throws -> Outcome {
            try Program.framehost.run(["check", "chain.json"] + arguments, folder: workspace.folder.path)
        }
        let before = #""record": "onCommand", "preEventSeconds": 6"#
        // 100 kB a second, four seconds more than asked for, half as much again for an encoder that overshoots.
        for (options, bytes) in [
            (before, 1_500_000), (before + #", "preEventMegabytes": 64"#, 64_000_000),
            (#""record": "onCommand""#, 0),
        ] {
            try workspace.write("chain.json", chain(1, options))
            let plan = try JSON(parsing: try check("--json").output)
            #expect(plan["stages"].first("id", "file0")["ownBytes"].int == bytes, "\(options)")
        }
        try workspace.write("chain.json", chain(40, before + #", "preEventMegabytes": 65536"#))
        let outcome = try check()
        #expect(outcome.status == 2)
        let pattern =
            /.*the chain needs 24\d\d\.\d GiB of memory, and .* has only .* available; the largest part is 61\.0 GiB, memory that 'file\d+' itself uses\..*/
        #expect(try pattern.wholeMatch(in: outcome.errorLines.first ?? "") != nil, "\(outcome.error)")
    }

    /// H.264 is decoded into the chain's buffers and keeps vectors; the others keep pictures.
    @Test(.needs(.ffmpeg), arguments: [("libx264", "yuv420p"), ("mpeg4", "yuv420p"), ("prores", "yuv422p10le")])
    func aDecodersPictures(encoder: String, pixels: String) throws {
        let workshop = try ClipWorkshop()
        func chain(_ size: String) throws -> String {
            let clip = try workshop.ffmpeg([
                "-f", "lavfi", "-i", "testsrc2=size=\(size):rate=25:duration=2", "-c:v", encoder, "-pix_fmt", pixels,
                "\(size).mkv",
            ])
            return #"{ "use": "file-source", "path": "\#(clip)", "loop": true }"#
        }
        let share = try share(small: chain("128x128"), large: chain("1920x1080"), frames: 60)
        #expect((0.25...1.3).contains(share), "\(share)")
    }
}
