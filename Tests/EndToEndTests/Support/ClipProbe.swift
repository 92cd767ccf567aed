// SPDX-License-Identifier: Apache-2.0

import Foundation

/// What ffprobe says of the first video track of a file.
struct ClipProbe {
    /// Of every decoded frame in seconds; nil where the file gives none.
    let times: [Double?]
    /// Seconds of a tick.
    let tick: Double
    /// Tags of the decoded pictures, of the track where a picture has none. `nil` and `unknown` are the same.
    let tags: [String: String]
    /// `16:11`; 1:1 when unknown.
    let aspect: String
    let size: String
    /// The part of the display matrix that turns and mirrors, 16.16: a, b, c, d. Nothing: as stored.
    let matrix: [Int]

    static let tagNames = ["color_range", "color_space", "color_primaries", "color_transfer"]

    init(_ path: String) throws {
        let frame =
            "frame=best_effort_timestamp_time,width,height,sample_aspect_ratio," + Self.tagNames.joined(separator: ",")
        let stream =
            ":stream=time_base,sample_aspect_ratio," + Self.tagNames.joined(separator: ",")
            + ":stream_side_data=displaymatrix"
        let outcome = try Tool.ffprobe.run(
            "-v", "quiet", "-select_streams", "v:0", "-show_entries", frame + stream, "-of", "json", "file:" + path)
        let answer = try JSON(parsing: outcome.output)
        let (frames, track) = (answer["frames"].list, answer["streams"][0])
        times = frames.map { $0["best_effort_timestamp_time"].string.flatMap { Double($0) } }
        let base = (track["time_base"].string ?? "").split(separator: "/").compactMap { Double($0) }
        guard base.count == 2 else { throw TestFault("ffprobe finds no video in \(path)") }
        tick = base[0] / base[1]
        var tags: [String: String] = [:]
        for name in Self.tagNames {
            let found = frames.first?[name].string ?? track[name].string
            // Nothing said is the range of television.
            tags[name] = found == "unknown" || (name == "color_range" && found == "tv") ? nil : found
        }
        self.tags = tags
        let aspect = track["sample_aspect_ratio"].string ?? frames.first?["sample_aspect_ratio"].string ?? "1:1"
        self.aspect = aspect == "0:1" ? "1:1" : aspect
        size = frames.first.map { "\($0["width"].int ?? 0)x\($0["height"].int ?? 0)" } ?? ""
        // 00000000:            0       65536           0
        let rows = (track["side_data_list"][0]["displaymatrix"].string ?? "").split(separator: "\n").map { line in
            line.split(separator: ":").last?.split(separator: " ").compactMap { Int($0) } ?? []
        }.filter { $0.count == 3 }
        matrix =
            rows.count == 3 && rows[0] + rows[1] != [65536, 0, 0, 0, 65536, 0]
            ? Array(rows[0].prefix(2) + rows[1].prefix(2)) : []
    }
}
