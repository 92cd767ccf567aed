// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// A file with motion, which ``MotionSource`` plays from its start.
///
/// The start is read before the run, to know what samples contain and how many there are a second. Those samples are
/// given first.
final class MotionFile {
    /// How a file is read, by the ending of its name.
    enum Kind {
        case csv, json, container

        /// Nil for another ending.
        init?(path: String) {
            guard let dot = path.lastIndex(of: ".") else { return nil }
            switch path[dot...].lowercased() {
            case ".csv", ".gcsv": self = .csv
            case ".jsonl": self = .json
            case ".mp4", ".mov": self = .container
            default: return nil
            }
        }
    }

    let path: String
    private let reader: any MotionReader
    /// Samples that were read ahead, and not given yet.
    private var samples: [MotionSample] = []
    private var next = 0
    private var hasEnded = false
    /// The damage that follows ``samples``.
    private var fault: (any Error)?

    /// The most samples that are read before the run.
    private static let mostLooked = 256
    /// The most steps of the reader for them: lines or packets.
    private static let mostSteps = 4096

    /// [control thread] Opens the file and reads its start.
    ///
    /// - Parameter isTurned: Whether the sensor's axes are known from elsewhere.
    /// - Throws: ``FrameHostError``, also where the damage begins before the first sample.
    init(path: String, isRelative: Bool, units: MotionUnits, isTurned: Bool) throws {
        self.path = path
        var status = stat()
        guard stat(path, &status) == 0 else {
            let code = errno
            guard code == ENOENT || code == ENOTDIR else { throw MotionText.unreadable(path, code) }
            throw MotionText.missing(path, isRelative: isRelative)
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw MotionText.noFile(path, isFolder: status.st_mode & S_IFMT == S_IFDIR)
        }
        if access(path, R_OK) != 0 { throw MotionText.unreadable(path, errno) }
        guard let held = RunFiles.read(path, as: "motion-source") else {
            throw MotionText.unreadable(path, errno)
        }
        reader =
            switch Kind(path: path) {
            case .json: JSONFile(held, path: path, units: units)
            case .container: try MotionContainer(held, path: path)
            case .csv, nil: CSVFile(held, path: path, units: units, isTurned: isTurned)
            }
        var steps = 0
        while samples.count < Self.mostLooked, steps < Self.mostSteps, !hasEnded, fault == nil {
            step(given: 0)
            steps += 1
        }
        if samples.isEmpty {
            if let fault { throw fault }
            if hasEnded { throw MotionText.empty(path) }
        }
    }

    /// The sensor's axes, where the format says them.
    var axes: AxisMap? { reader.axes }
    /// How long the motion lasts, where the format says it.
    var duration: MediaTime? { reader.duration }

    /// What samples can contain, and about how many there are a second, by the start of the file.
    var format: MotionFormat {
        let contents = samples.reduce(into: reader.contents) { $0.formUnion($1.contents) }
        let times = samples.map(\.time.nanoseconds)
        var rate = 0.0
        if let first = times.first, let last = times.last, last > first {
            // Differences of two times do not overflow.
            rate = Double(times.count - 1) * 1e9 / Double(last - first)
        }
        return MotionFormat(contents: contents, sampleRate: rate <= MotionFormat.highestRate ? rate : 0)
    }

    /// [stage thread] The next sample, in the sensor's axes; nil at the end.
    ///
    /// - Parameter given: How many were passed on, for the remedy of a fault.
    func read(given: Int) throws -> MotionSample? {
        while next == samples.count {
            samples.removeAll(keepingCapacity: true)
            next = 0
            if let fault { throw fault }
            if hasEnded { return nil }
            step(given: given)
        }
        defer { next += 1 }
        return samples[next]
    }

    private func step(given: Int) {
        do {
            hasEnded = try !reader.read(into: &samples, given: given + samples.count)
        } catch {
            fault = error
        }
    }
}
