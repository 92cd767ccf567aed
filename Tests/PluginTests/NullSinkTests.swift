// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Testing

@testable import NullSink

@Suite struct NullSinkTests {
    static let format = VideoFormat(.i420, width: 6, height: 4, frameRate: Rational(30))

    @Test func writesRowsWithoutPadding() throws {
        let path = "/tmp/null-sink-test-\(getpid()).raw"
        defer { unlink(path) }
        let driver = try StageDriver(NullSink.self, options: "{ \"dump\": \"\(path)\" }", input: .video(Self.format))
        for value in UInt8(1)...2 {
            try driver.send(
                driver.makeFrame { frame in
                    for index in 0..<3 {
                        frame.withMutablePlane(index) { plane in
                            for y in 0..<plane.height { plane.row(y).update(repeating: value * 10 + UInt8(index)) }
                        }
                    }
                })
        }
        try driver.drain()
        try driver.stop()
        let once: (UInt8) -> [UInt8] = {
            Array(repeating: $0, count: 24) + Array(repeating: $0 + 1, count: 6) + Array(repeating: $0 + 2, count: 6)
        }
        #expect(bytes(of: path) == once(10) + once(20))
    }

    @Test func saysWhichFolderIsMissing() throws {
        let error = #expect(throws: FrameHostError.self) {
            _ = try StageDriver(NullSink.self, options: #"{ "dump": "/nowhere/x.raw" }"#, input: .video(Self.format))
        }
        #expect(
            error?.description
                == "dump: '/nowhere/x.raw' cannot be written: No such file or directory. Create the folder, or correct the name."
        )
    }

    @Test func refusesTwoUsesOfStandardOutput() {
        #expect(
            throws: OptionFault(
                "'dump' and 'report' both write to standard output",
                remedy: "Name a file in 'dump', or leave 'report' out.", options: ["dump", "report"])
        ) {
            var options = NullSinkOptions()
            options.dump = "-"
            options.report = .latency
            try options.validate()
        }
    }

    @Test func reportsPercentilesOfTheNearestRank() {
        var samples = LatencySamples(capacity: 200)
        #expect(samples.report() == nil)
        for value in (1...200).reversed() { samples.add(Int64(value)) }
        samples.add(1_000_000)
        #expect(samples.count == 200)
        #expect(samples.report() == "pingpong_ns p50=100 p99=198")
    }

    private func bytes(of path: String) -> [UInt8] {
        guard let file = fopen(path, "rb") else { return [] }
        defer { fclose(file) }
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        let count = fread(&buffer, 1, buffer.count, file)
        return Array(buffer.prefix(count))
    }
}
