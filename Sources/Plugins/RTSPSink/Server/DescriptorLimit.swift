// SPDX-License-Identifier: Apache-2.0

import Glibc

/// How many files and sockets the process may have open (getrlimit(2), `RLIMIT_NOFILE`).
enum DescriptorLimit {
    private static let wanted: rlim_t = 16_384

    /// [control thread] Raises the soft limit, as far as the hard one allows, so that each connection can have a
    /// descriptor: shells usually grant 1,024 and allow far more. Best effort.
    ///
    /// - Returns: The limit that holds now.
    @discardableResult
    static func raise() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        let before = limit.rlim_cur
        limit.rlim_cur = min(limit.rlim_max, max(before, wanted))
        if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) != 0 { limit.rlim_cur = before }
        return Int(min(limit.rlim_cur, rlim_t(Int32.max)))
    }

    /// How many of them connections may use, so that some are left for files and devices of other stages.
    static func connections(of limit: Int) -> Int { limit - min(256, limit / 4) }
}
