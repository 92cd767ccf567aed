// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// What the program has made and removes again: copies of plugins, traces of chains that do not run yet. A signal that
/// ends the program at once must not leave them behind. [any thread]
final class Leftovers: Sendable {
    /// Those of this process.
    static let shared = Leftovers()

    private struct State {
        var folders: Set<String> = []
        /// Files by path, as they were made: another may have the name by now.
        var files: [String: FileIdentity] = [:]
        var isEnding = false
    }

    private let state = Locked(State())

    /// Makes a folder, unless the program ends.
    ///
    /// - Parameter make: Returns the folder's path; nil where it cannot be made.
    /// - Returns: What `make` returns; nil where the program ends.
    func makeFolder(_ make: () -> String?) -> String? {
        state.withLock { state in
            guard !state.isEnding, let folder = make() else { return nil }
            state.folders.insert(folder)
            return folder
        }
    }

    /// The folder was removed.
    func forget(folder: String) { state.withLock { _ = $0.folders.remove(folder) } }

    /// A file was made that is of no use if the program ends now.
    func add(file: String) {
        // A pipe or device was there before.
        guard let identity = Self.identity(file) else { return }
        state.withLock { $0.files[file] = identity }
    }

    /// The regular file of that name; nil where there is none.
    private static func identity(_ file: String) -> FileIdentity? {
        var status = stat()
        guard lstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return FileIdentity(status)
    }

    /// The file is of use now.
    func forget(file: String) { state.withLock { $0.files[file] = nil } }

    /// The program ends at once: removes everything. Nothing is made from here on.
    func removeAll() {
        let (folders, files) = state.withLock { state in
            state.isEnding = true
            return (state.folders, state.files)
        }
        for (path, identity) in files where Self.identity(path) == identity { unlink(path) }
        for folder in folders {
            // Another thread may be about to write into it.
            for _ in 0..<20 where !FileFolder.remove(folder) { usleep(2_000) }
        }
    }
}

/// A folder with plain files.
enum FileFolder {
    /// Removes the files in a folder and the folder itself; false where it is still there.
    static func remove(_ folder: String) -> Bool {
        guard let handle = opendir(folder) else { return errno == ENOENT }
        while let entry = readdir(handle) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { unlink("\(folder)/\(name)") }
        }
        closedir(handle)
        return rmdir(folder) == 0 || errno == ENOENT
    }
}

/// Ends the process.
enum ProgramEnd {
    /// [any thread] Ends a run that has come to its end, once its last lines are written, as long as somebody reads them.
    ///
    /// - Parameter mayUnwind: Whether destructors may run: no thread is inside native code.
    static func afterRun(_ status: Int32, mayUnwind: Bool = true) -> Never {
        let status = Terminal.status(status)
        guard mayUnwind, OutputWriter.shared.isIdle else { _exit(status) }
        exit(status)
    }

    /// [any thread] Ends the process without waiting for anything but the last lines, for a moment, and without
    /// destructors: stages and threads may be at work.
    static func atOnce(_ status: Int32) -> Never {
        Leftovers.shared.removeAll()
        _ = OutputWriter.shared.finish(longest: 200_000_000)
        _exit(status)
    }
}
