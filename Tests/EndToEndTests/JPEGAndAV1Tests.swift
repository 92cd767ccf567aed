// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// MJPEG and AV1 go through undecoded: from files and cameras to recordings.
@Suite(.serialized, .needs(.ffmpeg), .needs(.ffprobe)) struct JPEGAndAV1Tests {
    /// What a packet is: when it is shown, whether it is a keyframe, and its bytes as MD5.
    private struct Packet: Equatable {
        var seconds: Double
        var isKey: Bool
        var hash: String
    }

    private let workspace: Workspace

    init() throws { workspace = try Workspace() }

    private static let encoders = (try? Tool.ffmpeg.run("-hide_banner", "-encoders").output) ?? ""
    private static var makesAV1: Bool { encoders.contains("libsvtav1") }

    /// 4 s at 25 pictures a second, with sound; of AV1 a keyframe each second.
    private func clip(_ name: String, isJPEG: Bool) throws -> String {
        let codec =
            isJPEG
            ? ["-c:v", "mjpeg", "-q:v", "4", "-pix_fmt", "yuvj420p"]
            : ["-c:v", "libsvtav1", "-preset", "12", "-g", "25", "-pix_fmt", "yuv420p"]
        let sound = name.hasSuffix(".webm") ? ["-c:a", "libopus"] : ["-c:a", "aac"]
        let outcome = try Tool.ffmpeg.run(
            ["-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=4"]
                + ["-f", "lavfi", "-i", "sine=duration=4"] + codec + sound + [workspace.path(name)])
        guard outcome.status == 0 else { throw TestFault("ffmpeg: \(outcome.error)") }
        return workspace.path(name)
    }

    private func packets(_ name: String) throws -> [Packet] {
        let outcome = try Tool.ffprobe.run(
            "-v", "error", "-select_streams", "v", "-show_packets", "-show_data_hash", "md5", "-show_entries",
            "packet=pts_time,flags,data_hash", "-of", "json", workspace.path(name))
        return try JSON(parsing: outcome.output)["packets"].list.map { packet in
            Packet(
                seconds: (Double(packet["pts_time"].string ?? "") ?? -1),
                isKey: packet["flags"].string?.hasPrefix("K") == true, hash: packet["data_hash"].string ?? "")
        }
    }

    private func streams(_ name: String) throws -> [String] {
        try Tool.ffprobe.run(
            "-v", "error", "-show_entries", "stream=codec_name,codec_tag_string", "-of", "csv=p=0",
            workspace.path(name)
        ).lines
    }

    @discardableResult
    private func run(_ source: String, _ recorder: String, _ arguments: String...) throws -> Outcome {
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "id": "clip", \(source), "decode": false },
                          { "id": "file", "use": "recorder", \(recorder) } ] }
            """)
        let outcome = try Program.framehost.run(["chain.json"] + arguments, folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        return outcome
    }

    private func expectTheSame(_ output: String, as input: String) throws {
        let (given, got) = (try packets(input), try packets(output))
        #expect(given.count == 100 && got.map(\.hash) == given.map(\.hash))
        #expect(got.map(\.isKey) == given.map(\.isKey))
        // Matroska counts in milliseconds.
        #expect(zip(got, given).allSatisfy { abs($0.seconds - $1.seconds) < 0.001 })
        #expect(
            try RTSPStream.pictures(["-i", workspace.path(output)])
                == RTSPStream.pictures(["-i", workspace.path(input)]))
    }

    // MARK: From file to file

    @Test(
        arguments: [
            ("clip.mov", "out.mkv", "mjpeg,[0][0][0][0]"), ("clip.avi", "out.mov", "mjpeg,jpeg"),
            ("clip.mkv", "out.mp4", "mjpeg,mp4v"), ("clip.mp4", "out.mov", "mjpeg,jpeg"),
        ]) func passesMJPEGFromFileToFile(input: String, output: String, track: String) throws
    {
        _ = try clip(input, isJPEG: true)
        let outcome = try run(#""use": "file-source", "path": "\#(input)""#, #""path": "\#(output)", "audio": "copy""#)
        #expect(!outcome.error.contains("damaged"), "\(outcome.error)")
        try expectTheSame(output, as: input)
        #expect(try packets(output).allSatisfy(\.isKey))
        #expect(try streams(output).first == track)
        #expect(try streams(output).count == 2)
    }

    @Test(
        .enabled(if: makesAV1 || Tool.isCI, "ffmpeg has no libsvtav1"),
        arguments: [
            ("clip.mp4", "out.mkv", "av1,[0][0][0][0]"), ("clip.mkv", "out.mp4", "av1,av01"),
            ("clip.webm", "out.mp4", "av1,av01"), ("clip.mp4", "out.mp4", "av1,av01"),
        ]) func passesAV1FromFileToFile(input: String, output: String, track: String) throws
    {
        _ = try clip(input, isJPEG: false)
        try run(#""use": "file-source", "path": "\#(input)""#, #""path": "\#(output)", "audio": "copy""#)
        try expectTheSame(output, as: input)
        let keys = try packets(output).filter(\.isKey).map(\.seconds)
        // Matroska begins with the sound, which is a little earlier.
        #expect(keys.count == 4 && zip(keys, [0, 1, 2, 3]).allSatisfy { abs($0 - keys[0] - $1) < 0.0015 }, "\(keys)")
        #expect(try streams(output).first == track)
    }

    /// Any picture of MJPEG, the keyframe before it of AV1.
    @Test(arguments: [true, false]) func beginsAtAKeyframe(isJPEG: Bool) throws {
        guard isJPEG || Self.makesAV1 else { try Test.cancel("ffmpeg has no libsvtav1") }
        _ = try clip("clip.mp4", isJPEG: isJPEG)
        try run(#""use": "file-source", "path": "clip.mp4", "start": 2.09, "duration": 1"#, #""path": "out.mkv""#)
        let (whole, part) = (try packets("clip.mp4"), try packets("out.mkv"))
        let first = isJPEG ? 52 : 50
        #expect(part.first?.isKey == true && part.map(\.hash) == whole[first..<first + part.count].map(\.hash))
        #expect((26...29).contains(part.count) && abs(part[0].seconds) < 0.001)
    }

    /// Segments end at keyframes: of MJPEG at any picture.
    @Test(arguments: [true, false], ["mp4", "mkv"]) func cutsSegmentsAtKeyframes(isJPEG: Bool, ending: String) throws {
        guard isJPEG || Self.makesAV1 else { try Test.cancel("ffmpeg has no libsvtav1") }
        _ = try clip("clip.mp4", isJPEG: isJPEG)
        try run(
            #""use": "file-source", "path": "clip.mp4""#,
            #""path": "out-{n}.\#(ending)", "segmentSeconds": \#(isJPEG ? 1.2 : 1.9)"#)
        let names = workspace.names.filter { $0.hasPrefix("out-") }
        let parts = try names.map { try packets($0) }
        #expect(parts.map(\.count) == (isJPEG ? [30, 30, 30, 10] : [50, 50]))
        #expect(parts.allSatisfy { $0.first?.isKey == true && abs($0[0].seconds) < 0.001 })
        #expect(try parts.flatMap { $0 }.map(\.hash) == packets("clip.mp4").map(\.hash))
    }

    /// A second of the past, to the picture, and a file whose fragments hold a second each, not a picture.
    @Test func recordsThePastOfMJPEG() throws {
        _ = try clip("clip.mov", isJPEG: true)
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "clip", "use": "file-source", "path": "clip.mov", "decode": false, "pace": "realtime", "loop": true },
              { "id": "file", "use": "recorder", "path": "out.mp4", "record": "onCommand", "preEventSeconds": 1, "finalize": "never" } ] }
            """)
        let program = try Program.framehost.start(
            ["chain.json", "--commands", "--events"], folder: workspace.folder.path)
        program.listen(seconds: 3)
        _ = try program.sendPatiently(#"{ "stage": "file", "command": "start" }"#)
        program.listen(seconds: 2)
        program.send(SIGINT)
        #expect(try program.finish().isDoneOrBusy)
        let got = try packets("out-0001.mp4")
        #expect(got.count > 70 && got.allSatisfy(\.isKey), "\(got.count)")
        let bytes = try workspace.data("out-0001.mp4")
        let fragments = bytes.ranges(of: Data("moof".utf8)).count
        #expect((2...8).contains(fragments), "\(fragments)")
    }

    // MARK: From the network

    /// A camera without times: its JPEGs, each at the time at which it came.
    @Test(.needs(.python), arguments: ["out.mp4", "out.mkv"]) func recordsAnHTTPCameraAsItIs(output: String) throws {
        let made = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=4", "-c:v", "mjpeg",
            "-f", "mjpeg", workspace.path("sent.mjpeg"))
        #expect(made.status == 0, "\(made.error)")
        let camera = try Tool.python.start([
            Repository.root.appending(path: "Tests/Tools/mjpeg-camera.py").path, workspace.path("sent.mjpeg"), "8",
        ])
        camera.closeInput()
        try camera.waitForOutput("\n")
        let port = camera.output.prefix { $0 != "\n" }
        try run(
            #""use": "network-source", "url": "http://127.0.0.1:\#(port)/", "rate": 8"#, #""path": "\#(output)""#,
            "--for", "5")
        camera.send(SIGKILL)
        _ = try camera.finish()
        let sent = try Tool.ffprobe.run(
            "-v", "error", "-show_packets", "-show_data_hash", "md5", "-show_entries", "packet=data_hash", "-of",
            "csv=p=0", workspace.path("sent.mjpeg")
        ).lines
        let got = try packets(output)
        #expect(sent.count == 100 && got.count > 24 && got.allSatisfy(\.isKey), "\(got.count)")
        let first = try #require(sent.firstIndex(of: got[0].hash))
        #expect(got.map(\.hash) == Array(sent[first..<first + got.count]))
        let steps = zip(got, got.dropFirst()).map { $1.seconds - $0.seconds }
        // What was read to find out what is in the stream comes at once.
        let steady = steps.suffix(16)
        #expect(steady.allSatisfy { (0.06...0.2).contains($0) }, "\(steps)")
        #expect(abs(steady.reduce(0, +) / 16 - 0.125) < 0.01, "\(steps)")
    }

    /// The sequence header of the stream is planned for, not the container's, which many encoders write otherwise.
    @Test(.needs(.python), .enabled(if: makesAV1 || Tool.isCI, "ffmpeg has no libsvtav1"))
    func recordsAV1OverHTTPAsItIs() throws {
        _ = try clip("clip.webm", isJPEG: false)
        let server = try Tool.python.start([
            "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", workspace.folder.path,
        ])
        server.closeInput()
        try server.waitForOutput("port ")
        try server.waitForOutput("\n")
        let port = server.output.split(separator: " ").compactMap { Int($0) }.first ?? 0
        let outcome = try run(
            #""use": "network-source", "url": "http://127.0.0.1:\#(port)/clip.webm""#, #""path": "out.mp4""#)
        server.send(SIGKILL)
        _ = try server.finish()
        #expect(try packets("out.mp4").map(\.hash) == packets("clip.webm").map(\.hash))
        #expect(!outcome.error.contains("warning"), "\(outcome.error)")
    }

    // MARK: What does not fit

    @Test func saysAtCheckWhatDoesNotFit() throws {
        _ = try clip("clip.mov", isJPEG: true)
        func fault(_ path: String, then stage: String) throws -> String {
            try workspace.write(
                "chain.json",
                """
                { "stages": [
                  { "id": "clip", "use": "file-source", "path": "\(path)", "decode": false },
                  \(stage)
                ] }
                """)
            let outcome = try Program.framehost.run(["check", "chain.json"], folder: workspace.folder.path)
            #expect(outcome.status != 0)
            return outcome.error
        }
        let served = try fault("clip.mov", then: #"{ "id": "live", "use": "rtsp-sink", "path": "/a" }"#)
        #expect(
            served.contains(
                "stages[1]: 'live' takes H.264 or H.265, but 'clip', the stage before it, gives MJPEG. Leave 'decode' out at 'clip', and put an encoder between them."
            ), "\(served)")
        let copied = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-i", workspace.path("clip.mov"), "-map", "0:v", "-c", "copy", "-f", "mjpeg",
            workspace.path("raw.mjpeg"))
        #expect(copied.status == 0, "\(copied.error)")
        let raw = try fault("raw.mjpeg", then: #"{ "use": "recorder", "path": "out.mkv" }"#)
        #expect(raw.contains("needs MP4, MOV, Matroska or AVI for MJPEG, but 'raw.mjpeg' has the format"), "\(raw)")
        guard Self.makesAV1 else { try Test.cancel("ffmpeg has no libsvtav1") }
        _ = try clip("clip.mp4", isJPEG: false)
        let mov = try fault("clip.mp4", then: #"{ "use": "recorder", "path": "out.mov" }"#)
        #expect(mov.contains("stages[1].path: a MOV file cannot store AV1. Record to .mp4 or .mkv."), "\(mov)")
    }
}
