// SPDX-License-Identifier: Apache-2.0

import CodedVideo
import FrameCore
import Glibc

/// What a stream was when it was last there: a chain that passes it on can be planned without it.
struct RememberedStream: Equatable, Sendable {
    var video: EncodedFormat
    /// Nil where it was not taken, or where there was none that could be passed on.
    var sound: AudioTrackFormat?
}

/// Where a stream is remembered: a small file for each address below `$STATE_DIRECTORY`, which a later run reads. A file
/// that is damaged, or from another version, counts as none.
struct StreamMemory: Sendable {
    private static let version = 1
    private static let mostBytes = 1 << 16

    let path: String

    /// - Parameter url: The whole address. It is not in the file, nor in its name.
    init(url: String, environment: (String) -> String? = variable) {
        // FNV-1a, twice with different starts: two addresses hardly ever share a file.
        func sum(_ start: UInt64) -> String {
            let value = url.utf8.reduce(start) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
            let digits = String(value, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }
        path = "\(Self.folder(environment))/streams/\(sum(0xCBF2_9CE4_8422_2325))\(sum(0x9E37_79B9_7F4A_7C15)).json"
    }

    /// The folder for program states (systemd.exec(5), `StateDirectory=`).
    private static func folder(_ environment: (String) -> String?) -> String {
        if let state = environment("STATE_DIRECTORY")?.split(separator: ":").first { return String(state) }
        if let state = environment("XDG_STATE_HOME") { return "\(state)/framehost" }
        if let home = environment("HOME") { return "\(home)/.local/state/framehost" }
        return "/var/lib/framehost"
    }

    static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    // MARK: File

    /// [control thread]
    func read() -> RememberedStream? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: Self.mostBytes)
        let count = Glibc.read(file, &bytes, bytes.count)
        guard count > 0, count < bytes.count, let node = try? JSONReader.read(Array(bytes[..<count]), file: path) else {
            return nil
        }
        return Self.stream(node)
    }

    /// [control thread] Why nothing can be remembered; nil where it can.
    var obstacle: String? {
        var folder = Substring(path)
        while let slash = folder.lastIndex(of: "/") {
            folder = folder[..<slash]
            let name = folder.isEmpty ? "/" : String(folder)
            if access(name, W_OK | X_OK) == 0 { return nil }
            guard errno == ENOENT else { return "'\(name)' cannot be written (\(String(cString: strerror(errno))))" }
        }
        return nil
    }

    /// [any thread] Remembers a stream, unless it is remembered so. Nothing is said where that fails: the next start then
    /// waits for the stream.
    ///
    /// - Parameter keepsSound: Whether nothing is known of its sound, so that what is remembered of it stays.
    func write(_ stream: RememberedStream, keepsSound: Bool = false) {
        var stream = stream
        let known = read()
        if keepsSound, stream.sound == nil, known?.video.codec == stream.video.codec { stream.sound = known?.sound }
        guard known != stream else { return }
        var done = "/"
        for part in path.split(separator: "/").dropLast() {
            done += part + "/"
            mkdir(done, 0o700)
        }
        let text = Array(Self.node(stream).text(pretty: true).utf8) + [10]
        let new = "\(path).\(getpid())"
        unlink(new)
        let file = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { return }
        let count = Glibc.write(file, text, text.count)
        // A file that is there must be whole after a loss of power, too.
        guard fsync(file) == 0, close(file) == 0, count == text.count, rename(new, path) == 0 else {
            unlink(new)
            return
        }
    }

    // MARK: Text

    private static func hex(_ bytes: [UInt8]) -> JSONNode {
        let digits = Array("0123456789abcdef".utf8)
        return .string(String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self))
    }

    private static func bytes(_ node: JSONNode?) -> [UInt8]? {
        guard let text = node?.asString?.utf8.map({ Character(UnicodeScalar($0)) }), text.count % 2 == 0 else {
            return nil
        }
        var result: [UInt8] = []
        for index in stride(from: 0, to: text.count, by: 2) {
            guard let high = text[index].hexDigitValue, let low = text[index + 1].hexDigitValue else { return nil }
            result.append(UInt8(high << 4 | low))
        }
        return result
    }

    private static func pair(_ first: Int32, _ second: Int32) -> JSONNode { .array([.number(first), .number(second)]) }

    private static func pair(_ node: JSONNode?) -> (Int32, Int32)? {
        guard let parts = node?.asArray?.compactMap({ $0.asInt.flatMap { Int32(exactly: $0) } }), parts.count == 2,
            parts[1] > 0, parts[0] >= 0
        else { return nil }
        return (parts[0], parts[1])
    }

    private static func node(_ stream: RememberedStream) -> JSONNode {
        guard let video = stream.video.video else { return .null }
        let color = video.color
        return .object([
            ("version", .number(version)), ("codec", .string(stream.video.codec.rawValue)),
            ("parameterSets", hex(stream.video.parameterSets)), ("reorderDepth", .number(stream.video.reorderDepth)),
            ("pixelFormat", .string(video.pixelFormat.rawValue)), ("width", .number(video.width)),
            ("height", .number(video.height)),
            ("frameRate", pair(video.frameRate.numerator, video.frameRate.denominator)),
            ("aspect", pair(video.sampleAspectRatio.numerator, video.sampleAspectRatio.denominator)),
            ("orientation", .number(video.orientation.rawValue)), ("range", .string(color.range.rawValue)),
            ("color", .array([color.matrix, color.primaries, color.transfer, color.chromaSiting].map { .number($0) })),
            (
                "sound",
                stream.sound.map { sound in
                    .object([
                        ("codec", .string(sound.codec.rawValue)),
                        ("timeBase", pair(sound.timeBase.numerator, sound.timeBase.denominator)),
                        ("numbers", .array(numbers(sound).map { .number($0) })),
                        ("profile", sound.profile.map { .number($0) } ?? .null),
                        ("channelMask", .string(String(sound.channelMask, radix: 16))),
                        ("extradata", hex(sound.extradata)),
                    ])
                } ?? .null
            ),
        ])
    }

    private static func numbers(_ sound: AudioTrackFormat) -> [Int] {
        [
            sound.sampleRate, sound.channelCount, sound.samplesPerPacket, sound.bitRate, sound.blockAlign,
            sound.bitsPerSample, sound.initialPadding, sound.seekPreroll,
        ]
    }

    private static func stream(_ node: JSONNode) -> RememberedStream? {
        func int(_ key: String, _ range: ClosedRange<Int>) -> Int? {
            node[key]?.asInt.flatMap { range.contains($0) ? $0 : nil }
        }
        let color = node["color"]?.asArray?.compactMap { $0.asInt.flatMap { UInt8(exactly: $0) } } ?? []
        guard node["version"]?.asInt == version, let codec = node["codec"]?.asString.map(Codec.init(rawValue:)),
            let coding = UnitCoding(codec), let sets = bytes(node["parameterSets"]),
            coding.hasSets ? !sets.withUnsafeBytes(coding.parameterSets(in:)).isEmpty : sets.isEmpty,
            let depth = int("reorderDepth", 0...16),
            let pixels = node["pixelFormat"]?.asString.flatMap(PixelFormat.init(rawValue:)),
            let width = int("width", PictureSize.range), let height = int("height", PictureSize.range),
            let rate = pair(node["frameRate"]), let aspect = pair(node["aspect"]),
            let orientation = node["orientation"]?.asInt.flatMap({ UInt8(exactly: $0) }).flatMap(Orientation.init),
            let range = node["range"]?.asString.flatMap(ColorRange.init(rawValue:)), color.count == 4
        else { return nil }
        let format = VideoFormat(
            pixels, width: width, height: height, frameRate: Rational(rate.0, rate.1),
            color: ColorDescription(
                range: range, matrix: color[0], primaries: color[1], transfer: color[2], chromaSiting: color[3]),
            sampleAspectRatio: Rational(aspect.0, aspect.1), orientation: orientation)
        guard format.impossibility == nil else { return nil }
        let video = EncodedFormat(
            codec: codec, framing: coding.framing, parameterSets: sets, video: format, reorderDepth: depth)
        guard let said = node["sound"], said.value != .null else { return RememberedStream(video: video) }
        guard let sound = sound(said) else { return nil }
        return RememberedStream(video: video, sound: sound)
    }

    private static func sound(_ node: JSONNode) -> AudioTrackFormat? {
        let numbers = node["numbers"]?.asArray?.compactMap(\.asInt) ?? []
        guard let codec = node["codec"]?.asString, let base = pair(node["timeBase"]), base.0 > 0, numbers.count == 8,
            numbers.allSatisfy({ (0...1 << 30).contains($0) }), AudioFormat.sampleRates.contains(numbers[0]),
            (1...64).contains(numbers[1]), let mask = node["channelMask"]?.asString.flatMap({ UInt64($0, radix: 16) }),
            let extradata = bytes(node["extradata"])
        else { return nil }
        return AudioTrackFormat(
            codec: Codec(rawValue: codec), timeBase: TimeBase(base.0, base.1), sampleRate: numbers[0],
            channelCount: numbers[1], channelMask: mask, samplesPerPacket: numbers[2], bitRate: numbers[3],
            blockAlign: numbers[4], bitsPerSample: numbers[5], profile: node["profile"]?.asInt,
            initialPadding: numbers[6], seekPreroll: numbers[7], extradata: extradata)
    }
}
