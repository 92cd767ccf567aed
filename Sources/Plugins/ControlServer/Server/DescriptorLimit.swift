// SPDX-License-Identifier: Apache-2.0

import Glibc

/// How many files and sockets the process may have open (getrlimit(2), `RLIMIT_NOFILE`).
enum DescriptorLimit {
    private static let wanted: rlim_t = 16_384

    /// [control thread] Raises the soft limit where the hard one allows: shells usually grant 1,024 and allow far more.
    ///
    /// - Returns: what holds now.
    static func raise() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        let before = limit.rlim_cur
        limit.rlim_cur = min(limit.rlim_max, max(before, wanted))
        if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) != 0 { limit.rlim_cur = before }
        return Int(min(limit.rlim_cur, rlim_t(Int32.max)))
    }

    /// How many of them connections may use, so that some are left for files and devices of the stages.
    static func connections(of limit: Int) -> Int { max(limit - min(256, limit / 2), 1) }
}
