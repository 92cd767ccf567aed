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

    /// - Throws: when ffprobe cannot open it.
    init(_ path: String) throws { self = try Self.tracks(path)["video", default: .empty] }

    /// A track that is not there.
    static let empty = RecordedFile(packets: [], tick: 1)

    private init(packets: [Packet], tick: Double) { (self.packets, self.tick) = (packets, tick) }

    /// The first track of each kind that ffprobe names: `video`, `audio`. Starting ffprobe takes longer than its answer.
    ///
    /// - Throws: when ffprobe cannot open it.
    static func tracks(_ path: String) throws -> [String: RecordedFile] {
        let outcome = try Tool.ffprobe.run(
            "-v", "error", "-show_entries", "stream=index,codec_type,time_base:packet=stream_index,pts,dts,flags",
            "-of",
            "json", path)
        guard outcome.status == 0 else { throw TestFault("ffprobe cannot open \(path): \(outcome.error)") }
        let answer = try JSON(parsing: outcome.output)
        var tracks: [String: RecordedFile] = [:]
        for stream in answer["streams"].list {
            guard let kind = stream["codec_type"].string, tracks[kind] == nil else { continue }
            let index = stream["index"].int
            let packets = answer["packets"].list.filter { $0["stream_index"].int == index }.map { packet in
                Packet(
                    pts: packet["pts"].int ?? .min, dts: packet["dts"].int ?? .min,
                    isKeyframe: packet["flags"].string?.hasPrefix("K") == true)
            }
            let base = (stream["time_base"].string ?? "1/1").split(separator: "/").compactMap { Double($0) }
            tracks[kind] = RecordedFile(packets: packets, tick: base[0] / base[1])
        }
        return tracks
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
