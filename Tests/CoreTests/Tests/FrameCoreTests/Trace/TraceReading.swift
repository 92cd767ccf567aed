// SPDX-License-Identifier: Apache-2.0

import Glibc

@testable import FrameCore

/// A message of Protocol Buffers, taken apart without knowing its kind.
struct ReadMessage {
    private(set) var numbers: [Int: [UInt64]] = [:]
    private(set) var parts: [Int: [ArraySlice<UInt8>]] = [:]

    struct Damage: Error {}

    init(_ bytes: ArraySlice<UInt8>) throws {
        var rest = bytes
        while !rest.isEmpty {
            let tag = try Self.varint(&rest)
            let field = Int(tag >> 3)
            switch tag & 7 {
            case 0: numbers[field, default: []].append(try Self.varint(&rest))
            case 1:
                guard rest.count >= 8 else { throw Damage() }
                numbers[field, default: []].append(rest.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) })
                rest = rest.dropFirst(8)
            case 2:
                let count = Int(try Self.varint(&rest))
                guard rest.count >= count else { throw Damage() }
                parts[field, default: []].append(rest.prefix(count))
                rest = rest.dropFirst(count)
            default: throw Damage()
            }
        }
    }

    private static func varint(_ rest: inout ArraySlice<UInt8>) throws -> UInt64 {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            guard let byte = rest.popFirst() else { throw Damage() }
            value |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return value }
        }
        throw Damage()
    }

    func number(_ field: Int) -> UInt64? { numbers[field]?.first }
    func text(_ field: Int) -> String? { parts[field]?.first.map { String(decoding: $0, as: UTF8.self) } }
    func messages(_ field: Int) throws -> [ReadMessage] { try (parts[field] ?? []).map { try ReadMessage($0) } }
    func message(_ field: Int) throws -> ReadMessage? { try messages(field).first }
}

/// A trace as a test looks at it. By the numbers of Perfetto's messages, not by ours.
struct ReadTrace {
    struct Slice: Equatable {
        var name: String
        var lane: String
        var begin: Int64
        var end: Int64?
        var depth: Int
        var frame: Int?
        var flows: [UInt64]
    }

    struct Mark {
        var name: String
        var track: String
        var time: Int64
        var frame: Int?
        var count: Int?
        var flows: [UInt64]
        var texts: [String]
    }

    var slices: [Slice] = []
    var marks: [Mark] = []
    var levels: [String: [(time: Int64, value: Int)]] = [:]
    var lanes: [String] = []
    /// What no trace may have.
    var faults: [String] = []

    init(path: String) throws {
        let bytes = try TraceBytes.of(path)
        try self.init(bytes)
    }

    init(_ bytes: [UInt8]) throws {
        var titles: [UInt64: String] = [:]
        var threads: Set<UInt64> = []
        var counters: Set<UInt64> = []
        var names: [UInt64: String] = [:]
        var annotations: [UInt64: String] = [:]
        var open: [UInt64: [Int]] = [:]
        var last: [UInt64: Int64] = [:]
        let packets = try ReadMessage(bytes[...]).messages(1)
        for (index, packet) in packets.enumerated() {
            if packet.number(10) != 1 { faults.append("packet \(index) is of no sequence") }
            if packet.number(13) != (index == 0 ? 1 : 2) { faults.append("packet \(index) has other flags") }
            if let data = try packet.message(12) {
                for entry in try data.messages(2) { names[entry.number(1) ?? 0] = entry.text(2) }
                for entry in try data.messages(3) { annotations[entry.number(1) ?? 0] = entry.text(2) }
            }
            if let track = try packet.message(60), let number = track.number(1) {
                if titles[number] != nil { faults.append("track \(number) is described twice") }
                if let thread = try track.message(4) {
                    threads.insert(number)
                    titles[number] = thread.text(5)
                    lanes.append(thread.text(5) ?? "")
                    if thread.number(2) ?? 0 == 0 { faults.append("thread \(thread.text(5) ?? "") has no number") }
                } else {
                    titles[number] = track.text(2) ?? ""
                    if track.parts[8] != nil { counters.insert(number) }
                }
            }
            guard let event = try packet.message(11) else { continue }
            let track = event.number(11) ?? 0
            let time = Int64(bitPattern: packet.number(8) ?? 0)
            guard let title = titles[track] else {
                faults.append("packet \(index) is on track \(track), which nobody described")
                continue
            }
            if title != "events", time < last[track] ?? .min { faults.append("\(title): time goes back at \(index)") }
            last[track] = time
            var frame: Int?
            var count: Int?
            var texts: [String] = []
            for annotation in try event.messages(4) {
                let key = annotations[annotation.number(1) ?? 0]
                if key == nil { faults.append("an annotation without a name") }
                if key == "frame" { frame = annotation.number(4).map { Int(Int64(bitPattern: $0)) } }
                if key == "count" { count = annotation.number(4).map { Int($0) } }
                if let text = annotation.text(6) { texts.append(text) }
            }
            func name() -> String {
                let found = event.number(10).flatMap { names[$0] }
                if found == nil { faults.append("packet \(index) has a name that nobody told") }
                return found ?? ""
            }
            switch event.number(9) {
            case 1:
                if !threads.contains(track) { faults.append("a slice on \(title)") }
                slices.append(
                    Slice(
                        name: name(), lane: title, begin: time, end: nil, depth: open[track]?.count ?? 0, frame: frame,
                        flows: event.numbers[47] ?? []))
                open[track, default: []].append(slices.count - 1)
            case 2:
                guard let top = open[track]?.popLast() else {
                    faults.append("\(title): an end without a begin")
                    break
                }
                slices[top].end = time
            case 3:
                marks.append(
                    Mark(
                        name: name(), track: title, time: time, frame: frame, count: count,
                        flows: event.numbers[47] ?? [], texts: texts))
            case 4:
                if !counters.contains(track) { faults.append("a number on \(title)") }
                levels[title, default: []].append((time, Int(Int64(bitPattern: event.number(30) ?? 0))))
            default: faults.append("packet \(index) is of no type")
            }
        }
    }

    func slices(_ name: String) -> [Slice] { slices.filter { $0.name == name } }
}

enum TraceBytes {
    static func of(_ path: String) throws -> [UInt8] {
        let file = Glibc.open(path, O_RDONLY)
        guard file >= 0 else {
            throw FrameHostError(.unavailable, what: "\(path): \(String(cString: strerror(errno)))")
        }
        defer { close(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = read(file, &buffer, buffer.count)
            guard count > 0 else { return bytes }
            bytes += buffer[..<count]
        }
    }

    /// A name in a folder of its own.
    static func path(_ name: String) throws -> String {
        var template = Array("/tmp/framehost-trace-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw FrameHostError(.unavailable, what: String(cString: strerror(errno)))
        }
        let folder = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        return "\(folder)/\(name)"
    }

    static func remove(_ path: String) {
        unlink(path)
        rmdir(FileNames.folder(of: path))
    }
}
