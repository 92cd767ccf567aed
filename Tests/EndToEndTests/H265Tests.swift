// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// H.265 goes through undecoded: from files and cameras to recordings and RTSP clients.
@Suite(.serialized) struct H265Tests {
    /// 4 s with B-frames and sound; with open groups of pictures, as cameras send them.
    private static func clip(_ name: String, in workspace: Workspace, isOpen: Bool) throws -> String {
        let outcome = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=4", "-f", "lavfi",
            "-i", "sine=duration=4", "-pix_fmt", "yuv420p", "-c:v", "libx265", "-preset", "ultrafast", "-x265-params",
            "log-level=error:keyint=24:min-keyint=24:scenecut=0:bframes=2:open-gop=\(isOpen ? 1 : 0)", "-c:a", "aac",
            workspace.path(name))
        guard outcome.status == 0 else { throw TestFault("ffmpeg: \(outcome.error)") }
        return workspace.path(name)
    }

    /// The NAL units of slices, from the first keyframe on, without what containers add or leave out.
    private static func slices(_ path: String) throws -> [Data] {
        let outcome = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-y", "-i", path, "-map", "0:v", "-c", "copy", "-f", "hevc", path + ".h265")
        guard outcome.status == 0 else { throw TestFault("ffmpeg: \(outcome.error)") }
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path + ".h265")))
        var begins: [Int] = []
        for index in bytes.indices.dropLast(3)
        where bytes[index] == 0 && bytes[index + 1] == 0 && bytes[index + 2] == 1 { begins.append(index + 3) }
        return zip(begins, begins.dropFirst() + [bytes.count + 3]).compactMap { begin, next in
            guard bytes[begin] >> 1 & 63 < 32 else { return nil }
            var unit = bytes[begin..<next - 3]
            while unit.last == 0 { unit.removeLast() }
            return Data(unit)
        }
    }

    private static func tracks(_ path: String) throws -> [String] {
        try Tool.ffprobe.run(
            "-v", "error", "-show_entries", "stream=codec_name,codec_tag_string", "-of", "csv=p=0", path
        ).lines
    }

    @Test(
        .needs(.ffmpeg), arguments: [("clip.mp4", "out.mkv"), ("clip.mkv", "out.mp4"), ("clip.ts", "out.mov")],
        [true, false])
    func goesFromFileToFile(names: (String, String), isOpen: Bool) throws {
        let workspace = try Workspace()
        let clip = try Self.clip(names.0, in: workspace, isOpen: isOpen)
        try workspace.write(
            "chain.json",
            """
            {
              "stages": [
                { "id": "clip", "use": "file-source", "path": "\(names.0)", "decode": false },
                { "id": "file", "use": "recorder", "path": "\(names.1)" }
              ]
            }
            """)
        let outcome = try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(try Self.slices(workspace.path(names.1)) == Self.slices(clip))
        #expect(
            try Self.tracks(workspace.path(names.1)).first == (names.1 == "out.mkv" ? "hevc,[0][0][0][0]" : "hevc,hvc1")
        )
        #expect(try RTSPStream.pictures(["-i", workspace.path(names.1)]) == RTSPStream.pictures(["-i", clip]))
    }

    /// Where reading begins at an open group of pictures, the pictures that refer to those before it are left out.
    @Test(.needs(.ffmpeg)) func beginsAtAnOpenGroupWithoutWhatCannotBeDecoded() throws {
        let workspace = try Workspace()
        let clip = try Self.clip("clip.mp4", in: workspace, isOpen: true)
        try workspace.write(
            "chain.json",
            """
            {
              "stages": [
                { "id": "clip", "use": "file-source", "path": "clip.mp4", "decode": false, "start": 2.1 },
                { "id": "file", "use": "recorder", "path": "out.mkv" }
              ]
            }
            """)
        let outcome = try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        let (whole, part) = (try Self.slices(clip), try Self.slices(workspace.path("out.mkv")))
        // RASL pictures have the types 8 and 9.
        let first = try #require(part.first.flatMap { whole.firstIndex(of: $0) })
        let expected = whole[first...].enumerated().filter {
            $0.offset > 4 || !(8...9).contains($0.element[0] >> 1 & 63)
        }
        #expect(part == expected.map(\.element))
        #expect(part.count < whole.count - first)
    }

    /// Served over RTSP, taken as it is, recorded: the same slices, in a client's pictures too.
    @Test(.needs(.ffmpeg)) func goesOverRTSP() throws {
        let workspace = try Workspace()
        let clip = try Self.clip("clip.mp4", in: workspace, isOpen: false)
        let port = try RTSPStream.freePort()
        try workspace.write(
            "serve.json",
            """
            {
              "stages": [
                { "id": "clip", "use": "file-source", "path": "clip.mp4", "decode": false, "pace": "realtime", "loop": true },
                { "id": "live", "use": "rtsp-sink", "port": \(port), "address": "127.0.0.1", "path": "/live" }
              ]
            }
            """)
        try workspace.write(
            "take.json",
            """
            {
              "stages": [
                { "id": "cam", "use": "network-source", "url": "rtsp://127.0.0.1:\(port)/live", "decode": false },
                { "id": "file", "use": "recorder", "path": "out.mp4" }
              ]
            }
            """)
        let server = try Program.framehost.start(["serve.json", "--events"], folder: workspace.folder.path)
        server.closeInput()
        try server.waitForOutput(#""state":"streaming""#)
        let outcome = try Program.framehost.run(["take.json", "--for", "3"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        let (whole, taken) = (try Self.slices(clip), try Self.slices(workspace.path("out.mp4")))
        #expect(taken.count > 40)
        let first = try #require(taken.first.flatMap { whole.firstIndex(of: $0) })
        let looped = Array(whole[first...]) + whole + whole
        #expect(taken == Array(looped.prefix(taken.count)))
        let seen = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-rtsp_transport", "tcp", "-i", "rtsp://127.0.0.1:\(port)/live", "-t", "1", "-f",
            "framemd5", "-")
        #expect(seen.status == 0 && seen.error.isEmpty && seen.lines.count > 20, "\(seen.error)")
        server.send(SIGINT)
        #expect(try server.finish().status == 0)
    }
}
