// SPDX-License-Identifier: Apache-2.0

import Foundation

/// What ffprobe says of a recorded file.
struct RecordedFile {
    struct Packet: Equatable {
        var pts: Int
        var dts: Int
        var isKeyframe: Bool
    }

    /// In the order of decoding.
    let packets: [Packet]
    /// Seconds per tick.
    let tick: Double

    /// - Parameter track: As ffprobe names it.
    /// - Throws: when ffprobe cannot open it.
    init(_ path: String, track: String = "v:0") throws {
        let outcome = try Tool.ffprobe.run(
            "-v", "error", "-select_streams", track, "-show_entries", "stream=time_base:packet=pts,dts,flags", "-of",
            "json", path)
        guard outcome.status == 0 else { throw TestFault("ffprobe cannot open \(path): \(outcome.error)") }
        let answer = try JSON(parsing: outcome.output)
        packets = answer["packets"].list.map { packet in
            Packet(
                pts: packet["pts"].int ?? .min, dts: packet["dts"].int ?? .min,
                isKeyframe: packet["flags"].string?.hasPrefix("K") == true)
        }
        let base = (answer["streams"][0]["time_base"].string ?? "1/1").split(separator: "/").compactMap { Double($0) }
        tick = base[0] / base[1]
    }

    /// True when the pictures are a beginning of `whole`: each is in it, in order, and no earlier one is missing.
    ///
    /// - Parameter butLast: The last one may be a part of a picture.
    func isBegin(of whole: RecordedFile, butLast: Bool) -> Bool {
        let mine = butLast ? packets.dropLast() : packets[...]
        return whole.packets.prefix(mine.count) == mine
    }
}

/// The writes of a program to its files, in order.
struct WriteTrace {
    struct Write {
        var path: String
        var offset: Int
        var data: Data
    }

    let writes: [Write]

    /// Builds the library that traces; once per process.
    private static let library: Result<String, any Error> = Result {
        let folder = FileManager.default.temporaryDirectory.appending(path: "framehost-writetrace-\(getpid())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let library = folder.appending(path: "writetrace.so").path
        let source = Repository.root.appending(path: "Tests/Fixtures/writetrace/writetrace.c").path
        let outcome = try Tool.compiler.run("-shared", "-fPIC", "-O1", "-o", library, source, "-ldl", "-lpthread")
        guard outcome.status == 0 else { throw TestFault("writetrace.c does not compile: \(outcome.error)") }
        return library
    }

    /// Runs a chain in the workspace and takes down what it writes below `folder`.
    init(running chain: String, in workspace: Workspace, below folder: String) throws {
        try workspace.write("chain.json", chain)
        let trace = workspace.path("writes.trace")
        let outcome = try Program.framehost.run(
            ["chain.json"],
            environment: [
                "LD_PRELOAD": try Self.library.get(), "WRITETRACE_FILE": trace,
                "WRITETRACE_FOLDER": workspace.path(folder),
            ],
            folder: workspace.folder.path)
        guard outcome.status == 0 else { throw TestFault("the chain failed: \(outcome.error)") }
        writes = Self.parse(try Data(contentsOf: URL(fileURLWithPath: trace)))
    }

    private static func parse(_ data: Data) -> [Write] {
        var writes: [Write] = []
        var offset = 0
        func number(_ count: Int) -> Int {
            defer { offset += count }
            return data[offset..<(offset + count)].reversed().reduce(0) { $0 << 8 | Int($1) }
        }
        while offset < data.count {
            offset += 4
            let (pathCount, place, count) = (number(4), number(8), number(8))
            let path = String(decoding: data[offset..<(offset + pathCount)], as: UTF8.self)
            offset += pathCount
            writes.append(Write(path: path, offset: place, data: data[offset..<(offset + count)]))
            offset += count
        }
        return writes
    }
}

extension Tool {
    static let compiler = Tool(name: "cc")
}
