// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// What stages declare as their events is what their sources post, by name.
@Suite struct EventNamesTests {
    private static let plugins = Repository.root.appending(path: "Sources/Plugins")

    /// Names in calls of `post(`, with the words of a `? :` before the first comma.
    private static func posted(in folder: URL, pattern: String) throws -> Set<String> {
        var names: Set<String> = []
        let call = try NSRegularExpression(pattern: pattern)
        let word = try NSRegularExpression(pattern: #""([a-z][a-z0-9-]+)""#)
        for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path) where path.hasSuffix(".swift") {
            guard !path.contains(".build/") else { continue }
            let text = try String(contentsOf: folder.appending(path: path), encoding: .utf8)
            for match in call.matches(in: text, range: NSRange(text.startIndex..., in: text)) {
                let argument = String(text[Range(match.range(at: 1), in: text)!])
                for found in word.matches(in: argument, range: NSRange(argument.startIndex..., in: argument)) {
                    names.insert(String(argument[Range(found.range(at: 1), in: argument)!]))
                }
            }
        }
        return names
    }

    private static func declared(_ id: String) throws -> Set<String> {
        let outcome = try Program.framehost.run("describe", id, "--json")
        return Set(try JSON(parsing: outcome.output)["events"].list.compactMap { $0["name"].string })
    }

    /// Of one image come all stages of a folder.
    @Test(arguments: [
        ("sources/ALSASource", ["alsa-source"]),
        (
            "filters/Audio",
            ["audio-encoder", "audio-meter", "audio-mix", "audio-resample", "audio-shift", "gain", "tone-source"]
        ),
        ("filters/Compositor", ["mosaic", "source-switch"]), ("filters/Convert", ["convert"]),
        ("filters/CropOrient", ["crop-orient"]),
        ("filters/FPSMeter", ["fps-meter"]), ("filters/FaceEffect", ["face-effect"]),
        ("sources/FileSource", ["file-source", "image-source", "network-source"]),
        ("filters/Frei0r", ["frei0r", "frei0r-mixer"]),
        ("filters/Mask", ["mask"]), ("filters/MotionDetect", ["motion-detect"]),
        ("filters/PictureOverlay", ["picture-overlay"]), ("sources/Motion", ["motion-source"]),
        ("filters/MotionSync", ["motion-sync"]),
        ("filters/VideoSnake", ["video-snake"]),
        ("sinks/NullSink", ["null-sink"]), ("sinks/RTSPSink", ["rtsp-sink"]), ("filters/Rate", ["rate"]),
        ("sinks/ImageSink", ["image-sink"]), ("sinks/Recorder", ["recorder"]),
        ("filters/Replicate", ["replicate"]), ("sources/TestSource", ["test-source"]), ("filters/Text", ["text"]),
        ("sinks/V4L2Sink", ["v4l2-sink"]),
        ("sources/V4L2Source", ["v4l2-source"]), ("sinks/WindowPreview", ["window-preview"]),
        ("encoders/X264Encoder", ["x264-encoder"]),
        ("sources/Y4M", ["y4m-sink", "y4m-source"]),
    ]) func everyPluginDeclaresWhatItPosts(folder: String, ids: [String]) throws {
        // `context.post("name"` and, of an extension of the context, `post(`; up to the first comma.
        var posted = try Self.posted(
            in: Self.plugins.appending(path: folder), pattern: #"(?:\bcontext\.|\s)post\(\s*([^,{]+),"#)
        // Core's own, which a stage may post as well.
        let ofCore = try Self.declared("chain")
        let declared = try ids.reduce(into: Set<String>()) { $0.formUnion(try Self.declared($1)) }
        posted.subtract(ofCore)
        #expect(posted == declared)
    }

    @Test func everyShippedStageIsLookedAt() throws {
        let known: Set<String> = [
            "mosaic", "source-switch", "convert", "crop-orient", "fps-meter", "face-effect", "file-source",
            "image-source",
            "network-source", "frei0r", "frei0r-mixer", "null-sink", "part-sink", "part-source", "rtsp-sink", "rate",
            "recorder", "replicate",
            "test-source", "text", "v4l2-sink", "v4l2-source", "window-preview", "x264-encoder", "y4m-sink",
            "y4m-source", "motion-source", "alsa-source", "audio-encoder", "audio-meter", "audio-mix",
            "audio-resample", "audio-shift", "gain", "tone-source", "motion-sync", "video-snake", "picture-overlay",
            "image-sink", "mask", "motion-detect",
        ]
        #expect(Set(ShippedPlugins.ids) == known)
    }

    @Test func coreDeclaresWhatItPosts() throws {
        var posted = try Self.posted(in: Repository.core, pattern: #"\bEvent\(\s*name: ([^,]+),"#)
        posted.formUnion(try Self.posted(in: Repository.core, pattern: #"\bpost\(\s*("[^,]+|name),"#))
        // `post(name, …)` of a pause and a resume.
        posted.formUnion(["stage-paused", "stage-resumed"])
        posted.formUnion(
            try Self.posted(
                in: Repository.root.appending(path: "Sources/Host/Rules"), pattern: #"\bpost\(\s*("[^,]+),"#))
        posted.formUnion(
            try Self.posted(
                in: Repository.root.appending(path: "Sources/Host/Display"),
                pattern: #"\bEvent\(\s*name: ("[^,]+),"#))
        #expect(posted == (try Self.declared("chain")))
    }

    @Test func describeListsTheEventsOfAStageAndOfTheChain() throws {
        let stage = try Program.framehost.run("describe", "fps-meter")
        #expect(
            stage.output.contains(
                """

                Events
                  fps                     The measurements of the last second, once a second.
                    fpsByPTS      number  Frames per second, by their PTS.
                """), "\(stage.output)")
        let chain = try Program.framehost.run("describe", "chain")
        #expect(chain.status == 0)
        #expect(chain.output.hasPrefix("Events of the chain\n"))
        #expect(chain.output.contains("\n\nEvents of every stage\n"))
    }
}
