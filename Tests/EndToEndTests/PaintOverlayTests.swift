// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// `picture-overlay` beside ffmpeg's overlay, in a running chain, and what it allocates.
@Suite struct PaintOverlayTests {
    /// A picture of noise, whose transparency goes from none to full.
    private static func picture(_ workspace: Workspace, _ name: String = "logo.png", size: String = "200x120") throws {
        let made = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=\(size),format=rgba", "-frames:v", "1",
            "-vf",
            "geq=r='r(X,Y)':g='g(X,Y)':b='b(X,Y)':a='clip(X*320/W-32,0,255)'", workspace.path(name))
        guard made.status == 0 else { throw TestFault("ffmpeg: \(made.error)") }
    }

    private static func chain(_ workspace: Workspace, _ name: String, _ stage: String, dump: String) throws -> Data {
        let file = try workspace.write(
            name,
            """
            { "stages": [
              { "id": "src", "use": "test-source", "size": "642x362", "format": "rgb24", "frames": 3 }, \(stage)
              { "use": "null-sink", "dump": "\(dump)" } ] }
            """)
        let outcome = try Program.framehost.run([file], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        return try workspace.data(dump)
    }

    @Test(.needs(.ffmpeg), arguments: [(31, 17), (-57, 300), (600, -40)]) func laysOverAsFFmpegDoes(x: Int, y: Int)
        throws
    {
        let workspace = try Workspace()
        try Self.picture(workspace)
        let plain = try Self.chain(workspace, "plain.json", "", dump: "plain.rgb")
        let ours = try Self.chain(
            workspace, "chain.json",
            #"{ "use": "picture-overlay", "path": "logo.png", "position": "topLeft", "margin": [\#(x), \#(y)] },"#,
            dump: "ours.rgb")
        let peer = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "642x362", "-i",
            workspace.path("plain.rgb"), "-i", workspace.path("logo.png"), "-filter_complex",
            "[0][1]overlay=\(x):\(y):format=rgb", "-pix_fmt", "rgb24", "-f", "rawvideo", workspace.path("peer.rgb"))
        #expect(peer.status == 0, "\(peer.error)")
        let theirs = try workspace.data("peer.rgb")
        try #require(ours.count == 3 * 642 * 362 * 3 && ours.count == theirs.count)
        let most = zip(ours, theirs).reduce(0) { max($0, abs(Int($1.0) - Int($1.1))) }
        let changed = zip(ours, plain).count { $0 != $1 }
        #expect(most <= 1 && changed > 3000)
    }

    @Test(.needs(.ffmpeg)) func takesAnotherPictureWhileRunning() throws {
        let workspace = try Workspace()
        try Self.picture(workspace)
        try Self.picture(workspace, "other.png", size: "64x64")
        let chain = try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "camera", "use": "test-source", "size": "320x240", "rate": 50, "live": true },
              { "id": "logo", "use": "picture-overlay", "path": "logo.png", "size": "20%" },
              { "id": "end", "use": "null-sink" } ] }
            """)
        let running = try Program.framehost.start([chain, "--commands", "--events"])
        try running.write(#"{"stage":"logo","set":{"path":"other.png","opacity":0.5},"tag":1}"# + "\n")
        try running.waitForOutput(#""event":"picture-changed""#)
        try running.write(#"{"stage":"logo","set":{"path":"nowhere.png"},"tag":2}"# + "\n")
        try running.waitForOutput(#""event":"picture-refused""#)
        try running.write(#"{"stage":"logo","set":{"path":""},"tag":3}"# + "\n")
        try running.waitForAnswers(3)
        running.send(SIGINT)
        let outcome = try running.finish()
        #expect(outcome.status == 0)
        let lines = try outcome.lines.map { try JSON(parsing: $0) }
        for tag in [1, 2] { #expect(lines.first { $0["tag"].int == tag }?["ok"].bool == true) }
        #expect(
            lines.first { $0["tag"].int == 3 }?["error"].string?.contains("logo.path: 'path' is missing or empty")
                == true)
        let refused = lines.first { $0["event"].string == "picture-refused" }
        #expect(refused?["reason"].string?.hasSuffix("nowhere.png cannot be read: No such file or directory") == true)
        #expect(refused?["text"].string?.contains("Goes on showing other.png, because ") == true)
    }

    /// A thousand frames more are no more allocations than with `text`, which has none in a release build.
    @Test(.needs(.ffmpeg), .needs(.clang)) func allocatesNothingForAFrame() throws {
        let workspace = try Workspace()
        try Self.picture(workspace)
        let counts = try MallocCounts(workspace)
        func allocations(_ frames: Int, _ stage: String) throws -> Int {
            let chain = try workspace.write(
                "chain.json",
                """
                { "stages": [ { "id": "src", "use": "test-source", "size": "320x240", "frames": \(frames), "pattern": "none" },
                  \(stage) { "use": "null-sink" } ] }
                """)
            let before = try counts.read()["src:src", default: 0]
            let outcome = try Program.framehost.run(
                [chain], environment: counts.environment, folder: workspace.folder.path)
            #expect(outcome.status == 0, "\(outcome.error)")
            return try counts.read()["src:src", default: 0] - before
        }
        func more(_ stage: String) throws -> Int { try allocations(1200, stage) - allocations(200, stage) }
        let stage = #"{ "use": "picture-overlay", "path": "logo.png", "opacity": 0.7 },"#
        // A debug build allocates where a frame lends its planes, as it does for any stage.
        let (ours, text) = (try more(stage), try more(#"{ "use": "text", "text": "a" },"#))
        #expect(try allocations(200, "") > 0)
        #expect(ours - text < 20, "\(ours) and \(text)")
    }
}
