// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// System calls that a signal interrupts, or that find no descriptor (Tests/Soak/torture/refusals.c, loaded before the
/// program): a recording does not fail for it, and leaves nothing behind.
@Suite struct InterruptedCallsTests {
    let workspace: Workspace

    init() throws { workspace = try Workspace() }

    private func shim() throws -> String {
        let library = workspace.path("refusals.so")
        let source = Repository.root.appending(path: "Tests/Soak/torture/refusals.c").path
        let outcome = try Tool.compiler.run("-shared", "-fPIC", "-O1", "-o", library, source, "-ldl", "-lpthread")
        guard outcome.status == 0 else { throw TestFault("refusals.c does not compile: \(outcome.error)") }
        return library
    }

    private func chain(live: Bool) throws {
        try FileManager.default.createDirectory(atPath: workspace.path("out"), withIntermediateDirectories: true)
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "use": "test-source", "size": "64x48", "rate": 100, "live": \(live), "frames": 150 },
              { "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 0.1 },
              { "use": "recorder", "path": "out/a-{n}.mp4", "segmentSeconds": 0.3, "finalize": "always" } ] }
            """)
    }

    /// Every second call answers "Interrupted system call".
    @Test(
        .needs(.compiler), .needs(.ffprobe),
        arguments: ["close", "sync", "ftruncate", "flock", "write", "chmod", "close,sync,ftruncate,flock,write,chmod"])
    func aRecordingGoesOn(calls: String) throws {
        let library = try shim()
        for (seed, live) in [(1, false), (2, true), (3, false)] {
            try chain(live: live)
            let outcome = try Program.framehost.run(
                ["chain.json"],
                environment: [
                    "LD_PRELOAD": library, "REFUSALS": "\(seed):500000:0:1000000:\(calls)", "REFUSALS_AS": "\(EINTR)",
                    "REFUSALS_UNDER": workspace.path("out"), "REFUSALS_LOG": workspace.path("refusals.txt"),
                ], folder: workspace.folder.path)
            #expect(live ? outcome.isDoneOrBusy : outcome.status == 0, "\(outcome.error)")
            #expect(!outcome.error.contains("Interrupted"), "\(outcome.error)")
            let names = workspace.names(below: "out")
            #expect(names.allSatisfy { $0.hasSuffix(".mp4") && !$0.hasPrefix(".") }, "\(names)")
            let frames = try names.reduce(0) { $0 + (try RecordedFile(workspace.path("out/\($1)")).packets.count) }
            if !live { #expect(frames == 150) }
            #expect(frames > 0)
            try FileManager.default.removeItem(atPath: workspace.path("out"))
        }
        // ftruncate is called where a recording fails, and where a device's file is emptied: not in these.
        if calls != "ftruncate" { #expect(workspace.exists("refusals.txt"), "nothing was interrupted") }
    }

    /// With few descriptors the copy cannot be made, or not be compared; no empty one is left beside the recording.
    @Test(.needs(.compiler)) func noCopyIsLeftWithoutDescriptors() throws {
        let library = try shim()
        var failures = 0
        for files in 6...24 {
            try chain(live: false)
            let outcome = try Program.framehost.run(
                ["chain.json"], environment: ["LD_PRELOAD": library, "LIMITS": "\(files):0"],
                folder: workspace.folder.path)
            #expect((0...2).contains(outcome.status), "\(files) descriptors: \(outcome.error)")
            if outcome.error.contains("Too many open files") { failures += 1 }
            let names = workspace.names(below: "out")
            #expect(!names.contains { $0.hasSuffix(".finalising") }, "\(files) descriptors: \(names)")
            try FileManager.default.removeItem(atPath: workspace.path("out"))
        }
        #expect(failures > 0)
    }
}
