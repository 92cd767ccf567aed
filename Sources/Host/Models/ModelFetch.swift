// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// Brings one model into a data folder: from its publisher, another server or a folder.
///
/// The bytes go into a hidden file beside the final name. It is locked while it is written, and kept when a transfer
/// breaks off, so that the next transfer continues it. Once its hash is right, link(2) gives it the final name. A file
/// that has that name already stays as it is.
struct ModelFetch {
    enum Origin {
        case url(String)
        case file(String)
    }

    let model: KnownModel
    let origin: Origin
    let folder: String
    let library: FetchLibrary
    /// The certificates by which servers are checked; nil to use the system's.
    let authorities: String?

    /// The most transfers before the fetch gives up. A transfer that brings nothing counts as four.
    private static let mostAttempts = 12

    private var finalPath: String { "\(folder)/\(model.fileName)" }
    private var partPath: String { "\(folder)/.\(model.fileName).part" }

    /// The address or folder of `--from`.
    ///
    /// - Throws: ``FrameHostError`` `.invalidConfiguration`.
    static func origin(_ from: String?, of model: KnownModel) throws -> Origin {
        guard let from else { return .url(model.url) }
        if let colon = from.firstIndex(of: ":"), from[colon...].hasPrefix("://") {
            guard from[..<colon].lowercased() == "https" else {
                throw FrameHostError(
                    .invalidConfiguration, place: "--from",
                    what: "the address must start with https://, but starts with \(from[..<colon])://",
                    remedy: "Write an address with https://, or name a folder that has \(model.fileName).")
            }
            return .url(
                from.hasSuffix(".onnx")
                    ? from : from.hasSuffix("/") ? from + model.fileName : "\(from)/\(model.fileName)")
        }
        var status = stat()
        guard stat(from, &status) == 0 else {
            throw FrameHostError(
                .invalidConfiguration, place: "--from",
                what: "\(from) cannot be read: \(String(cString: strerror(errno)))",
                remedy: "Name a folder with \(model.fileName), or an address that starts with https://.")
        }
        return .file(status.st_mode & S_IFMT == S_IFDIR ? "\(from)/\(model.fileName)" : from)
    }

    /// Brings the model's file.
    ///
    /// - Returns: The path, and false when it was there already.
    /// - Throws: ``FrameHostError`` `.unavailable`, `.invalidMedia`.
    func run() throws -> (path: String, isNew: Bool) {
        let shelf = ModelShelf(folders: DataFolders(folders: [folder]), library: library)
        if DataFolders.isThere(finalPath) {
            switch shelf.state(of: finalPath, model) {
            case .right: return (finalPath, false)
            case .unreadable(_, let why):
                throw FrameHostError(
                    .unavailable, place: finalPath, what: "is here already, but cannot be read: \(why)",
                    remedy: "Make it readable, move it away, or name another folder with --to.")
            case .missing, .wrong: throw isOccupied()
            }
        }
        try makeFolder()
        let part = try openPart()
        defer {
            // An empty file is of no use to the next attempt.
            if size(part) == 0 { removePart(part) }
            close(part)
        }
        switch origin {
        case .url(let url): try download(url, to: part)
        case .file(let path): try copy(path, to: part)
        }
        try checkHash(part)
        try publish(part)
        return (finalPath, true)
    }

    private func isOccupied() -> FrameHostError {
        FrameHostError(
            .unavailable, place: finalPath, what: "another file is here already, and is not replaced",
            remedy: "Move that file away, or name another folder with --to.")
    }

    private func cannotWrite(_ path: String, _ error: Int32) -> FrameHostError {
        FrameHostError(
            .unavailable, place: path, what: "cannot be written: \(String(cString: strerror(error)))",
            remedy: error == ENOSPC || error == EDQUOT
                ? "Free \(Terminal.bytes(model.byteCount)), or name another folder with --to, and run the command again."
                : error == EFBIG
                    ? "Raise the limit of a file's size (ulimit -f), or name another folder with --to."
                    : "With --to, name a folder that you may write to.")
    }

