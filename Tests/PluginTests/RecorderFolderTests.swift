// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FileSource
@testable import Recorder
@testable import Recordings

/// Recorders, sources, retention and odd neighbours in one folder, at random; then every file is accounted for.
@Suite struct RecorderFolderTests {
    /// One entry of a folder: what it is and what is in it.
    private struct Entry: Equatable {
        var kind: mode_t
        var inode: UInt64
        var mode: mode_t
        var content: Data?
        var target: String?

        init(_ path: String) {
            var status = stat()
            guard lstat(path, &status) == 0 else { (kind, inode, mode) = (0, 0, 0); return }
            kind = status.st_mode & S_IFMT
            inode = UInt64(status.st_ino)
            mode = status.st_mode & 0o7777
            content = kind == S_IFREG ? FileManager.default.contents(atPath: path) : nil
            target = kind == S_IFLNK ? try? FileManager.default.destinationOfSymbolicLink(atPath: path) : nil
        }
    }

    private struct Plan {
        var prefix: String
        var path: String
        var overwrites: Bool
        var keeps: Bool
        /// The names it may have made in an earlier run.
        var isOurs: (String) -> Bool
    }

    private static let clip: Data = {
        let folder = try! ScratchFolder()
        let recorder = try! StageDriver(
            recording: #"{ "path": "\#(folder.file("a.mp4"))", "finalize": "never" }"#, RecorderStreams.format())
        for unit in RecorderStreams.steady(20, isKey: { $0 % 10 == 0 }) { try! recorder.send(unit) }
        try! recorder.finish()
        return FileManager.default.contents(atPath: folder.file("a.mp4"))!
    }()

    private static let names = [
        "%-0001.mp4", "%-0002.mp4", "%-0003.mp4", "%-0007.mp4", "%-9223372036854775807.mp4", "%-99999999999999999.mp4",
        "%-1970.mp4",
        "%-1970~2.mp4", "%-1970~3.mp4", "%-2300.mp4", "%.mp4", "%-0001.mp4.bak", "%-notes.txt", ".%-0001.mp4.keep",
        "%-0002.mov", "%--1.mp4",
    ]

    @Test func leavesEverybodysFilesAlone() throws {
        for seed in UInt64(1)...75 {
            var random = SplitRandom(state: seed &* 7919)
            let folder = try ScratchFolder()
            try round(seed, folder, &random)
        }
    }

    private func round(_ seed: UInt64, _ folder: ScratchFolder, _ random: inout SplitRandom) throws {
        let outside = try ScratchFolder()
        try Self.clip.write(to: URL(fileURLWithPath: outside.file("precious.mp4")))
        var held: [MediaFile] = []
        var locks: [Int32] = []
        defer { for lock in locks { close(lock) } }
        for prefix in ["a", "b", "c"] {
            for pattern in Self.names where Int.random(in: 0..<2, using: &random) == 0 {
                let name = pattern.replacingOccurrences(of: "%", with: prefix)
                try neighbour(name, folder, outside, &held, &locks, &random)
            }
        }
        let plans = ["a", "b", "c"].map { plan($0, folder, &random) }
        let before = Dictionary(
            uniqueKeysWithValues: RecorderStreams.names(in: folder).map { ($0, Entry(folder.file($0))) })
        let precious = Entry(outside.file("precious.mp4"))
        let sent = try record(plans, seed, &random)

        let after = Set(RecorderStreams.names(in: folder))
        for (name, entry) in before {
            // None of them carries a mark of these recorders.
            #expect(after.contains(name), "seed \(seed): '\(name)' has gone")
            #expect(Entry(folder.file(name)) == entry, "seed \(seed): '\(name)' is another one now")
        }
        let now = Entry(outside.file("precious.mp4"))
        #expect(now.inode == precious.inode && now.content == precious.content, "seed \(seed): the file behind a link")
        for (plan, count) in zip(plans, sent) where !plan.keeps {
            let made = after.filter { $0.hasPrefix(plan.prefix) && plan.isOurs($0) }.filter { name in
                let entry = Entry(folder.file(name))
                return entry.kind == S_IFREG && before[name] != entry
            }
            let frames = try made.reduce(0) { try $0 + RecorderStreams.packets(of: folder.file($1)).packets.count }
            #expect(frames == count, "seed \(seed): \(plan.path) has \(frames) of \(count) frames in \(made.sorted())")
        }
        #expect(
            !after.contains { $0.hasSuffix(".finalising") || $0.hasSuffix(".new") }, "seed \(seed): left over: \(after)"
        )
        _ = held
    }

