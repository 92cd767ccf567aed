// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// face-effect in the program: what `check` says, and faces on a clip.
@Suite(.serialized) struct FaceEffectTests {
    private static let cascade = "/usr/share/opencv4/haarcascades/haarcascade_frontalface_alt2.xml"
    private static let hasCascades = FileManager.default.fileExists(atPath: cascade)
    static let models: URL? = {
        let beside = Repository.root.deletingLastPathComponent().appending(path: "shared/models")
        let named = ProcessInfo.processInfo.environment["FRAMEHOST_DATA"].map { URL(fileURLWithPath: $0) }
        return [named, beside].compactMap { $0 }.first {
            FileManager.default.fileExists(atPath: $0.appending(path: "face_detection_yunet_2022mar.onnx").path)
        }
    }()
    static let noModels: Comment = "no models: set FRAMEHOST_DATA to a folder with both YuNet models"

    /// What `check` says of a chain with these options; no data folder of this machine plays a part.
    private func check(_ options: String, in workspace: Workspace) throws -> Outcome {
        let chain = try workspace.write(
            "chain.json",
            #"{ "stages": [ { "id": "in", "use": "test-source", "frames": 2 }, { "id": "face", "use": "face-effect"\#(options) }, { "id": "out", "use": "null-sink" } ] }"#
        )
        return try Program.framehost.run(["check", chain], environment: Self.environment(workspace))
    }

    /// No data folder but `data` of the workspace.
    private static func environment(_ workspace: Workspace) -> [String: String] {
        [
            "FRAMEHOST_DATA": workspace.path("data"), "XDG_DATA_HOME": workspace.path("none"),
            "XDG_DATA_DIRS": workspace.path("none"),
        ]
    }