    /// Makes the missing folders of the path.
    private func makeFolder() throws {
        var path = ""
        for (index, part) in folder.split(separator: "/", omittingEmptySubsequences: false).enumerated() {
            path += index == 0 ? part : "/\(part)"
            guard !path.isEmpty else { continue }
            if mkdir(path, 0o755) != 0, errno != EEXIST, errno != EISDIR, errno != EROFS {
                throw cannotWrite(path, errno)
            }
        }
    }

    // MARK: The part that is there

    /// Opens and locks the part: a regular file that has no other name.
    private func openPart() throws -> Int32 {
        let file = open(partPath, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0o644)
        guard file >= 0 else { throw cannotWrite(partPath, errno) }
        var status = stat()
        let isOurs = fstat(file, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_nlink == 1
        guard isOurs else {
            close(file)
            throw FrameHostError(
                .unavailable, place: partPath,
                what: "is in the way, because it is not a regular file, or has other hard links",
                remedy: "Move it away, or name another folder with --to.")
        }
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
            close(file)
            throw FrameHostError(
                .unavailable, place: partPath, what: "another framehost is fetching \(model.name) into this folder",
                remedy: "Wait until it has ended, or name another folder with --to.")
        }
        return file
    }

    private func size(_ file: Int32) -> Int {
        var status = stat()
        return fstat(file, &status) == 0 ? Int(status.st_size) : 0
    }

    /// Removes the part's name, where it still leads to the part.
    private func removePart(_ file: Int32) {
        var ours = stat()
        var there = stat()
        guard fstat(file, &ours) == 0, lstat(partPath, &there) == 0, ours.st_dev == there.st_dev,
            ours.st_ino == there.st_ino
        else {
            return
        }
        unlink(partPath)
    }

    private func empty(_ file: Int32) throws { if ftruncate(file, 0) != 0 { throw cannotWrite(partPath, errno) } }

    // MARK: From a server

    private func download(_ url: String, to part: Int32) throws {
        // A part that is larger than the model, or as large but wrong, is of no use.
        if size(part) > model.byteCount || (size(part) == model.byteCount && library.sha256(of: part) != model.sha256) {
            try empty(part)
        }
        let progress = FetchProgress("fetching \(model.name)", total: model.byteCount)
        defer { progress.end() }
        var attempts = 0
        while size(part) < model.byteCount {
            let before = size(part)
            let result = library.get(
                url, authorities: authorities, from: before, most: model.byteCount, to: part, progress: progress)
            if result.isTooLong {
                try empty(part)
                throw FrameHostError(
                    .invalidMedia, place: url,
                    what: "gives more than the \(model.byteCount) bytes that \(model.name) has",
                    remedy: url == model.url
                        ? "Get \(anotherWay)"
                        : "With --from, name the address of \(model.fileName) or a folder that has it, or leave --from out."
                )
            }
            if result.writeError != 0 { throw cannotWrite(partPath, result.writeError) }
            if result.code == 0 { break }
            if before > 0, result.refusesRange {
                try empty(part)
                attempts += 1
                if attempts < Self.mostAttempts { continue }
            }
            let brought = size(part) > before
            attempts += brought ? 1 : 4
            guard isWorthAnother(result), attempts < Self.mostAttempts else {
                throw failed(url, result, got: size(part))
            }
            usleep(brought ? 100_000 : 1_000_000)
        }
    }

    /// Whether another attempt may help: after a transfer that broke off, but not after one that was refused.
    private func isWorthAnother(_ result: FetchLibrary.Result) -> Bool {
        // CURLE_PARTIAL_FILE, _OPERATION_TIMEDOUT, _GOT_NOTHING, _SEND_ERROR, _RECV_ERROR (also where TLS breaks
        // off in mid-stream), _HTTP2_STREAM.
        [18, 28, 52, 55, 56, 92].contains(result.code)
    }

