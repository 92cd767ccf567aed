// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Gives the access units of an H.264 file round and round at 30 a second, live, without decoding them: what
/// peer-fanout.py's servers serve, so that no encoder's time is in the figures.
///
/// The file is Annex B with access unit delimiters (NAL type 9) and parameter sets before each IDR picture. It is held
/// in memory.
final class AccessUnitLoop: Source {
    static let info = StageInfo(
        id: "access-unit-loop", summary: "Gives the access units of an H.264 file round and round.",
        output: .encoded(.h264))
    static let rate: Int64 = 30

    struct Options: StageOptions {
        @Option(help: "An H.264 file with start codes and access unit delimiters.") var path = ""
        @Option(help: "Width and height of its pictures.") var size = PictureSize(1280, 720)
    }

    private struct Unit {
        var range: Range<Int>
        var isKeyframe: Bool
    }

    var options: Options
    private let context: StageContext
    private var bytes: [UInt8] = []
    private var units: [Unit] = []
    private var given = 0
    private var origin: Int64 = 0

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isLive = true
        demand.slabBytes = 16 << 20
        return demand
    }

    func negotiate() throws -> MediaFormat {
        try read()
        let nals = Self.nalUnits(in: bytes)
        let sets = nals.prefix { bytes[$0.lowerBound + 3] & 31 != 5 }.filter {
            [7, 8].contains(bytes[$0.lowerBound + 3] & 31)
        }
        for nal in nals {
            let kind = bytes[nal.lowerBound + 3] & 31
            if kind == 9 || units.isEmpty { units.append(Unit(range: nal, isKeyframe: false)) }
            units[units.count - 1].range = units[units.count - 1].range.lowerBound..<nal.upperBound
            if kind == 5 { units[units.count - 1].isKeyframe = true }
        }
        let video = VideoFormat(
            .i420, width: options.size.width, height: options.size.height, frameRate: Rational(Int32(Self.rate)),
            timeBase: .nanoseconds)
        return .encoded(
            EncodedFormat(codec: .h264, parameterSets: sets.flatMap { bytes[$0] }, video: video, bitrateKbps: 2500))
    }

    /// Ranges of all NAL units, each from its `00 00 01` on.
    private static func nalUnits(in bytes: [UInt8]) -> [Range<Int>] {
        var starts: [Int] = []
        var index = 2
        while index < bytes.count {
            if bytes[index] == 1, bytes[index - 1] == 0, bytes[index - 2] == 0 { starts.append(index - 2) }
            index += 1
        }
        return zip(starts, starts.dropFirst() + [bytes.count]).map { $0..<$1 }
    }

    private func read() throws {
        let path = context.resolve(options.path)
        guard let file = fopen(path, "rb") else {
            throw FrameHostError(
                .unavailable, what: "'\(path)' cannot be read", remedy: "Name a file of H.264 with start codes.")
        }
        defer { fclose(file) }
        fseek(file, 0, SEEK_END)
        let count = ftell(file)
        rewind(file)
        bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            filled = fread(buffer.baseAddress!, 1, count, file)
        }
    }

    func start() { origin = context.clock.now() }

    /// [stage thread] One unit when it is due.
    func produce(_ output: Output) throws -> SourceProgress {
        let due = TimeBase(1, Int32(Self.rate)).time(ofTicks: Int64(given))
        guard !units.isEmpty, context.sleep(until: origin + due.nanoseconds) else { return .ended }
        let unit = units[given % units.count]
        var made = try output.makeAccessUnit(byteCount: unit.range.count)
        bytes.withUnsafeBytes { all in
            made.withMutableBytes { $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: all[unit.range])) }
        }
        made.capturedAt = context.clock.now()
        made.pts = MediaTime(nanoseconds: made.capturedAt)
        made.dts = made.pts
        made.isKeyframe = unit.isKeyframe
        given += 1
        try output.emit(made)
        return .more
    }
}

/// The one symbol the host looks for.
@c(framehost_plugin_v1)
public func pluginEntry() -> OpaquePointer { PluginEntry.export(AccessUnitLoop.self) }