    private func neighbour(
        _ name: String, _ folder: ScratchFolder, _ outside: ScratchFolder, _ held: inout [MediaFile],
        _ locks: inout [Int32], _ random: inout SplitRandom
    ) throws {
        let path = folder.file(name)
        func makeClip() throws { try Self.clip.write(to: URL(fileURLWithPath: path)) }
        switch Int.random(in: 0..<11, using: &random) {
        case 0: symlink(outside.file("precious.mp4"), path)
        case 1: symlink("nowhere-\(name)", path)
        case 2: link(outside.file("precious.mp4"), path)
        case 3: mkfifo(path, 0o600)
        case 4: mkdir(path, 0o700)
        case 5:
            try makeClip()
            chmod(path, 0o444)
        case 6, 7:
            try makeClip()
            let lock = open(path, O_RDONLY)
            flock(lock, Bool.random(using: &random) ? LOCK_SH : LOCK_EX)
            locks.append(lock)
        case 8:
            try makeClip()
            held.append(try MediaFile(path: path))
        case 9:
            try makeClip()
            var times = [timespec(tv_sec: 9_999_999_999, tv_nsec: 0), timespec(tv_sec: 9_999_999_999, tv_nsec: 0)]
            utimensat(AT_FDCWD, path, &times, 0)
        default: try makeClip()
        }
    }

    private func plan(_ prefix: String, _ folder: ScratchFolder, _ random: inout SplitRandom) -> Plan {
        let name = ["{nnnn}", "%Y", "{n}"].randomElement(using: &random)!
        let path = folder.file("\(prefix)-\(name).mp4")
        let pattern = try! FileNamePattern(path)
        return Plan(
            prefix: prefix, path: path, overwrites: Bool.random(using: &random),
            keeps: Int.random(in: 0..<3, using: &random) == 0,
            isOurs: { pattern.number(ofName: $0) != nil })
    }

    /// Runs all of them side by side, unit by unit; how many each was sent.
    private func record(_ plans: [Plan], _ seed: UInt64, _ random: inout SplitRandom) throws -> [Int] {
        let recorders = try plans.map { plan in
            let keep = plan.keeps ? #", "keepMegabytes": 0.01, "keepSeconds": 100000"# : ""
            let finalize = Int.random(in: 0..<3, using: &random) == 0 ? "always" : "never"
            return try StageDriver(
                recording:
                    #"{ "path": "\#(plan.path)", "segmentSeconds": 0.4, "overwrite": \#(plan.overwrites), "finalize": "\#(finalize)"\#(keep) }"#,
                RecorderStreams.format())
        }
        var sent = plans.map { _ in 0 }
        let units = RecorderStreams.steady(60) { $0 % 10 == 0 }
        while sent.contains(where: { $0 < units.count }) {
            let index = Int.random(in: recorders.indices, using: &random)
            guard sent[index] < units.count else { continue }
            try recorders[index].send(units[sent[index]])
            sent[index] += 1
        }
        for recorder in recorders {
            try recorder.finish()
            let failed = recorder.takeEvents().filter { ["job-failed", "recording-did-fail"].contains($0.name) }
            #expect(failed.isEmpty, "seed \(seed): \(failed.map(\.text))")
        }
        return sent
    }
}
