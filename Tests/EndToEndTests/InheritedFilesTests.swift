// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Programs that framehost starts get no descriptor but those that they are given.
@Suite struct InheritedFilesTests {
    private let workspace: Workspace

    init() throws { workspace = try Workspace() }

    /// framehost with the descriptors 7 to 9 open, as a plugin's library might leave some, and `name` as a program that
    /// notes what it has got.
    private func files(of name: String, _ arguments: String) throws -> [String] {
        try workspace.write("bin/\(name)", "#!/bin/sh\nls /proc/$$/fd >'\(workspace.path("files"))'\ncat\n")
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o755], ofItemAtPath: workspace.path("bin/\(name)"))
        let program = try Repository.executable.path
        let outcome = try Program(URL(fileURLWithPath: "/bin/sh")).run(
            [
                "-c",
                "PATH='\(workspace.path("bin")):'\"$PATH\" exec '\(program)' \(arguments) 7</dev/null 8</dev/null 9</dev/null",
            ], folder: workspace.folder.path)
        let files = try? String(decoding: workspace.data("files"), as: UTF8.self)
        guard let files else { throw TestFault("'\(name)' was not started: \(outcome.error)") }
        return files.split(separator: "\n").map(String.init).filter { Int($0).map { (3...9).contains($0) } ?? false }
    }

    @Test func dotHasNoOtherFiles() throws {
        try workspace.write("chain.json", #"{ "stages": [ { "use": "test-source" }, { "use": "null-sink" } ] }"#)
        #expect(try files(of: "dot", "graph chain.json --format svg") == [])
    }

    /// `framehost-ray` takes framehost's place.
    @Test(arguments: [("sbatch", "slurm"), ("framehost-ray", "ray")])
    func programsOfClustersHaveNoOtherFiles(program: String, engine: String) throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "use": "file-source", "path": "${input}" },
                          { "id": "h264", "use": "x264-encoder", "preset": "ultrafast" },
                          { "use": "recorder", "path": "${output}" } ] }
            """)
        try workspace.write(
            "maker.json",
            """
            { "stages": [ { "use": "test-source", "size": "160x120" },
                          { "use": "x264-encoder", "preset": "ultrafast" }, { "use": "recorder", "path": "clip.mp4" } ] }
            """)
        let made = try Program.framehost.run(
            ["maker.json", "--frames", "5", "--quiet"], folder: workspace.folder.path)
        #expect(made.status == 0, "\(made.error)")
        let arguments = "batch chain.json clip.mp4 --out made --on \(engine) --cores 1 --memory 500"
        #expect(try files(of: program, arguments) == [])
    }
}
