// SPDX-License-Identifier: Apache-2.0

import Foundation

extension Tool {
    static let ffmpeg = Tool(name: "ffmpeg")
}

/// Makes clips with ffmpeg, plays them through the file chain, and looks at what comes out.
struct ClipWorkshop {
    let workspace: Workspace
    /// What a file must not take longer than, in processor time.
    static let limit = 10.0

    init() throws { workspace = try Workspace() }

    /// Moving pictures, for ffmpeg's `-i`.
    static func moving(_ size: String = "320x240", rate: Int = 25, count: Int = 25) -> String {
        "testsrc2=size=\(size):rate=\(rate),trim=end_frame=\(count)"
    }

    /// Runs ffmpeg in the workspace; the last argument is the file's name, whose path is returned. It codes on one
    /// thread: with more of them the bytes depend on how many processors there are.
    @discardableResult
    func ffmpeg(_ arguments: [String]) throws -> String {
        let path = workspace.path(arguments.last!)
        let outcome = try Tool.ffmpeg.run(
            ["-nostdin", "-v", "error", "-y"] + arguments.dropLast() + ["-threads", "1", "file:" + path])
        guard outcome.status == 0 else { throw TestFault("ffmpeg cannot make \(arguments.last!): \(outcome.error)") }
        return path
    }

    /// Encodes moving pictures with H.264, unless the options say otherwise.
    @discardableResult
    func make(_ name: String, _ source: String = moving(), _ options: String...) throws -> String {
        try ffmpeg(
            ["-f", "lavfi", "-i", source, "-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p"]
                + options.flatMap { $0.split(separator: " ").map(String.init) } + [name])
    }

    /// A file made of another one's bytes.
    func change(_ name: String, to other: String, _ body: (inout Data) throws -> Void) throws -> String {
        var bytes = try workspace.data(name)
        try body(&bytes)
        return try workspace.write(other, bytes)
    }

    /// file-source → x264-encoder → recorder. Never longer than ``limit``.
    func play(
        _ path: String, source options: [String: Any] = [:], encoder: [String: Any] = [:], recorder: [String: Any] = [:]
    ) throws -> (outcome: Outcome, result: String) {
        let result = workspace.path("out.mp4")
        let stages: [[String: Any]] = [
            ["id": "clip", "use": "file-source", "path": path].merging(options) { $1 },
            ["id": "h264", "use": "x264-encoder", "preset": "ultrafast"].merging(encoder) { $1 },
            ["id": "file", "use": "recorder", "path": result, "overwrite": true].merging(recorder) { $1 },
        ]
        let chain = try workspace.write("chain.json", JSONSerialization.data(withJSONObject: ["stages": stages]))
        let outcome = try Program.framehost.run([chain, "--quiet"], timeout: 180)
        guard outcome.processorSeconds < Self.limit else {
            throw TestFault("\(path) took \(outcome.processorSeconds) s of processor time: \(outcome.error)")
        }
        return (outcome, result)
    }
}
