// SPDX-License-Identifier: Apache-2.0

import Glibc

/// This program, started once more as a process of its own: a worker of a batch, an isolated stage.
public enum OwnProgram {
    /// [any thread] posix_spawn(3) of /proc/self/exe, with all signals as a program finds them. In a process group of its
    /// own, so that ctrl-C reaches the first process alone.
    ///
    /// - Parameters:
    ///   - arguments: Behind the program's name.
    ///   - variables: Of the environment, in place of this process's of the same name.
    ///   - actions: What becomes of its descriptors.
    ///   - pid: The process, if it was started.
    /// - Returns: 0, or the error's number.
    public static func spawn(
        _ arguments: [String], variables: [String: String], _ actions: inout posix_spawn_file_actions_t,
        pid: inout pid_t
    ) -> Int32 {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))
        let words: [UnsafeMutablePointer<CChar>?] = (["framehost"] + arguments).map { strdup($0) } + [nil]
        let environment = environment(variables)
        defer { for text in words + environment { free(text) } }
        return posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, words, environment)
    }

    /// This process's environment with these variables, each to be freed.
    private static func environment(_ variables: [String: String]) -> [UnsafeMutablePointer<CChar>?] {
        var environment: [UnsafeMutablePointer<CChar>?] = []
        var entry = environ
        while let text = entry.pointee {
            let name = String(cString: text).prefix { $0 != "=" }
            if variables[String(name)] == nil { environment.append(strdup(text)) }
            entry += 1
        }
        return environment + variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
    }
}
