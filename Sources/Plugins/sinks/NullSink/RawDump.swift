// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// Writes samples one after the other, without header: the planes of a frame in order, rows without padding; for access
/// units their bytes, after the parameter sets; for blocks of sound their samples, as 32-bit floats, interleaved; for
/// motion a line of text each, as ``MotionLine`` has it.
struct RawDump: ~Copyable {
    private let path: String
    /// Nil for standard output.
    private let file: HeldFile?

    /// [control thread] An existing file is replaced; `-` is standard output.
    ///
    /// - Throws: ``FrameHostError`` `.unavailable`.
    init(path: String, _ files: RunFiles, as stage: String) throws {
        self.path = path
        do throws(FileRefusal) {
            file = path == "-" ? nil : try files.rewrite(path, as: stage, patience: 3_000_000_000)
        } catch { throw error.fault(path) }
    }

    private var descriptor: Int32 { file?.descriptor ?? StandardOutput.descriptor }

    func write(_ frame: borrowing Frame) throws {
        for index in 0..<frame.planeCount {
            try frame.withPlane(index) { plane in
                if plane.strideBytes == plane.rowBytes {
                    try write(UnsafeRawBufferPointer(start: plane.baseAddress, count: plane.rowBytes * plane.height))
                } else {
                    for y in 0..<plane.height {
                        try write(
                            UnsafeRawBufferPointer(
                                start: plane.baseAddress + y * plane.strideBytes, count: plane.rowBytes))
                    }
                }
            }
        }
    }

    func write(_ unit: borrowing AccessUnit) throws { try unit.withBytes { try write($0) } }

    func write(_ block: borrowing AudioBlock) throws {
        try block.withSamples { try write(UnsafeRawBufferPointer($0)) }
    }

    func write(_ block: borrowing MotionBlock) throws {
        for index in 0..<block.sampleCount {
            var line = MotionLine.text(block[index])
            try line.withUTF8 { try write(UnsafeRawBufferPointer($0)) }
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        let code = Transfer.write(bytes, to: descriptor)
        guard code == 0 else { throw fault(code) }
    }

    /// Finishes the file. Must be called only once.
    mutating func close() throws {
        let code = file?.close() ?? 0
        guard code == 0 else { throw FileRefusal.failed(code).fault(path) }
    }

    private func fault(_ code: Int32) -> FrameHostError {
        guard path == "-" else { return FileRefusal.failed(code).fault(path) }
        let remedy =
            switch code {
            case EPIPE: "Check the program that reads the output: it has ended."
            case EBADF: "Start the program without '>&-'."
            case ENOSPC, EDQUOT: "Free some space where the output goes, or name a file in 'dump'."
            default: "Name a file in 'dump'."
            }
        return FrameHostError(
            .unavailable,
            what: "\(StandardStream.output.rawValue) cannot be written: \(String(cString: strerror(code)))",
            remedy: remedy)
    }
}
