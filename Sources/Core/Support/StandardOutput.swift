import Glibc
import Synchronization

/// The program's own standard output. Descriptor 1 is not: a program that writes JSON lines gives that to whatever
/// plugins and libraries print, so that they cannot write among its lines.
public enum StandardOutput {
    private static let kept = Atomic<Int32>(STDOUT_FILENO)

    /// [any thread] Where a stage writes that is asked for standard output: a dump to `-`.
    public static var descriptor: Int32 { kept.load(ordering: .relaxed) }

    /// [main thread, before any plugin is loaded] Keeps standard output for the program itself. What anybody else
    /// writes to descriptor 1 goes to standard error from here on; programs that are started inherit that too.
    public static func keepForProgram() {
        guard descriptor == STDOUT_FILENO else { return }
        // What was printed so far is the program's own.
        fflush(nil)
        let file = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
        guard file >= 0, dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 else { return }
        kept.store(file, ordering: .relaxed)
    }

    /// [main thread, first of all] Opens /dev/null for each of the first three descriptors that is closed: the next
    /// file opened would become standard output, and be written to.
    public static func fillGaps() {
        while true {
            let file = open("/dev/null", O_RDWR)
            guard (0...STDERR_FILENO).contains(file) else {
                if file > STDERR_FILENO { close(file) }
                return
            }
        }
    }
}
