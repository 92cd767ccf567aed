// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Text for a file, gathered in a buffer. Allocates nothing once open.
final class LineWriter {
    private let path: String
    private let file: HeldFile
    private let buffer: UnsafeMutablePointer<UInt8>
    private var count = 0
    private static let capacity = 1 << 17

    /// [control thread] Creates or empties the file.
    ///
    /// - Parameters:
    ///   - stage: The stage's id, for other stages' messages about this file.
    ///   - isEnded: Ends the wait for a pipe's reader.
    /// - Throws: ``FrameHostError`` `.unavailable`; `.stopped` where it was ended.
    init(path: String, _ files: RunFiles, as stage: String, unless isEnded: () -> Bool = { false }) throws {
        self.path = path
        do throws(FileRefusal) {
            file = try files.rewrite(path, as: stage, patience: 3_000_000_000, unless: isEnded)
        } catch {
            guard error != .noReader || !isEnded() else {
                throw FrameHostError(.stopped, what: "the run ended while '\(path)' waited for its reader")
            }
            throw error.fault(path)
        }
        buffer = .allocate(capacity: Self.capacity)
    }

    deinit {
        file.close()
        buffer.deallocate()
    }

    /// [stage thread] Makes room for this many bytes, at most 64 KB.
    func reserve(_ bytes: Int) throws { if count + bytes > Self.capacity { try flush() } }

    /// [stage thread] Adds text of any length.
    func write(_ text: String) throws {
        var text = text
        try text.withUTF8 { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                try reserve(min(rest.count, 4096))
                let part = rest.prefix(min(rest.count, 4096))
                for byte in part {
                    buffer[count] = byte
                    count += 1
                }
                rest = rest.dropFirst(part.count)
            }
        }
    }

    /// [stage thread] Writes what is buffered and closes the file.
    func close() throws {
        guard file.descriptor >= 0 else { return }
        defer { file.close() }
        try flush()
        let code = file.close()
        guard code == 0 else { throw FileRefusal.failed(code).fault(path) }
    }

    private func flush() throws {
        let code = file.write(UnsafeRawBufferPointer(start: buffer, count: count))
        count = 0
        guard code == 0 else { throw FileRefusal.failed(code).fault(path) }
    }

    func put(_ text: StaticString) {
        (buffer + count).update(from: text.utf8Start, count: text.utf8CodeUnitCount)
        count += text.utf8CodeUnitCount
    }

    func put(_ rect: FaceRect) {
        put("[")
        put(rect.x, places: 2)
        put(",")
        put(rect.y, places: 2)
        put(",")
        put(rect.width, places: 2)
        put(",")
        put(rect.height, places: 2)
        put("]")
    }

    func put(_ point: FacePoint) {
        put("[")
        put(point.x, places: 2)
        put(",")
        put(point.y, places: 2)
        put("]")
    }

    func put(whole value: Int64) {
        if value < 0 { put("-") }
        put(digits: value.magnitude, atLeast: 1)
    }

    func put(_ value: Double, places: Int) {
        var unit: UInt64 = 1
        for _ in 0..<places { unit *= 10 }
        let scaled = (value * Double(unit)).rounded()
        guard scaled.isFinite, abs(scaled) < 9e17 else { return put("0") }
        if scaled < 0 { put("-") }
        let magnitude = UInt64(abs(scaled))
        put(digits: magnitude / unit, atLeast: 1)
        put(".")
        put(digits: magnitude % unit, atLeast: places)
    }

    func put(digits value: UInt64, atLeast places: Int) {
        var length = places
        var rest = value
        var needed = 0
        while rest > 0 {
            needed += 1
            rest /= 10
        }
        length = max(length, needed)
        rest = value
        for index in stride(from: length - 1, through: 0, by: -1) {
            buffer[count + index] = 48 + UInt8(rest % 10)
            rest /= 10
        }
        count += length
    }
}
