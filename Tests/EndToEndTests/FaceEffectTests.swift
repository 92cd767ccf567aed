import Foundation
import Testing

/// face-effect in the program: what `check` says, and faces on a clip.
@Suite(.serialized) struct FaceEffectTests {
    private static let cascade = "/usr/share/opencv4/haarcascades/haarcascade_frontalface_alt2.xml"
    private static let hasCascades = FileManager.default.fileExists(atPath: cascade)
    private static let models: URL? = {
        let beside = Repository.root.deletingLastPathComponent().appending(path: "shared/models")
        let named = ProcessInfo.processInfo.environment["FRAMEHOST_DATA"].map { URL(fileURLWithPath: $0) }
        return [named, beside].compactMap { $0 }.first {
            FileManager.default.fileExists(atPath: $0.appending(path: "face_detection_yunet_2022mar.onnx").path)
        }
    }()
    private static let noModels: Comment = "no models: set FRAMEHOST_DATA to a folder with both YuNet models"

    /// What `check` says of a chain with these options; no data folder of this machine plays a part.
    private func check(_ options: String, in workspace: Workspace) throws -> Outcome {
        let chain = try workspace.write(
            "chain.json",
            #"{ "stages": [ { "id": "in", "use": "test-source", "frames": 2 }, { "id": "face", "use": "face-effect"\#(options) }, { "id": "out", "use": "null-sink" } ] }"#
        )
        return try Program.framehost.run(
            ["check", chain],
            environment: [
                "FRAMEHOST_DATA": workspace.path("data"), "XDG_DATA_HOME": workspace.path("none"), "XDG_DATA_DIRS": workspace.path("none"),
            ])
    }

    @Test func saysThatAModelIsMissing() throws {
        let workspace = try Workspace()
        let named = try check(#", "model": "no.onnx""#, in: workspace)
        #expect(named.status != 0)
        #expect(
            named.error.contains("no.onnx is not there or cannot be read. Name a YuNet model (.onnx) or a cascade (.xml)"), "\(named.error)"
        )
        let wanted = try check(#", "detector": "yunet""#, in: workspace)
        #expect(wanted.status != 0)
        #expect(wanted.error.contains("no YuNet model is there: OpenCV 4."), "\(wanted.error)")
        #expect(wanted.error.contains(#"Name it with model, put it into a data folder, or choose "detector": "haar"."#), "\(wanted.error)")
    }

    @Test func saysThatAFileIsNoCascadeOrNoModelOrNoPicture() throws {
        let workspace = try Workspace()
        try workspace.write("bad.xml", "<?xml version=\"1.0\"?><opencv_storage></opencv_storage>")
        try workspace.write("bad.onnx", String(repeating: "x", count: 5000))
        try workspace.write("bad.png", "not a picture")
        let cascade = try check(#", "detector": "haar", "model": "bad.xml""#, in: workspace)
        #expect(cascade.error.contains("bad.xml is no cascade that OpenCV "), "\(cascade.error)")
        let model = try check(#", "model": "bad.onnx""#, in: workspace)
        #expect(model.error.contains("bad.onnx is no YuNet model. Name face_detection_yunet_"), "\(model.error)")
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
                    outcome.error.contains("is YuNet's model of \(year), which OpenCV ")
                        && outcome.error.contains("cannot use: it reads the one of \(other). Name face_detection_yunet_\(other)mar.onnx"),
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
        let outcome = try Program.framehost.run([chain], timeout: 120)
        #expect(outcome.status == 0, "\(outcome.error)")
        let lines = try String(decoding: workspace.data("faces.jsonl"), as: UTF8.self).split(separator: "\n")
            .map { try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]) }
        #expect(lines.count == 60)
        let ids = lines.dropFirst(2).map { ($0["faces"] as? [[String: Any]])?.compactMap { $0["id"] as? Int } ?? [] }
        #expect(ids.allSatisfy { $0.contains(1) }, "the portrait's face keeps its number")
        #expect(lines.count { $0["detection"] as? Bool == true } <= 20, "at most a third of the frames are searched")
    }

    /// A plugin that links all of OpenCV loads 375 libraries, some 0.4 s.
    @Test func loadsFewLibraries() throws {
        let library = try Repository.programFolder.appending(path: "libFaceEffect.so")
        let outcome = try Tool(name: "ldd").run(library.path)
        #expect(outcome.lines.count < 60, "\(outcome.output)")
        #expect(outcome.output.contains("libopencv_objdetect"))
        for other in ["highgui", "imgcodecs", "videoio", "ml."] { #expect(!outcome.output.contains("libopencv_\(other)")) }
    }
}
