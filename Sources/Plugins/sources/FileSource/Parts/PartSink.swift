// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Options of ``PartSink``.
struct PartSinkOptions: StageOptions {
    @Option(help: "The file to write; it must not exist.") var path = ""

    func validate() throws(OptionFault) {
        if path.isEmpty {
            throw OptionFault("'path' is missing or empty", remedy: "Name the file to write.", options: ["path"])
        }
    }
}

/// Keeps the access units of a part until all parts are joined: what `framehost batch --parts` puts in the place of a
/// recorder.
final class PartSink: Sink {
    static let info = StageInfo(
        id: "part-sink", summary: "Keeps encoded video for part-source. Used by `framehost batch --parts`.",
        input: .encoded(.h264), service: .unbounded)

    var options: PartSinkOptions
    private let context: StageContext
    private let path: String
    private var line: [UInt8] = []
    private var file: HeldFile?
    private let head = UnsafeMutableRawBufferPointer.allocate(byteCount: PartFile.Head.byteCount, alignment: 8)
    private var count = 0
    private var largest = 0

    /// [control thread] Opens nothing.
    init(options: PartSinkOptions, context: StageContext) {
        self.options = options
        self.context = context
        path = context.resolve(options.path)
    }

    deinit { head.deallocate() }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.writesFiles = [path]
        demand.isDivisible = true
        return demand
    }

    /// [control thread] Writes nothing.
    func negotiate(_ input: MediaFormat) throws {
        guard let format = input.encoded, let video = format.video else {
            throw FrameHostError(.broken, what: "part-sink needs access units, but was offered \(input)")
        }
        var guardian: String?
        if case .guarded(let id)? = context.inputTags.first?.withheld { guardian = id }
        line = PartFile.line(format, of: video, guardian: guardian)
    }

    /// [control thread] Creates the file, even for a part without a picture.
    func start() throws {
        do throws(FileRefusal) { file = try context.files.create(path, as: context.stageID) } catch {
            throw error.fault(path)
        }
        try line.withUnsafeBytes { try write($0) }
    }

    /// [stage thread] Waits for the disk.
    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        guard case .accessUnit(let unit) = consume input else {
            throw FrameHostError(.broken, what: "part-sink was handed a raw frame")
        }
        PartFile.Head(unit).store(into: head)
        try write(UnsafeRawBufferPointer(head))
        try unit.withBytes { try write($0) }
        count += 1
        largest = max(largest, unit.byteCount)
        return .delivered
    }

    /// [stage thread] Says that the part is whole.
    func drain() throws {
        PartFile.Head(count: count, largest: largest).store(into: head)
        try write(UnsafeRawBufferPointer(head))
    }

    /// [stage thread]
    func stop() throws {
        let code = file?.close() ?? 0
        file = nil
        guard code == 0 else { throw FileRefusal.failed(code).fault(path) }
    }

    private func write(_ bytes: UnsafeRawBufferPointer) throws {
        let code = file?.write(bytes) ?? 0
        guard code == 0 else { throw FileRefusal.failed(code).fault(path) }
    }
}
