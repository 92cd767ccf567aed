import FrameCore
import Glibc

/// Writes samples one after the other, without header: the planes of a frame in order, rows without padding; access units' bytes behind
/// the parameter sets.
struct RawDump: ~Copyable {
    private let path: String
    private var descriptor: Int32

    /// [control thread] A file that is there is replaced; `-` is standard output.
    ///
    /// - Throws: ``FrameHostError`` `.unavailable`.
    init(path: String) throws {
        self.path = path
        descriptor = path == "-" ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw FrameHostError(
                .unavailable, place: path, what: "cannot be opened for writing: \(String(cString: strerror(errno)))",
                remedy: "Name a file in a folder that is there and may be written.")
        }
    }

    deinit { if descriptor > STDERR_FILENO { _ = Glibc.close(descriptor) } }

    func write(_ frame: borrowing Frame) throws {
        for index in 0..<frame.planeCount {
            try frame.withPlane(index) { plane in
                if plane.strideBytes == plane.rowBytes {
                    try write(plane.baseAddress, plane.rowBytes * plane.height)
                } else {
                    for y in 0..<plane.height { try write(plane.baseAddress + y * plane.strideBytes, plane.rowBytes) }
                }
            }
        }
    }

    func write(_ unit: borrowing AccessUnit) throws { try unit.withBytes { try write($0) } }

    func write(_ bytes: UnsafeRawBufferPointer) throws {
        guard let base = bytes.baseAddress else { return }
        try write(base, bytes.count)
    }

    private func write(_ base: UnsafeRawPointer, _ byteCount: Int) throws {
        var done = 0
        while done < byteCount {
            let count = Glibc.write(descriptor, base + done, byteCount - done)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw fault("cannot be written") }
            done += count
        }
    }

    /// Finishes the file; once.
    mutating func close() throws {
        guard descriptor > STDERR_FILENO else { return }
        let result = Glibc.close(descriptor)
        descriptor = -1
        guard result == 0 else { throw fault("cannot be finished") }
    }

    private func fault(_ what: String) -> FrameHostError {
        FrameHostError(
            .unavailable, place: path == "-" ? "standard output" : path, what: "\(what): \(String(cString: strerror(errno)))",
            remedy: path == "-" ? "Whoever reads it has gone." : "Make room, or name another file.")
    }
}
