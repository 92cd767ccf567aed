// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Who made a recording, when, and under which name: what a recorder writes at the start of each of its files.
///
/// Retention removes no file without such a mark, and none whose mark names another file: a name is no proof of
/// ownership. The mark is JSON behind 16 bytes of its own, in a place that every player skips (``RecordingForm``).
/// docs/design/005-recorder.md. Pure.
public struct RecordingMark: Equatable, Sendable {
    /// The recorder's id in its chain; empty for any recorder (`framehost recordings adopt`).
    public var recorder: String
    /// The run that made the file; 0 for an adopted file.
    public var run: UInt64
    /// Counts the files of a recorder, over all its runs: of two files the one with the smaller number is older.
    /// Adopted files have the number 0.
    public var number: Int64
    /// The file's own name, without its folder.
    public var file: String
    /// ``fingerprint(ofFolder:)`` of the file's folder.
    public var folder: UInt64
    /// When the file's first picture was taken, in milliseconds since 1970 (UTC), as the wall clock was set then.
    public var unixMilliseconds: Int64
    /// The same moment by the chain's clock, in nanoseconds.
    public var clock: Int64
    /// The start of the machine since which `clock` counts (``currentBoot()``); 0 where it is unknown.
    public var boot: UInt64
    /// The endings of the files that were made beside it, with the dot.
    public var sidecars: [String]
    /// The machine that made the file (``thisMachine``); 0 where it is unknown, as in marks of earlier versions.
    public var machine: UInt64
    /// When the file was made, or adopted; nil in marks of earlier versions. Its wall clock has milliseconds.
    ///
    /// The file's first picture may be older by the recorder's memory for the past.
    public var made: RecordingMoment?

    /// Makes a mark.
    ///
    /// - Parameters:
    ///   - recorder: The recorder's id in its chain; empty for any recorder.
    ///   - run: The run that made the file; 0 for an adopted file.
    ///   - number: The file's number among those of its recorder.
    ///   - file: The file's own name, without its folder.
    ///   - folder: ``fingerprint(ofFolder:)`` of the file's folder.
    ///   - unixMilliseconds: When the file's first picture was taken, in milliseconds since 1970.
    ///   - clock: The same moment by the chain's clock, in nanoseconds.
    ///   - boot: The machine's start (``currentBoot()``).
    ///   - sidecars: The endings of the files that were made beside it.
    ///   - machine: The machine; 0 where it is unknown.
    ///   - made: When the file was made or adopted.
    public init(
        recorder: String, run: UInt64, number: Int64, file: String, folder: UInt64, unixMilliseconds: Int64,
        clock: Int64, boot: UInt64, sidecars: [String] = [], machine: UInt64 = 0, made: RecordingMoment? = nil
    ) {
        self.recorder = recorder
        self.run = run
        self.number = number
        self.file = file
        self.folder = folder
        self.unixMilliseconds = unixMilliseconds
        self.clock = clock
        self.boot = boot
        self.sidecars = sidecars
        self.machine = machine
        self.made = made.map {
            RecordingMoment(up: $0.up, wall: $0.wall - $0.wall % 1_000_000, isSynchronised: $0.isSynchronised)
        }
    }

    /// Whether the mark says that `recorder` made the file of this name in this folder, on this machine.
    ///
    /// A mark that names a machine is not known as this one's where this one has no id.
    ///
    /// - Parameters:
    ///   - name: The file's present name, without its folder.
    ///   - folder: ``fingerprint(ofFolder:)`` of its present folder.
    ///   - recorder: The recorder that asks, as it writes itself into marks.
    ///   - machine: The machine that it runs on.
    public func names(
        _ name: String, in folder: UInt64, recorder: String, machine: UInt64 = RecordingMark.thisMachine
    ) -> Bool {
        file == name && self.folder == folder && (self.recorder.isEmpty || self.recorder == recorder)
            && (self.machine == 0 || self.machine == machine)
    }

    // MARK: As bytes

    /// The bytes before each mark's text, the type of its box in MP4.
    static let identifier: [UInt8] = [
        0x7C, 0x8C, 0x31, 0x8A, 0xED, 0x64, 0x40, 0x1D, 0xBF, 0x10, 0x07, 0xE5, 0xBA, 0x90, 0x50, 0x5A,
    ]
    /// The most bytes of a mark's text. A longer one is not written, so its file is nobody's.
    static let mostTextBytes = 4096

