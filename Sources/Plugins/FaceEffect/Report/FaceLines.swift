// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Writes a line of JSON for each frame: its faces in pixels of the upright picture. Allocates nothing once open.
final class FaceLines {
    private let path: String
    private let file: HeldFile
    private let buffer: UnsafeMutablePointer<UInt8>
    private var count = 0
    private static let capacity = 1 << 16
    /// The longest line: 64 faces of at most 300 bytes and what stands around.
    private static let longestLine = 24 << 10

    /// [control thread] Creates or empties the file.
    ///
    /// - Parameters:
    ///   - stage: Its id, for messages of others about this file.
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

    /// [stage thread] One frame.
    ///
    /// - Parameters:
    ///   - mode: How privacy treated it; nil without privacy.
    ///   - covered: Regions that are covered, upright, in pixels.
    func write(
        frame: UInt64, pts: MediaTime, isSearched: Bool, mode: PrivacyGuard.Mode?, faces: some Sequence<FaceTrack>,
        now: Int,
        covered: [FaceRect]
    ) throws {
        if count + Self.longestLine > Self.capacity { try flush() }
        put("{\"frame\":")
        put(whole: Int64(clamping: frame))
        put(",\"pts\":")
        put(pts.seconds, places: 6)
        put(",\"searched\":")
        put(isSearched ? "true" : "false")
        if let mode {
            put(",\"mode\":\"")
            put(mode.staticName)
            put("\",\"covered\":[")
            for (index, region) in covered.prefix(FaceTracks.mostTracks).enumerated() {
                if index > 0 { put(",") }
                put(region)
            }
            put("]")
        }
        put(",\"faces\":[")
        var isFirst = true
        for face in faces {
            if !isFirst { put(",") }
            isFirst = false
            put("{\"id\":")
            put(whole: Int64(face.id))
            put(",\"box\":")
            put(face.shown)
            put(",\"confidence\":")
            put(face.confidence, places: 3)
            put(",\"age\":")
            put(whole: Int64(face.age))
            put(",\"detected\":")
            put(face.lastSeenFrame == now ? "true" : "false")
            if let points = face.landmarks {
                put(",\"landmarks\":[")
                put(points.rightEye)
                put(",")
                put(points.leftEye)
                put(",")
                put(points.nose)
                put(",")
                put(points.rightMouth)
                put(",")
                put(points.leftMouth)
                put("]")
            }
            put("}")
        }
        put("]}\n")
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
        guard code == 0 else { throw FileFault.cannotWrite(path, code) }
    }

    private func put(_ text: StaticString) {
        (buffer + count).update(from: text.utf8Start, count: text.utf8CodeUnitCount)
        count += text.utf8CodeUnitCount
    }

    private func put(_ rect: FaceRect) {
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

    private func put(_ point: FacePoint) {
        put("[")
        put(point.x, places: 2)
        put(",")
        put(point.y, places: 2)
        put("]")
    }

    private func put(whole value: Int64) {
        if value < 0 { put("-") }
        put(digits: value.magnitude, atLeast: 1)
    }

    private func put(_ value: Double, places: Int) {
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

    private func put(digits value: UInt64, atLeast places: Int) {
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

extension PrivacyGuard.Mode {
    /// As in events and lines.
    var staticName: StaticString {
        switch self {
        case .searched: "searched"
        case .held: "held"
        case .starting: "starting"
        case .late: "late"
        case .failed: "failed"
        }
    }
}
