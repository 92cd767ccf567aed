// SPDX-License-Identifier: Apache-2.0

import Glibc

extension JSONReader {
    /// The value that a file holds; places begin with `path`.
    ///
    /// Takes regular files, pipes and a terminal, so that `/dev/stdin` works; waits for a pipe's writer. Reads no more
    /// than the limit.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - form: What the file should be, for remedies: `chain file`.
    ///   - limits: Most bytes, depth and so on.
    ///   - remedy: What to write, as a sentence, where the file is empty or begins with something else than a value;
    ///     nil where any value will do.
    ///   - takesPipes: Whether a pipe or terminal is read as well; if not, only a regular file, which never waits.
    /// - Throws: ``FrameHostErrors``: `.unavailable` where the file cannot be opened or read, otherwise
    ///   `.invalidConfiguration`.
    public static func read(
        path: String, form: String = "JSON file", limits: Limits = Limits(), remedy: String? = nil,
        takesPipes: Bool = true
    ) throws -> JSONNode {
        do {
            return try read(
                contents(of: path, form, limits, takesPipes), file: path, limits: limits, remedy: remedy)
        } catch let error as FrameHostError {
            throw FrameHostErrors([error])
        }
    }

    private static func contents(
        of path: String, _ form: String, _ limits: Limits, _ takesPipes: Bool
    ) throws -> [UInt8] {
        // Without O_NONBLOCK this call would wait for the writer of a pipe.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (takesPipes ? 0 : O_NONBLOCK))
        guard descriptor >= 0 else { throw FrameHostError.noFile(path, "opened", errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw FrameHostError.noFile(path, "examined", errno) }
        switch status.st_mode & S_IFMT {
        case S_IFREG:
            guard status.st_size <= limits.bytes else {
                throw FrameHostError.tooLong(
                    Int(status.st_size), file: path, limits: limits, remedy: remedyOfTooLong(form))
            }
        case S_IFDIR: throw FrameHostError.noText(path, "is a folder", form)
        case _ where !takesPipes:
            throw FrameHostError.noText(
                path, "must be a regular file, because the chain is running", "\(form) that is a regular file")
        case S_IFIFO: break
        case S_IFCHR where isatty(descriptor) == 1: break
        default: throw FrameHostError.noText(path, "must be a file or a pipe", form)
        }
        return try contents(of: descriptor, path: path, form, limits)
    }

    private static func remedyOfTooLong(_ form: String) -> String { "Check that this is the \(form) you mean." }

    private static func contents(
        of descriptor: Int32, path: String, _ form: String, _ limits: Limits
    ) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = SystemCall.retrying { Glibc.read(descriptor, &chunk, chunk.count) }
            if count == 0 { return bytes }
            guard count > 0 else { throw FrameHostError.noFile(path, "read", errno) }
            bytes += chunk[..<count]
            guard bytes.count <= limits.bytes else {
                throw FrameHostError.tooLong(
                    nil, file: path, limits: limits, remedy: remedyOfTooLong(form))
            }
        }
    }
}

extension FrameHostError {
    fileprivate static func noFile(_ path: String, _ verb: String, _ number: Int32) -> FrameHostError {
        let remedy =
            switch number {
            case ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG: "Check the path."
            case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
            case EACCES: "Give this user permission to read the file and to enter the folders above it."
            default: "Check that the path leads to a file that can be read."
            }
        return FrameHostError(
            .unavailable, place: FaultPlace(file: path),
            what: "cannot be \(verb): \(String(cString: strerror(number)))", remedy: remedy,
            reason: .of(errno: number))
    }

    fileprivate static func noText(_ path: String, _ what: String, _ form: String) -> FrameHostError {
        FrameHostError(.invalidConfiguration, place: FaultPlace(file: path), what: what, remedy: "Name a \(form).")
    }
}
