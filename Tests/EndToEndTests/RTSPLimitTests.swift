// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// A server near the limits of its process.
@Suite struct RTSPLimitTests {
    /// NIO ends the process where its loops cannot have a descriptor; the sink says so first.
    @Test func saysThatThereAreTooFewDescriptorsForItsThreads() throws {
        let workspace = try Workspace()
        try workspace.write(
            "chain.json",
            """
            { "stages": [
                { "use": "test-source", "size": "64x48", "frames": 5 }, { "use": "x264-encoder", "preset": "ultrafast" },
                { "use": "rtsp-sink", "address": "127.0.0.1", "port": \(try RTSPStream.freePort()) } ] }
            """)
        let program = try Repository.executable.path
        var refused = 0
        for limit in 8...24 {
            let outcome = try Program(URL(fileURLWithPath: "/bin/sh")).run(
                ["-c", "ulimit -n \(limit); exec '\(program)' '\(workspace.path("chain.json"))'"])
            #expect([0, 1, 2].contains(outcome.status), "limit \(limit): \(outcome.error.suffix(2000))")
            if outcome.error.contains("file descriptors for its") { refused += 1 }
        }
        #expect(refused > 0)
    }
}
