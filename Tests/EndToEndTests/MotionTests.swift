// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Motion from a file to pictures, to a recording, and back.
@Suite(.serialized) struct MotionTests {
    private let workspace: Workspace
    init() throws { workspace = try Workspace() }

    /// A camera that turns by 10° a second about its line of sight, 100 samples a second; the rotation rate about x
    /// counts seconds.
    private func writeMotion(seconds: Int) throws {
        var text = "t,gx,gy,gz,ax,ay,az\n"
        for index in 0...(seconds * 100) {
            let time = Double(index) / 100
            let roll = time * 10 * .pi / 180
            text += "\(time),\(time),0,0.1745,\(-9.80665 * sin(roll)),\(-9.80665 * cos(roll)),0\n"
        }
        try workspace.write("m.csv", text)
    }

    private func run(_ stages: String) throws -> Outcome {
        try workspace.write("chain.json", "{ \"stages\": [ \(stages) ] }")
        return try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
    }

    @Test func everySampleOfAFileComesThrough() throws {
        try writeMotion(seconds: 3)
        let outcome = try run(
            #"{ "use": "motion-source", "path": "m.csv" }, { "use": "null-sink", "dump": "out.csv" }"#)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(outcome.error.contains("blocks of motion"), "\(outcome.error)")
        let lines = String(decoding: try workspace.data("out.csv"), as: UTF8.self).split(separator: "\n")
        #expect(lines.count == 302)
        for (index, line) in lines.dropFirst().enumerated() {
            let values = line.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
            #expect(values.count == 11 && values.suffix(4).allSatisfy(\.isEmpty), "\(line)")
            #expect(Double(values[0]) == Double(index) / 100 && abs(Double(values[1])! - Double(index) / 100) < 1e-6)
        }
        // What null-sink writes, motion-source reads.
        let again = try run(
            #"{ "use": "motion-source", "path": "out.csv" }, { "use": "null-sink", "dump": "again.csv" }"#)
        #expect(again.status == 0, "\(again.error)")
        #expect(try workspace.data("again.csv") == workspace.data("out.csv"))
    }

    /// Nothing is lost in a chain of files, and each picture has the motion of its time: the report counts them.
    @Test func picturesOfAFileHaveTheirMotion() throws {
        try writeMotion(seconds: 4)
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "pictures", "use": "test-source", "size": "160x120", "rate": 50, "frames": 180 },
              { "id": "motion", "use": "motion-source", "path": "m.csv" },
              { "id": "matched", "use": "motion-sync", "from": ["pictures", "motion"] },
              { "use": "text", "text": "{motion.roll}" }, { "use": "null-sink" }
            ] }
            """)
        let outcome = try Program.framehost.run(
            ["chain.json", "--stats", "stats.json"], folder: workspace.folder.path)
        #expect(
            outcome.status == 0 && !outcome.untimedErrorLines.contains { $0.contains("warning") }, "\(outcome.error)")
        let stats = try JSON(parsing: String(decoding: workspace.data("stats.json"), as: UTF8.self))
        let own = stats["stages"].first("id", "matched")["figures"]
        #expect(own["matched"].int == 180 && own["withoutMotion"].int == 0 && own["extrapolated"].int == 0, "\(own)")
        #expect(own["samples"].int == 401, "\(own)")
        #expect(stats["ledger"]["dropped"].int == 0)
    }

    /// Recorded as a track, read again: the same values at the same times.
    @Test(.needs(.ffprobe)) func aRecordingGivesItsMotionBack() throws {
        try writeMotion(seconds: 4)
        let outcome = try run(
            """
            { "id": "pictures", "use": "test-source", "size": "160x120", "rate": 50, "frames": 150 },
            { "id": "h264", "use": "x264-encoder", "preset": "ultrafast" },
            { "id": "motion", "use": "motion-source", "path": "m.csv" },
            { "use": "recorder", "from": ["h264", "motion"], "path": "out.mp4" }
            """)
        #expect(outcome.status == 0, "\(outcome.error)")
        let probe = try Tool.ffprobe.run(
            "-v", "error", "-show_entries", "stream=codec_type,codec_tag_string", "-of", "json",
            workspace.path("out.mp4"))
        let tracks = try JSON(parsing: probe.output)["streams"].list
        #expect(tracks.map { $0["codec_type"].string } == ["video", "data"], "\(probe.output)")
        #expect(tracks.last?["codec_tag_string"].string == "camm", "\(probe.output)")
        let again = try run(
            #"{ "use": "motion-source", "path": "out.mp4" }, { "use": "null-sink", "dump": "again.csv" }"#)
        #expect(again.status == 0, "\(again.error)")
        let rows = String(decoding: try workspace.data("again.csv"), as: UTF8.self).split(separator: "\n").dropFirst()
            .map { $0.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) } }
        // Samples from the first picture to the end of the last: 3 s.
        #expect(rows.count >= 298 && rows.count <= 301, "\(rows.count)")
        for row in rows {
            guard let time = row[0], let rate = row[1], let right = row[4] else {
                Issue.record("\(row)")
                continue
            }
            #expect(abs(rate - time) < 0.000_1, "the value is the time: \(row)")
            #expect(abs(right + 9.80665 * sin(time * 10 * .pi / 180)) < 0.001, "\(row)")
        }
    }

    /// A sensor by the network that says nothing: live pictures wait a tenth of a second at most, and the run fails.
    @Test func livePicturesGoOnWithoutMotion() throws {
        let port = try RTSPStream.freePort()
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "pictures", "use": "test-source", "size": "160x120", "rate": 25, "live": true },
              { "id": "motion", "use": "motion-source", "listen": "127.0.0.1:\(port)" },
              { "id": "matched", "use": "motion-sync", "from": ["pictures", "motion"] },
              { "use": "null-sink" }
            ] }
            """)
        let outcome = try Program.framehost.run(
            ["chain.json", "--for", "15", "--stats", "stats.json"], folder: workspace.folder.path)
        #expect(outcome.status == 1, "\(outcome.error)")
        #expect(outcome.error.contains("pictures has motion: no sample has come"), "\(outcome.error)")
        #expect(outcome.error.contains("Pictures go on without motion"), "\(outcome.error)")
        let stats = try JSON(parsing: String(decoding: workspace.data("stats.json"), as: UTF8.self))
        #expect((stats["ledger"]["delivered"].int ?? 0) >= 20, "\(stats["ledger"])")
    }
}
