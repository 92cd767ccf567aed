// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Small files that options name: passwords, tokens, certificates.
///
/// Links are followed. Only a regular file is opened, so that no call waits for a pipe's writer or wakes a device, and
/// because most of these files are read at the check of a chain and again at its start.
extension RunFiles {
    /// [any thread] Reads a whole small file that an option names.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - option: The key of the option, which is the fault's place.
    ///   - mostBytes: The most bytes that the file may have.
    /// - Throws: ``FrameHostError``, which shows the file's name and nothing of its content: `.invalidConfiguration`
    ///   where the option names no such file or one of another kind, `.unavailable` where the file cannot be read.
    public static func contents(
        of path: String, option: String, mostBytes: Int = 1 << 20
    ) throws(FrameHostError) -> [UInt8] {
        let small = SmallFile(path: path, option: option, mostBytes: mostBytes)
        let file = try small.open()
        defer { Glibc.close(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = SystemCall.retrying { Glibc.read(file, &chunk, chunk.count) }
            if count == 0 { return bytes }
            guard count > 0 else { throw small.unreadable(errno) }
            bytes += chunk[..<count]
            // Files of the kernel say that they have 0 bytes, and a file can grow while it is read.
            guard bytes.count <= mostBytes else { throw small.tooLarge(nil) }
        }
    }

    /// [any thread] Reads what an option names by a path, or as `env:NAME` by the name of an environment variable: a
    /// login, passwords.
    ///
    /// - Parameters:
    ///   - place: A path, or `env:NAME`.
    ///   - option: The key of the option, which is the fault's place.
    ///   - content: What must stand there, for remedies: "name:password".
    ///   - mostBytes: The most bytes that the file or the variable may have.
    ///   - resolve: Makes a path absolute that begins at the chain file's folder.
    /// - Returns: The text, and how messages name its place. They must not quote the text, and no fault of this
    ///   function quotes `place`, unless it is a file that exists or the name of a variable in capital letters.
    /// - Throws: ``FrameHostError``, as ``contents(of:option:mostBytes:)`` does; `.invalidConfiguration` where the
    ///   variable is not set.
    public static func secret(
        at place: String, option: String, content: String, mostBytes: Int = 1 << 20, resolve: (String) -> String
    ) throws(FrameHostError) -> (text: String, shown: String) {
        guard place.hasPrefix("env:") else {
            let path = resolve(place)
            // Whoever writes a password where its file is meant finds it in no message.
            if access(path, F_OK) != 0, [ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG].contains(errno) {
                throw FrameHostError(
                    .invalidConfiguration, place: FaultPlace(option),
                    what: "'\(option)' must name a file or an environment variable, and there is no such file",
                    remedy:
                        "Write \(content) into a file and name that file\(path == place ? "" : " (a relative path starts at the chain file's folder)"), or set a variable and write env:NAME."
                )
            }
            let bytes = try contents(of: path, option: option, mostBytes: mostBytes)
            return (String(decoding: bytes, as: UTF8.self), "the file '\(path)'")
        }
        let name = String(place.dropFirst(4))
        guard !name.isEmpty else {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(option),
                what: "'\(option)' is 'env:' without the name of an environment variable",
                remedy: "Write env:NAME, or name a file.")
        }
        let isName = name.utf8.allSatisfy { (65...90).contains($0) || (48...57).contains($0) || $0 == 95 }
        let shown = "the environment variable" + (isName ? " '\(name)'" : " that '\(option)' names")
        guard let value = getenv(name) else {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(option), what: "\(shown) is not set",
                remedy: "Set it to \(content), or name a file.")
        }
        let count = strlen(value)
        guard count <= mostBytes else {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(option),
                what: "\(shown) must have at most \(mostBytes) bytes, but has \(count)",
                remedy: "Check that '\(option)' names the right variable: it must hold nothing but \(content).")
        }
        return (String(cString: value), shown)
    }

    /// [any thread] Checks a small file that an option names and that a library reads by its name.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - option: The key of the option, which is the fault's place.
    ///   - mostBytes: The most bytes that the file may have. A system's list of trusted certificates has about 0.2 MB,
    ///     or several times as much with a description of each.
    /// - Throws: ``FrameHostError``, as ``contents(of:option:mostBytes:)`` does.
    public static func checkReadable(
        _ path: String, option: String, mostBytes: Int = 16 << 20
    ) throws(FrameHostError) {
        Glibc.close(try SmallFile(path: path, option: option, mostBytes: mostBytes).open())
    }
}

/// A small file that an option names, and what can be wrong with it.
private struct SmallFile {
    var path: String
    var option: String
    var mostBytes: Int

    func open() throws(FrameHostError) -> Int32 {
        var status = stat()
        // Before the opening, which a pipe's writer and a device would notice.
        guard stat(path, &status) == 0 else { throw unreadable(errno) }
        try check(status)
        // Another file may have the name by now: a pipe does not block this call either.
        let file = SystemCall.retrying { Glibc.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) }
        guard file >= 0 else { throw unreadable(errno) }
        do throws(FrameHostError) {
            guard fstat(file, &status) == 0 else { throw unreadable(errno) }
            try check(status)
        } catch {
            close(file)
            throw error
        }
        return file
    }

    private func check(_ status: stat) throws(FrameHostError) {
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFDIR: throw fault("'\(path)' is a folder", "Name a file in it.")
        case S_IFIFO: throw notRegular("a pipe")
        case S_IFSOCK: throw notRegular("a socket")
        default: throw notRegular("a device")
        }
        guard status.st_size <= mostBytes else { throw tooLarge(Int(status.st_size)) }
    }

    func unreadable(_ code: Int32) -> FrameHostError {
        let what =
            code == ENOENT
            ? "the file '\(path)' does not exist"
            : "the file '\(path)' cannot be read: \(String(cString: strerror(code)))"
        let remedy =
            switch code {
            case ENOENT: "Create it, or correct '\(option)'."
            case ENOTDIR: "Correct '\(option)': one of the folders in the path is a file."
            case ELOOP, ENAMETOOLONG: "Correct '\(option)'."
            case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
            case EIO: "Check the disk that it is on."
            default: "Correct '\(option)', or make the file readable for this user."
            }
        return fault(what, remedy, code)
    }

    /// - Parameter count: The file's bytes, where they are known.
    func tooLarge(_ count: Int?) -> FrameHostError {
        fault(
            "the file '\(path)' must have at most \(mostBytes) bytes, but has \(count.map { "\($0)" } ?? "more")",
            "Check that '\(option)' names the right file.")
    }

    private func notRegular(_ kind: String) -> FrameHostError {
        fault("'\(path)' must be a regular file, but is \(kind)", "Name a regular file.")
    }

    /// - Parameter code: The errno of a call that failed; ENOENT for a file of the wrong kind.
    private func fault(_ what: String, _ remedy: String, _ code: Int32 = ENOENT) -> FrameHostError {
        let isNamedWrongly = [ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG].contains(code)
        return FrameHostError(
            isNamedWrongly ? .invalidConfiguration : .unavailable, place: FaultPlace(option), what: what,
            remedy: remedy, reason: .of(errno: code), option: option)
    }
}