    /// The mark's identifier and text; nil where that is too long.
    var payload: [UInt8]? {
        var members: [(String, JSONNode)] = [
            ("framehost", .number(1)), ("recorder", .string(recorder)), ("run", .string(Self.hex(run))),
            ("number", .number(number)), ("file", .string(file)), ("folder", .string(Self.hex(folder))),
            ("utc", .number(unixMilliseconds)), ("clock", .number(clock)), ("boot", .string(Self.hex(boot))),
            ("beside", .array(sidecars.map { .string($0) })),
        ]
        if machine != 0 { members.append(("machine", .string(Self.hex(machine)))) }
        if let made {
            members += [
                ("up", .number(made.up)), ("made", .number(made.wall / 1_000_000)),
                ("synchronised", .bool(made.isSynchronised)),
            ]
        }
        let text = Array(JSONNode.object(members).text().utf8)
        return text.count <= Self.mostTextBytes ? Self.identifier + text : nil
    }

    /// Reads what ``payload`` made; nil for anything else.
    init?(payload: ArraySlice<UInt8>) {
        guard payload.starts(with: Self.identifier), payload.count <= Self.identifier.count + Self.mostTextBytes else {
            return nil
        }
        var limits = JSONReader.Limits()
        (limits.depth, limits.nodes, limits.faults) = (2, 40, 1)
        guard
            let node = try? JSONReader.read(
                Array(payload.dropFirst(Self.identifier.count)), file: "", limits: limits),
            node["framehost"]?.asInt == 1, let recorder = node["recorder"]?.asString,
            let run = Self.number(node["run"]), let number = node["number"]?.asInt,
            (0..<Self.mostNumber).contains(Int64(number)), let file = node["file"]?.asString, !file.isEmpty,
            let folder = Self.number(node["folder"]), let time = node["utc"]?.asInt,
            (0...Self.mostMilliseconds).contains(Int64(time)), let clock = node["clock"]?.asInt,
            (0...Self.mostClock).contains(Int64(clock)), let boot = Self.number(node["boot"])
        else { return nil }
        self.init(
            recorder: recorder, run: run, number: Int64(number), file: file, folder: folder,
            unixMilliseconds: Int64(time), clock: Int64(clock), boot: boot,
            sidecars: node["beside"]?.asArray?.compactMap(\.asString) ?? [],
            machine: Self.number(node["machine"]) ?? 0, made: Self.moment(node))
    }

    /// Nil in marks of earlier versions.
    private static func moment(_ node: JSONNode) -> RecordingMoment? {
        guard let up = node["up"]?.asInt, (0...mostClock).contains(Int64(up)), let wall = node["made"]?.asInt,
            (0...mostMilliseconds).contains(Int64(wall))
        else { return nil }
        return RecordingMoment(
            up: Int64(up), wall: Int64(wall) * 1_000_000,
            isSynchronised: node["synchronised"]?.asBool ?? false)
    }

    /// Greater numbers are no recorder's: with a file every 10 ms they take 3,000 years.
    public static let mostNumber: Int64 = 10_000_000_000_000
    /// The year 2223.
    private static let mostMilliseconds: Int64 = 8_000_000_000_000
    /// 36 years.
    private static let mostClock: Int64 = 1 << 60

    private static func hex(_ number: UInt64) -> String { String(number, radix: 16) }

    private static func number(_ node: JSONNode?) -> UInt64? {
        guard let text = node?.asString, text.utf8.count <= 16 else { return nil }
        return UInt64(text, radix: 16)
    }

    // MARK: Where and when

    /// A number that stands for the folder's path, with links followed, so that a recording that is handed on does not
    /// tell the path; 0 where the folder cannot be found.
    public static func fingerprint(ofFolder folder: String) -> UInt64 {
        guard let path = realpath(folder, nil) else { return 0 }
        defer { free(path) }
        return fingerprint(String(cString: path).utf8)
    }

    /// A number that stands for the present start of the machine; 0 where it is unknown.
    public static func currentBoot() -> UInt64 {
        contents(of: "/proc/sys/kernel/random/boot_id").map { fingerprint($0) } ?? 0
    }

