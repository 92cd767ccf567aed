// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Decides which finished files of a recorder are removed, by their age and their total size. Pure.
struct RetentionPolicy {
    struct File: Equatable {
        var path: String
        var bytes: Int64
        /// When it was last written, nanoseconds since 1970.
        var time: Int64
        /// Nil only in tests of the policy.
        var identity: FileIdentity? = nil
    }

    /// Nanoseconds; nil keeps files of any age.
    let age: Int64?
    let byteLimit: Int64?

    init(seconds: Double?, megabytes: Double?) {
        age = seconds.map { Int64($0 * 1e9) }
        byteLimit = megabytes.map { Int64($0 * 1_000_000) }
    }

    var isOn: Bool { age != nil || byteLimit != nil }

    /// The files to remove, oldest first.
    ///
    /// - Parameters:
    ///   - files: All but the one being written.
    ///   - writing: Bytes of the one being written, which count too.
    func excess(_ files: [File], writing: Int64, now: Int64) -> [File] {
        let oldestFirst = files.sorted { ($0.time, $0.path) < ($1.time, $1.path) }
        var total = oldestFirst.reduce(writing) { Self.sum($0, $1.bytes) }
        return oldestFirst.filter { file in
            let isOld = age.map { now - file.time > $0 } ?? false
            let isMuch = byteLimit.map { total > $0 } ?? false
            guard isOld || isMuch else { return false }
            total -= min(file.bytes, total)
            return true
        }
    }

    /// Adds sizes without overflow: a sparse file may claim exabytes.
    private static func sum(_ a: Int64, _ b: Int64) -> Int64 {
        let (sum, isTooMuch) = a.addingReportingOverflow(b)
        return isTooMuch ? .max : sum
    }
}

extension RetentionPolicy.File {
    /// A file on the disk. Time and size are bounded here, to the years 1970 to 2223 and to 8 petabytes, so that no
    /// later arithmetic overflows.
    init(path: String, _ status: stat) {
        let seconds = min(max(Int64(status.st_mtim.tv_sec), 0), 8_000_000_000)
        let nanoseconds = min(max(Int64(status.st_mtim.tv_nsec), 0), 999_999_999)
        self.init(
            path: path, bytes: min(max(Int64(status.st_size), 0), 1 << 53), time: seconds * 1_000_000_000 + nanoseconds,
            identity: FileIdentity(status))
    }
}
