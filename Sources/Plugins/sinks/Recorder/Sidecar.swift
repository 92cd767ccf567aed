// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Recordings

/// A file that is made, counted and removed with a recording, under its name with another ending.
enum Sidecar: CaseIterable, RecordingCompanion {
    /// A Gyroflow file with the motion.
    case gyroflow
    /// A WebVTT file with faces and events.
    case captions

    /// The ending of its name, with the dot.
    var ending: String {
        switch self {
        case .gyroflow: ".gcsv"
        case .captions: ".vtt"
        }
    }

    /// The first lines of our files, which tell them from those of other programs.
    var mark: String {
        switch self {
        case .gyroflow: GyroflowText.mark
        case .captions: CaptionText.mark
        }
    }

    /// `out.gcsv` beside `out.mp4`.
    func path(beside recording: String) -> String {
        let name = recording.lastIndex(of: "/").map { recording.index(after: $0) } ?? recording.startIndex
        guard let dot = recording[name...].lastIndex(of: "."), dot > name else { return recording + ending }
        return recording[..<dot] + ending
    }

    /// The size of our file beside a recording; nil where there is none, where it is not ours, or where it may belong
    /// to another recording, of the same name with another ending.
    func size(beside recording: String) -> Int64? {
        Container.endings.contains { isThere(ending: $0, otherThan: recording) }
            ? nil : size(of: path(beside: recording))
    }

    private func isThere(ending: String, otherThan recording: String) -> Bool {
        let other = path(beside: recording).dropLast(self.ending.count) + ending
        var status = stat()
        return other != recording && lstat(String(other), &status) == 0
    }

    /// The size of our file of this name; nil where there is none, or where it is not ours.
    func size(of path: String) -> Int64? {
        let file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        let mark = Array(mark.utf8)
        var bytes = [UInt8](repeating: 0, count: mark.count)
        guard pread(file, &bytes, bytes.count, 0) == bytes.count, bytes == mark else { return nil }
        return min(max(Int64(status.st_size), 0), 1 << 53)
    }

    /// Removes our file beside a recording that was removed, if nobody uses it.
    func remove(beside recording: String, _ files: RunFiles) {
        guard size(beside: recording) != nil else { return }
        _ = files.remove(path(beside: recording), as: OutputFile.holder)
    }
}

extension RecordingMark {
    /// The files that were made beside the recording.
    var ownSidecars: [Sidecar] { Sidecar.allCases.filter { sidecars.contains($0.ending) } }
}

/// A sidecar that is written piece by piece while recording.
///
/// A piece that cannot be written ends the file, after the piece before; the recording goes on.
class SidecarLog {
    let kind: Sidecar
    private let file: HeldFile
    /// What the next ``flush()`` writes.
    final var lines: [UInt8] = []
    /// Bytes of whole pieces in the file.
    final private(set) var size: Int64 = 0
    /// The errno of the call that failed; 0 before that.
    final private(set) var failure: Int32 = 0

    /// - Parameters:
    ///   - file: An empty file.
    ///   - head: What it begins with.
    init(_ kind: Sidecar, _ file: HeldFile, head: String) {
        self.kind = kind
        self.file = file
        lines.reserveCapacity(16 << 10)
        lines += head.utf8
        flush()
    }

    final var path: String { file.path }

    /// Writes the pieces since the last call.
    final func flush() {
        defer { lines.removeAll(keepingCapacity: true) }
        guard failure == 0, !lines.isEmpty else { return }
        failure = lines.withUnsafeBytes { file.write($0) }
        if failure == 0 {
            size += Int64(lines.count)
        } else if file.isRegular {
            _ = SystemCall.retrying { ftruncate(file.descriptor, Int(size)) }
        }
    }

    /// Waits until the pieces are on the disk.
    final func sync() {
        guard failure == 0, file.isRegular else { return }
        if SystemCall.retrying({ fdatasync(file.descriptor) }) != 0 { failure = errno }
    }

    /// Closes the file.
    final func finish(syncs: Bool) {
        flush()
        if syncs { sync() }
        let code = file.close()
        if failure == 0 { failure = code }
    }
}