    private func failed(_ url: String, _ result: FetchLibrary.Result, got: Int) -> FrameHostError {
        FrameHostError(
            .unavailable, place: url,
            what: result.status >= 400
                ? "the server answers with HTTP status \(result.status)" : "cannot be fetched: \(result.words)",
            remedy: got > 0 && isWorthAnother(result)
                ? "Run the same command again: it continues after the \(got) of \(model.byteCount) bytes that are there."
                : check(url, result))
    }

    /// What to do about a transfer that another attempt would not mend. Nobody can correct the publisher's address.
    private func check(_ url: String, _ result: FetchLibrary.Result) -> String {
        switch result.status {
        case 429, 500...: "Run the same command again later. If that does not help, get \(anotherWay)"
        case 400... where url == model.url: "Get \(anotherWay)"
        case 400...: "Check the address of --from, or leave --from out."
        // CURLE_PEER_FAILED_VERIFICATION, _SSL_CACERT_BADFILE.
        case _ where [60, 77].contains(result.code):
            "Set SSL_CERT_FILE to a file with the certificate authority of the server, or get \(anotherWay)"
        default: "Check the connection and run the same command again. If that does not help, get \(anotherWay)"
        }
    }

    /// The end of a sentence.
    private var anotherWay: String { "\(model.fileName) in another way, and name its folder with --from." }

    // MARK: From a folder

    private func copy(_ path: String, to part: Int32) throws {
        func cannotRead(_ error: Int32) -> FrameHostError {
            FrameHostError(
                .unavailable, place: path, what: "cannot be read: \(String(cString: strerror(error)))",
                remedy: "With --from, name a folder that has \(model.fileName), and let this user read the file.")
        }
        let source = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard source >= 0 else { throw cannotRead(errno) }
        defer { close(source) }
        guard size(source) == model.byteCount else {
            throw FrameHostError(
                .invalidMedia, place: path, what: "has \(size(source)) bytes, but \(model.name) has \(model.byteCount)",
                remedy: "With --from, name a folder that has the right \(model.fileName).")
        }
        try empty(part)
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        var offset = 0
        while offset < model.byteCount {
            let most = min(bytes.count, model.byteCount - offset)
            let count = SystemCall.retrying { read(source, &bytes, most) }
            guard count >= 0 else { throw cannotRead(errno) }
            if count == 0 { break }
            let code = bytes.withUnsafeBytes {
                Transfer.write(UnsafeRawBufferPointer(rebasing: $0[..<count]), to: part, at: Int64(offset))
            }
            guard code == 0 else { throw cannotWrite(partPath, code) }
            offset += count
        }
    }

    // MARK: The end

    private func checkHash(_ part: Int32) throws {
        let sha256 = library.sha256(of: part)
        guard sha256 != model.sha256 else { return }
        let source: String
        switch origin {
        case .url(let url): source = url
        case .file(let path): source = path
        }
        removePart(part)
        throw FrameHostError(
            .invalidMedia, place: source,
            what:
                "is not \(model.name): its SHA-256 is \(sha256 ?? "unknown"), but \(model.sha256) was expected; nothing was kept",
            remedy: source == model.url
                ? "Fetch the model again. If the hash is wrong again, get \(anotherWay)"
                : "With --from, name the publisher's file, or leave --from out.")
    }

    /// Gives the part its final name, unless another file has taken it meanwhile.
    private func publish(_ part: Int32) throws {
        guard fsync(part) == 0 else { throw cannotWrite(partPath, errno) }
        // Links by descriptor: another file may have the part's name by now.
        if linkat(AT_FDCWD, "/proc/self/fd/\(part)", AT_FDCWD, finalPath, AT_SYMLINK_FOLLOW) == 0 {
            removePart(part)
        } else if errno == EEXIST {
            throw isOccupied()
        } else {
            // The file system has no hard links.
            let error = library.renameToNew(partPath, finalPath)
            if error != 0 { throw error == EEXIST ? isOccupied() : cannotWrite(finalPath, error) }
        }
        let directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if directory >= 0 {
            fsync(directory)
            close(directory)
        }
    }
}
