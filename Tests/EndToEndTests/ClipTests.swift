// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Real clips through the file chain, judged by ffprobe.
@Suite struct ClipTests {
    /// Where the given clips lie: `$FRAMEHOST_MEDIA`, else beside the project. In CI they are there.
    static let folder: URL? = {
        let named = ProcessInfo.processInfo.environment["FRAMEHOST_MEDIA"].map { URL(fileURLWithPath: $0) }
        let beside = Repository.root.deletingLastPathComponent().appending(path: "shared/media")
        return [named, beside].compactMap { $0 }.first { FileManager.default.fileExists(atPath: $0.path) }
    }()

    /// Whether a run without the clips fails: in CI, unless `FRAMEHOST_MEDIA` is `none`, as in a fork, whose repository has
    /// no clips.
    private static let areNeeded = Tool.isCI && ProcessInfo.processInfo.environment["FRAMEHOST_MEDIA"] != "none"

    static let clips = [
        "webcam_woman.mkv", "webcam_man.mkv", "webcam_3people_720p_audio.mp4", "phone_portrait_rotated.mp4",
        "two_people_tilted.mp4", "no_face_bottles.mp4",
    ]

    @Test(
        .needs(.ffprobe),
        .enabled(
            if: folder != nil || areNeeded, "no clips: set FRAMEHOST_MEDIA, or put shared/media beside the project"),
        arguments: clips)
    func keepsEveryFrameAndItsTime(clip: String) throws {
        let folder = try #require(
            Self.folder, "the clips are missing: set FRAMEHOST_MEDIA, or put shared/media beside the project")
        let workspace = try Workspace()
        let chain = try workspace.write(
            "chain.json",
            """
            {
              "stages": [
                { "id": "clip", "use": "file-source", "path": "\(folder.appending(path: clip).path)" },
                { "id": "square", "use": "crop-orient", "aspect": "1:1" },
                { "id": "fps", "use": "fps-meter" },
                { "id": "h264", "use": "x264-encoder", "preset": "veryfast", "crf": 30 },
                { "id": "file", "use": "recorder", "path": "out.mp4" }
              ]
            }
            """)
        let outcome = try Program.framehost.run([chain, "--stats", workspace.path("stats.json")], timeout: 1200)
        #expect(outcome.status == 0, "\(outcome.error)")
        let source = try Self.times(folder.appending(path: clip).path)
        let result = try Self.times(workspace.path("out.mp4"))
        #expect(source.count > 50)
        #expect(result == source)
        let ledger = try JSON(file: workspace.path("stats.json"))["ledger"]
        #expect(ledger["captured"].int == source.count)
        #expect(ledger["delivered"].int == source.count)
    }

    /// PTS of every decoded frame, in whole microseconds.
    private static func times(_ path: String) throws -> [Int] {
        let outcome = try Tool.ffprobe.run(
            "-v", "error", "-select_streams", "v:0", "-show_entries", "frame=best_effort_timestamp_time", "-of",
            "csv=p=0", path,
            timeout: 600)
        #expect(outcome.status == 0, "\(outcome.error)")
        return outcome.lines.compactMap { line in
            line.split(separator: ",").first.flatMap { Double($0) }.map { Int(($0 * 1_000_000).rounded()) }
        }
    }
}
