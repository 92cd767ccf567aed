import Glibc

/// How much a pipe holds before its writer has to wait.
enum PipeRoom {
    /// F_SETPIPE_SZ of fcntl(2), which Swift's Glibc does not show.
    private static let setSize: Int32 = 1031
    /// What every user may have, as the kernel comes (/proc/sys/fs/pipe-max-size).
    private static let bytes: Int32 = 1 << 20

    /// More room means fewer turns of both programs. What is no pipe, and what the system does not allow, stays as it
    /// is.
    static func widen(_ descriptor: Int32) { _ = fcntl(descriptor, setSize, bytes) }
}
