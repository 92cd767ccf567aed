// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Reads the motion of a file from start to end. Used by one thread at a time.
protocol MotionReader: AnyObject {
    /// What samples can contain, as far as the format says it before the first.
    var contents: MotionSample.Contents { get }
    /// The sensor's axes, where the format says them.
    var axes: AxisMap? { get }
    /// How long the motion lasts, where the format says it.
    var duration: MediaTime? { get }

    /// Appends the next samples, in the sensor's axes.
    ///
    /// - Parameter given: How many were passed on before, for the fault's remedy.
    /// - Returns: False at the end.
    /// - Throws: ``FrameHostError`` for damage; the samples before it are appended.
    func read(into samples: inout [MotionSample], given: Int) throws -> Bool
}

extension MotionReader {
    var duration: MediaTime? { nil }
}

/// A file of lines: `.csv`, `.gcsv`.
final class CSVFile: MotionReader {
    private let path: String
    private let lines: LineFile
    private var parser: CSVMotion

    init(_ held: HeldFile, path: String, units: MotionUnits, isTurned: Bool) {
        self.path = path
        lines = LineFile(held, mostLineBytes: CSVMotion.mostLineBytes)
        parser = CSVMotion(units: units, isTurned: isTurned)
    }

    var contents: MotionSample.Contents { parser.contents }
    var axes: AxisMap? { parser.axes }

    func read(into samples: inout [MotionSample], given: Int) throws -> Bool {
        switch lines.read() {
        case .line(let line, let isCut):
            do throws(MotionFault) {
                if let sample = try parser.take(line) { samples.append(sample) }
            } catch {
                throw fault(isCut ? error.inLastLine : error, given)
            }
            return true
        case .tooLong: throw fault(MotionFault("must have at most \(CSVMotion.mostLineBytes) bytes"), given)
        case .ended:
            guard parser.hasHeading else { throw MotionText.empty(path) }
            return false
        case .failed(let code): throw MotionText.unreadable(path, code)
        }
    }

    private func fault(_ fault: MotionFault, _ given: Int) -> FrameHostError {
        MotionText.damagedLine(path, line: lines.line, byte: lines.byte + fault.offset, fault, given: given)
    }
}

/// A file with a JSON text in each line: `.jsonl`.
final class JSONFile: MotionReader {
    private let path: String
    private let lines: LineFile
    private let units: MotionUnits
    private var merge = SensorMerge(patience: 1_000_000_000)

    let contents: MotionSample.Contents = []
    let axes: AxisMap? = nil

    init(_ held: HeldFile, path: String, units: MotionUnits) {
        self.path = path
        self.units = units
        lines = LineFile(held, mostLineBytes: JSONMotion.mostBytes)
    }

    func read(into samples: inout [MotionSample], given: Int) throws -> Bool {
        let before = given - samples.count
        switch lines.read() {
        case .line(let line, let isCut):
            guard !line.allSatisfy({ [9, 13, 32].contains($0) }) else { return true }
            do throws(MotionFault) {
                try take(line, &samples)
            } catch {
                merge.end(into: &samples)
                throw fault(isCut ? error.inLastLine : error, before + samples.count)
            }
            return true
        case .tooLong:
            merge.end(into: &samples)
            throw fault(MotionFault("must have at most \(JSONMotion.mostBytes) bytes"), before + samples.count)
        case .ended:
            merge.end(into: &samples)
            return false
        case .failed(let code): throw MotionText.unreadable(path, code)
        }
    }

    private func take(_ line: ArraySlice<UInt8>, _ samples: inout [MotionSample]) throws(MotionFault) {
        for reading in try JSONMotion.readings(in: line, units: units) {
            guard reading.stamp != nil else {
                throw MotionFault(
                    "has a sample without a time, which is needed in a file: 't' in seconds, or the 'timestamp' or 'time' in nanoseconds that an app writes"
                )
            }
            merge.add(reading.sample, into: &samples)
        }
    }

    private func fault(_ fault: MotionFault, _ given: Int) -> FrameHostError {
        MotionText.damagedLine(path, line: lines.line, byte: lines.byte, fault, given: given)
    }
}
