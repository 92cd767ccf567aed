// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The text of a Gyroflow file (`.gcsv`, version 1.3). Pure.
enum GyroflowText {
    /// `out.gcsv` beside `out.mp4`.
    static func path(beside recording: String) -> String {
        let name = recording.lastIndex(of: "/").map { recording.index(after: $0) } ?? recording.startIndex
        guard let dot = recording[name...].lastIndex(of: "."), dot > name else { return recording + ending }
        return recording[..<dot] + ending
    }

    static let ending = ".gcsv"

    /// What our files begin with, and no other program's.
    static let mark = "GYROFLOW IMU LOG\nversion,1.3\nid,framehost\n"

    /// The lines before the samples.
    ///
    /// Times are in microseconds, rates in rad/s, accelerations in m/s². Gyroflow reads `-second, first, third` as its
    /// axes x to the right, y up, z back, after it has applied `orientation`: for picture axes (x right, y down, z
    /// forward) that is `yxz`, as it also takes CAMM. Readers look for all of it in the first 500 bytes.
    static func header(_ contents: MotionSample.Contents) -> String {
        mark + "orientation,yxz\ntscale,0.000001\ngscale,1.0\nascale,0.10197162129779283\n"
            + (contents.contains(.acceleration) ? "t,gx,gy,gz,ax,ay,az\n" : "t,gx,gy,gz\n")
    }

    /// Appends the line of a sample.
    ///
    /// - Parameters:
    ///   - acceleration: nil where none is known yet.
    ///   - begin: The time of the file's first picture.
    static func add(
        _ rate: SIMD3<Float>, _ acceleration: SIMD3<Float>?, at time: MediaTime, begin: MediaTime,
        to bytes: inout [UInt8]
    ) {
        let nanoseconds = (time - begin).nanoseconds
        bytes += "\((nanoseconds + (nanoseconds < 0 ? -500 : 500)) / 1000)".utf8
        add(rate, to: &bytes)
        if let acceleration { add(acceleration, to: &bytes) }
        bytes.append(UInt8(ascii: "\n"))
    }

    private static func add(_ values: SIMD3<Float>, to bytes: inout [UInt8]) {
        for axis in 0..<3 {
            bytes.append(UInt8(ascii: ","))
            // The shortest text that gives the same number, which never allocates: it has at most 15 bytes.
            bytes += "\(values[axis])".utf8
        }
    }
}

/// A Gyroflow file beside a recording, written line by line while recording.
///
/// A line cannot be written: then the file ends with the line before, and the recording goes on.
final class GyroflowLog {
    private let file: HeldFile
    private let begin: MediaTime
    private let hasAcceleration: Bool
    /// Gyroflow's lines have both values of one time: where a sensor gives them in turn, the latest one counts.
    private var acceleration: SIMD3<Float>?
    private var lines: [UInt8] = []
    /// Bytes of whole lines in the file.
    private(set) var size: Int64 = 0
    /// The errno of the call that failed; 0 before that.
    private(set) var failure: Int32 = 0

    var path: String { file.path }

    /// - Parameters:
    ///   - file: An empty file.
    ///   - begin: The time of the recording's first picture, which is 0 in the file.
    init(_ file: HeldFile, _ contents: MotionSample.Contents, begin: MediaTime) {
        self.file = file
        self.begin = begin
        hasAcceleration = contents.contains(.acceleration)
        lines.reserveCapacity(16 << 10)
        lines += GyroflowText.header(contents).utf8
        flush()
    }

    /// Takes note of a sample; `flush` writes it.
    func add(_ sample: MotionSample) {
        if hasAcceleration, sample.contents.contains(.acceleration) { acceleration = sample.acceleration }
        guard sample.contents.contains(.rotationRate) else { return }
        GyroflowText.add(sample.rotationRate, acceleration, at: sample.time, begin: begin, to: &lines)
    }

    /// Writes the lines since the last call.
    func flush() {
        defer { lines.removeAll(keepingCapacity: true) }
        guard failure == 0, !lines.isEmpty else { return }
        failure = lines.withUnsafeBytes { file.write($0) }
        if failure == 0 {
            size += Int64(lines.count)
        } else if file.isRegular {
            _ = SystemCall.retrying { ftruncate(file.descriptor, Int(size)) }
        }
    }

    /// Waits until the lines are on the disk.
    func sync() {
        guard failure == 0, file.isRegular else { return }
        if SystemCall.retrying({ fdatasync(file.descriptor) }) != 0 { failure = errno }
    }

    /// Closes the file.
    func finish(syncs: Bool) {
        flush()
        if syncs { sync() }
        let code = file.close()
        if failure == 0 { failure = code }
    }
}

/// Gyroflow files on the disk.
enum GyroflowFiles {
    /// The size of our file beside a recording; nil where there is none, or where it is not ours.
    static func size(beside recording: String) -> Int64? {
        let file = open(
            GyroflowText.path(beside: recording), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        let mark = Array(GyroflowText.mark.utf8)
        var bytes = [UInt8](repeating: 0, count: mark.count)
        guard pread(file, &bytes, bytes.count, 0) == bytes.count, bytes == mark else { return nil }
        return min(max(Int64(status.st_size), 0), 1 << 53)
    }

    /// Removes our file beside a recording that was removed, if nobody uses it.
    static func remove(beside recording: String, _ files: RunFiles) {
        guard size(beside: recording) != nil else { return }
        _ = files.remove(GyroflowText.path(beside: recording), as: OutputFile.holder)
    }
}
