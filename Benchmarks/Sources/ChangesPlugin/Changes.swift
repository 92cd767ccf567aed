// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Writes when each item arrived: 16 bytes each, its number and the nanoseconds of CLOCK_MONOTONIC.
final class Arrivals: Sink {
    static let info = StageInfo(id: "arrivals", summary: "Writes when each item arrived.", input: .any)

    struct Options: StageOptions {
        @Option(help: "The file.") var path = "arrivals"
    }

    var options: Options
    private let context: StageContext
    private var file: UnsafeMutablePointer<FILE>?

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    func start() throws {
        file = fopen(context.resolve(options.path), "w")
        guard let file else { throw FrameHostError(.unavailable, place: "path", what: "cannot be written") }
        setvbuf(file, nil, _IONBF, 0)
    }

    /// [stage thread]
    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        var number: UInt64 = 0
        switch consume input {
        case .frame(let frame): number = frame.sequenceNumber
        case .accessUnit(let unit): number = unit.sequenceNumber
        default: break
        }
        var line = (number, UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec))
        fwrite(&line, 16, 1, file)
        return .delivered
    }

    func stop() throws {
        if let file { fclose(file) }
        file = nil
    }
}

/// Holds one frame back, and takes a known time for it when it leaves.
final class Lingering: DelayingFilter {
    static let info = StageInfo(
        id: "lingering", summary: "Holds a frame back, and takes a known time when it leaves.", input: .anyVideo,
        output: .sameAsInput, hold: 1, delay: 1)

    struct Options: StageOptions {
        @Option(help: "How long it takes for the frame that it holds when it leaves.", range: 0...1000, unit: "ms")
        var drainMs = 20
    }

    var options: Options
    private var waiting = FrameRing(capacity: 2)

    init(options: Options, context: StageContext) { self.options = options }

    var held: Int { waiting.count }

    func process(_ frame: inout Frame) throws -> Verdict { .forward }

    /// [stage thread]
    func process(_ frame: consuming Frame, _ output: Output) throws {
        waiting.append(frame)
        if waiting.count > 1, let oldest = waiting.takeOldest() { try output.emit(oldest) }
    }

    func drain(_ output: Output) throws {
        usleep(UInt32(options.drainMs) * 1000)
        while let frame = waiting.takeOldest() { try output.emit(frame) }
    }

    func stop() throws { waiting.removeAll() }
}

/// The one symbol the host looks for.
@c(framehost_plugin_v1)
public func pluginEntry() -> OpaquePointer { PluginEntry.export(Arrivals.self, Lingering.self) }