    /// A number that stands for this machine (machine-id(5)), which it does not tell; 0 where the machine has no id.
    public static let thisMachine = machine(id: "/etc/machine-id")

    /// The number that stands for the machine whose id is in a file; 0 where there is none, or none yet.
    static func machine(id file: String) -> UInt64 {
        guard let bytes = contents(of: file) else { return 0 }
        let id = bytes.prefix { $0 != UInt8(ascii: "\n") }
        guard id.count == 32, id.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) }) else { return 0 }
        return fingerprint(Array("framehost ".utf8) + id)
    }

    private static func contents(of path: String) -> ArraySlice<UInt8>? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = SystemCall.retrying { read(file, &bytes, bytes.count) }
        return count > 0 ? bytes[..<count] : nil
    }

    /// FNV-1a of 64 bits (draft-eastlake-fnv).
    private static func fingerprint(_ bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }
}

/// How a file carries its mark.
///
/// - MP4 and MOV (ISO/IEC 14496-12, 4.2 and 11.1): `ftyp`, then a box `uuid` with the mark, then the file as the muxer
///   writes it, whose own `ftyp` becomes a box `free`.
/// - Matroska (RFC 8794, 11.2 and 11.3.2): an EBML header with an element Void that holds the mark, and another one that
///   holds the header which the muxer writes. The segment must follow the header: libavformat takes any other element
///   between them for damage.
///
/// A mark that ``MarkedFile`` adds later is a last box or element of the same kind.
public enum RecordingForm: Equatable, Sendable {
    /// MP4 in fragments.
    case fragmentedMP4
    /// MP4 with an index.
    case mp4
    /// QuickTime.
    case mov
    /// Matroska.
    case matroska

    /// The bytes at the start of a file with this mark; empty where the mark is too long.
    public func head(_ mark: RecordingMark) -> [UInt8] {
        guard let payload = mark.payload else { return [] }
        switch self {
        case .fragmentedMP4: return Self.fileType("iso5", ["iso5", "iso6", "mp41"]) + Self.box("uuid", payload)
        case .mp4: return Self.fileType("isom", ["isom", "iso2", "avc1", "mp41"]) + Self.box("uuid", payload)
        case .mov: return Self.fileType("qt  ", ["qt  "]) + Self.box("uuid", payload)
        case .matroska:
            let content = Self.ebmlContent + Self.void(payload) + Self.void(size: Self.usualHeaderBytes)
            return Self.ebmlID + Self.vint(UInt64(content.count + Self.usualHeaderBytes), length: 4) + content
        }
    }

    /// The bytes that add this mark at the end of a file; empty where the mark is too long.
    public func tail(_ mark: RecordingMark) -> [UInt8] {
        guard let payload = mark.payload else { return [] }
        return self == .matroska ? Self.void(payload) : Self.box("uuid", payload)
    }

    /// Turns the muxer's first box, which says again what the file is, into one that readers skip. In Matroska it stays as
    /// it is, since the mark's header holds it.
    ///
    /// - Parameter bytes: The first bytes that the muxer writes, 16 of them at least.
    public func hideStart(_ bytes: inout [UInt8]) {
        guard self != .matroska, bytes.count >= 16, bytes[4..<8].elementsEqual("ftyp".utf8) else { return }
        bytes.replaceSubrange(4..<8, with: "free".utf8)
    }

    /// What must be written over the mark's own bytes where the muxer's header has another size than usual.
    ///
    /// - Parameters:
    ///   - bytes: The first bytes that the muxer writes, 16 of them at least.
    ///   - count: The bytes of ``head(_:)``.
    public func corrections(for bytes: [UInt8], head count: Int) -> [(place: Int, bytes: [UInt8])] {
        guard self == .matroska, bytes.starts(with: Self.ebmlID), let (size, length) = Self.vint(bytes[4...]),
            size <= 1 << 20, size != UInt64(Self.usualHeaderBytes - 4 - length)
        else { return [] }
        let all = UInt64(4 + length) + size
        return [
            (4, Self.vint(UInt64(count - 8) + all, length: 4)), (count - 4, Self.vint(all, length: 4)),
        ]
    }

