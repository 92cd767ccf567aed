// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Players whose pictures are compared with those of the recording, which the same player shows of the file.
@Suite(.serialized) struct RTSPPlayerTests {
    @Test(.needs(.mpv), .needs(.ffmpeg), arguments: ["tcp", "udp"]) func mpvShowsEveryPicture(transport: String) throws
    {
        let play: () throws -> Played = {
            let stream = try RTSPStream()
            let record = stream.workspace.path("mpv.mkv")
            let seen = try Self.mpv([
                "--rtsp-transport=\(transport)", "--frames=40", "--stream-record=\(record)", stream.url,
            ])
            _ = try stream.finish()
            // Matroska counts milliseconds, of 90 ticks. The first picture has no time (docs/rtsp-conformance.md).
            let steps = RTSPStream.steps(try RTSPStream.times([record])).dropFirst(2).prefix(36)
            return Played(
                seen: seen, recorded: try Self.mpv([stream.workspace.path("out.mp4")]), steps: Array(steps),
                recordedSteps: try stream.recordedSteps(), ticks: 92)
        }
        let played = try DatagramLosses.retrying(play) { $0.isRun && $0.isInTime && $0.steps.count == 36 }.value
        #expect(played.seen.count == 40)
        #expect(played.isRun)
        #expect(played.steps.count == 36)
        #expect(played.isInTime, "\(played.steps)")
    }

    /// What a player has seen of a stream, and what the same player shows of the recording.
    private struct Played {
        var seen: [String]
        var recorded: [String]
        var steps: [Int]
        var recordedSteps: [Int]
        /// How far a step may be from that of the recording.
        var ticks: Int
        var isRun: Bool { seen.count == 40 && RTSPStream.isRun(seen, of: recorded) }
        var isInTime: Bool { RTSPStream.isRun(steps, of: recordedSteps, within: ticks) }
    }

    /// MD5 of each picture that mpv shows, in their order.
    private static func mpv(_ arguments: [String]) throws -> [String] {
        let workspace = try Workspace()
        let outcome = try Tool.mpv.run(
            [
                "--no-config", "--msg-level=all=error", "--vo=image", "--vo-image-format=png",
                "--vo-image-png-compression=1",
                "--vo-image-outdir=\(workspace.folder.path)", "--untimed", "--framedrop=no", "--hwdec=no", "--no-audio",
            ] + arguments)
        #expect(outcome.status == 0, "\(outcome.output)\(outcome.error)")
        return try RTSPStream.pictures(["-i", workspace.path("%08d.png")])
    }

    @Test(.needsOpenCV, arguments: ["tcp", "udp"]) func openCVReadsEveryPicture(transport: String) throws {
        func steps(_ pictures: [(digest: String, milliseconds: Double)]) -> [Int] {
            RTSPStream.steps(pictures.map { Int(($0.milliseconds * 90).rounded()) })
        }
        let play: () throws -> Played = {
            let stream = try RTSPStream()
            let seen = try Self.openCV(stream.url, count: 40, transport)
            _ = try stream.finish()
            let recorded = try Self.openCV(stream.workspace.path("out.mp4"), count: 10_000, transport)
            // It has no time for the first two pictures (docs/rtsp-conformance.md).
            return Played(
                seen: seen.map(\.digest), recorded: recorded.map(\.digest), steps: Array(steps(seen).dropFirst(2)),
                recordedSteps: steps(recorded), ticks: 3)
        }
        let played = try DatagramLosses.retrying(play) { $0.isRun && $0.isInTime }.value
        #expect(played.seen.count == 40)
        #expect(played.isRun)
        #expect(played.isInTime, "\(played.steps)")
    }

    private static func openCV(_ source: String, count: Int, _ transport: String) throws -> [(
        digest: String, milliseconds: Double
    )] {
        let workspace = try Workspace()
        let script = try workspace.write(
            "read.py",
            """
            import sys, hashlib, cv2
            capture = cv2.VideoCapture(sys.argv[1], cv2.CAP_FFMPEG)
            for _ in range(int(sys.argv[2])):
                is_there, picture = capture.read()
                if not is_there:
                    break
                print(hashlib.md5(picture).hexdigest(), capture.get(cv2.CAP_PROP_POS_MSEC))
            """)
        let outcome = try Program(OpenCV.python).run(
            [script, source, String(count)],
            environment: ["OPENCV_FFMPEG_CAPTURE_OPTIONS": "rtsp_transport;\(transport)"])
        #expect(outcome.status == 0, "\(outcome.error)")
        return outcome.lines.compactMap { line in
            let words = line.split(separator: " ")
            return words.count == 2 ? Double(words[1]).map { (String(words[0]), $0) } : nil
        }
    }
}

/// OpenCV for the system's Python, of the package python3-opencv; another Python that comes first in PATH does not see
/// it.
private enum OpenCV {
    static let python = URL(fileURLWithPath: "/usr/bin/python3")
    static let isThere = (try? Program(python).run(["-c", "import cv2"]))?.status == 0
}

extension Trait where Self == ConditionTrait {
    fileprivate static var needsOpenCV: Self {
        .enabled(if: OpenCV.isThere || Tool.isCI, "python3-opencv is not installed: make test-packages")
    }
}

extension Tool {
    static let mpv = Tool(name: "mpv")
}
