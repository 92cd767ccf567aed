// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import FrameCore

@Suite struct FileClashesTests {
    private func demand(reads: [String] = [], writes: [String] = []) -> StageDemand {
        var demand = StageDemand()
        demand.readsFiles = reads
        demand.writesFiles = writes
        return demand
    }

    @Test func findsOneFileUnderTwoNames() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "clash-\(UInt64.random(in: 0 ... .max))")
            .path
        try FileManager.default.createDirectory(atPath: folder + "/sub", withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try Data().write(to: URL(filePath: folder + "/a.mp4"))
        try FileManager.default.createSymbolicLink(atPath: folder + "/link.mp4", withDestinationPath: "a.mp4")
        let reader = demand(reads: [folder + "/link.mp4"])
        let found = FileClashes([reader, demand(writes: [folder + "/sub/../a.mp4"])]).clashes
        #expect(found == [FileClashes.Clash(writer: 1, other: 0, path: folder + "/link.mp4", isRead: true)])
        // Files that are not there yet.
        let both = FileClashes([demand(writes: [folder + "/new.mp4"]), demand(writes: [folder + "/sub/../new.mp4"])])
            .clashes
        #expect(both == [FileClashes.Clash(writer: 1, other: 0, path: folder + "/sub/../new.mp4", isRead: false)])
        #expect(
            FileClashes([reader, demand(reads: [folder + "/a.mp4"]), demand(writes: [folder + "/new.mp4"])]).clashes
                == [])
    }

    /// A stage may keep something in a file of its own.
    @Test func letsAStageReadWhatItWrites() {
        let path = FileManager.default.temporaryDirectory.appending(path: "own-\(UInt64.random(in: 0 ... .max))").path
        let own = demand(reads: [path], writes: [path])
        #expect(FileClashes([own]).clashes == [])
        #expect(
            FileClashes([own, demand(reads: [path])]).clashes
                == [FileClashes.Clash(writer: 0, other: 1, path: path, isRead: true)])
    }

    /// Lines of several stages may go into one pipe; what a chain writes there it must not read itself.
    @Test func findsAWriterAndAReaderOfOnePipe() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "pipe-\(UInt64.random(in: 0 ... .max))").path
        #expect(mkfifo(path, 0o600) == 0)
        defer { try? FileManager.default.removeItem(atPath: path) }
        #expect(FileClashes([demand(writes: [path]), demand(writes: [path])]).clashes == [])
        #expect(FileClashes([demand(reads: [path]), demand(reads: [path])]).clashes == [])
        #expect(
            FileClashes([demand(reads: [path]), demand(writes: [path])]).clashes
                == [FileClashes.Clash(writer: 1, other: 0, path: path, isRead: true)])
    }

    /// What a chain reads is held while it runs, and a pipe is not touched.
    @Test func holdsRegularFilesOnce() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "held-\(UInt64.random(in: 0 ... .max))")
            .path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try Data("x".utf8).write(to: URL(filePath: folder + "/a"))
        try FileManager.default.createSymbolicLink(atPath: folder + "/link", withDestinationPath: "a")
        #expect(mkfifo(folder + "/pipe", 0o600) == 0)
        let files = RunFiles()
        do {
            var held = ReadFiles()
            for name in ["a", "link", "a", "pipe", "nothing"] { held.add("\(folder)/\(name)", as: "reader") }
            // A writer finds no reader at the pipe.
            #expect(open(folder + "/pipe", O_WRONLY | O_NONBLOCK) < 0 && errno == ENXIO)
            #expect(files.remove(folder + "/a", as: "other") == .readHere("reader"))
            #expect(files.write(folder + "/a", [1], as: "other", isReplacing: true) == .readHere("reader"))
            withExtendedLifetime(held) {}
        }
        #expect(files.remove(folder + "/a", as: "other") == nil)
    }
}