    /// The mark at the start of a file, of which these are the first bytes; nil where there is none.
    static func mark(atStartOf bytes: [UInt8]) -> RecordingMark? {
        guard bytes.count >= 16 else { return nil }
        if bytes[4..<8].elementsEqual("ftyp".utf8) {
            let size = Int(bytes[0..<4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
            guard size >= 8, size <= 256, bytes.count >= size + 8 else { return nil }
            let next = bytes[size...]
            let length = Int(next.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
            guard next.dropFirst(4).prefix(4).elementsEqual("uuid".utf8), length >= 8, length <= next.count else {
                return nil
            }
            return RecordingMark(payload: next.prefix(length).dropFirst(8))
        }
        guard bytes.starts(with: ebmlID), let (size, length) = vint(bytes[4...]), size <= 1 << 20 else { return nil }
        var rest = bytes.dropFirst(4 + length).prefix(Int(size))
        for _ in 0..<16 {
            guard let (_, idLength) = vint(rest), let (size, length) = vint(rest.dropFirst(idLength)),
                size <= UInt64(rest.count - idLength - length)
            else { return nil }
            let content = rest.dropFirst(idLength + length).prefix(Int(size))
            if rest.first == 0xEC, content.starts(with: RecordingMark.identifier) {
                return RecordingMark(payload: content)
            }
            rest = rest.dropFirst(idLength + length + Int(size))
        }
        return nil
    }

    /// The mark at the very end of a file, of which these are the last bytes; nil where there is none.
    static func mark(atEndOf bytes: [UInt8]) -> RecordingMark? {
        let identifier = RecordingMark.identifier
        guard bytes.count >= identifier.count else { return nil }
        for start in stride(from: bytes.count - identifier.count, through: 0, by: -1)
        where bytes[start] == identifier[0] && bytes[start...].starts(with: identifier) {
            return RecordingMark(payload: bytes[start...])
        }
        return nil
    }

    /// More than any mark at a file's start or end takes, with what stands before it.
    static let mostBytes = RecordingMark.mostTextBytes + 512

    // MARK: Boxes and elements

    private static func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
        let size = UInt32(content.count + 8)
        return stride(from: UInt32(24), through: 0, by: -8).map { UInt8(truncatingIfNeeded: size >> $0) } + name.utf8
            + content
    }

    private static func fileType(_ brand: String, _ compatible: [String]) -> [UInt8] {
        box("ftyp", Array(brand.utf8) + [0, 0, 2, 0] + compatible.flatMap { Array($0.utf8) })
    }

    static let ebmlID: [UInt8] = [0x1A, 0x45, 0xDF, 0xA3]
    /// What an EBML header says, as libavformat writes it: version 1, documents of the type `matroska` 4, readable from
    /// version 2 on.
    private static let ebmlContent: [UInt8] =
        [0x42, 0x86, 0x81, 1, 0x42, 0xF7, 0x81, 1, 0x42, 0xF2, 0x81, 4, 0x42, 0xF3, 0x81, 8, 0x42, 0x82, 0x88]
        + Array("matroska".utf8) + [0x42, 0x87, 0x81, 4, 0x42, 0x85, 0x81, 2]
    /// Bytes of libavformat's EBML header.
    private static let usualHeaderBytes = 40

    private static func void(size: Int) -> [UInt8] { [0xEC] + vint(UInt64(size), length: 4) }
    private static func void(_ content: [UInt8]) -> [UInt8] { void(size: content.count) + content }

    /// A variable-size integer (RFC 8794, 4).
    private static func vint(_ value: UInt64, length: Int) -> [UInt8] {
        let marked = value | 1 << UInt64(7 * length)
        return (0..<length).reversed().map { UInt8(truncatingIfNeeded: marked >> UInt64(8 * $0)) }
    }

    /// A variable-size integer and its length; nil where the bytes hold none. A size of ones only means unknown.
    static func vint(_ bytes: ArraySlice<UInt8>) -> (value: UInt64, length: Int)? {
        guard let first = bytes.first, first != 0 else { return nil }
        let length = first.leadingZeroBitCount + 1
        guard bytes.count >= length else { return nil }
        guard length <= 8 else { return nil }
        let value = bytes.prefix(length).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return (value & (1 << UInt64(7 * length) - 1), length)
    }
}
