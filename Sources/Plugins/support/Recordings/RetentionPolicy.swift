// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Decides which finished files of a recorder are removed, by their age and their total size. Pure.
package struct RetentionPolicy {
    /// A file that is the recorder's own.
    package struct File: Equatable {
        package var path: String
        package var bytes: Int64
        /// How long ago it was last written, nanoseconds.
        package var age: Int64
        package var order: RecordingOrder
        /// Nil only in tests of the policy.
        package var identity: FileIdentity? = nil
    }

    /// Nanoseconds; nil keeps files of any age.
    package let age: Int64?
    package let byteLimit: Int64?

    package init(seconds: Double?, megabytes: Double?) {
        age = seconds.map { Int64($0 * 1e9) }
        byteLimit = megabytes.map { Int64($0 * 1_000_000) }
    }

    package var isOn: Bool { age != nil || byteLimit != nil }

    /// The files to remove, in the order in which they were recorded.
    ///
    /// - Parameters:
    ///   - files: All but the one being written.
    ///   - writing: Bytes of the one being written, which count too.
    package func excess(_ files: [File], writing: Int64) -> [File] {
        let oldestFirst = files.sorted { $0.order < $1.order }
        var total = oldestFirst.reduce(writing) { Self.sum($0, $1.bytes) }
        return oldestFirst.filter { file in
            let isOld = age.map { file.age > $0 } ?? false
            let isMuch = byteLimit.map { total > $0 } ?? false
            guard isOld || isMuch else { return false }
            total -= min(file.bytes, total)
            return true
        }
    }

    /// Adds sizes without overflow: a sparse file may claim exabytes.
    package static func sum(_ a: Int64, _ b: Int64) -> Int64 {
        let (sum, isTooMuch) = a.addingReportingOverflow(b)
        return isTooMuch ? .max : sum
    }
}

/// The place of a recording among those of its recorder: by its number, which counts on from run to run. Times are
/// compared only where numbers are equal: those of adopted files, and of two recorders that recorded at the same time.
package struct RecordingOrder: Comparable {
    package var number: Int64
    package var unixMilliseconds: Int64
    package var path: String

    package static func < (a: RecordingOrder, b: RecordingOrder) -> Bool {
        (a.number, a.unixMilliseconds, a.path) < (b.number, b.unixMilliseconds, b.path)
    }
}
