// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// No stage of a chain writes what the chain reads: its own file, a picture, a key, a font.
@Suite struct OwnFilesTests {
    /// An option that names a file that is read, and stages or services with it; `victim` is the file.
    private struct Reader {
        var option: String
        var content: String
        /// Stages behind a source `s` of pictures.
        var stages = ""
        /// Members of the chain beside its stages.
        var services = ""
        /// Makes the file where its content cannot be written down.
        var make = ""
    }

    /// Of fonts-dejavu-core.
    private static let font = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
    private static let certificate = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    private static let readers: [Reader] = [
        Reader(
            option: "rtsp-sink.users", content: "bob:secret\n",
            stages: #", { "use": "x264-encoder" }, { "use": "rtsp-sink", "users": "victim" }"#),
        Reader(
            option: "rtsp-sink.certificate", content: "",
            stages: #", { "use": "x264-encoder" }, { "use": "rtsp-sink", "certificate": "victim", "key": "other" }"#,
            make: "\(certificate) -keyout other -out victim"),
        Reader(
            option: "rtsp-sink.key", content: "",
            stages: #", { "use": "x264-encoder" }, { "use": "rtsp-sink", "certificate": "other", "key": "victim" }"#,
            make: "\(certificate) -keyout victim -out other"),
        Reader(
            option: "text.font", content: "",
            stages: #", { "use": "text", "text": "a", "font": "victim", "unread": true }"#,
            make: "cp \(font) victim"),
        Reader(
            option: "face-effect.image", content: "",
            stages:
                #", { "use": "face-effect", "detector": "haar", "effect": "sticker", "image": "victim", "unread": true }"#,
            make: "ffmpeg -v error -f lavfi -i color=red:s=64x64:d=1,format=rgba -frames:v 1 -f image2 -c:v png victim"),
        Reader(
            option: "picture-overlay.path", content: "",
            stages: #", { "use": "picture-overlay", "path": "victim", "unread": true }"#,
            make: "ffmpeg -v error -f lavfi -i color=red:s=64x64:d=1,format=rgba -frames:v 1 -f image2 -c:v png victim"),
        Reader(
            option: "network-source.login", content: "bob:secret\n",
            stages:
                #", { "id": "a", "use": "null-sink" }, { "use": "network-source", "url": "rtsp://127.0.0.1:9/x", "ifMissing": "wait", "login": "victim" }, { "id": "b", "use": "null-sink" }"#
        ),
        Reader(
            option: "control-server.tokenFile", content: "0123456789abcdef0123456789abcdef\n",
            services: #""control": { "listen": "127.0.0.1:9", "tokenFile": "victim" }, "#),
        Reader(
            option: "control-server.users", content: "bob:watch:secret\n",
            services: #""control": { "listen": "127.0.0.1:9", "users": "victim" }, "#),
        Reader(
            option: "control-server.certificate", content: "",
            services: #""control": { "listen": "127.0.0.1:9", "certificate": "victim", "key": "other" }, "#,
            make: "\(certificate) -keyout other -out victim"),
        Reader(
            option: "control-server.key", content: "",
            services: #""control": { "listen": "127.0.0.1:9", "certificate": "other", "key": "victim" }, "#,
            make: "\(certificate) -keyout victim -out other"),
        Reader(
            option: "mqtt-events.login", content: "bob:secret\n",
            services: #""mqtt": { "broker": "mqtt://127.0.0.1:9", "login": "victim" }, "#),
        Reader(
            option: "webhook.secret", content: "0123456789abcdef0123456789abcdef\n",
            services: #""webhook": { "url": "http://127.0.0.1:9/", "secret": "victim" }, "#),
        Reader(
            option: "webhook.login", content: "bob:secret\n",
            services: #""webhook": { "url": "http://127.0.0.1:9/", "login": "victim" }, "#),
        Reader(
            option: "nats-events.login", content: "bob:secret\n",
            services: #""nats": { "servers": ["nats://127.0.0.1:9"], "login": "victim" }, "#),
    ]

    /// Options with a text that names no file which is read, and those that other tests try.
    private static let others: Set<String> = [
        "alsa-source.device", "audio-resample.layout", "control-server.listen", "control-server.token",
        "mask.areasFile",
        "face-effect.model",
        "face-effect.facesFile", "face-effect.reviewFile", "file-source.path", "frei0r.effect", "frei0r-mixer.effect",
        "image-sink.path", "image-source.path", "motion-source.path", "motion-source.listen", "motion-source.device",
        "motion-source.axes",
        "mqtt-events.broker", "mqtt-events.caFile", "mqtt-events.topic", "mqtt-events.host",
        "mqtt-events.discoveryTopic", "mqtt-events.spool", "nats-events.credentials", "nats-events.caFile",
        "nats-events.stream", "nats-events.subject", "nats-events.host", "nats-events.spool", "network-source.url",
        "network-source.caFile", "network-source.slatePicture", "network-source.slateText", "null-sink.dump",
        "onvif.listen", "onvif.name", "onvif.location",
        "part-sink.path", "part-source.path", "recorder.path", "rtsp-sink.path", "rtsp-sink.address",
        "picture-overlay.path",
        "source-switch.active", "text.text", "text.name", "v4l2-sink.device", "v4l2-source.device",
        "v4l2-source.slatePicture", "v4l2-source.slateText", "webhook.url", "webhook.caFile", "webhook.crlFile",
        "webhook.host", "webhook.spool", "window-preview.title", "y4m-sink.path", "y4m-source.path",
    ]

    @Test(.needs(.ffmpeg), .needs(.openssl), arguments: readers.map(\.option)) func noStageWritesWhatIsRead(
        option: String
    ) throws {
        let reader = try #require(Self.readers.first { $0.option == option })
        let workspace = try Workspace()
        if reader.make.isEmpty {
            try workspace.write("victim", reader.content)
        } else {
            let made = try Tool(name: "sh").run("-c", "cd '\(workspace.folder.path)' && \(reader.make)")
            #expect(made.status == 0, "\(made.error)")
        }
        let before = try workspace.data("victim")
        #expect(!before.isEmpty)
        try workspace.write(
            "chain.json",
            """
            { \(reader.services)"stages": [
              { "id": "s", "use": "test-source", "size": "320x240", "frames": 5 }\(reader.stages),
              { "id": "out", "use": "null-sink", "from": "s", "dump": "victim" } ] }
            """)
        for command in ["check", "run"] {
            let outcome = try Program.framehost.run([command, "chain.json"], folder: workspace.folder.path)
            #expect(outcome.status == 2, "\(outcome.output)\(outcome.error)")
            #expect(
                outcome.error.contains(".dump: 'out' would write") && outcome.error.contains("victim', which"),
                "\(outcome.error)")
        }
        #expect(try workspace.data("victim") == before)
    }

    /// A new option with a text is in one of the lists above, so that somebody has thought of what it names.
    @Test func everyOptionWithATextIsKnown() throws {
        let list = try JSON(parsing: try Program.framehost.run(["plugins", "--json"]).output)
        let ids = list["plugins"].list.compactMap { $0["id"].string }
        #expect(ids.count > 30)
        let known = Self.others.union(Self.readers.map(\.option))
        for id in ids {
            let options = try JSON(parsing: Program.framehost.run(["describe", id, "--json"]).output)["options"].list
            for option in options where option["type"].string == "string" {
                let name = "\(id).\(option["name"].string ?? "")"
                #expect(known.contains(name), "\(name): does it name a file?")
            }
        }
    }

    @Test(arguments: [
        #"{ "use": "y4m-sink", "path": "chain.json" }"#, #"{ "use": "null-sink", "dump": "./chain.json" }"#,
        #"{ "use": "face-effect", "detector": "haar", "facesFile": "chain.json" }, { "use": "null-sink" }"#,
        #"{ "use": "x264-encoder" }, { "use": "recorder", "path": "link.mp4", "overwrite": true }"#,
    ]) func noStageWritesTheChainFile(stages: String) throws {
        let workspace = try Workspace()
        let text = #"{ "stages": [ { "use": "test-source", "size": "320x240", "frames": 3 }, \#(stages) ] }"#
        try workspace.write("chain.json", text)
        try FileManager.default.createSymbolicLink(
            atPath: workspace.path("link.mp4"), withDestinationPath: "chain.json")
        let outcome = try Program.framehost.run(["run", "chain.json"], folder: workspace.folder.path)
        #expect(
            outcome.status == 2 && outcome.error.contains("which is the chain file. Name another file."), "\(outcome)")
        #expect(try workspace.data("chain.json") == Data(text.utf8))
    }

    @Test func aDrawingDoesNotReplaceItsChain() throws {
        let workspace = try Workspace()
        let text = #"{ "stages": [ { "use": "test-source" }, { "use": "null-sink" } ] }"#
        try workspace.write("chain.dot", text)
        let outcome = try Program.framehost.run(
            ["graph", "chain.dot", "-o", "./chain.dot", "--overwrite"], folder: workspace.folder.path)
        #expect(outcome.status != 0 && outcome.error.contains("is the chain file"), "\(outcome)")
        #expect(try workspace.data("chain.dot") == Data(text.utf8))
    }

    /// Also once its reader has ended, while the recorder goes on.
    @Test(.needs(.ffmpeg)) func retentionLeavesWhatTheRunHasRead() throws {
        let workspace = try Workspace()
        let made = try Tool.ffmpeg.run(
            "-v", "error", "-f", "lavfi", "-i", "testsrc=s=160x120:r=30:d=1", "-c:v", "libx264",
            workspace.path("cam-0001.mp4"))
        #expect(made.status == 0, "\(made.error)")
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1_000_000_000)],
            ofItemAtPath: workspace.path("cam-0001.mp4"))
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "use": "file-source", "path": "cam-0001.mp4" },
              { "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 0.1 },
              { "use": "recorder", "path": "cam-{nnnn}.mp4", "segmentSeconds": 0.2, "keepSeconds": 0.1 }
            ] }
            """)
        for _ in 0..<5 {
            let outcome = try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(FileManager.default.fileExists(atPath: workspace.path("cam-0001.mp4")))
        }
    }

    /// A neighbour's names reach the terminal as text.
    @Test(.needs(.ffmpeg)) func namesOfFilesForgeNoLines() throws {
        let workspace = try Workspace()
        try FileManager.default.createDirectory(atPath: workspace.path("d"), withIntermediateDirectories: true)
        let made = try Tool.ffmpeg.run(
            "-v", "error", "-f", "lavfi", "-i", "testsrc=s=64x64", "-frames:v", "1", workspace.path("d/a.png"))
        #expect(made.status == 0, "\(made.error)")
        try workspace.write("d/b\nerror: r: fake \u{1b}[31mred.png", "x")
        try workspace.write(
            "chain.json", #"{ "stages": [ { "use": "image-source", "path": "d" }, { "use": "null-sink" } ] }"#)
        let outcome = try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
        #expect(outcome.error.contains("b\\nerror: r: fake \\u{1b}[31mred.png"), "\(outcome.error)")
        #expect(!outcome.error.contains("\u{1b}") && !outcome.errorLines.contains { $0.hasPrefix("error: r: fake") })
    }

    /// FreeType must not read a file that somebody has shortened.
    @Test func aFontThatIsShortenedMeanwhileHarmsNothing() throws {
        let workspace = try Workspace()
        let made = try Tool(name: "sh").run(
            "-c", "cp \(Self.font) '\(workspace.path("f.ttf"))'")
        #expect(made.status == 0, "\(made.error)")
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "use": "test-source", "size": "320x240", "live": true },
              { "use": "text", "text": "{time} {frame}", "font": "f.ttf" }, { "use": "null-sink" } ] }
            """)
        let run = try Program.framehost.start(["chain.json", "--for", "3", "--events"], folder: workspace.folder.path)
        try run.waitForOutput(#""state":"streaming""#)
        truncate(workspace.path("f.ttf"), 0)
        let outcome = try run.finish()
        #expect(outcome.status == 0, "\(outcome.status): \(outcome.error)")
    }
}
