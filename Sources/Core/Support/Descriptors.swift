// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The file descriptors of the process (getrlimit(2), `RLIMIT_NOFILE`): one budget for its own work and for everybody
/// who connects to one of its servers.
///
/// Nothing is counted. The kernel gives each new descriptor the lowest free number (open(2)), so the number of a
/// connection that was just accepted says how many are left at most, whoever opened the others. The highest numbers
/// are a ``reserve(of:)`` for the process's own work: files, devices and connections that the chain itself opens. No
/// server keeps a connection that got one of them, so clients cannot take the descriptor that a recording needs next,
/// however many servers there are.
public enum Descriptors {
    private static let wanted: rlim_t = 16_384

    /// [control thread] Raises the soft limit to 16,384, or as far as the hard one allows: shells usually grant 1,024
    /// and allow far more. Best effort.
    ///
    /// Not without bound: some libraries look at every possible number when they start. Nothing in framehost waits by
    /// select(2), which overflows from number 1,024 on. A plugin of others that does must not open descriptors late.
    ///
    /// - Returns: The limit that holds now.
    @discardableResult
    public static func raise() -> Int {
        guard var limit = present() else { return usual }
        let before = limit.rlim_cur
        limit.rlim_cur = min(limit.rlim_max, max(before, wanted))
        if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) != 0 { limit.rlim_cur = before }
        return Int(min(limit.rlim_cur, rlim_t(Int32.max)))
    }

    /// [any thread] How many descriptors the process may have.
    public static var limit: Int { present().map { Int(min($0.rlim_cur, rlim_t(Int32.max))) } ?? usual }

    private static let usual = 1024

    private static func present() -> rlimit? {
        var limit = rlimit()
        return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 ? limit : nil
    }

    /// [any thread] Lets a program that posix_spawn(3) starts have no descriptor from `first` on, but those that later
    /// actions make: not every library opens with close-on-exec.
    public static func close(from first: Int32, in actions: inout posix_spawn_file_actions_t) {
        // In glibc since 2.34; Swift does not import it (`__USE_GNU`).
        typealias CloseFrom = @convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32
        if let symbol = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np") {
            _ = unsafeBitCast(symbol, to: CloseFrom.self)(&actions, first)
        } else {
            for number in open(from: first) { posix_spawn_file_actions_addclose(&actions, number) }
        }
    }

    /// [the only thread, before execve(2)] The same for a program that takes this one's place.
    public static func closeOnExec(from first: Int32) {
        for number in open(from: first) { _ = fcntl(number, F_SETFD, FD_CLOEXEC) }
    }

    private static func open(from first: Int32) -> [Int32] {
        guard let folder = opendir("/proc/self/fd") else { return [] }
        defer { closedir(folder) }
        var numbers: [Int32] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 1) { String(cString: $0) }
            }
            if let number = Int32(name), number >= first, number != dirfd(folder) { numbers.append(number) }
        }
        return numbers
    }

    /// How many of `limit` descriptors are for the process's own work only.
    public static func reserve(of limit: Int) -> Int { min(256, limit / 4) }

    /// How many further ones only the control server's clients may take, so that a flood of others leaves a way in.
    public static func controlReserve(of limit: Int) -> Int { min(64, limit / 16) }

    /// [any thread] Whether a server may keep a connection whose descriptor has this number.
    ///
    /// - Parameters:
    ///   - number: The descriptor's number.
    ///   - isControl: Whether it is the control server.
    ///   - limit: How many descriptors the process may have.
    public static func mayKeep(_ number: Int32, isControl: Bool = false, limit: Int = limit) -> Bool {
        number < limit - reserve(of: limit) - (isControl ? 0 : controlReserve(of: limit))
    }

    /// [control thread] Checks that there are so many free descriptors, by taking them and giving them back, for
    /// libraries that end the process where they cannot get one.
    ///
    /// - Parameters:
    ///   - count: How many must be free.
    ///   - user: Who needs them: `the control server`.
    ///   - purpose: `its network thread`.
    /// - Throws: ``FrameHostError`` `.unavailable`.
    public static func check(_ count: Int, for user: String, _ purpose: String) throws {
        var files: [Int32] = []
        defer { for file in files { Glibc.close(file) } }
        for _ in 0..<count {
            let file = Glibc.open("/dev/null", O_RDONLY | O_CLOEXEC)
            guard file >= 0 else {
                let code = errno
                throw FrameHostError(
                    .unavailable,
                    what: "\(user) needs \(count) file descriptors for \(purpose): \(String(cString: strerror(code)))",
                    remedy: "Raise the limit of open files (ulimit -n).", reason: .of(errno: code))
            }
            files.append(file)
        }
    }
}

/// Checks that threads can be started, for libraries that end the process or wait for ever where they cannot.
public enum ThreadRoom {
    /// [control thread] Starts so many threads at once, and lets them end.
    ///
    /// - Parameters:
    ///   - count: How many threads.
    ///   - user: Who needs them: `the control server cannot start its threads`.
    /// - Throws: ``FrameHostError`` `.unavailable`.
    public static func check(_ count: Int, for user: String) throws {
        let isOver = WaitableFlag()
        var threads: [NamedThread] = []
        defer {
            isOver.raise()
            for thread in threads { thread.join() }
        }
        do {
            for _ in 0..<count { threads.append(try NamedThread("check") { isOver.wait() }) }
        } catch {
            throw FrameHostError(.unavailable, what: "\(user) (\(count)): \(error)", remedy: NoThread.remedy)
        }
    }
}