    @Test func saysThatAModelIsMissing() throws {
        let workspace = try Workspace()
        let named = try check(#", "model": "no.onnx""#, in: workspace)
        #expect(named.status != 0)
        #expect(
            named.error.contains(
                "no.onnx does not exist, cannot be read or is not a file. Name a YuNet model (.onnx) or a cascade (.xml)"
            ),
            "\(named.error)"
        )
        let wanted = try check(#", "detector": "yunet""#, in: workspace)
        #expect(wanted.status != 0)
        #expect(wanted.error.contains("no YuNet model was found: OpenCV 4."), "\(wanted.error)")
        #expect(wanted.error.contains("Fetch it with 'framehost models fetch yunet-"), "\(wanted.error)")
        #expect(wanted.error.contains("Looked in \(workspace.path("data")), "), "\(wanted.error)")
    }

    @Test(.enabled(if: hasCascades || Tool.isCI, "opencv-data is not installed: make test-packages"))
    func refusesPrivacyWithACascadeUnlessTheChainAcceptsMissedFaces() throws {
        let workspace = try Workspace()
        let auto = try check(#", "privacy": true"#, in: workspace)
        #expect(auto.status == 2)
        #expect(
            auto.error.contains(
                "stages[1].privacy: the YuNet model was not found, and privacy needs it: the detector 'haar' misses small, turned and tilted faces, and would leave them visible. Fetch the model with 'framehost models fetch yunet-20"
            ),
            "\(auto.error)")
        #expect(auto.error.contains(#"name it with "model", or write "acceptMissedFaces": true."#), "\(auto.error)")
        #expect(auto.error.contains("reads face_detection_yunet_20"), "\(auto.error)")
        #expect(auto.error.contains("looked in \(workspace.path("data")), "), "\(auto.error)")
        for name in ["haar", "lbp"] {
            let named = try check(#", "privacy": true, "detector": "\#(name)""#, in: workspace)
            #expect(named.status == 2)
            #expect(named.error.contains("privacy: the detector '\(name)' (/usr/share/opencv4/"), "\(named.error)")
            #expect(
                named.error.contains(
                    #"Fetch the YuNet model with 'framehost models fetch yunet-20"#),
                "\(named.error)")
        }
        let file = try check(#", "privacy": true, "model": "\#(Self.cascade)""#, in: workspace)
        #expect(file.status == 2, "\(file.output)")
        let accepted = try check(#", "privacy": true, "acceptMissedFaces": true"#, in: workspace)
        #expect(accepted.status == 0, "\(accepted.error)")
        #expect(
            accepted.output.contains("Warnings\n  face: no YuNet model was found; haar is used instead"),
            "\(accepted.output)")
        let asked = try check(#", "privacy": true, "detector": "lbp", "acceptMissedFaces": true"#, in: workspace)
        #expect(asked.status == 0, "\(asked.error)")
        #expect(
            asked.output.contains(
                "  face: lbp misses small, turned and tilted faces, which stay uncovered: 'acceptMissedFaces' permits this."
            ),
            "\(asked.output)")
        let useless = try check(#", "acceptMissedFaces": true"#, in: workspace)
        #expect(useless.status == 2)
        #expect(
            useless.error.contains(
                "'acceptMissedFaces' is only used with \"privacy\": true. Leave it out, or set 'privacy' to true."),
            "\(useless.error)")
    }

    @Test(.enabled(if: hasCascades || Tool.isCI, "opencv-data is not installed: make test-packages"))
    func namesTheDetectorAtCheckAndFirstInARunAndWarnsOfAPoorerOne() throws {
        let workspace = try Workspace()
        let plan = try check("", in: workspace)
        #expect(plan.status == 0, "\(plan.error)")
        #expect(
            plan.output.contains(
                "Warnings\n  face: no YuNet model was found; haar is used instead and misses small, turned and tilted faces; 'framehost models fetch yunet-20"
            ), "\(plan.output)")
        #expect(
            plan.output.contains("  face: searches for faces with haar: \(Self.cascade), OpenCV 4."), "\(plan.output)")
        let run = try Program.framehost.run([workspace.path("chain.json")], environment: Self.environment(workspace))
        #expect(run.status == 0, "\(run.error)")
        let lines = run.errorLines
        #expect(
            lines.first?.hasPrefix("warning: face: no YuNet model was found; haar is used instead") == true,
            "\(run.error)")
        #expect(
            lines.dropFirst().first?.hasPrefix("face: searches for faces with haar: \(Self.cascade)") == true,
            "\(run.error)")
        let quiet = try Program.framehost.run(
            [workspace.path("chain.json"), "--quiet"], environment: Self.environment(workspace))
        #expect(
            quiet.errorLines.contains { $0.hasPrefix("warning: face: no YuNet model was found") }, "\(quiet.error)")
        let chosen = try check(#", "detector": "haar""#, in: workspace)
        #expect(!chosen.output.contains("Warnings"), "what was asked for is no poorer one: \(chosen.output)")
    }

    @Test(.enabled(if: models != nil || Tool.isCI, noModels))
    func namesTheModelAtCheckAndTellsWhatBecameOfTheFrames() throws {
        let models = try #require(Self.models, Self.noModels)
        let workspace = try Workspace()
        try FileManager.default.copyItem(at: models, to: URL(fileURLWithPath: workspace.path("data")))
        let plan = try check(#", "privacy": true"#, in: workspace)
        #expect(plan.status == 0, "\(plan.error)")
        #expect(!plan.output.contains("Warnings"), "\(plan.output)")
        #expect(
            plan.output.contains(
                "  face: searches for faces with yunet: \(workspace.path("data"))/face_detection_yunet_20"),
            "\(plan.output)")
        let run = try Program.framehost.run([workspace.path("chain.json")], environment: Self.environment(workspace))
        #expect(run.status == 0, "\(run.error)")
        // On a busy machine a line before it says what is waited for.
        #expect(run.errorLines.contains { $0.hasPrefix("face: searches for faces with yunet: ") }, "\(run.error)")
        #expect(
            run.error.contains(
                "face: 2 frames: 2 searched in time, 0 more in which the search missed a known face that was covered anyway, 0 covered completely (starting 0, late 0, failed 0, crowded 0); of the searched frames, 2 went out unchanged because no face was found. How many faces no search saw is unknown."
            ),
            "\(run.error)")
    }

    /// A file that is there and cannot be read is no reason to take something poorer.
    @Test(
        .enabled(if: hasCascades || Tool.isCI, "opencv-data is not installed: make test-packages"),
        arguments: ["face_detection_yunet_2022mar.onnx", "face_detection_yunet_2023mar.onnx"])
    func saysThatAModelInADataFolderCannotBeUsed(name: String) throws {
        let workspace = try Workspace()
        try FileManager.default.createDirectory(atPath: workspace.path("data"), withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(atPath: workspace.path("data/\(name)"), withDestinationPath: "gone")
        let other = try check("", in: workspace)
        // The one that this OpenCV does not look for is as if it were not there.
        let isWanted = !other.output.contains("no YuNet model was found")
        #expect(
            isWanted
                ? other.error.contains("\(name) cannot be read: No such file or directory")
                : other.output.contains("Warnings"))
        #expect(isWanted ? other.status != 0 : other.status == 0, "\(other.error)")
    }

    @Test func saysThatAFileIsNoCascadeOrNoModelOrNoPicture() throws {
        let workspace = try Workspace()
        try workspace.write("bad.xml", "<?xml version=\"1.0\"?><opencv_storage></opencv_storage>")
        try workspace.write("bad.onnx", String(repeating: "x", count: 5000))
        try workspace.write("bad.png", "not a picture")
        let cascade = try check(#", "detector": "haar", "model": "bad.xml""#, in: workspace)
        #expect(cascade.error.contains("bad.xml must be a cascade that OpenCV "), "\(cascade.error)")
        let model = try check(#", "model": "bad.onnx""#, in: workspace)
        #expect(model.error.contains("bad.onnx is not a YuNet model. Name face_detection_yunet_"), "\(model.error)")
        guard Self.hasCascades else { return }
        let picture = try check(#", "effect": "sticker", "image": "bad.png""#, in: workspace)
        #expect(picture.error.contains("bad.png cannot be read as PNG: Not a PNG file. Name a PNG"), "\(picture.error)")
        for outcome in [cascade, model, picture] { #expect(outcome.status != 0) }
    }

    @Test(.enabled(if: models != nil || Tool.isCI, noModels))
    func saysWhichYuNetThisOpenCVReads() throws {
        let models = try #require(Self.models, Self.noModels)
        let workspace = try Workspace()
        let years = [2022, 2023].map { year -> (Int, String) in
            let name = "face_detection_yunet_\(year)mar.onnx"
            return (year, models.appending(path: name).path)
        }
        var accepted: [Int] = []
        for (year, path) in years {
            let outcome = try check(#", "model": "\#(path)""#, in: workspace)
            if outcome.status == 0 {
                accepted.append(year)
            } else {
                let other = year == 2022 ? 2023 : 2022
                #expect(
                    outcome.error.contains("is YuNet's model of \(year); OpenCV ")
                        && outcome.error.contains(
                            "needs the model of \(other). Name face_detection_yunet_\(other)mar.onnx"),
                    "\(outcome.error)")
            }
        }
        #expect(accepted.count == 1, "OpenCV reads exactly one of the two")
    }

    @Test(.enabled(if: hasCascades || Tool.isCI, "opencv-data is not installed: make test-packages"))
    func findsTheFaceOfTheExamplesPortraitWithDebiansPackagesAlone() throws {
        let clip = Repository.media.appending(path: "portrait.mp4")
        try #require(FileManager.default.fileExists(atPath: clip.path), "make demo makes \(clip.path)")
        let workspace = try Workspace()
        let chain = try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "in", "use": "file-source", "path": "\(clip.path)", "duration": 2 },
              { "id": "face", "use": "face-effect", "detector": "haar", "effect": "blur", "facesFile": "faces.jsonl" },
              { "id": "h264", "use": "x264-encoder", "preset": "ultrafast" },
              { "id": "out", "use": "recorder", "path": "out.mp4" } ] }
            """)
        let outcome = try Program.framehost.run([chain], timeout: 1200)
        #expect(outcome.status == 0, "\(outcome.error)")
        let lines = try String(decoding: workspace.data("faces.jsonl"), as: UTF8.self).split(separator: "\n")
            .map { try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]) }
        #expect(lines.count == 60)
        let ids = lines.dropFirst(2).map { ($0["faces"] as? [[String: Any]])?.compactMap { $0["id"] as? Int } ?? [] }
        #expect(ids.allSatisfy { $0.contains(1) }, "the portrait's face keeps its number")
        #expect(lines.count { $0["searched"] as? Bool == true } <= 20, "at most a third of the frames are searched")
    }

    /// A portrait made so small that its face is 12 pixels wide, in a picture of 640x360: the search of 320 pixels that
    /// was the default saw six of them.
    @Test(.enabled(if: models != nil || Tool.isCI, noModels))
    func coversAFaceOf12PixelsFromAFile() throws {
        let models = try #require(Self.models, Self.noModels)
        let workshop = try ClipWorkshop()
        let portrait = Repository.root.appending(path: "examples/media/astronaut_portrait.png").path
        // The face is 91 pixels wide in a portrait of 512, so 12.1 in one of 68; its middle is then at (30, 16).
        try workshop.ffmpeg([
            "-f", "lavfi", "-i", "color=0x707880:size=640x360:rate=30,trim=end_frame=12", "-loop", "1", "-t", "0.4",
            "-r", "30", "-i",
            portrait,
            "-filter_complex", "[1]scale=68:68:flags=area[p];[0][p]overlay=x=300:y=120:shortest=1,format=yuv420p",
            "-c:v", "libx264",
            "-crf", "10",
            "small.mp4",
        ])
        let data = workshop.workspace.path("data")
        try FileManager.default.copyItem(at: models, to: URL(fileURLWithPath: data))
        let chain = try workshop.workspace.write(
            "chain.json",
            #"{ "stages": [ { "id": "in", "use": "file-source", "path": "small.mp4" }, { "id": "face", "use": "face-effect", "privacy": true, "facesFile": "faces.jsonl" }, { "id": "out", "use": "null-sink" } ] }"#
        )
        let plan = try Program.framehost.run(["check", chain], environment: Self.environment(workshop.workspace))
        #expect(plan.output.contains("; finds 95 % of the faces that are 12 pixels wide"), "\(plan.output)")
        #expect(plan.output.contains("  face: looks 30 frames ahead: "), "\(plan.output)")
        let run = try Program.framehost.run([chain], environment: Self.environment(workshop.workspace), timeout: 1200)
        #expect(run.status == 0, "\(run.error)")
        let lines = try String(decoding: workshop.workspace.data("faces.jsonl"), as: UTF8.self).split(separator: "\n")
            .map {
                try JSON(parsing: String($0))
            }
        #expect(lines.count == 12)
        for line in lines {
            let regions = line["covered"].list.map { $0.list.compactMap(\.double) }
            // The middle of the face.
            let isCovered = regions.contains {
                $0.count == 4 && $0[0] < 330 && $0[0] + $0[2] > 330 && $0[1] < 136 && $0[1] + $0[3] > 136
            }
            #expect(isCovered, "\(regions)")
        }
    }

    /// A plugin that links all of OpenCV loads 375 libraries, some 0.4 s.
    @Test func loadsFewLibraries() throws {
        let library = try Repository.programFolder.appending(path: "libFaceEffect.so")
        let outcome = try Tool(name: "ldd").run(library.path)
        #expect(outcome.lines.count < 60, "\(outcome.output)")
        #expect(outcome.output.contains("libopencv_objdetect"))
        for other in ["highgui", "imgcodecs", "videoio", "ml."] {
            #expect(!outcome.output.contains("libopencv_\(other)"))
        }
    }
}
