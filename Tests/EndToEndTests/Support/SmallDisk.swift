// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// A folder with little room: a file system in memory where this user may mount one, else a limit on the size of a
/// file.
final class SmallDisk {
    private let folder: String
    private let isMounted: Bool
    private var room = 0

    init(at folder: String) throws {
        self.folder = folder
        let mount = Tool(name: "mount")
        isMounted =
            try getuid() == 0 && mount.path != nil
            && mount.run("-t", "tmpfs", "-o", "size=64k", "framehost-test", folder).status == 0
    }

    deinit { if isMounted { _ = try? Tool(name: "umount").run("-l", folder) } }

    /// Whether it is a limit on the size of a file.
    var isLimit: Bool { !isMounted }

    /// What the system says when there is no room.
    var reason: String { isMounted ? "No space left on device" : "File too large" }

    func empty(room bytes: Int) throws {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
            try FileManager.default.removeItem(atPath: "\(folder)/\(name)")
        }
        room = bytes
        guard isMounted else { return }
        let outcome = try Tool(name: "mount").run("-o", "remount,size=\(bytes)", folder)
        guard outcome.status == 0 else { throw TestFault("the small disk cannot be made smaller: \(outcome.error)") }
    }

    /// Runs framehost with no more room than that.
    func run(_ arguments: [String], in workspace: Workspace) throws -> Outcome {
        guard !isMounted else { return try Program.framehost.run(arguments, folder: workspace.folder.path) }
        // SIGXFSZ ignored, so that the write fails as on a full disk; a unit of `ulimit -f` is 512 bytes in a POSIX
        // shell.
        let line = #"trap "" XFSZ; ulimit -f "$1"; shift; exec "$@""#
        let shell = Program(URL(fileURLWithPath: "/bin/sh"))
        return try shell.run(
            ["-c", line, "sh", String(room / 512), Program.framehost.executable.path] + arguments,
            folder: workspace.folder.path)
    }
}
