// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Stages replaced over and over under load: no frame is lost, nothing grows but the old images, which are counted
/// apart. Sixty rounds; `FRAMEHOST_SOAK=1` (`make soak`): a thousand.
@Suite(.serialized) struct SwapSoakTests {
    private static let rounds = ProcessInfo.processInfo.environment["FRAMEHOST_SOAK"] != nil ? 1000 : 60
    /// After which nothing may grow any more.
    private static let warmUp = 50
    /// What anything may grow by, in KiB: the allocator's luck.
    private static let slackKiB = 1024
    /// What an image may leave beside its segments, in KiB: records of the dynamic linker and of Swift's runtime, what its
    /// globals have allocated. Measured: 4.7.
    private static let mostKiBPerImage = 8
    /// Address space of two arenas of malloc(3), which a new thread may have made.
    private static let arenasKiB = 2 * 65536

    let workspace: Workspace
    let framehost: Program
    let images: [Int: Data]

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
        images = try PluginBuild.swap()
        try FileManager.default.createDirectory(
            atPath: workspace.path("plugins"), withIntermediateDirectories: true)
    }

    /// A source that waits instead of losing frames, so that each counts, and that never rests.
    private static let chain = """
        { "stages": [
            { "id": "camera", "use": "test-source", "size": "640x360", "format": "gray8", "pattern": "solid" },
            { "id": "mark", "use": "swap-mark", "gain": 5 },
            { "id": "count", "use": "swap-count" },
            { "id": "end", "use": "null-sink" },
            { "id": "other", "use": "null-sink", "from": "camera" } ] }
        """

    private func put(_ version: Int) throws {
        let next = workspace.path("next.so")
        try #require(images[version]).write(to: URL(fileURLWithPath: next))
        #expect(rename(next, workspace.path("plugins/libSwapPlugin.so")) == 0)
    }

    private struct Footprint {
        /// Resident and mapped, without the plugin's images.
        var residentKiB = 0
        var mappedKiB = 0
        var imageKiB = 0
        var threads = 0
        var descriptors = 0

        init(of pid: pid_t) throws {
            var isImage = false
            var end: Substring?
            for line in try Self.text(of: "/proc/\(pid)/smaps").split(separator: "\n") {
                let words = line.split(separator: " ", omittingEmptySubsequences: true)
                if words.first?.contains("-") == true, words.first?.hasSuffix(":") == false {
                    // Without a name and right behind it lie its few variables that begin as 0; an arena of malloc(3)
                    // may lie there too.
                    let ends = words[0].split(separator: "-")
                    let size = (Int(ends[1], radix: 16) ?? 0) - (Int(ends[0], radix: 16) ?? 0)
                    let isBehind = isImage && words.count == 5 && ends[0] == end && size <= 65536
                    isImage = line.contains("/libSwapPlugin.so") || isBehind
                    end = ends[1]
                } else if words.count == 3, let kib = Int(words[1]) {
                    if words[0] == "Rss:" { if isImage { imageKiB += kib } else { residentKiB += kib } }
                    if words[0] == "Size:", !isImage { mappedKiB += kib }
                }
            }
            guard residentKiB > 8192, imageKiB > 0 else {
                throw TestFault("smaps shows \(residentKiB) KiB of the program and \(imageKiB) KiB of its plugin")
            }
            threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task").count
            descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd").count
        }

        /// All of a file whose size the system does not tell: Foundation takes its first page for the whole.
        private static func text(of path: String) throws -> String {
            let file = open(path, O_RDONLY | O_CLOEXEC)
            guard file >= 0 else { throw TestFault("\(path) cannot be read") }
            defer { close(file) }
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = read(file, &buffer, buffer.count)
                guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
                bytes += buffer[..<count]
            }
        }
    }

    /// Has each round done and looks that nothing grew and no frame was lost.
    ///
    /// - Parameter command: Of a round, without braces.
    private func soak(_ what: String, _ command: (Int) throws -> String) throws {
        try put(1)
        try workspace.write("chain.json", Self.chain)
        let program = try framehost.start(
            ["chain.json", "--plugin-path", "plugins", "--commands", "--stats", "stats.json"],
            folder: workspace.folder.path)
        try program.waitForFrames(50)
        var early = try Footprint(of: program.pid)
        for round in 1...Self.rounds {
            let answer = try program.sendPatiently("{ \(try command(round)) }")
            #expect(answer["ok"].bool == true, "round \(round): \(answer)")
            if round == Self.warmUp { early = try Footprint(of: program.pid) }
        }
        let late = try Footprint(of: program.pid)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        // A busy machine may refuse a change, which is then sent again; its image stays too.
        let refused = outcome.lines.count { $0.contains("so nothing was changed") }
        #expect(outcome.lines.count { $0.contains(#""replaced":["#) } == Self.rounds)

        let rounds = Self.rounds - Self.warmUp
        let most = Self.slackKiB + (what == "swap" ? (rounds + refused) * Self.mostKiBPerImage : 0)
        let grown = late.residentKiB - early.residentKiB
        let report =
            "\(what): \(grown) KiB resident and \(late.mappedKiB - early.mappedKiB) KiB mapped more after \(rounds) rounds (\(early.residentKiB) KiB before); images \(late.imageKiB) KiB resident; \(late.threads) threads, \(late.descriptors) descriptors"
        print(report)
        #expect(grown <= most, "\(report)")
        #expect(late.mappedKiB - early.mappedKiB <= Self.arenasKiB + most, "\(report)")
        #expect(late.threads <= early.threads + 2 && late.descriptors <= early.descriptors + 2, "\(report)")

        let stats = try JSON(file: workspace.path("stats.json"))
        let ledger = stats["ledger"]
        #expect(ledger["dropped"].int == 0, "\(ledger)")
        #expect(ledger["inFlight"].int == 0, "\(ledger)")
        // Both sinks have every frame of the camera.
        #expect(ledger["delivered"].int == 2 * (ledger["captured"].int ?? 0), "\(ledger)")
        let plugin = stats["plugins"].list.first { $0["path"].string == "plugins/libSwapPlugin.so" }
        let old = try #require(plugin?["oldImages"].int)
        #expect(what == "swap" ? (Self.rounds...Self.rounds + refused).contains(old) : old == 0, "\(old)")
    }

    @Test(.timeLimit(.minutes(60))) func aPluginIsSwappedUnderLoadWithoutLossOrGrowth() throws {
        try soak("swap") { round in
            try put(1 + round % 2)
            return #""command": "reload-plugin", "plugin": "swap-mark""#
        }
    }

    @Test(.timeLimit(.minutes(60))) func aStageIsReplacedUnderLoadWithoutLossOrGrowth() throws {
        try soak("replace") { round in
            #""command": "replace", "stage": "mark", "with": { "use": "swap-mark", "fail": "none-\#(round)" }"#
        }
    }
}
