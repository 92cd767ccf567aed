// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// The program's own standard output, which is not descriptor 1.
///
/// What plugins and libraries print to descriptor 1 goes to standard error, so that it cannot come between the
/// program's JSON lines.
public enum StandardOutput {
    private static let kept = Atomic<Int32>(STDOUT_FILENO)

    /// [any thread] The descriptor to which a stage writes when it is asked for standard output, such as a dump to `-`.
    public static var descriptor: Int32 { kept.load(ordering: .relaxed) }

    /// [main thread, before any plugin is loaded] Keeps standard output for the program itself.
    ///
    /// From here on descriptor 1 leads to standard error, also in programs that this one starts.
    public static func keepForProgram() {
        guard descriptor == STDOUT_FILENO else { return }
        // What was printed so far is the program's own.
        fflush(nil)
        let file = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
        guard file >= 0, dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 else { return }
        kept.store(file, ordering: .relaxed)
    }

    /// [main thread, first of all] Opens /dev/null for each of the first three descriptors that is closed. Otherwise
    /// the next file that is opened would become standard output.
    ///
    /// They are opened only for reading. A write to a standard output that is closed then fails (`EBADF`), as it
    /// would without this, and nothing is thrown away unseen.
    public static func fillGaps() {
        while true {
            let file = open("/dev/null", O_RDONLY)
            guard (0...STDERR_FILENO).contains(file) else {
                if file > STDERR_FILENO { close(file) }
                return
            }
        }
    }
}
