// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Decides which finished files of a recorder are removed, by their age and their total size. Pure.
struct RetentionPolicy {
    /// A file that is the recorder's own.
    struct File: Equatable {
        var path: String
        var bytes: Int64
        /// How long ago it was last written, nanoseconds.
        var age: Int64
        var order: RecordingOrder
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

    /// The files to remove, in the order in which they were recorded.
    ///
    /// - Parameters:
    ///   - files: All but the one being written.
    ///   - writing: Bytes of the one being written, which count too.
    func excess(_ files: [File], writing: Int64) -> [File] {
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
    static func sum(_ a: Int64, _ b: Int64) -> Int64 {
        let (sum, isTooMuch) = a.addingReportingOverflow(b)
        return isTooMuch ? .max : sum
    }
}

/// The place of a recording among those of its recorder: by its number, which counts on from run to run. Times are
/// compared only where numbers are equal: those of adopted files, and of two recorders that recorded at the same time.
struct RecordingOrder: Comparable {
    var number: Int64
    var unixMilliseconds: Int64
    var path: String

    static func < (a: RecordingOrder, b: RecordingOrder) -> Bool {
        (a.number, a.unixMilliseconds, a.path) < (b.number, b.unixMilliseconds, b.path)
    }
}

/// How old recordings are, however the wall clock was set in between. Pure.
///
/// The age of a file that this recorder has completed comes from the chain's clock alone. Of other files, marks and times
/// of the file system say when they were written; where clocks disagree, the file counts as younger. A time of the future
/// decides nothing: then the file is as old as this recorder has seen it lie there unchanged.
struct RecordingAges {
    /// One moment, by the chain's clock and by the wall clock, in nanoseconds.
    struct Moment: Equatable {
        var clock: Int64
        var wall: Int64
    }

    /// When the recorder began.
    var start: Moment
    var now: Moment
    /// The start of the machine since which the chain's clock counts; 0 where it is unknown.
    var boot: UInt64
    /// When the latest recording of an earlier run began, by its mark, nanoseconds since 1970; 0 where there is none.
    var latest: Int64 = 0

    /// How far the wall clock was ahead of the chain's, by the latest mark of each start of the machine.
    var offsets: [UInt64: Int64] = [:]

    /// More than a century, so that no sum overflows.
    private static let mostStep: Int64 = 4_000_000_000_000_000_000

    /// How far the wall clock was set forward since the recorder began.
    ///
    /// A clock that began behind the recordings that were there was wrong, and its correction makes no file older.
    private var step: Int64 {
        start.wall < latest ? 0 : max(0, (now.wall - start.wall) - (now.clock - start.clock))
    }

    /// - Parameters:
    ///   - mark: The file's mark.
    ///   - written: When it was last written, nanoseconds since 1970, by the file system.
    ///   - end: When this recorder completed it, by the chain's clock; nil where it did not.
    ///   - seen: Since when this recorder has seen it unchanged, by the chain's clock.
    /// - Returns: Nanoseconds, at least 0.
    func age(of mark: RecordingMark, written: Int64, end: Int64?, seen: Int64) -> Int64 {
        if let end { return max(0, now.clock - end) }
        let least = max(0, now.clock - seen)
        let last = max(mark.unixTime, written)
        guard last <= now.wall else { return least }
        // Both clocks have counted since the file began, and only the wall clock can have been set.
        guard boot != 0, mark.boot == boot, mark.run != 0, mark.clock <= now.clock else {
            let set = max(0, (offsets[mark.boot] ?? mark.offset) - mark.offset)
            return max(least, now.wall - last - min(step, Self.mostStep) - min(set, Self.mostStep))
        }
        let set = max(0, now.wall - now.clock - mark.offset)
        return max(least, min(now.clock - mark.clock, now.wall - last - set))
    }
}

extension RecordingMark {
    /// When the first picture was taken, nanoseconds since 1970.
    var unixTime: Int64 { unixMilliseconds * 1_000_000 }
    /// How far the wall clock was ahead of the chain's then, nanoseconds.
    var offset: Int64 { unixTime - clock }
}
